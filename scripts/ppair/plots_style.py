"""How all pictures look: 6.5 inches wide, readable in black and white, text as text in SVG.

matplotlib is imported when the first picture is drawn: `ppair --help` must not wait for it.
"""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .plots_scale import PLAIN_BELOW, decimal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 6.5  # inches, as all lengths here
LEFT, RIGHT = 0.62, 0.14
FONT_POINTS = 9
CHARACTER = 0.075  # width of one at that size, on average
TITLE_LINE, TEXT_LINE, CAPTION_LINE = 0.23, 0.19, 0.165
TITLE_CHARACTERS, CAPTION_CHARACTERS = 66, 104
PANEL_LABEL, GAP, X_LABELS = 0.24, 0.14, 0.46

# Okabe and Ito's colours without the yellow one, which is not seen on paper.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.3)), (0, (6, 2, 1, 2)), (0, (3, 1, 1, 1)))

SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "font.size": FONT_POINTS,
    "axes.labelsize": FONT_POINTS,
    "axes.titlesize": FONT_POINTS,
    "legend.fontsize": FONT_POINTS,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "path.simplify": True,
    "figure.dpi": 100,
    "savefig.dpi": 200,
}


@contextlib.contextmanager
def style(salt: str) -> Iterator[None]:
    """Within it, figures look so. SALT makes the ids in an SVG its own, and always the same."""
    import logging

    import matplotlib

    matplotlib.use("Agg")
    # it warns of each font in the list that is not installed
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    with matplotlib.rc_context({**SETTINGS, "svg.hashsalt": salt}):
        yield


@dataclass(frozen=True)
class Look:
    """Of one line, told apart by colour, marker and dashes."""

    color: str
    marker: str
    dashes: Any


def look(index: int) -> Look:
    """Of the line with this number."""
    return Look(
        COLORS[index % len(COLORS)], MARKERS[index % len(MARKERS)], DASHES[index % len(DASHES)]
    )


@dataclass(frozen=True)
class Words:
    """What stands around the panels. Empty: nothing, as in a page that has its own."""

    title: str
    caption: str


@dataclass(frozen=True)
class Legend:
    """Lines of it; columns of WIDTH/columns each."""

    handles: Sequence[Any]
    labels: Sequence[str]
    title: str = ""

    @property
    def columns(self) -> int:
        """As many as fit."""
        longest = max((len(label) for label in self.labels), default=1)
        fit = int((WIDTH - LEFT) / (0.6 + CHARACTER * longest))
        return max(min(fit, len(self.labels)), 1)

    @property
    def height(self) -> float:
        """In inches."""
        rows = -(-len(self.labels) // self.columns) if self.labels else 0
        return TEXT_LINE * (rows + bool(self.title and rows))


def canvas(
    words: Words,
    panels: int,
    panel_height: float,
    legend: Legend,
    left: float = LEFT,
    right: float = RIGHT,
    tick_lines: int = 1,
) -> tuple[Figure, list[Axes]]:
    """A figure with PANELS axes below one another, that share x, and room for the rest.

    TICK_LINES: how many the labels below the x axis have.
    """
    from matplotlib.figure import Figure

    title = textwrap.wrap(words.title, TITLE_CHARACTERS)
    caption = textwrap.wrap(words.caption, CAPTION_CHARACTERS)
    above = 0.06 + TITLE_LINE * len(title) + legend.height
    below = (
        X_LABELS
        + (tick_lines - 1) * CAPTION_LINE
        + CAPTION_LINE * len(caption)
        + (0.08 if caption else 0.0)
    )
    height = above + panels * (PANEL_LABEL + panel_height) + (panels - 1) * GAP + below
    figure = Figure(figsize=(WIDTH, height))
    top = height - above
    axes: list[Axes] = []
    for index in range(panels):
        bottom = top - (index + 1) * (PANEL_LABEL + panel_height) - index * GAP
        box = (left / WIDTH, bottom / height, 1 - (left + right) / WIDTH, panel_height / height)
        axes.append(figure.add_axes(box, sharex=axes[0] if axes else None))
        if index < panels - 1:
            axes[-1].tick_params(labelbottom=False)
    _write(figure, title, caption, height)
    if legend.labels:
        _add_legend(figure, legend, 1 - (0.06 + TITLE_LINE * len(title)) / height)
    return figure, axes


def _write(figure: Figure, title: list[str], caption: list[str], height: float) -> None:
    x = 0.1 / WIDTH
    for index, line in enumerate(title):
        y = 1 - (0.08 + index * TITLE_LINE) / height
        figure.text(x, y, line, va="top", weight="bold", size=FONT_POINTS + 2)
    for index, line in enumerate(reversed(caption)):
        y = (0.06 + index * CAPTION_LINE) / height
        figure.text(x, y, line, va="bottom", size=FONT_POINTS - 1, color="#333333")


def _add_legend(figure: Figure, legend: Legend, top: float) -> None:
    figure.legend(
        legend.handles,
        legend.labels,
        title=legend.title or None,
        alignment="left",
        loc="upper left",
        bbox_to_anchor=(0.1 / WIDTH, top),
        ncol=legend.columns,
        frameon=False,
        borderpad=0.0,
        borderaxespad=0.0,
        labelspacing=0.25,
        columnspacing=1.2,
        handlelength=2.6,
        handletextpad=0.5,
    )


def failed_note(points: int) -> str:
    """What the mark x is."""
    return f"x: failed ({points} point{'s' if points > 1 else ''})."


def panel_label(axes: Axes, text: str) -> None:
    """What a panel shows and its unit, above it: there is no room beside it."""
    axes.set_title(text, loc="left", pad=4)


def y_axis(axes: Axes, lowest: float, highest: float, log: bool) -> None:
    """From 0 to the highest value if it is not logarithmic; with k and M where that is shorter."""
    if log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(min(0.0, 1.08 * lowest), 1.08 * highest if highest > 0 else 1.0)
    # numbers of one axis are written alike
    plain = highest < PLAIN_BELOW
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:.6g}" if plain else decimal(y))
    axes.yaxis.set_minor_formatter(lambda y, _: "")
