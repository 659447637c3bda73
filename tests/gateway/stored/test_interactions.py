"""Stored interactions, as google-genai asks for them: continued, retrieved, followed, cancelled and deleted."""

from __future__ import annotations

import asyncio
import time
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from google import genai
from google.genai import types
from google.genai._gaos.lib.compat_errors import APIStatusError

from tests.gateway.running_gateway import TIMEOUT, run_gateway
from tests.gateway.scripted_backends import FIRST_EVENTS, HELLO, BlockingBackend
from tests.gateway.stored.test_intake import turns_of
from xenoglot.backends.scripted import Scripted
from xenoglot.model.content import ToolCall
from xenoglot.model.events import BlockEnded, Finished, TextDelta
from xenoglot.model.response import Candidate, Finish, Response

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from tests.gateway.running_gateway import RunningGateway

ENDING = (TextDelta(text="lo"), BlockEnded(), Finished(finish=Finish(reason="stop")))


def sdk_of(running: RunningGateway, version: str | None = None) -> Any:  # noqa: ANN401  its types are unions of all
    options = types.HttpOptions(
        base_url=running.url, api_version=version, retry_options=types.HttpRetryOptions(attempts=1)
    )
    return genai.Client(api_key="k", http_options=options)


@pytest.fixture(scope="module")
def scripted() -> Scripted:
    return Scripted(HELLO)


@pytest.fixture(scope="module")
def running(scripted: Scripted) -> Generator[RunningGateway]:
    with run_gateway({"scripted": scripted}) as made:
        yield made


@pytest.fixture(params=[None, "v1beta"], ids=["newest", "v1beta"])
def client(request: pytest.FixtureRequest, running: RunningGateway) -> Any:  # noqa: ANN401  see `sdk_of`
    return sdk_of(running, request.param)


