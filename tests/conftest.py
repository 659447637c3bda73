"""What holds for every test: a skipped one has failed, and a generated one makes the same examples on every run."""

import gc
import os
from collections.abc import Generator

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from msgspec import Struct

from tests.engine.shared_engine import engine, running_engine, weights
from tests.exact import differences
from tests.faults.catalogue import CaseCoverage, catalogue
from tests.shortcuts import with_shortcuts
from tests.signals import restore_interrupt

# The embedded model, for whoever wants to talk to it, and the shortcuts, for tests of what they do.
__all__ = ["engine", "running_engine", "weights", "with_shortcuts"]

# The same examples on every machine, and no verdict by the clock: a test that fails, fails again.
settings.register_profile("xenoglot", derandomize=True, deadline=None, database=None)
settings.load_profile("xenoglot")

# Hypothesis draws constants from the modules that happen to be imported. Which these are depends on the tests that ran
# before in the same process, so the examples would, too.
providers._get_local_constants = lambda: providers._local_constants


@pytest.fixture(scope="session", autouse=True)
def data_home(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Have gateways keep things, and find a configuration, where only this run looks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("configuration")))
        for name in ("XENOGLOT_CONFIG", "XENOGLOT_UPSTREAM", "XENOGLOT_MODEL"):
            patch.delenv(name, raising=False)
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


def pytest_configure() -> None:
    """Have Ctrl-C interrupt tests and their child processes, also in a run that a shell started in the background.

    The collector of cycles looks rarely: its usual thresholds take 5 to 10 % of the processor time of a run.
    """
    restore_interrupt()
    gc.set_threshold(10_000, 20, 50)


LONG_FILES = (
    "tests/text/test_vectors.py",
    "tests/docs/test_examples.py",
    "tests/laws/test_cost_streams.py",
    "tests/laws/test_cost.py",
    "tests/test_cli.py",
    "tests/test_found_configuration.py",
)
"""The files that take longest: each is run by one worker, and they start first so that none is left at the end."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with long files. Where shortcuts are off, leave out the tests that turn them on: those run without that."""
    root = config.rootpath
    places = {root / name: place for place, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
    if os.environ.get("XENOGLOT_SHORTCUTS") != "off":
        return
    left_out = [item for item in items if "with_shortcuts" in getattr(item, "fixturenames", ())]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]


def pytest_collection_finish() -> None:
    """Have the collector of cycles leave the tests themselves alone: many of them call it, to see what they left."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Have a worker report one outcome of each test: that all went well before and after it needs no message.

    There are three reports of each of 50,000 tests, and each is sent to the process that prints them.
    """
    if not hasattr(item.config, "workerinput") or item.config.getoption("durations") is not None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Have it leave alone what a file leaves, too: modules and caches that stay would be looked through at each test.

    Without it a run takes four times the processor time.
    """
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Show each field in which two values differ, because the `repr()` of a value is cut."""
    heads = [next(iter(side), None) if isinstance(side, list | tuple) else side for side in (left, right)]
    if op != "==" or not any(isinstance(head, Struct) for head in heads):
        return None
    return ["values differ:", *differences(left, right)]


def refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure: a test that does not run tells nothing, and a run without it must not look whole."""
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} did not run, and every test has to: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """See `refuse_skip`, for a test."""
    report = yield
    refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """See `refuse_skip`, for a whole file."""
    report = yield
    refuse_skip(report)
    return report


PLAYED = CaseCoverage(case.id for case in catalogue().case)


def is_whole(config: pytest.Config) -> bool:
    """Return whether all tests are run, and whether this process hears of all of them."""
    chosen = any(config.getoption(option, None) for option in ("keyword", "markexpr", "deselect", "lf", "collectonly"))
    here = not hasattr(config, "workerinput")
    return here and not chosen and config.args_source is pytest.Config.ArgsSource.TESTPATHS


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count the plays of the fault catalogue's cases."""
    PLAYED.record(report)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """List the fault catalogue: how many plays of each case went well, and which was not played."""
    if is_whole(config):
        terminalreporter.section("fault catalogue: went well / played")
        for line in PLAYED.lines():
            terminalreporter.write_line(line)
        if PLAYED.missing:
            terminalreporter.write_line(f"not played: {', '.join(PLAYED.missing)}", red=True)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run of all tests in which a case of the fault catalogue was not played."""
    if is_whole(session.config) and PLAYED.missing:
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
