"""Requests on a WebSocket: lanes, what can be continued, failures, limits. Time passes when a test pushes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.backends.raw_server import advance, becomes, leakless, turns
from tests.gateway.running_gateway import config_for
from tests.gateway.scripted_backends import FIRST_EVENTS, HELLO, Backend, BlockingBackend
from tests.gateway.server_on_loop import post_bytes, serve_on_loop
from tests.gateway.web_socket.socket_client import PATH, connect, created, handshake
from xenoglot.backends.backend import EventAnswer
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.auth.keys import Keyring
from xenoglot.gateway.web_socket.recent_answers import MOST_ANSWERS, RecentAnswers
from xenoglot.gateway.web_socket.session import MOST_LANES, MOST_MINUTES, MOST_REQUESTS
from xenoglot.model.content import Text, ToolCall
from xenoglot.model.failure import Failure
from xenoglot.model.fold import unfold
from xenoglot.model.response import Candidate, Finish, Response, Usage

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncGenerator, Sequence

    from xenoglot.backends.backend import Answer, Call
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request

CALL = Response(
    candidates=(
        Candidate(content=(ToolCall(id="call_1", name="look", arguments="{}"),), finish=Finish(reason="tool_calls")),
    ),
    usage=Usage(input_tokens=5, output_tokens=2),
)
OUTPUT: JSONObject = {"type": "function_call_output", "call_id": "call_1", "output": "found"}
TOOLS: JSON = [{"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}]


def texts(request: Request) -> list[str]:
    """Return what a request says, role by role."""
    return [
        f"{message.role}: {part.text}"
        for message in request.messages
        for part in message.content
        if isinstance(part, Text)
    ]


def error_of(events: list[JSONObject]) -> tuple[int, str | None]:
    """Return status and code of a failure that is all there is."""
    (event,) = events
    assert event["type"] == "error"
    return event["status"], event["error"]["code"]


@leakless
async def test_an_answer_that_nobody_stores_is_continued_on_its_connection() -> None:
    backend = Scripted(HELLO)
    async with serve_on_loop(backend) as stage:
        client = await connect(stage)
        first = (await client.ask(created("Hi")))[-1]["response"]
        second = (await client.ask(created("Again", previous_response_id=first["id"])))[-1]["response"]
        third = (await client.ask(created("More", previous_response_id=second["id"])))[-1]["response"]
        assert (third["previous_response_id"], third["store"], third["status"]) == (second["id"], False, "completed")
        assert len({first["id"], second["id"], third["id"]}) == 3
        assert texts(backend.requests[-1]) == [
            "user: Hi",
            "assistant: Hello",
            "user: Again",
            "assistant: Hello",
            "user: More",
        ]


@leakless
async def test_another_connection_does_not_know_it_and_one_that_is_stored_is_known_everywhere() -> None:
    backend = Scripted(HELLO)
    async with serve_on_loop(backend) as stage:
        client = await connect(stage)
        unstored = (await client.ask(created("Hi")))[-1]["response"]["id"]
        stored = (await client.ask(created("Hi", store=True)))[-1]["response"]["id"]
        again = await connect(stage)
        missing = await again.ask(created("On", previous_response_id=unstored))
        assert error_of(missing) == (400, "previous_response_not_found")
        assert (await again.ask(created("On", previous_response_id=stored)))[-1]["type"] == "response.completed"
        raw = await stage.connect()
        raw.send(post_bytes(PATH, {"model": "m", "input": "On", "previous_response_id": stored}))
        assert (await raw.read_until(b"\r\n")).startswith(b"HTTP/1.1 200")


@leakless
async def test_results_of_tools_continue_the_answer_with_their_calls() -> None:
    backend = Scripted(CALL, HELLO)
    async with serve_on_loop(backend) as stage:
        client = await connect(stage)
        first = (await client.ask(created("Look", tools=TOOLS)))[-1]["response"]["id"]
        last = (await client.ask({**created(tools=TOOLS, previous_response_id=first), "input": [OUTPUT]}))[-1]
        assert last["type"] == "response.completed"
        kinds = [type(part).__name__ for message in backend.requests[-1].messages for part in message.content]
        assert kinds == ["Text", "ToolCall", "ToolResult"]


@leakless
async def test_a_continuation_that_fails_forgets_the_answer_and_one_without_answer_does_not() -> None:
    """The cases `websocket-failed-continuation-evicts-cache` of Open Responses."""
    backend = Scripted(HELLO)
    async with serve_on_loop(backend) as stage:
        client = await connect(stage)
        first = (await client.ask(created("Hi")))[-1]["response"]["id"]
        failed = await client.ask({**created(previous_response_id=first), "input": [OUTPUT]})
        assert error_of(failed)[0] == 400
        assert failed[0]["error"]["message"] == "No tool call found for function call output with call_id call_1."
        assert len(backend.requests) == 1
        assert error_of(await client.ask(created(previous_response_id=first))) == (400, "previous_response_not_found")


@leakless
async def test_a_request_that_generates_nothing_prepares_the_next() -> None:
    backend = Scripted(HELLO)
    async with serve_on_loop(backend) as stage:
        client = await connect(stage)
        events = await client.ask(created("Be brief.", generate=False))
        assert [event["type"] for event in events] == [
            "response.created",
            "response.in_progress",
            "response.completed",
        ]
        assert events[-1]["response"]["output"] == []
        assert backend.requests == []
        await client.ask(created("Hi", previous_response_id=events[-1]["response"]["id"]))
        assert texts(backend.requests[0]) == ["user: Be brief.", "user: Hi"]
        assert error_of(await client.ask(created("Hi", model="", generate=False)))[0] in (400, 404)


class Held(Backend):
    """Answers in the order in which a test lets it; notes which requests began, by their last words."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}

    async def answer(self, call: Call) -> Answer:
        """Begin when it may."""
        import asyncio  # noqa: PLC0415  a type above

        words = texts(call.request)[-1].removeprefix("user: ")
        self.begun.append(words)
        gate = self.gates[words] = asyncio.Event()
        await gate.wait()
        batches = _once(list(unfold(HELLO)))
        return EventAnswer(batches=batches, aclose=batches.aclose)


