"""Fixtures of the system tests."""

from collections.abc import Iterator

import pair
import pytest


@pytest.fixture(autouse=True)
def _children_end() -> Iterator[None]:
    """No process outlives its test."""
    yield
    pair.end_children()
