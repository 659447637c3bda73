"""A streamed answer, by the table of its states: what is sent for each input, and the state after it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from xenoglot.codec.loss import Losses
from xenoglot.dialect_registry import get
from xenoglot.errors import FailureError
from xenoglot.gateway.observability.request_log import RequestLog
from xenoglot.gateway.relay.answer import MOST_PIECES, AnswerRelay
from xenoglot.gateway.relay.envelope import ResponseEnvelope
from xenoglot.model.content import Text
from xenoglot.model.events import BlockEnded, BlockStarted, Failed, Finished, Ping, Started, TextDelta
from xenoglot.model.failure import Failure
from xenoglot.model.limits import RateLimits
from xenoglot.model.request import Request
from xenoglot.model.response import Finish

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.gateway.upstream.call import UpstreamCall
    from xenoglot.model.events import Event

INTERVAL = 10.0
BROKEN = Failure(kind="upstream", message="connection lost: the upstream closed it", cause="closed")
REPORTED = Failure(kind="overloaded", message="busy", dialect="messages")
START = (Started(id="a", model="m", created=1), BlockStarted(part=Text(text="")))
WORD = (TextDelta(text="Hello"),)
FINISHED = (BlockEnded(), Finished(finish=Finish(reason="stop")))
FRAME = b'event: message_start\ndata: {"type":"message_start"}\n\n'
HALF = b"event: content_block_del"


class Output:
    """Records what is sent: `head`, each piece of the body, and `end` or `abort`."""

    def __init__(self) -> None:
        self.sent: list[str | bytes] = []
        self.headers: dict[str, str] = {}
        self.paused = False

    def open(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        self.sent.append(f"head {status}")
        self.headers = dict(headers)

    def put(self, data: bytes) -> None:
        self.sent.append(data)

    def finish(self, data: bytes = b"") -> None:
        self.sent.append(b"".join((data, b"|")))

    def abort(self) -> None:
        self.sent.append("abort")


class Case:
    """One relay, the output that it writes to, and the time, which is set by hand."""

    def __init__(self, dialect: str = "messages") -> None:
        self.now = 0.0
        self.losses = Losses()
        self.record = RequestLog(request_id="req_1", method="POST", started=0.0, clock=lambda: self.now)
        self.record.losses = self.losses
        asking = SimpleNamespace(
            record=self.record,
            dialect=get(dialect),
            losses=self.losses,
            request=Request(model="m", stream=True),
            model="m",
            alone=True,
            reasoning_filter=lambda: None,
            prompt_tokens=lambda: 1,
            services=SimpleNamespace(prices=None),
        )
        self.output = Output()
        envelope = ResponseEnvelope(cast("UpstreamCall", asking))
        self.relay = AnswerRelay(envelope, self.output, lambda: self.now, 0.0, INTERVAL)

    def opened(self) -> Case:
        """Return it after the start of an answer, with nothing recorded of that."""
        self.relay.write_events(START)
        self.output.sent.clear()
        return self

    def passed(self, data: bytes = FRAME, *, cut: bool = False) -> Case:
        """Return it after bytes that report the start, with nothing recorded of that."""
        self.relay.passes_bytes()
        self.relay.write_bytes(data, START, cut)
        self.output.sent.clear()
        return self

    @property
    def text(self) -> str:
        """What was sent, the pieces of the body as they are."""
        return " ".join(one if isinstance(one, str) else one.decode() for one in self.output.sent)


def test_the_head_is_held_until_there_is_something_to_send() -> None:
    case = Case()
    case.relay.answered(RateLimits())
    assert (case.output.sent, case.relay.state, case.record.status) == ([], "held", None)
    case.relay.write_events(START)
    assert (case.output.sent[0], len(case.output.sent), case.relay.state) == ("head 200", 2, "open")
    assert case.output.headers["content-type"] == "text/event-stream"
    assert case.record.status == 200


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda relay: relay.fail(BROKEN), id="u21-failure"),
        pytest.param(lambda relay: relay.write_events((Failed(failure=BROKEN),)), id="u21-events"),
        pytest.param(lambda relay: relay.write_bytes(FRAME, (Failed(failure=BROKEN),)), id="u21-bytes"),
        pytest.param(lambda relay: relay.write_bytes(b"", (Failed(failure=REPORTED),)), id="no-bytes"),
        pytest.param(lambda relay: relay.finish(), id="u14-end-without-a-finish-reason"),
    ],
)
def test_a_failure_while_the_head_is_held_is_the_callers(act: Callable[[AnswerRelay], object]) -> None:
    case = Case()
    with pytest.raises(FailureError):
        act(case.relay)
    assert (case.output.sent, case.relay.state) == ([], "held")


def test_open_sends_what_it_is_given_and_nothing_for_events_without_bytes() -> None:
    case = Case("chat")
    case.relay.write_events(START)
    case.now = 3.0
    sent = len(case.output.sent)
    assert case.relay.write_events(WORD) is True
    assert len(case.output.sent) == sent + 1
    assert case.relay.heartbeat() == 13.0
    case.now = 4.0
    assert case.relay.write_events((BlockEnded(),)) is True
    assert len(case.output.sent) == sent + 1
    assert case.relay.heartbeat() == 13.0  # the client heard nothing at 4.0


def test_events_that_end_in_a_failure_report_it_and_end() -> None:
    case = Case().opened()
    assert case.relay.write_events((*WORD, Failed(failure=BROKEN))) is False
    assert "Hello" in case.text
    assert "event: error" in case.text
    assert (case.output.sent[-1], case.relay.state, case.record.failure) == ("abort", "ended", "upstream")


def test_u22_bytes_that_report_a_failure_are_sent_and_end() -> None:
    case = Case().passed()
    assert case.relay.write_bytes(b"event: error\n\n", (Failed(failure=REPORTED),)) is False
    assert (case.output.sent, case.relay.state) == ([b"event: error\n\n", "abort"], "ended")
    assert case.record.failure == "overloaded"


def test_bytes_that_do_not_report_their_failure_are_held_back() -> None:
    case = Case().passed()
    with pytest.raises(FailureError) as caught:
        case.relay.write_bytes(b"secret", (Failed(failure=BROKEN),))
    assert (caught.value.failure, case.output.sent, case.relay.state) == (BROKEN, [], "open")


@pytest.mark.parametrize(
    ("cut", "expected"),
    [pytest.param(False, ["error", "abort"], id="u13-reset"), pytest.param(True, ["abort"], id="u13-half-a-frame")],
)
def test_a_failure_is_reported_unless_half_a_frame_is_open(cut: bool, expected: list[str]) -> None:  # noqa: FBT001
    case = Case().passed(HALF if cut else FRAME, cut=cut)
    case.relay.fail(BROKEN)
    assert [
        "error" if isinstance(one, bytes) and b"event: error" in one else one for one in case.output.sent
    ] == expected
    assert (case.relay.state, case.record.failure) == ("ended", "upstream")


def test_an_answer_that_has_ended_is_not_failed_twice() -> None:
    case = Case().opened()
    case.relay.fail(BROKEN)
    case.output.sent.clear()
    case.relay.fail(BROKEN)
    assert case.output.sent == ["abort"]


def test_the_end_of_events_is_written_with_late_losses() -> None:
    case = Case("chat").opened()
    case.relay.write_events(FINISHED)
    case.output.sent.clear()
    case.losses.dropped("$", "logprobs", "not supported")
    case.relay.finish()
    assert case.text.startswith("data: [DONE]\n\n: x-xenoglot-losses: ")
    assert case.text.endswith("|")
    assert case.relay.state == "ended"


def test_the_end_sends_a_head_that_was_held() -> None:
    case = Case()
    case.relay.passes_bytes()
    case.relay.finish_bytes()
    assert (case.output.sent, case.relay.state) == (["head 200", b"|"], "ended")


def test_bytes_that_reported_a_failure_before_do_not_end_whole() -> None:
    case = Case().passed()
    case.record.failed(BROKEN)
    case.relay.finish_bytes()
    assert (case.output.sent, case.relay.state) == (["abort"], "ended")


@pytest.mark.parametrize(
    ("dialect", "events", "expected"),
    [
        pytest.param("chat", (), "head 200 : ping\n\n", id="pitfall-107-before-the-answer"),
        pytest.param("chat", START, ": ping\n\n", id="u10-in-the-answer"),
    ],
)
def test_u09_heartbeats(dialect: str, events: Sequence[Event], expected: str) -> None:
    case = Case(dialect)
    if events:
        case.relay.write_events(events)
        case.output.sent.clear()
    case.now = INTERVAL - 1.0
    assert (case.relay.heartbeat(), case.output.sent) == (INTERVAL, [])
    case.now = INTERVAL
    assert (case.relay.heartbeat(), case.text, case.relay.state) == (2 * INTERVAL, expected, "open")


@pytest.mark.parametrize(
    ("cut", "paused"),
    [pytest.param(True, False, id="half-a-frame"), pytest.param(False, True, id="client-does-not-read")],
)
def test_heartbeats_that_are_left_out(cut: bool, paused: bool) -> None:  # noqa: FBT001  as parametrize gives them
    case = Case().passed(HALF if cut else FRAME, cut=cut)
    case.output.paused = paused
    case.now = INTERVAL
    assert (case.relay.heartbeat(), case.output.sent) == (2 * INTERVAL, [])


def test_between_bytes_the_heartbeat_is_the_dialects_own() -> None:
    case = Case("responses").passed(b'event: response.created\ndata: {"type":"response.created"}\n\n')
    case.now = INTERVAL
    case.relay.heartbeat()
    assert case.output.sent == [get("responses").alive]


def test_bytes_pass_unless_a_heartbeat_began_the_answer() -> None:
    case = Case("responses")
    case.record.answer_id = "resp_1"
    early = AnswerRelay(case.relay._envelope, case.output, lambda: case.now, 0.0, INTERVAL)
    case.now = INTERVAL
    early.heartbeat()
    assert b"response.created" in b"".join(one for one in case.output.sent if isinstance(one, bytes))
    assert (early.passes_bytes(), case.relay.passes_bytes()) == (False, True)


def test_silence_alone_opens_the_response_and_the_answer_follows() -> None:
    case = Case()
    case.now = INTERVAL
    case.relay.heartbeat()
    case.relay.write_events((Ping(),))
    case.relay.write_events(START)
    assert case.output.sent[0] == "head 200"
    assert case.text.count("message_start") == 2  # the event's name, and its type
    assert case.text.count("head") == 1


def noted(case: Case) -> tuple[object, ...]:
    """Return what the log says of the answer."""
    record = case.record
    return record.pieces, record.characters, record.usage, record.finish, record.failure


@pytest.mark.usefixtures("with_shortcuts")
@pytest.mark.parametrize("dialect", ["chat", "messages", "responses", "gemini", "ollama"])
def test_pieces_that_come_alone_are_sent_and_noted_as_events_are(dialect: str) -> None:
    by_events, by_pieces = Case(dialect), Case(dialect)
    kept: list[str] = []
    by_pieces.relay.keep = kept.append
    pieces = [TextDelta(text=f" word {number}") for number in range(MOST_PIECES + 40)]
    pieces.insert(7, TextDelta(text="other", candidate=1))
    alone = ""
    for case in (by_events, by_pieces):
        case.relay.write_events(START)
        for piece in pieces:
            if case is by_pieces and case.relay.write_piece(piece):
                alone += piece.text
            else:
                case.relay.write_events((piece,))
        case.relay.write_events(FINISHED)
        case.relay.finish()
    assert by_pieces.output.sent == by_events.output.sent
    assert [noted(by_pieces), *by_pieces.losses] == [noted(by_events), *by_events.losses]
    assert "".join(kept) == alone
    assert bool(alone) == hasattr(get(dialect).stream_encoder(Request(model="m"), Losses()), "frame")


@pytest.mark.usefixtures("with_shortcuts")
def test_pieces_that_were_sent_are_noted_when_the_client_is_gone() -> None:
    case = Case().opened()
    assert not case.relay.write_piece(*WORD)  # of the first, the time is noted
    case.relay.write_events(WORD)
    assert case.relay.write_piece(*WORD)
    assert (case.record.pieces, case.record.characters) == (1, 5)
    case.relay.note_pieces()
    assert (case.record.pieces, case.record.characters) == (2, 10)
    case.relay.note_pieces()
    assert (case.record.pieces, case.record.characters) == (2, 10)