async def _once(events: Sequence[Event]) -> AsyncGenerator[Sequence[Event]]:
    yield events


@leakless
async def test_requests_of_a_lane_are_answered_in_order_and_lanes_at_once() -> None:
    backend = Held()
    async with serve_on_loop(backend) as stage:
        client = await connect(stage)
        for words, lane in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("c1", None)):
            client.send(created(words, **({} if lane is None else {"stream_id": lane})))
        await becomes(["a1", "b1", "c1"], lambda: backend.begun)
        backend.gates["b1"].set()
        assert {event["stream_id"] for event in await client.answer()} == {"b"}
        backend.gates["c1"].set()
        assert all("stream_id" not in event for event in await client.answer())
        backend.gates["a1"].set()
        assert {event["stream_id"] for event in await client.answer()} == {"a"}
        await becomes(["a1", "b1", "c1", "a2"], lambda: backend.begun)
        backend.gates["a2"].set()
        assert {event["stream_id"] for event in await client.answer()} == {"a"}


@leakless
async def test_a_lane_goes_on_with_an_answer_of_another() -> None:
    backend = Scripted(HELLO)
    async with serve_on_loop(backend) as stage:
        client = await connect(stage)
        first = (await client.ask(created("Hi", stream_id="a")))[-1]["response"]["id"]
        await client.ask(created("Fork", stream_id="b", previous_response_id=first))
        assert texts(backend.requests[-1])[0] == "user: Hi"


@leakless
async def test_requests_and_lanes_of_a_connection_are_bounded() -> None:
    backend = Held()
    async with serve_on_loop(backend) as stage:
        client = await connect(stage)
        for number in range(MOST_REQUESTS + 1):
            client.send(created(f"r{number}"))
        assert error_of(await client.answer())[0] == 429
        for number in range(MOST_REQUESTS):
            await becomes(number + 1, lambda: len(backend.begun))
            backend.gates[f"r{number}"].set()
            await client.answer()
        for number in range(MOST_LANES):
            client.send(created(f"l{number}", stream_id=str(number)))
            await becomes(MOST_REQUESTS + number + 1, lambda: len(backend.begun))
            backend.gates[f"l{number}"].set()
            await client.answer()
        refused = await client.ask(created("x", stream_id="one more"))
        assert error_of(refused) == (400, "websocket_stream_limit_reached")
        assert refused[0]["stream_id"] == "one more"


