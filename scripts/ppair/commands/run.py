"""One arrangement of psend and precv, repeated. Prints every repetition, their mean and spread.

  ppair run                                   1 second of 100-byte messages, five times
  ppair run --repeat 10 --credit 10 --presettled --duration 3s
  ppair run --senders 4 --receivers 2 --psend '--content-size 1k'
  ppair run --tls                             encrypted
  ppair run --via amqp://broker               by way of a broker, in each run by another queue
  ppair run --via 'amqp://guest@broker//queue/{}' --sasl-insecure     as RabbitMQ names queues;
                                              the password is in PPAIR_PASSWORD
  ppair run --precv-host b --psend-host a     on other machines, by ssh
"""

from __future__ import annotations

import argparse

from .. import arrangement, experiment, output
from ..progress import Progress
from ..results import Plan, Point
from ..spec import REPETITIONS_MAX
from ..units import count

USAGE = "[OPTION...] [OPTION OF psend OR precv...]"
TAKES_ARRANGEMENT = True
REPETITIONS = "5"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of this command alone, and where results go."""
    parser.add_argument("--repeat", metavar="N", default=REPETITIONS, help=f"[{REPETITIONS}]")
    output.add_arguments(parser)


def main(arguments: argparse.Namespace) -> int:
    """Runs it and prints the table."""
    spec = arrangement.from_arguments(arguments).with_defaults()
    spec.check()
    repetitions = count(arguments.repeat, "--repeat", most=REPETITIONS_MAX)
    plan = Plan(
        command="run",
        title=spec.command() or "psend and precv with their defaults",
        axes=(),
        points=(Point(0, {}, spec),),
        repetitions=repetitions,
        seed=0,
        order=experiment.interleaved(1, repetitions, 0),
    )
    results = output.create(arguments, plan)
    experiment.run_all(results, Progress(repetitions))
    output.show(arguments, results)
    return experiment.exit_code(results)
