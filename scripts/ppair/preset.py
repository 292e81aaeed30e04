"""What a preset is: a grid, what each of its points means to the two programs, how it is shown.

A preset may have parameters: options of its own, which `ppair sweep` knows when the preset is
chosen, and from whose values the preset is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from .axes import Axis, grid
from .results import Plot, Results

Values = dict[str, str]
Words = tuple[str, ...]

REPETITIONS = "3"


@dataclass(frozen=True)
class Parameter:
    """An option of a preset alone. It goes before one of psend and precv with the same name."""

    name: str  # --depth
    argument: str  # what --help calls its value
    help: str
    short: str = ""  # -d
    default: str | None = None  # None: without a value if it is not given

    @property
    def names(self) -> Words:
        """As they are typed."""
        return (self.short, self.name) if self.short else (self.name,)

    @property
    def text(self) -> str:
        """What --help says."""
        return self.help if self.default is None else f"{self.help} [{self.default}]"


@dataclass(frozen=True)
class Preset:
    """`words` gives what psend and precv get for a point, `options` what else it is to have.

    `points` gives all values, if they are not the grid; `findings` what is to be said of results.
    `made` gives the preset for the values of its parameters, by their names.
    """

    title: str
    expected: str  # what others have seen
    axes: tuple[Axis, ...]
    words: Callable[[Values], tuple[Words, Words]]
    plots: tuple[Plot, ...]
    metrics: tuple[str, ...]
    psend: Words = ()
    precv: Words = ()
    pairs: int = 1  # senders, and receivers
    repetitions: str = REPETITIONS
    points: Callable[[], Iterable[Values]] | None = None
    options: Callable[[Values], str] = lambda values: ""  # in one string, as compare takes a side
    findings: Callable[[Results], dict[str, Any]] | None = None
    parameters: tuple[Parameter, ...] = ()
    made: Callable[[Values], Preset] | None = None
    is_paired: bool = False  # senders and receivers are as many, whatever else is given

    def given(self, values: Values) -> Preset:
        """As it is with these values in the place of the parameters' defaults."""
        return self.made({**defaults(self.parameters), **values}) if self.made else self

    def pictures(self) -> tuple[Plot, ...]:
        """Its plots, with what is to be seen below the first."""
        first = self.plots[0]
        note = f"{first.note} Expected: {self.expected}".strip()
        return (replace(first, note=note), *self.plots[1:])

    def grid(self) -> Iterable[Values]:
        """Values of all points."""
        return self.points() if self.points else grid(self.axes)


def defaults(parameters: Iterable[Parameter]) -> Values:
    """Of those that have one."""
    return {p.name: p.default for p in parameters if p.default is not None}


def with_parameters(
    made: Callable[[Values], Preset], parameters: tuple[Parameter, ...]
) -> Preset:
    """The preset with all defaults, which can be made with others."""
    return replace(made(defaults(parameters)), parameters=parameters, made=made)