@leakless
async def test_bytes_that_wait_are_bounded() -> None:
    config = config_for("scripted")
    config = replace(config, server=replace(config.server, body_limit=3_000))
    async with serve_on_loop(Held(), config) as stage:
        client = await connect(stage)
        for _ in range(3):
            client.send(created("x" * 2_000))
        refused = await client.answer()
        assert error_of(refused)[0] == 429
        assert "too large together" in refused[0]["error"]["message"]


@leakless
async def test_a_history_may_be_no_larger_than_a_request() -> None:
    config = config_for("scripted")
    config = replace(config, server=replace(config.server, body_limit=3_000))
    async with serve_on_loop(Scripted(HELLO), config) as stage:
        client = await connect(stage)
        first = (await client.ask(created("x" * 2_000)))[-1]["response"]["id"]
        events = await client.ask(created("y" * 2_000, previous_response_id=first))
        assert error_of(events)[0] == 413 or error_of(events)[1] == "previous_response_not_found"


@pytest.mark.parametrize(
    ("message", "param"),
    [
        pytest.param(b"{", None, id="no-json"),
        pytest.param(b"[]", None, id="no-object"),
        pytest.param(b"{}", "type", id="no-type"),
        pytest.param(b'{"type":"session.update"}', "type", id="unknown"),
        pytest.param(
            b'{"type":"response.create","model":"m","input":"x","background":true}', "background", id="background"
        ),
        pytest.param(b'{"type":"response.create","model":"m","input":"x","stream_id":""}', "stream_id", id="lane"),
        pytest.param(b'{"type":"response.create","model":"m","input":7}', "input", id="input"),
    ],
)
@leakless
async def test_a_message_that_is_no_request_is_an_error_and_the_connection_goes_on(
    message: bytes, param: str | None
) -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        client = await connect(stage)
        client.frames.send_text(message)
        client.raw.send(b"".join(client.frames.data_to_send()))
        (event,) = await client.answer()
        assert event["status"] == 400
        assert event["error"]["type"] == "invalid_request_error"
        assert param is None or param in str(event["error"]["param"])
        assert (await client.ask(created()))[-1]["type"] == "response.completed"


@leakless
async def test_a_word_that_an_answer_was_processed_wants_nothing() -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        client = await connect(stage)
        client.send({"type": "response.processed", "response_id": "resp_1"})
        assert (await client.ask(created()))[-1]["type"] == "response.completed"


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        pytest.param(Failure(kind="rate_limit", message="slow down", retry_after=7.0), 429, id="rate-limit"),
        pytest.param(Failure(kind="context_overflow", message="too long"), 400, id="context"),
        pytest.param(Failure(kind="upstream", message="broken"), 502, id="upstream"),
    ],
)
@leakless
async def test_a_failure_is_an_error_with_status_and_headers(failure: Failure, status: int) -> None:
    async with serve_on_loop(Scripted(failure)) as stage:
        client = await connect(stage)
        (event,) = await client.ask(created())
        assert (event["type"], event["status"]) == ("error", status)
        assert event["headers"] == event["error"]["headers"]
        assert event["headers"].get("retry-after") == ("7" if failure.retry_after else None)
        assert event["headers"]["x-request-id"].startswith("req_")


