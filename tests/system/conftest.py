"""Fixtures of the system tests."""

from collections.abc import Iterator

import pair
import pytest
import relay
import wire


@pytest.fixture(autouse=True)
def _children_end() -> Iterator[None]:
    """No process and no connection outlives its test; no sanitizer has found anything."""
    yield
    relay.end_all()
    wire.close_sockets()
    pair.end_children()
    pair.assert_sanitizers_are_content()
