"""The brokers that tests use, by name."""

from __future__ import annotations

from pathlib import Path

import example_broker
import rabbitmq

Broker = rabbitmq.RabbitMQ | example_broker.ExampleBroker
NAMES = ("example", "rabbitmq")


def start(name: str, folder: Path) -> Broker:
    """One in FOLDER. Raises server.NotReady."""
    return {"example": example_broker, "rabbitmq": rabbitmq}[name].start(folder)
