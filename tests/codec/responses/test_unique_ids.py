"""findings-F8-ids-none: the calls of a conversation have ids of their own, whatever the server calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.responses.answer_repair import UniqueIds
from xenoglot.codec.stage import through
from xenoglot.dialect_registry import get
from xenoglot.model.content import Text, ToolCall, ToolResult
from xenoglot.model.fold import fold, unfold
from xenoglot.model.request import Message, Request
from xenoglot.model.response import Candidate, Response
from xenoglot.translate import stream_translator, translate_response

if TYPE_CHECKING:
    from xenoglot.model.json import JSON


def call(call_id: str) -> ToolCall:
    return ToolCall(id=call_id, name="look", arguments='{"at": 1}')


def request_with_calls(*ids: str) -> Request:
    turns = [Message(role="assistant", content=(call(call_id),)) for call_id in ids]
    return Request(model="m", messages=(Message(role="user", content=(Text(text="Hi"),)), *turns))


def answer(*parts: ToolCall | ToolResult | Text) -> Response:
    return Response(id="a", model="m", candidates=(Candidate(content=parts),))


@pytest.mark.parametrize(
    ("history", "said", "renamed"),
    [
        pytest.param((), ("a", "b"), ("a", "b"), id="nothing-is-taken"),
        pytest.param(("a",), ("b",), ("b",), id="another-is-taken"),
        pytest.param(("a",), ("a",), ("a_2",), id="taken"),
        pytest.param(("a", "a_2", "a_3"), ("a",), ("a_4",), id="the-next-are-taken-too"),
        pytest.param(("a",), ("a", "a_2"), ("a_2", "a_2_2"), id="what-we-gave-is-taken"),
        pytest.param((), ("a", "a", "a"), ("a", "a_2", "a_3"), id="twice-in-an-answer"),
        pytest.param(("x" * 64,), ("x" * 64,), ("x" * 56 + "_2",), id="no-longer-than-servers-take"),
    ],
)
def test_ids(history: tuple[str, ...], said: tuple[str, ...], renamed: tuple[str, ...]) -> None:
    response = answer(Text(text="I look."), *map(call, said))
    expected = answer(Text(text="I look."), *map(call, renamed))
    whole = UniqueIds(request_with_calls(*history)).response(response)
    assert whole == expected
    assert fold(through(unfold(response), UniqueIds(request_with_calls(*history)))) == expected
    if said == renamed:
        assert whole is response


def test_a_result_keeps_to_its_call() -> None:
    response = answer(call("a"), ToolResult(call_id="a"), call("a"), ToolResult(call_id="a"))
    expected = answer(call("a_2"), ToolResult(call_id="a_2"), call("a_3"), ToolResult(call_id="a_3"))
    assert UniqueIds(request_with_calls("a")).response(response) == expected
    assert fold(through(unfold(response), UniqueIds(request_with_calls("a")))) == expected


CHAT: JSON = {
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {"tool_calls": [{"type": "function", "function": {"name": "look", "arguments": "{}"}}]},
            "finish_reason": "tool_calls",
        }
    ],
}
GEMINI: JSON = {
    "candidates": [
        {
            "content": {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
            "finishReason": "STOP",
        }
    ]
}
OLLAMA: JSON = {
    "model": "m",
    "message": {"role": "assistant", "tool_calls": [{"function": {"name": "look", "arguments": {}}}]},
    "done": True,
    "done_reason": "stop",
}
MESSAGES: JSON = {
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "tool_use", "name": "look", "input": {}}],
    "stop_reason": "tool_use",
}
WHOLE = {"chat": CHAT, "gemini": GEMINI, "ollama": OLLAMA, "messages": MESSAGES}


def lines(*events: JSON) -> bytes:
    return b"".join(b"data: %b\n\n" % encode_json(event) for event in events)


def started(index: int) -> JSON:
    block: JSON = {"type": "tool_use", "name": "look", "input": {}}
    return {"type": "content_block_start", "index": index, "content_block": block}


TOLD: JSON = {
    "model": "m",
    "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"name": "look", "arguments": "{}"}}]}}],
}
MESSAGE: JSON = {"type": "message_start", "message": {"type": "message", "role": "assistant", "content": []}}
STOPPED: JSON = {"type": "content_block_stop", "index": 0}
ENDED: tuple[JSON, ...] = (
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}},
    {"type": "message_stop"},
)
STREAMED = {
    "chat": lines(TOLD, {"model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
    "gemini": lines(GEMINI),
    "ollama": encode_json(OLLAMA) + b"\n",
    "messages": lines(MESSAGE, started(0), STOPPED, *ENDED),
}


def calls_of(data: bytes, target: str) -> list[ToolCall]:
    framing = get(target).framing.decoder()
    response = fold(through(through([data], framing), get(target).stream_decoder()))
    assert isinstance(response, Response)
    return [part for part in response.candidates[0].content if isinstance(part, ToolCall)]


def turn(server: str, client: str, request: Request, *, streamed: bool) -> list[ToolCall]:
    if streamed:
        translator = stream_translator(server, client, request=request)
        return calls_of(b"".join(through([STREAMED[server]], translator)), client)
    body = translate_response(WHOLE[server], server, client, request=request)
    content = get(client).decode_response(body).candidates[0].content
    return [part for part in content if isinstance(part, ToolCall)]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("client", ["chat", "messages", "responses"])
@pytest.mark.parametrize("server", WHOLE)
def test_ids_of_a_conversation(server: str, client: str, *, streamed: bool) -> None:
    request = request_with_calls()
    for turns in range(1, 5):
        calls = turn(server, client, request, streamed=streamed)
        assert calls == turn(server, client, request, streamed=streamed)  # the same history gives the same id
        said = Message(role="assistant", content=(*calls,))
        request = Request(model="m", messages=(*request.messages, said))
        ids = {part.id for message in request.messages for part in message.content if isinstance(part, ToolCall)}
        assert len(ids) == turns


def test_blocks_under_one_index_have_their_own_ids() -> None:
    stream = lines(MESSAGE, started(0), STOPPED, started(0), STOPPED, started(0), STOPPED, *ENDED)
    calls = calls_of(stream, "messages")
    assert len({each.id for each in calls}) == len(calls) == stream.count(b"content_block_start")
