"""What measures is told apart from what must hold at any speed: see pytest.ini."""

import os
from collections.abc import Iterator

import pytest

SANITIZED = bool(os.environ.get("PPAIR_SANITIZED"))
# Somebody else may have the processor while something is measured. A program that is wrong is so
# each time.
RERUNS = 4


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Under sanitizers it is run once: see below."""
    for item in items:
        if item.get_closest_marker("measures") and not SANITIZED:
            item.add_marker(pytest.mark.flaky(reruns=RERUNS))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Sanitizers change what is measured: then such a test is only to get the programs into their
    sight. It fails of what they have found, when it is over: end_children() in system/pair.py."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    measures = item.get_closest_marker("measures")
    if SANITIZED and measures and call.when == "call" and report.failed:
        report.outcome, report.wasxfail = "skipped", "sanitizers take their time"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A file may have only tests that measure, or none."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and session.config.option.markexpr:
        session.exitstatus = pytest.ExitCode.OK
