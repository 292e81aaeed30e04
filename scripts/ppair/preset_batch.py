"""Batches: send N messages, wait until all are settled, again; as totem has been measured."""

from __future__ import annotations

from typing import Any

from . import machine
from .axes import Axis, parse_values
from .failure import usage
from .preset import Parameter, Preset, Values, Words, with_parameters
from .results import Plot, Results
from .units import count

BATCH, VARIANT = "batch", "variant"  # the axes
PLAIN, PINNED = "plain", "pinned"
CREDIT_LEAST = 1000

PARAMETERS = (
    Parameter("--batches", "LIST", "their sizes", default="1,10,100,1000,10000,100000"),
    Parameter("--with", "'...'", "options of the second variant; '': none such", default="--tls"),
    Parameter(
        "--pin",
        "CPU,CPU",
        "processors of receiver and sender in the third variant; '': none such [the first two]",
    ),
)
METRICS = (  # times of batches are in the findings, of all repetitions together
    "messages_per_s",
    "psend_cpu_percent",
    "precv_cpu_percent",
    "blocked",
)
TITLE = "Batches: N messages are sent, all are settled, the next N follow"
EXPECTED = (
    "A batch of 1 is a round trip; the larger the batch, the less of it there is in each message, "
    "until a message costs what the slower end takes for it."
)


def _findings(results: Results) -> dict[str, Any]:
    from . import batch_table

    return batch_table.findings(results, BATCH, VARIANT)


def _sizes(text: str) -> tuple[str, ...]:
    """In plain numbers."""
    found = {count(value, "--batches") for value in parse_values(text, "--batches")}
    return tuple(str(size) for size in sorted(found))


def _pinned(text: str | None) -> str | None:
    """The options; None: there is no such variant."""
    cpus = machine.processors()[:2] if text is None else text.split(",") if text else []
    if text and (len(cpus) != 2 or not all(str(cpu).isdigit() for cpu in cpus)):
        raise usage(f'--pin: "{text}" is not two processors, such as 0,1')
    return "--precv.cpu {} --psend.cpu {}".format(*cpus) if len(cpus) == 2 else None


def _words(values: Values) -> tuple[Words, Words]:
    """Twice the batch is granted: half of it is there when a batch begins, however it is granted
    anew, so that no batch waits for credit."""
    size = values[BATCH]
    credit = str(max(2 * int(size), CREDIT_LEAST))
    return ("--batch", size, "--max-unsettled", size), ("--credit", credit)


def _made(values: Values) -> Preset:
    wanted, pinned = " ".join(values["--with"].split()), _pinned(values.get("--pin"))
    variants = {PLAIN: ""}
    if wanted:
        variants[wanted] = wanted
    if pinned:
        variants[PINNED] = pinned
    return Preset(
        title=TITLE,
        expected=EXPECTED,
        axes=(
            Axis(BATCH, _sizes(values["--batches"]), "batch, messages", log=True),
            Axis(VARIANT, tuple(variants), "variant"),
        ),
        words=_words,
        options=lambda point: variants[point[VARIANT]],
        psend=("--duration", "700ms"),
        plots=(
            Plot("Rate", BATCH, ("messages_per_s",), VARIANT),
            Plot("Time of a batch", BATCH, ("batch_p50_ns", "batch_per_message_ns"), VARIANT),
        ),
        metrics=METRICS,
        findings=_findings,
    )


BATCHES = with_parameters(_made, PARAMETERS)
