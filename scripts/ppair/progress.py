"""The line that shows on a terminal how far an experiment is. Nothing of it goes anywhere else."""

from __future__ import annotations

import io
import os
import sys
from types import TracebackType
from typing import TYPE_CHECKING

from .events import Event
from .units import digits

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from .peer import Observer, Peer


class Progress:
    """A bar with what is being measured, the last rate, and the time left."""

    def __init__(
        self, total: int | None, shown: bool | None = None, on_event: Observer | None = None
    ) -> None:
        """TOTAL runs; None: not known. On stderr, if that is a terminal or SHOWN says so."""
        self.total = total
        self.on_event = on_event  # is told all events too
        self.bar: Bar | None = None
        self.task: TaskID | None = None
        self.what = ""
        if sys.stderr.isatty() if shown is None else shown:
            self._open()

    def _open(self) -> None:
        from rich.console import Console
        from rich import progress as rich

        # rich draws in ASCII where the encoding has nothing else
        stream = io.TextIOWrapper(os.fdopen(os.dup(2), "wb"), encoding="ascii", errors="replace")
        columns: list[rich.ProgressColumn] = [rich.TextColumn("{task.description}", markup=False)]
        if self.total is None:
            columns += [rich.TimeElapsedColumn()]
        else:
            columns += [rich.BarColumn(bar_width=20), rich.MofNCompleteColumn()]
            columns += [rich.TimeRemainingColumn(), rich.TextColumn("left")]
        console = Console(file=stream, force_terminal=True, highlight=False)
        self.bar = rich.Progress(*columns, console=console, transient=True, refresh_per_second=4)

    def __enter__(self) -> Progress:
        if self.bar:
            self.bar.start()
            self.task = self.bar.add_task("", total=self.total)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.bar:
            self.bar.stop()

    def began(self, what: str) -> None:
        """A run has."""
        self.what = what
        self._describe("")

    def event(self, peer: Peer, event: Event) -> None:
        """For pair.run: receivers' intervals tell the rate."""
        if self.on_event:
            self.on_event(peer, event)
        if self.bar and event["event"] == "interval" and peer.name.startswith("precv"):
            self._describe(f" {digits(event['messages_per_s'])} msg/s")

    def ended(self) -> None:
        """A run has."""
        if self.bar and self.task is not None:
            self.bar.advance(self.task)

    def _describe(self, more: str) -> None:
        if self.bar and self.task is not None:
            self.bar.update(self.task, description=f"{self.what}{more}")
