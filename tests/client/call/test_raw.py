"""Requests in a dialect's own JSON: as they are to a server of that dialect, translated to any other."""

import json
from typing import Any

import pytest
from anthropic.types import Message, RawMessageStreamEvent
from msgspec.structs import replace
from openai.types import Completion, CompletionChoice
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response as OpenAIResponse
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from tests.client.server_scripts import HELLO, HELLO_STREAMED, chunk, error_answer, scripted_client, streamed
from xenoglot.backends.scripted import Scripted
from xenoglot.client.async_ import AsyncClient
from xenoglot.dialect_registry import get, names
from xenoglot.errors import FailureError, IncompleteError, InvalidRequestError, RateLimitError, UpstreamError
from xenoglot.model.content import Reasoning, Text
from xenoglot.model.json import JSONObject
from xenoglot.model.response import Candidate, Finish, Response, Usage
from xenoglot.testing import CUT, Upstream, answers

ASK: dict[str, JSONObject] = {
    "chat": {"messages": [{"role": "user", "content": "Hi"}]},
    "completions": {"prompt": "Hi"},
    "converse": {"messages": [{"role": "user", "content": [{"text": "Hi"}]}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
    "interactions": {"input": "Hi"},
    "llama_stack": {"messages": [{"role": "user", "content": "Hi"}]},
    "llama_stack_completion": {"content": "Hi"},
    "messages": {"max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]},
    "ollama": {"messages": [{"role": "user", "content": "Hi"}]},
    "ollama_generate": {"prompt": "Hi"},
    "responses": {"input": "Hi"},
}
SAID = Response(
    id="r1",
    model="m1",
    created=1,
    candidates=(Candidate(content=(Text(text="Hello."),), finish=Finish(reason="stop")),),
    usage=Usage(input_tokens=1, output_tokens=2),
)


def test_every_dialect_is_asked() -> None:
    assert ASK.keys() == set(names())


@pytest.mark.parametrize("dialect", names())
async def test_between_the_same_dialects_nothing_changes(dialect: str) -> None:
    there = answers(dialect)
    async with (
        Upstream(*there.rules()) as server,
        AsyncClient(server.url, dialect=dialect, model="scripted", proxy=None) as client,
    ):
        body = {**ASK[dialect], "an_unknown_field": [1]}
        assert await client.raw(body, dialect) == json.loads(there.body)
        events = [event async for event in client.raw_stream(body, dialect)]
        assert events
        assert all(isinstance(event, dict) for event in events)
        for request in server.requests:
            assert isinstance(request.json, dict)
            assert request.json["an_unknown_field"] == [1]


async def test_bytes_stay_as_they_are() -> None:
    body = b'{ "model": "m",\n "messages": [{"content": "Hi", "role": "user"}], "zz": 1e2 }'
    async with scripted_client(HELLO) as (client, server):
        await client.raw(body)
        assert server.requests[0].body == body


@pytest.mark.parametrize(
    "dialect", [name for name in names() if name not in {"completions", "ollama_generate", "llama_stack_completion"}]
)
async def test_to_another_dialect_it_is_translated(dialect: str) -> None:
    async with AsyncClient(Scripted(SAID)) as client:
        whole = json.dumps(await client.raw(ASK[dialect], dialect))
        events = [event async for event in client.raw_stream(ASK[dialect], dialect)]
    assert "Hello." in whole
    assert "Hello." in json.dumps(events)


@pytest.mark.parametrize(
    ("dialect", "more", "shown"),
    [
        pytest.param("messages", {}, False, id="messages"),
        pytest.param("messages", {"thinking": {"type": "adaptive"}}, True, id="messages-asked"),
        pytest.param("gemini", {}, False, id="gemini"),
        pytest.param("chat", {}, True, id="chat"),
    ],
)
async def test_reasoning_comes_where_the_request_asks_for_it_clients_0(
    dialect: str,
    more: JSONObject,
    shown: bool,  # noqa: FBT001  a column
) -> None:
    thought = Candidate(content=(Reasoning(text="hm"), Text(text="Hello.")), finish=Finish(reason="stop"))
    async with AsyncClient(Scripted(replace(SAID, candidates=(thought,)))) as client:
        whole = json.dumps(await client.raw(ASK[dialect] | more, dialect))
        events = json.dumps([event async for event in client.raw_stream(ASK[dialect] | more, dialect)])
    assert ("hm" in whole, "hm" in events) == (shown, shown)
    assert "Hello." in whole


class ChunkChoice(CompletionChoice):
    """The SDK reads chunks as whole answers without looking; a choice that goes on has no reason to end."""

    finish_reason: str | None = None  # type: ignore[assignment]


class CompletionChunk(Completion):
    """A piece of a streamed text."""

    choices: list[ChunkChoice]  # type: ignore[assignment]


NAMELESS = Response(candidates=SAID.candidates)
KINDS: dict[str, tuple[Any, Any]] = {
    "chat": (ChatCompletion, ChatCompletionChunk),
    "completions": (Completion, CompletionChunk),
    "messages": (Message, RawMessageStreamEvent),
    "responses": (OpenAIResponse, ResponseStreamEvent),
}


@pytest.mark.parametrize("dialect", KINDS)
async def test_an_answer_without_a_name_gets_one(dialect: str) -> None:
    whole, event = KINDS[dialect]
    async with AsyncClient(Scripted(NAMELESS), on_loss="ignore") as client:
        answer = await client.raw(ASK[dialect], dialect)
        async with client.raw_stream(ASK[dialect], dialect) as stream:
            events = [event async for event in stream]
    prefix = get(dialect).id_prefix
    TypeAdapter(whole).validate_python(answer)
    assert answer["id"].startswith(prefix)
    assert len(answer["id"]) > len(prefix) + 16
    for one in events:
        TypeAdapter(event).validate_python(one)
    found = {one["id"] for one in events if "id" in one and "type" not in one}
    assert len(found) == (1 if dialect in {"chat", "completions"} else 0)


async def test_a_stream_is_given_event_by_event() -> None:
    async with scripted_client(HELLO_STREAMED) as (client, server):
        async with client.raw_stream(ASK["chat"]) as stream:
            found = [event["choices"][0]["delta"].get("content") async for event in stream]
        usage = {"stream_options": {"include_usage": True}}
        assert server.requests[0].json == {**ASK["chat"], "model": "m", "stream": True, **usage}
    assert found == ["Hel", "lo.", None]


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        pytest.param(streamed(chunk({"content": "a"}), done=False), IncompleteError, id="no-end"),
        pytest.param(streamed(chunk({"content": "a"}), done=False, then=CUT), IncompleteError, id="cut"),
        pytest.param(
            streamed(chunk({"content": "a"}), {"error": {"message": "x", "type": "server_error"}}, done=False),
            UpstreamError,
            id="an-error",
        ),
        pytest.param(error_answer(429, {"message": "slow down"}), RateLimitError, id="refused"),
    ],
)
async def test_broken_streams_raise(script: Any, kind: type[FailureError]) -> None:  # noqa: ANN401  steps
    async with scripted_client(script) as (client, _):
        with pytest.raises(kind):
            assert [event async for event in client.raw_stream(ASK["chat"])]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param({"messages": 3}, r"\$\.messages", id="a-field"),
        pytest.param([], "object", id="a-list"),
        pytest.param(b"{nonsense", "JSON", id="no-json"),
        pytest.param({}, "messages", id="nothing"),
    ],
)
async def test_mistakes_are_named(body: Any, words: str) -> None:  # noqa: ANN401  what people say
    async with scripted_client(HELLO) as (client, server):
        with pytest.raises(InvalidRequestError, match=words):
            await client.raw(body)
        assert server.requests == []
