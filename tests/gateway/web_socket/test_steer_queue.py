"""Steering over a WebSocket: what becomes of input for an answer in progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from openai.types.responses import (
    ResponseIncompleteEvent,
    ResponseSteerAcceptedEvent,
    ResponseSteerFailedEvent,
    ResponseSteerPendingEvent,
)

from tests.backends.raw_server import becomes, leakless
from tests.gateway.running_gateway import config_for
from tests.gateway.scripted_backends import Backend
from tests.gateway.server_on_loop import serve_on_loop
from tests.gateway.web_socket.socket_client import connect, created
from tests.gateway.web_socket.test_session import CALL, OUTPUT, TOOLS, Held, texts
from xenoglot.backends.backend import EventAnswer
from xenoglot.errors import FailureError
from xenoglot.gateway.web_socket.steer_queue import MOST_STEERS
from xenoglot.model.content import Reasoning, Text
from xenoglot.model.events import (
    BlockEnded,
    BlockStarted,
    Finished,
    ReasoningDelta,
    Started,
    TextDelta,
    UsageReported,
)
from xenoglot.model.failure import Failure
from xenoglot.model.fold import unfold
from xenoglot.model.response import Finish, Usage

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncGenerator, Sequence

    from tests.gateway.web_socket.socket_client import SocketClient
    from xenoglot.backends.backend import Answer, Call
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request

REST = (
    BlockEnded(),
    UsageReported(usage=Usage(input_tokens=5, output_tokens=2)),
    Finished(finish=Finish(reason="stop")),
)
THOUGHT = (BlockStarted(part=Reasoning(text="")), ReasoningDelta(text="Hm."), BlockEnded())
WORDS = (BlockStarted(part=Text(text="")), TextDelta(text="Long story"))
BEGUN = Started(id="a", model="m", created=1)


class Paced(Backend):
    """Gives each answer in batches, and waits before each but the first until a test calls `go_on`."""

    def __init__(self, *answers: Sequence[Sequence[Event]] | Failure) -> None:
        super().__init__()
        self.requests: list[Request] = []
        self.gate: asyncio.Semaphore | None = None
        self.left = 0
        self._answers = answers

    async def answer(self, call: Call) -> Answer:
        """Begin the next answer."""
        import asyncio  # noqa: PLC0415  a type above

        self.gate = self.gate or asyncio.Semaphore(0)
        turn = self._answers[len(self.requests)]
        self.requests.append(call.request)
        if isinstance(turn, Failure):
            raise FailureError(turn)
        batches = self._paced(turn)
        return EventAnswer(batches=batches, aclose=batches.aclose)

    async def _paced(self, batches: Sequence[Sequence[Event]]) -> AsyncGenerator[Sequence[Event]]:
        assert self.gate is not None
        try:
            for at, batch in enumerate(batches):
                if at:
                    await self.gate.acquire()
                yield batch
        finally:
            self.left += 1

    def go_on(self) -> None:
        """Give one batch more."""
        assert self.gate is not None
        self.gate.release()


def steer(answer_id: str, said: JSON = "Shorter.", **more: JSON) -> JSONObject:
    """Return steering input as a client's event."""
    return {"type": "response.steer", "previous_response_id": answer_id, "input": said, **more}


async def begun(client: SocketClient, event: JSONObject) -> str:
    """Ask, and return the id of the answer once it has begun."""
    client.send(event)
    answer_id: str = (await client.event())["response"]["id"]
    return answer_id


async def until(client: SocketClient, kind: str) -> list[JSONObject]:
    """Return the events up to one of this type."""
    events = [await client.event()]
    while events[-1]["type"] != kind:
        events.append(await client.event())
    return events


