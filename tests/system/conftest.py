"""Fixtures of the system tests."""

from collections.abc import Iterator

import pair
import proxy
import pytest
import wire


@pytest.fixture(autouse=True)
def _children_end() -> Iterator[None]:
    """No process and no connection outlives its test."""
    yield
    pair.end_children()
    proxy.end_all()
    wire.close_sockets()
