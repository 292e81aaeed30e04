"""Files that are whole or not there: written under another name and renamed."""

from __future__ import annotations

from pathlib import Path

from .failure import Exit, Failure


def write(path: Path, content: bytes) -> None:
    """In the place of an earlier one; raises Failure if the disk does not take it."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.rename(path)
    except OSError as error:
        _remove(temporary)  # of no use, and in the way if the disk is full
        raise Failure(Exit.INTERNAL, f"{path}: {error.strerror}") from None


def write_in_folder(path: Path, content: bytes) -> None:
    """The same, for which folders are made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(Exit.INTERNAL, f"{path}: {error.strerror}") from None
    write(path, content)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        pass