@leakless
async def test_an_answer_ends_behind_a_thought_and_goes_on_with_the_input() -> None:
    backend = Paced([(BEGUN, *THOUGHT[:2]), THOUGHT[2:], WORDS], [(BEGUN, *WORDS, *REST)])
    async with serve_on_loop(backend) as stage:
        client = await connect(stage)
        first = await begun(client, created("Tell.", temperature=0.5, tools=TOOLS))
        await until(client, "response.reasoning_text.delta")
        client.send(steer(first))
        accepted = ResponseSteerAcceptedEvent.model_validate(await client.event(), strict=True)
        assert accepted.steer.previous_response_id == first
        backend.go_on()  # the thought ends ...
        backend.go_on()  # ... and words would begin
        events = await until(client, "response.incomplete")
        incomplete = ResponseIncompleteEvent.model_validate(events[-1])
        assert incomplete.response.incomplete_details is not None
        assert incomplete.response.incomplete_details.reason == "steered"
        assert [item.type for item in incomplete.response.output] == ["reasoning"]
        numbers = [event["sequence_number"] for event in events]
        assert numbers == list(range(accepted.sequence_number + 1, accepted.sequence_number + 1 + len(numbers)))
        follows = await client.answer()
        assert follows[0]["type"] == "response.created"
        assert follows[-1]["response"]["previous_response_id"] == first
        assert follows[-1]["type"] == "response.completed"
        assert backend.left == 2
        assert texts(backend.requests[1]) == ["user: Tell.", "user: Shorter."]
        assert backend.requests[1].sampling.temperature == 0.5
        assert len(backend.requests[1].tools) == 1


@leakless
async def test_words_are_finished_before_the_input() -> None:
    backend = Paced([(BEGUN, *WORDS), REST], [(BEGUN, *WORDS, *REST)])
    async with serve_on_loop(backend) as stage:
        client = await connect(stage)
        first = await begun(client, created("Tell."))
        client.send(steer(first, [{"role": "user", "content": [{"type": "input_text", "text": "Shorter."}]}]))
        client.send(steer(first, "Funnier."))
        accepted = [event for event in await until(client, "response.steer.accepted") if "steer" in event]
        accepted += await until(client, "response.steer.accepted")
        assert len({event["steer"]["id"] for event in accepted if "steer" in event}) == 2
        backend.go_on()
        assert (await client.answer())[-1]["type"] == "response.completed"
        assert (await client.answer())[-1]["response"]["previous_response_id"] == first
        assert texts(backend.requests[1]) == [
            "user: Tell.",
            "assistant: Long story",
            "user: Shorter.",
            "user: Funnier.",
        ]


@leakless
async def test_input_waits_for_the_results_of_calls_and_goes_in_front_of_them() -> None:
    calls = list(unfold(CALL))
    backend = Paced([calls[:1], calls[1:]], [(BEGUN, *WORDS, *REST)])
    async with serve_on_loop(backend) as stage:
        client = await connect(stage)
        first = await begun(client, created("Look.", tools=TOOLS))
        client.send(steer(first))
        accepted = (await until(client, "response.steer.accepted"))[-1]
        backend.go_on()
        await until(client, "response.completed")
        event = await client.event()
        pending = ResponseSteerPendingEvent.model_validate(event, strict=True)
        assert (pending.steer.id, pending.reason) == (accepted["steer"]["id"], "waiting_for_required_input")
        assert event["required_input"] == [{"type": "function_call_output", "call_id": "call_1", "name": "look"}]
        client.send(steer(first, "And fast."))
        assert [(await client.event())["type"] for _ in range(2)] == [
            "response.steer.accepted",
            "response.steer.pending",
        ]
        last = await client.ask({**created(tools=TOOLS, previous_response_id=first), "input": [OUTPUT]})
        assert last[-1]["type"] == "response.completed"
        assert {"user: Shorter.", "user: And fast."} < set(texts(backend.requests[1]))


