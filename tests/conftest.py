"""What measures is told apart from what must hold at any speed: see pytest.ini."""

from collections.abc import Iterator

import pytest
from measuring import SANITIZED, Measured

# Somebody else may have the processor while something is measured, but not each time.
RERUNS = 4


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Only where a measurement has failed: see pytest.ini."""
    for item in items:
        if item.get_closest_marker("measures"):
            item.add_marker(pytest.mark.flaky(reruns=RERUNS))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Sanitizers change what is measured, and nothing else."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if SANITIZED and call.excinfo and call.excinfo.errisinstance(Measured):
        assert item.get_closest_marker("measures")
        report.outcome, report.wasxfail = "skipped", "sanitizers take their time"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A file may have only tests that measure."""
    nothing = exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED
    if nothing and session.config.option.markexpr == "not measures":
        session.exitstatus = pytest.ExitCode.OK
