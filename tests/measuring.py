"""What a slow machine, or one that does something else, may change of what a test sees."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

SANITIZED = bool(os.environ.get("PPAIR_SANITIZED"))


class Measured(AssertionError):
    """A time, a rate or a share is not what it should be: it may be the machine's, or ours."""


@contextmanager
def measured() -> Iterator[None]:
    """Around assertions of that kind, in a test that is marked `measures`. All others in it are as
    strict as anywhere: they are not tried again."""
    try:
        yield
    except AssertionError as error:
        raise Measured(str(error)) from error