@pytest.mark.parametrize(
    ("event", "code"),
    [
        pytest.param(steer("resp_other"), "response_not_found", id="another-answer"),
        pytest.param(steer("FIRST", ""), "invalid_input", id="empty"),
        pytest.param(steer("FIRST", []), "invalid_input", id="no-items"),
        pytest.param(steer("FIRST", [{"role": "system", "content": "x"}]), "invalid_input", id="role"),
        pytest.param(steer("FIRST", [OUTPUT]), "invalid_input", id="result"),
        pytest.param(steer("FIRST", [{"role": "user", "content": "x", "id": "m"}]), "invalid_input", id="field"),
        pytest.param(
            steer("FIRST", [{"role": "user", "content": [{"type": "output_text", "text": "x"}]}]),
            "invalid_input",
            id="part",
        ),
        pytest.param(steer("FIRST", stream_id="a"), "invalid_input", id="lane"),
    ],
)
@leakless
async def test_input_that_is_not_taken_comes_back(event: JSONObject, code: str) -> None:
    backend = Paced([(BEGUN, *WORDS), REST])
    async with serve_on_loop(backend) as stage:
        client = await connect(stage)
        first = await begun(client, created("Tell."))
        steered = event["previous_response_id"].replace("FIRST", first)
        client.send({**event, "previous_response_id": steered})
        failed = (await until(client, "response.steer.failed"))[-1]
        assert failed["error"]["code"] == code
        assert failed["steer"] == {"input": event["input"], "previous_response_id": steered}
        backend.go_on()
        assert (await client.answer())[-1]["type"] == "response.completed"
        client.send(steer(first))
        assert (await client.event())["error"]["code"] == "response_already_completed"


@leakless
async def test_an_answer_with_compaction_is_not_steered_and_inputs_are_bounded() -> None:
    backend = Held()
    async with serve_on_loop(Paced([(BEGUN, *WORDS), REST], [(BEGUN, *WORDS), REST])) as stage:
        client = await connect(stage)
        compacting = [{"type": "compaction", "compact_threshold": 100_000}]
        first = await begun(client, created("Tell.", stream_id="a", context_management=compacting))
        client.send(steer(first))
        failed = (await until(client, "response.steer.failed"))[-1]
        assert (failed["error"]["code"], failed["stream_id"]) == ("steering_not_supported", "a")
        second = await begun(client, created("Tell.", stream_id="b"))
        for _ in range(MOST_STEERS + 1):
            client.send(steer(second))
        failed = (await until(client, "response.steer.failed"))[-1]
        assert failed["error"]["code"] == "too_many_pending_steers"
    assert backend.begun == []


@leakless
async def test_bytes_of_inputs_that_wait_are_bounded_over_all_answers() -> None:
    config = config_for("scripted")
    config = replace(config, server=replace(config.server, body_limit=3_000))
    async with serve_on_loop(Paced([(BEGUN, *WORDS), REST], [(BEGUN, *WORDS), REST]), config) as stage:
        client = await connect(stage)
        first = await begun(client, created("Tell.", stream_id="a"))
        client.send(steer(first, "x" * 2_000))
        await until(client, "response.steer.accepted")
        second = await begun(client, created("Tell.", stream_id="b"))
        client.send(steer(second, "y" * 2_000))
        failed = (await until(client, "response.steer.failed"))[-1]
        assert failed["error"]["code"] == "too_many_pending_steers"
        assert failed["steer"]["input"] == "y" * 2_000


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        pytest.param(
            ([(BEGUN, *WORDS), (Failure,)], None),
            "response_not_active",
            id="the-answer-fails",
        ),
        pytest.param(
            ([(BEGUN, *WORDS), REST], Failure(kind="rate_limit", message="later")),
            "successor_creation_failed",
            id="the-next-is-refused",
        ),
    ],
)
@leakless
async def test_accepted_input_that_no_answer_begins_with_comes_back(answers: tuple[object, object], code: str) -> None:
    from xenoglot.model.events import Failed  # noqa: PLC0415  this test alone

    first_answer, second = answers
    broken = [
        tuple(
            Failed(failure=Failure(kind="upstream", message="broken")) if event is Failure else event for event in batch
        )
        for batch in first_answer  # type: ignore[attr-defined]
    ]
    backend = Paced(*(one for one in (broken, second) if one is not None))  # type: ignore[arg-type]
    async with serve_on_loop(backend) as stage:
        client = await connect(stage)
        first = await begun(client, created("Tell."))
        client.send(steer(first))
        accepted = (await until(client, "response.steer.accepted"))[-1]
        backend.go_on()
        failed = (await until(client, "response.steer.failed"))[-1]
        ResponseSteerFailedEvent.model_validate(failed, strict=True)
        assert failed["error"]["code"] == code
        assert failed["steer"] == {
            "id": accepted["steer"]["id"],
            "input": "Shorter.",
            "previous_response_id": first,
        }
        await becomes(len([one for one in (broken, second) if one is not None]), lambda: len(backend.requests))
