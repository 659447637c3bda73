"""Translation as functions, and as the stage that takes whatever comes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import xenoglot
from tests.laws.vectors import cases
from xenoglot import dialect_registry as dialects
from xenoglot.codec.framing.sse import SSEDecoder
from xenoglot.codec.stage import Pipeline, through
from xenoglot.codec.target import Target
from xenoglot.model.content import ToolCall
from xenoglot.model.fold import fold
from xenoglot.model.response import Response
from xenoglot.translate import Translator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from xenoglot.model.json import JSON

FILES = ("request.json", "response.json", "error.json", "stream.sse", "stream.ndjson")
DATA = [
    pytest.param((case.dialect.name, path.read_bytes()), id=f"{case.id}-{name}")
    for case in cases()
    for name in FILES
    if (path := case.folder / name).exists()
]


def translated(source: str, pieces: Iterable[bytes]) -> tuple[bytes, list[str]] | str:
    """What `pieces` are in the other dialect and what it cost, or why they cannot be had there."""
    losses = xenoglot.Losses()
    other = "messages" if source == "chat" else "chat"
    try:
        data = b"".join(through(pieces, Translator(source, other, losses)))
    except (xenoglot.WireError, xenoglot.FailureError) as error:
        return str(error)
    return data, [str(loss) for loss in losses]


def _through_bytes(body: JSON, source: str, target: str, losses: xenoglot.Losses) -> bytes:
    return xenoglot.translate(json.dumps(body).encode(), source, target, losses)


@pytest.mark.parametrize("vector", DATA)
def test_byte_by_byte_it_is_the_same(vector: tuple[str, bytes]) -> None:
    source, data = vector
    assert translated(source, [data[at : at + 1] for at in range(len(data))]) == translated(source, [data])


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        pytest.param(b'\n \t{"error":{"message":"no"}}', b'{"type":"error"', id="blanks-before-json"),
        pytest.param(b'\xef\xbb\xbfdata: {"error":{"message":"no"}}\n\n', b"event: error\n", id="byte-order-mark"),
        pytest.param(b': hello\n\ndata: {"error":{"message":"no"}}\n\n', b"event: error\n", id="comment"),
        pytest.param(b'\r\nevent:x\ndata:{"error":{"message":"no"}}\n\n', b"event: error\n", id="blank-line"),
        pytest.param(b"data:", b"event: ping\n", id="short"),
    ],
)
def test_a_stream_and_a_document_are_told_apart(head: bytes, kind: bytes) -> None:
    assert xenoglot.translate(head, "chat", "messages", xenoglot.Losses()).startswith(kind)


@pytest.mark.parametrize("function", [xenoglot.translate_request, _through_bytes])
def test_a_strict_crossing_refuses_to_lose(function: Callable[..., object]) -> None:
    body: JSON = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9, "seed": 7}
    with pytest.raises(xenoglot.LossError) as refusal:
        function(body, "chat", "messages", xenoglot.Losses(strict=True))
    assert refusal.value.losses == ("$.sampling seed dropped (the dialect has no such field)",)


TOOLS: JSON = {
    "model": "m",
    "messages": [{"role": "user", "content": "Hi"}],
    "max_tokens": 9,
    "tools": [
        {"type": "function", "function": {"name": "files.read", "parameters": {"type": "object"}}},
        {"type": "custom", "custom": {"name": "shell"}},
    ],
}
"""A request of `chat` with a name that `messages` does not take, and a tool of a kind that it does not have."""


def answered_calls() -> tuple[JSON, list[JSON]]:
    """What a server of `messages` answers to `TOOLS`: whole, and the blocks with their deltas."""
    sent = xenoglot.translate_request(TOOLS, "chat", "messages", xenoglot.Losses())
    names = [tool["name"] for tool in sent["tools"]]
    inputs: list[JSON] = [{"path": "a"}, {"input": "ls"}]
    calls: list[JSON] = [
        {"type": "tool_use", "id": name, "name": name, "input": value}
        for name, value in zip(names, inputs, strict=True)
    ]
    head = {"id": "a1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    return {
        **head,
        "content": calls,
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }, calls


def streamed(answer: JSON, calls: list[JSON]) -> bytes:
    """The same as a stream."""
    events: list[JSON] = [{"type": "message_start", "message": {**answer, "content": [], "stop_reason": None}}]
    for index, call in enumerate(calls):
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call["input"], separators=(",", ":"))}
        events += [
            {"type": "content_block_start", "index": index, "content_block": {**call, "input": {}}},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    events += [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}}]
    return b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in [*events, {"type": "message_stop"}])


@pytest.mark.parametrize("stream", ["whole", "stream"])
def test_an_answer_calls_the_tools_by_the_clients_names(stream: str) -> None:
    request = dialects.get("chat").decode_request(TOOLS)
    answer, calls = answered_calls()
    if stream == "stream":
        stage = xenoglot.stream_translator("messages", "chat", xenoglot.Losses(), request)
        made = b"".join(through((streamed(answer, calls),), stage))
        events = through((made,), Pipeline(SSEDecoder(), dialects.get("chat").stream_decoder()))
        response = fold(events)
    else:
        body = xenoglot.translate_response(answer, "messages", "chat", xenoglot.Losses(), request)
        response = dialects.get("chat").decode_response(body)
    assert isinstance(response, Response)
    parts = response.candidates[0].content
    assert [(part.name, part.kind, part.arguments) for part in parts if isinstance(part, ToolCall)] == [
        ("files.read", "function", '{"path":"a"}'),
        ("shell", "custom", "ls"),
    ]


PATCH: JSON = {
    "model": "m",
    "input": "Fix it.",
    "tools": [
        {"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}}
    ],
    "tool_choice": {"type": "custom", "name": "apply_patch"},
}
"""What Codex asks of `responses`: most servers of `chat` know no such tool."""


def test_pitfall_62_free_text_crosses_servers_that_have_none() -> None:
    sent = xenoglot.translate_request(PATCH, "responses", "chat", xenoglot.Losses())
    assert [tool["type"] for tool in sent["tools"]] == ["function"]
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "apply_patch"}}
    call = {"id": "c1", "type": "function", "function": {"name": "apply_patch", "arguments": '{"input": "*** a\\nb"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    answer = {"id": "a1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    request = dialects.get("responses").decode_request(PATCH)
    heard = xenoglot.translate_response(answer, "chat", "responses", xenoglot.Losses(), request)
    (item,) = heard["output"]
    assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "apply_patch", "*** a\nb")
    again = {**PATCH, "input": [item, {"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"}]}
    history = xenoglot.translate_request(again, "responses", "chat", xenoglot.Losses())["messages"]
    written = {"name": "apply_patch", "arguments": '{"input":"*** a\\nb"}'}
    assert history == [
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function", "function": written}]},
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    ]


def test_what_a_server_does_not_take_is_fitted() -> None:
    body = {**TOOLS, "tools": TOOLS["tools"][:1], "tool_choice": "required"}
    losses = xenoglot.Losses()
    sent = xenoglot.translate_request(body, "chat", "messages", losses, Target(forced_tools=False))
    assert (sent["tool_choice"], [str(loss) for loss in losses][:1]) == (
        {"type": "auto"},
        ["$.tool_choice mode approximated (the server takes only `auto` and `none`)"],
    )


def test_an_unknown_dialect_is_named_with_those_there_are() -> None:
    with pytest.raises(xenoglot.ConfigurationError) as error:
        xenoglot.translate(b"{}", "latin", "chat", xenoglot.Losses())
    assert str(error.value) == f"there is no dialect `latin`; installed: {', '.join(dialects.names())}"


def test_losses_need_not_be_asked_for() -> None:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}], "seed": 3}
    losses = xenoglot.Losses()
    crossed = xenoglot.translate(body, "chat", "messages", losses)
    assert crossed["messages"] == [{"role": "user", "content": "Hi"}]
    assert [loss.what for loss in losses] == ["seed"]
    assert xenoglot.translate(body, "chat", "messages") == crossed
    assert json.loads(xenoglot.translate(json.dumps(body).encode(), "chat", "messages")) == crossed
    assert xenoglot.translate_request(body, "chat", "messages") == crossed


def test_a_dict_gives_a_dict() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    assert xenoglot.translate(body, "chat", "messages") == body | {"max_tokens": 4096}


@pytest.mark.parametrize("data", [None, "{}", 3, bytearray(b"{}")])
def test_what_is_neither_bytes_nor_a_dict_is_refused(data: Any) -> None:  # noqa: ANN401  whatever it is
    with pytest.raises(xenoglot.WireError, match="expected bytes or a dict"):
        xenoglot.translate(data, "chat", "messages")