@leakless
async def test_a_connection_that_is_too_old_refuses_the_next_request_and_an_idle_one_closes() -> None:
    backend = Held()
    async with serve_on_loop(backend) as stage:
        idle, busy = await connect(stage), await connect(stage)
        busy.send(created("long"))
        await becomes(["long"], lambda: backend.begun)
        for _ in range(MOST_MINUTES):
            idle.frames.send_pong(b"")
            busy.frames.send_pong(b"")
            for client in (idle, busy):
                client.raw.send(b"".join(client.frames.data_to_send()))
            await advance(60.0)
        await advance(1.0)
        assert error_of(await idle.answer()) == (400, "websocket_connection_limit_reached")
        assert (await idle.closed()).code == 1000
        refused = (await busy.ask(created()))[-1:]  # the one that is being answered is alive
        assert error_of(refused) == (400, "websocket_connection_limit_reached")
        backend.gates["long"].set()
        assert (await busy.answer())[-1]["type"] == "response.completed"
        assert (await busy.closed()).code == 1000


def test_answers_are_forgotten_by_bytes_and_number_the_oldest_first() -> None:
    answers = RecentAnswers(100)
    answers.add("a", ["x"], 60)
    answers.add("b", ["y"], 30)
    assert ("a" in answers, "b" in answers) == (True, True)
    answers.add("c", ["z"], 30)
    assert (answers.get("a"), answers.get("b"), answers.get("c")) == (None, ["y"], ["z"])
    answers.add("large", [], 101)
    assert "large" not in answers
    assert answers.get("c") is None
    for number in range(MOST_ANSWERS + 1):
        answers.add(str(number), [], 0)
    assert ("0" in answers, "1" in answers) == (False, True)


@leakless
async def test_what_is_answered_with_a_key_is_refused_without_it() -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        ring = Keyring(["secret-key"])
        stage.server.application.auth.keyring = ring
        raw = await stage.connect()
        raw.send(handshake())
        assert (await raw.read_until(b"\r\n")).startswith(b"HTTP/1.1 401")
        raw = await stage.connect()
        raw.send(handshake(path=f"{PATH}?api_key=secret-key"))
        assert (await raw.read_until(b"\r\n")).startswith(b"HTTP/1.1 401")
        client = await connect(stage, "Authorization: Bearer secret-key")
        assert (await client.ask(created()))[-1]["type"] == "response.completed"
        stage.server.application.auth.keyring = Keyring(["other-key"])
        stage.server.application.admission.forget()
        assert error_of(await client.ask(created()))[0] == 401


@leakless
async def test_a_client_that_closes_with_a_frame_stops_its_requests() -> None:
    backend = BlockingBackend(FIRST_EVENTS)
    async with serve_on_loop(backend) as stage:
        client = await connect(stage)
        client.send(created())
        await client.event()
        client.frames.send_close(1000)
        client.raw.send(b"".join(client.frames.data_to_send()))
        await becomes(1, lambda: int(backend.cancelled.is_set()))
        while (frame := await client.frame()) is not None:
            assert frame.opcode.name in ("TEXT", "CLOSE")


@leakless
async def test_a_reload_serves_the_next_request_by_the_new_application() -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        from xenoglot.gateway.app import Gateway  # noqa: PLC0415  this test alone

        client = await connect(stage)
        first = (await client.ask(created("Hi")))[-1]["response"]["id"]
        other = Scripted(HELLO)
        old = stage.server.application
        stage.server.exchange(Gateway(config_for("scripted"), {"scripted": other}))
        await client.ask(created("On", previous_response_id=first))
        assert texts(other.requests[0]) == ["user: Hi", "assistant: Hello", "user: On"]
        await old.aclose()
        await turns()


@pytest.mark.parametrize("lane", [None, "other"], ids=["behind-another", "of-an-idle-lane"])
@leakless
async def test_a_message_that_comes_while_the_server_stops_is_refused(lane: str | None) -> None:
    backend = BlockingBackend(FIRST_EVENTS)
    async with serve_on_loop(backend) as stage:
        client = await connect(stage)
        client.send(created())
        await client.event()
        stage.server.stop_accepting()
        client.send(created("late", **({} if lane is None else {"stream_id": lane})))
        await turns()
        stage.server.stop_now()
        events = [await client.event()]
        while not {event["type"] for event in events} >= {"error", "response.failed"}:
            events.append(await client.event())
        (refused,) = [event for event in events if event["type"] == "error"]
        assert (refused["status"], refused.get("stream_id")) == (503, lane)
