"""The access log: the lines of one turn leave together, in order, without a secret, if nobody else listens."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import threading
from typing import TYPE_CHECKING

import pytest

from xenoglot.gateway.observability.access_log import ACCESS, OURS, LineHandler, listener
from xenoglot.gateway.observability.log_format import RedactionFormatter
from xenoglot.gateway.observability.request_log import RequestLogger

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


class Written(io.StringIO):
    """A stream that keeps its writes apart."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[str] = []

    def write(self, text: str, /) -> int:
        """Keep one."""
        self.writes.append(text)
        return len(text)


class ClosedStream(io.StringIO):
    """A stream behind which nobody is."""

    def write(self, _text: str, /) -> int:
        """Fail."""
        raise BrokenPipeError


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> Generator[LineHandler]:
    """Give our handler, as the only one there is."""
    ours = LineHandler(lambda text: text.replace("secret", "[redacted]"))
    ours.setStream(Written())
    monkeypatch.setattr(OURS, "handlers", [ours])
    monkeypatch.setattr(OURS, "propagate", False)
    before = OURS.level
    OURS.setLevel(logging.INFO)
    yield ours
    OURS.setLevel(before)
    ours.close()


def writes(handler: LineHandler) -> list[str]:
    """Return what was written, write by write."""
    assert isinstance(handler.stream, Written)
    return handler.stream.writes


async def test_the_lines_of_one_turn_leave_in_one_write(handler: LineHandler) -> None:
    for line in (b"1", b"2 secret", b"3"):
        handler.put(line)
    assert writes(handler) == []
    await asyncio.sleep(0)
    handler.put(b"4")
    await asyncio.sleep(0)
    assert writes(handler) == ["1\n2 [redacted]\n3\n", "4\n"]


async def test_what_else_is_logged_comes_behind_what_came_before(handler: LineHandler) -> None:
    handler.put(b"1")
    OURS.error("2")
    handler.put(b"3")
    await asyncio.sleep(0)
    first, other, last = "".join(writes(handler)).splitlines()
    assert (first, json.loads(other)["message"], last) == ("1", "2", "3")


def test_without_a_loop_a_line_leaves_at_once(handler: LineHandler) -> None:
    handler.put(b"1")
    assert writes(handler) == ["1\n"]


def test_lines_for_which_no_turn_ends_any_more_leave_in_the_end(handler: LineHandler) -> None:
    for line in (b"1", b"2"):
        loop = asyncio.new_event_loop()
        loop.call_soon(handler.put, line)
        loop.call_soon(loop.stop)
        loop.run_forever()
        loop.close()
    handler.close()
    assert "".join(writes(handler)) == "1\n2\n"


async def test_k18_a_log_that_cannot_be_written_costs_nobody_an_answer(handler: LineHandler) -> None:
    handler.setStream(ClosedStream())
    handler.put(b"1")
    await asyncio.sleep(0)
    handler.stream.close()
    handler.put(b"2")
    handler.flush()
    handler.setStream(Written())
    handler.put(b"3")
    handler.flush()
    assert writes(handler) == ["3\n"]


def test_threads_with_loops_of_their_own_lose_nothing(handler: LineHandler) -> None:
    async def put(name: str) -> None:
        for number in range(300):
            handler.put(f"{name}{number}".encode())
            if number % 3 == 0:
                await asyncio.sleep(0)

    threads = [threading.Thread(target=asyncio.run, args=(put(name),)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    handler.flush()
    lines = "".join(writes(handler)).splitlines()
    assert sorted(lines) == sorted(f"{name}{number}" for name in "abc" for number in range(300))


async def test_a_request_is_written_as_logging_would_write_it(
    handler: LineHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OURS, "handlers", [handler])  # for pytest's own are there by now
    observer = RequestLogger(lambda: 1.0)
    record = observer.record("POST")
    record.asked("naïve secret", stream=False)
    observer.write(record)
    await asyncio.sleep(0)
    OURS.addHandler(other := logging.NullHandler())
    observer.write(record)
    OURS.removeHandler(other)
    direct, general = writes(handler)[0], "".join(writes(handler)[1:])
    assert direct == general
    assert json.loads(direct)["model"] == "naïve [redacted]"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda _: ACCESS.addHandler(logging.NullHandler()), id="a-handler"),
        pytest.param(lambda _: OURS.addHandler(logging.NullHandler()), id="another-of-ours"),
        pytest.param(lambda _: OURS.handlers.clear(), id="none"),
        pytest.param(lambda _: setattr(OURS, "propagate", True), id="a-root-handler"),
        pytest.param(lambda _: setattr(ACCESS, "propagate", False), id="off"),
        pytest.param(lambda _: ACCESS.addFilter(bool), id="a-filter"),
        pytest.param(lambda handler: handler.addFilter(bool), id="a-filter-of-ours"),
        pytest.param(lambda handler: handler.setLevel(logging.ERROR), id="a-level"),
        pytest.param(lambda handler: handler.setFormatter(logging.Formatter()), id="a-formatter"),
    ],
)
def test_whoever_else_listens_has_it_by_logging(
    handler: LineHandler, monkeypatch: pytest.MonkeyPatch, change: Callable[[LineHandler], object]
) -> None:
    monkeypatch.setattr(OURS, "handlers", [handler])  # as above
    assert listener() is handler
    for logger, name in ((ACCESS, "handlers"), (ACCESS, "filters"), (logging.root, "handlers")):
        monkeypatch.setattr(logger, name, list(getattr(logger, name)))
    monkeypatch.setattr(ACCESS, "propagate", ACCESS.propagate)
    if not logging.root.handlers:
        logging.root.handlers.append(logging.NullHandler())
    change(handler)
    assert listener() is None


def test_a_formatter_takes_secrets_out() -> None:
    formatter = RedactionFormatter(lambda text: text.replace("secret", "x"))
    record = logging.LogRecord("xenoglot", logging.INFO, "", 0, "%s", ("a secret",), None)
    assert formatter.format(record) == "a x"
