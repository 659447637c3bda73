"""When an answer has started: each row of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot.codec.responses.answer_start import MOST_SILENT, AnswerStart, failure_of
from xenoglot.model.content import Text
from xenoglot.model.events import BlockStarted, Failed, Ping, Started, TextDelta
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.events import Event

FAILURE = Failure(kind="upstream", message="connection lost: the upstream closed it", cause="closed")
FAILED = Failed(failure=FAILURE)
STARTED = Started(id="a")
TEXT = TextDelta(text="Hello")
BLOCK = BlockStarted(part=Text(text=""))
CLIENT = (Ping, Started)


@pytest.mark.parametrize(
    ("reads", "silent", "expected"),
    [
        pytest.param([()], (Ping,), ["waiting"], id="no-events"),
        pytest.param([(Ping(),)], (Ping,), ["waiting"], id="heartbeat"),
        pytest.param([(Ping(), Ping())], (Ping,), ["waiting"], id="heartbeats"),
        pytest.param([(STARTED,)], (Ping,), ["started"], id="start-event"),
        pytest.param([(STARTED,)], CLIENT, ["waiting"], id="client-start-event"),
        pytest.param([(STARTED,), (Ping(),), (BLOCK,)], CLIENT, ["waiting", "waiting", "started"], id="client-content"),
        pytest.param([(Ping(),), (BLOCK, TEXT)], (Ping,), ["waiting", "started"], id="content-after-heartbeat"),
        pytest.param([(FAILED,)], (Ping,), ["failed"], id="u21-failure-first"),
        pytest.param([(Ping(), FAILED)], (Ping,), ["failed"], id="failure-after-heartbeat"),
        pytest.param([(STARTED, BLOCK, TEXT, FAILED)], (Ping,), ["failed"], id="failure-in-the-read-of-the-start"),
        pytest.param([(STARTED, FAILED)], CLIENT, ["failed"], id="client-failure-after-start-event"),
    ],
)
def test_each_read_gives_the_state_of_the_table(
    reads: Sequence[Sequence[Event]], silent: Sequence[type[Event]], expected: Sequence[str]
) -> None:
    start = AnswerStart(silent)
    assert [start.feed(events) for events in reads] == expected
    assert start.state == expected[-1]


@pytest.mark.parametrize("read", [(), (Ping(),)], ids=["no-events", "heartbeats"])
def test_silence_is_passed_on_after_so_many_reads(read: Sequence[Event]) -> None:
    start = AnswerStart()
    states = [start.feed(read) for _ in range(MOST_SILENT + 1)]
    assert states == ["waiting"] * MOST_SILENT + ["started"]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param((), None, id="none"),
        pytest.param((TEXT,), None, id="content"),
        pytest.param((TEXT, FAILED), FAILURE, id="failure"),
        pytest.param([FAILED], FAILURE, id="failure-alone"),
    ],
)
def test_the_failure_that_events_end_in(events: Sequence[Event], expected: Failure | None) -> None:
    assert failure_of(events) == expected