@pytest.fixture(autouse=True)
def _without_warnings() -> Generator[None]:
    """Let the SDK warn that it is experimental."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_an_answer_is_stored_and_continued(client: Any, scripted: Scripted) -> None:  # noqa: ANN401  see `sdk_of`
    first = client.interactions.create(model="m", input="Hi", system_instruction="Be brief.")
    assert (first.status, first.output_text, first.id[:3]) == ("completed", "Hello", "v1_")
    again = client.interactions.create(model="m", input="Again", previous_interaction_id=first.id)
    assert again.previous_interaction_id == first.id
    asked = turns_of(scripted.requests[-1])
    assert asked == [("user", ["Hi"]), ("assistant", ["Hello"]), ("user", ["Again"])]  # instructions do not go on
    assert client.interactions.get(first.id).output_text == "Hello"
    assert client.interactions.get(first.id, include_input=True).input[0].content[0].text == "Hi"


def test_a_stream_is_stored_as_the_whole_answer(client: Any) -> None:  # noqa: ANN401  see `sdk_of`
    events = list(client.interactions.create(model="m", input="Hi", stream=True))
    assert [event.event_type for event in events] == [
        "interaction.created",
        "interaction.status_update",
        "step.start",
        "step.delta",
        "step.stop",
        "interaction.completed",
    ]
    name = events[0].interaction.id
    stored = client.interactions.get(name)
    assert (stored.id, stored.status, stored.output_text) == (name, "completed", "Hello")
    assert (stored.usage.total_input_tokens, stored.usage.total_output_tokens) == (5, 2)


def test_what_is_deleted_is_gone(client: Any) -> None:  # noqa: ANN401  see `sdk_of`
    name = client.interactions.create(model="m", input="Hi").id
    client.interactions.delete(name)
    with pytest.raises(APIStatusError) as caught:
        client.interactions.get(name)
    assert caught.value.response.status_code == 404
    with pytest.raises(APIStatusError) as caught:
        client.interactions.create(model="m", input="Hi", previous_interaction_id=name)
    body: Any = caught.value.body
    assert body["error"]["code"] == "not_found"


def test_what_is_not_to_be_stored_is_not(client: Any) -> None:  # noqa: ANN401  see `sdk_of`
    name = client.interactions.create(model="m", input="Hi", store=False).id
    with pytest.raises(APIStatusError):
        client.interactions.get(name)


def test_an_agent_is_refused_with_a_reason(client: Any) -> None:  # noqa: ANN401  see `sdk_of`
    with pytest.raises(APIStatusError) as caught:
        client.interactions.create(agent="deep-research-preview-04-2026", input="Hi")
    assert caught.value.response.status_code == 400
    assert "agents run on Google's servers alone" in str(caught.value)


def test_the_asynchronous_client_does_the_same(running: RunningGateway) -> None:
    async def used() -> tuple[str, str, list[str]]:
        client = sdk_of(running).aio
        first = await client.interactions.create(model="m", input="Hi")
        stream = await client.interactions.create(model="m", input="Hi", stream=True, previous_interaction_id=first.id)
        events = [event.event_type async for event in stream]
        found = await client.interactions.get(first.id)
        await client.interactions.delete(first.id)
        return first.output_text, found.output_text, events

    whole, found, events = asyncio.run(used())
    assert (whole, found, events[-1]) == ("Hello", "Hello", "interaction.completed")


def test_a_call_and_its_result_go_on() -> None:
    call = Candidate(content=(ToolCall(id="fc_1", name="f", arguments='{"a":1}'),), finish=Finish(reason="tool_calls"))
    scripted = Scripted(Response(id="a", model="m", candidates=(call,)), HELLO)
    with run_gateway({"scripted": scripted}) as running:
        client = sdk_of(running)
        tools = [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
        first = client.interactions.create(model="m", input="Hi", tools=tools)
        (step,) = first.steps
        assert (first.status, step.type, step.arguments) == ("requires_action", "function_call", {"a": 1})
        result = [{"type": "function_result", "call_id": step.id, "name": "f", "result": "7"}]
        done = client.interactions.create(model="m", input=result, tools=tools, previous_interaction_id=first.id)
        assert (done.status, done.output_text) == ("completed", "Hello")
        asked = [role for role, _ in turns_of(scripted.requests[-1])]
        assert asked == ["user", "assistant", "tool"]


def test_one_is_followed_from_where_it_was_left(client: Any) -> None:  # noqa: ANN401  see `sdk_of`
    whole = list(client.interactions.create(model="m", input="Hi", background=True, stream=True))
    name = whole[0].interaction.id
    ids = [event.event_id for event in whole]
    assert ids == [f"event_{number:08d}" for number in range(len(ids))]
    rest = list(client.interactions.get(name, stream=True, last_event_id=ids[2]))
    assert [event.event_id for event in rest] == ids[3:]
    assert whole[-1].event_type == "interaction.completed"
    with pytest.raises(APIStatusError):
        client.interactions.get(name, stream=True, last_event_id="another")


def test_only_these_can_be_cancelled(client: Any) -> None:  # noqa: ANN401  see `sdk_of`
    name = client.interactions.create(model="m", input="Hi").id
    with pytest.raises(APIStatusError) as caught:
        client.interactions.cancel(name)
    assert caught.value.response.status_code == 400


class TestBackground:
    """Interactions in the background."""

    @pytest.fixture
    def hanging(self) -> BlockingBackend:
        return BlockingBackend(FIRST_EVENTS, ENDING)

    @pytest.fixture
    def client(self, gateway_server: Callable[..., RunningGateway], hanging: BlockingBackend) -> Any:  # noqa: ANN401
        return sdk_of(gateway_server({"scripted": hanging}))

    def test_one_is_polled_until_it_is_done(self, client: Any, hanging: BlockingBackend) -> None:  # noqa: ANN401
        queued = client.interactions.create(model="m", input="Hi", background=True)
        assert queued.status in ("queued", "in_progress")
        assert hanging.called.wait(TIMEOUT)
        hanging.resume()
        done = until(client, queued.id, "completed")
        assert (done.id, done.output_text) == (queued.id, "Hello")

    def test_one_is_cancelled(self, client: Any, hanging: BlockingBackend) -> None:  # noqa: ANN401
        queued = client.interactions.create(model="m", input="Hi", background=True)
        assert hanging.called.wait(TIMEOUT)
        assert client.interactions.cancel(queued.id).status == "cancelled"
        assert client.interactions.get(queued.id).status == "cancelled"


def until(client: Any, name: str, status: str) -> Any:  # noqa: ANN401  see `sdk_of`
    """Ask for an interaction until it has this status."""
    end = time.monotonic() + TIMEOUT
    while True:
        answer = client.interactions.get(name)
        if answer.status == status:
            return answer
        assert time.monotonic() < end, answer.status
