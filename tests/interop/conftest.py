"""Peers of other makes; brokers, one for all tests of a file."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "system"), str(TESTS / "ppair"), str(TESTS.parent / "scripts")]

import brokers as known  # noqa: E402
import pair  # noqa: E402
import peers  # noqa: E402
from brokers import Broker  # noqa: E402
from rabbitmq import RabbitMQ  # noqa: E402


@pytest.fixture(autouse=True)
def _children_end() -> Iterator[None]:
    """No program and no peer outlives its test."""
    yield
    peers.end_all()
    pair.end_children()
    pair.assert_sanitizers_are_content()


@pytest.fixture(scope="session", name="brokers")
def _brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Broker]]:
    """Those that were started. They end when the last test has."""
    started: dict[str, Broker] = {}
    try:
        yield started
    finally:
        for broker in started.values():
            broker.stop()


@pytest.fixture(scope="session", name="start_broker")
def _start_broker(
    brokers: dict[str, Broker], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Broker]:
    """Gives one by its name; it is started when it is first needed."""

    def start(name: str) -> Broker:
        if name not in brokers:
            brokers[name] = known.start(name, tmp_path_factory.mktemp(name))
        assert brokers[name].node.process.poll() is None, f"{name} has ended"
        return brokers[name]

    return start


@pytest.fixture(params=known.NAMES)
def broker(request: pytest.FixtureRequest, start_broker: Callable[[str], Broker]) -> Broker:
    """Each of them in turn."""
    return start_broker(str(request.param))


@pytest.fixture
def rabbitmq(start_broker: Callable[[str], Broker]) -> RabbitMQ:
    """That one alone."""
    found = start_broker("rabbitmq")
    assert isinstance(found, RabbitMQ)
    return found


@pytest.fixture(name="node")
def _node(request: pytest.FixtureRequest) -> str:
    """Name of a queue that is the test's own."""
    return "".join(c if c.isalnum() else "-" for c in request.node.name)


@pytest.fixture
def queue(broker: Broker, node: str) -> str:
    """URL of that queue."""
    return broker.url(broker.queue(node))
