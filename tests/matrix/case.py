"""What a case of the matrix is, and the words its data is written in.

A case says what clients ask and what upstreams answer, each in its own dialect; and for each pair of two dialects what
the upstream is told, what the client gets to hear, and what is lost. Where both ends speak one dialect nothing more
need be said: the upstream is told the client's very bytes, and the client hears what it would hear without a gateway.

What all bodies have in common (ids, models, times, the fields that ask for a stream) is added here, so that the data
holds what the case is about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field

from xenoglot.codec.json.json_io import encode_json
from xenoglot.model.json import JSONObject

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.model.json import JSON

Pair: TypeAlias = tuple[str, str]
"""The client's dialect and the upstream's."""

CREATED = 1_700_000_000
ENVELOPES: dict[str, JSONObject] = {
    "chat": {"id": "chatcmpl-1", "object": "chat.completion", "created": CREATED, "model": "chat-small-0101"},
    "messages": {"id": "msg_1", "type": "message", "role": "assistant", "model": "messages-small-0101"},
}
"""What every answer of an upstream begins with."""

NOW = "now"
"""Stands for the time of the answer, in Unix seconds, where the upstream did not tell it."""


class Answer(Struct, frozen=True):
    """What an upstream says, whole and as a stream, without its envelope."""

    whole: JSONObject
    stream: tuple[JSONObject, ...]


class Across(Struct, frozen=True, kw_only=True):
    """What becomes of a case between two dialects.

    `told` is the body at the upstream without `model` and the fields that ask for a stream; `heard` is the answer
    without its envelope; `lost` are the losses of request and answer, as the log has them. `gathered` is what the
    SDK's own accumulator makes of the stream where it drops something that is in it, or raises an error of its own.
    """

    told: JSONObject
    heard: JSONObject
    lost: tuple[str, ...] = ()
    gathered: JSONObject | None = None


class Case(Struct, frozen=True, kw_only=True):
    """One row of the matrix; `asked` by the client's dialect, `answered` by the upstream's."""

    name: str
    asked: dict[str, JSONObject]
    answered: dict[str, Answer]
    across: dict[Pair, Across] = field(default_factory=dict)

    @property
    def pairs(self) -> list[Pair]:
        """The pairs of dialects that it can be played in."""
        return [(client, upstream) for client in self.asked for upstream in self.answered]


def whole_body(upstream: str, said: JSONObject) -> JSONObject:
    """Return a whole answer of an upstream."""
    return ENVELOPES[upstream] | said


def stream_body(upstream: str, said: Iterable[JSONObject]) -> bytes:
    """Return a whole stream of an upstream."""
    if upstream == "chat":
        envelope = ENVELOPES["chat"] | {"object": "chat.completion.chunk"}
        return b"".join(b"data: %s\n\n" % encode_json(envelope | chunk) for chunk in said) + b"data: [DONE]\n\n"
    return b"".join(b"event: %s\ndata: %s\n\n" % (event["type"].encode(), encode_json(event)) for event in said)


def response_envelope(client: str, upstream: str) -> JSONObject:
    """Return what every answer begins with that a client of one dialect gets from an upstream of another."""
    theirs = ENVELOPES[upstream]
    return (
        ENVELOPES[client]
        | {"id": theirs["id"], "model": theirs["model"]}
        | ({"created": theirs.get("created", NOW)} if "created" in ENVELOPES[client] else {})
    )


def stream_options(upstream: str) -> JSONObject:
    """Return the fields that a client of another dialect makes the gateway ask with for a stream."""
    return {"stream": True} | ({"stream_options": {"include_usage": True}} if upstream == "chat" else {})


# The words of both.


def user(content: JSON) -> JSONObject:
    """Return a turn of the user."""
    return {"role": "user", "content": content}


def assistant(content: JSON, **more: JSON) -> JSONObject:
    """Return a turn of the assistant."""
    return {"role": "assistant", "content": content} | more


def system(content: JSON) -> JSONObject:
    """Return a turn of the system."""
    return {"role": "system", "content": content}


def text(words: str, **more: JSON) -> JSONObject:
    """Return a block, or a part, of text."""
    return {"type": "text", "text": words} | more


# The words of `chat`.


def choice(message: JSONObject, finish: str = "stop", usage: JSONObject | None = None, **more: JSON) -> JSONObject:
    """Return a whole answer of one choice; `more` are fields of the choice."""
    only = {"index": 0, "message": {"role": "assistant"} | message, "finish_reason": finish} | more
    answer: JSONObject = {"choices": [only]}
    return answer if usage is None else answer | {"usage": usage}


def delta(finish: str | None = None, /, **fields: JSON) -> JSONObject:
    """Return one chunk of a stream."""
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def last_usage(usage: JSONObject) -> JSONObject:
    """Return the chunk that ends a stream with usage."""
    return {"choices": [], "usage": usage}


def chat_usage(prompt: int, completion: int, **more: JSON) -> JSONObject:
    """Return usage."""
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion} | more


def call(call_id: str, name: str, arguments: str) -> JSONObject:
    """Return one tool call of a whole answer."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool(call_id: str, content: JSON) -> JSONObject:
    """Return a turn with what a tool answered."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def image_url(url: str, **more: JSON) -> JSONObject:
    """Return a part that shows a picture."""
    return {"type": "image_url", "image_url": {"url": url} | more}


def function(name: str, parameters: JSONObject, **more: JSON) -> JSONObject:
    """Return one tool of a request."""
    return {"type": "function", "function": {"name": name, "parameters": parameters} | more}


# The words of `messages`.


def message(*content: JSONObject, stop: str = "end_turn", usage: JSONObject | None = None, **more: JSON) -> JSONObject:
    """Return a whole answer."""
    told = {"input_tokens": 5, "output_tokens": 2} if usage is None else usage
    return {"content": list(content), "stop_reason": stop, "stop_sequence": None, "usage": told} | more


def use(call_id: str, name: str, arguments: JSONObject, **more: JSON) -> JSONObject:
    """Return a block that calls a tool."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments} | more


def result(call_id: str, *content: JSON, **more: JSON) -> JSONObject:
    """Return a block with what a tool answered, if anything."""
    said = {"content": content[0]} if content else {}
    return {"type": "tool_result", "tool_use_id": call_id} | said | more


def base64(media_type: str, data: str) -> JSONObject:
    """Return a source of bytes."""
    return {"type": "base64", "media_type": media_type, "data": data}


def start(usage: JSONObject) -> JSONObject:
    """Return the event that begins a stream."""
    empty: JSONObject = {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    return {"type": "message_start", "message": ENVELOPES["messages"] | empty}


def block(index: int, content: JSONObject, *deltas: JSONObject) -> tuple[JSONObject, ...]:
    """Return the events of one block."""
    return (
        {"type": "content_block_start", "index": index, "content_block": content},
        *({"type": "content_block_delta", "index": index, "delta": said} for said in deltas),
        {"type": "content_block_stop", "index": index},
    )


def text_block(index: int, *pieces: str) -> tuple[JSONObject, ...]:
    """Return the events of a block of text."""
    return block(index, text(""), *({"type": "text_delta", "text": piece} for piece in pieces))


def tool_block(index: int, call_id: str, name: str, *pieces: str) -> tuple[JSONObject, ...]:
    """Return the events of a tool call."""
    opening = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    return block(index, opening, *({"type": "input_json_delta", "partial_json": piece} for piece in pieces))


def stop(reason: str, usage: JSONObject, **more: JSON) -> tuple[JSONObject, ...]:
    """Return the events that end a stream."""
    told = {"stop_reason": reason, "stop_sequence": None} | more
    return {"type": "message_delta", "delta": told, "usage": usage}, {"type": "message_stop"}


# What a case says where it is about something else.

HI: dict[str, JSONObject] = {
    "chat": {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 64},
    "messages": {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 64},
}

HELLO: dict[str, Answer] = {
    "chat": Answer(
        choice({"content": "Hello"}, usage=chat_usage(5, 2)),
        (
            delta(role="assistant", content=""),
            delta(content="Hel"),
            delta(content="lo"),
            delta("stop"),
            last_usage(chat_usage(5, 2)),
        ),
    ),
    "messages": Answer(
        message(text("Hello")),
        (
            start({"input_tokens": 5, "output_tokens": 1}),
            *text_block(0, "Hel", "lo"),
            *stop("end_turn", {"output_tokens": 2}),
        ),
    ),
}

HEARD_HELLO: dict[str, JSONObject] = {client: HELLO[client].whole for client in HELLO}


def requests(
    name: str, asked: dict[str, JSONObject], told: dict[str, JSONObject], lost: dict[str, tuple[str, ...]] | None = None
) -> Case:
    """Return a case about what is asked: `told` and `lost` by the dialect of the upstream."""
    across = {
        (client, upstream): Across(told=told[upstream], heard=HEARD_HELLO[client], lost=(lost or {}).get(upstream, ()))
        for client in asked
        for upstream in HELLO
        if client != upstream
    }
    return Case(name=name, asked=asked, answered=HELLO, across=across)


def answers(  # noqa: PLR0913  each is one thing that a case says
    name: str,
    answered: dict[str, Answer],
    heard: dict[str, JSONObject],
    lost: dict[str, tuple[str, ...]] | None = None,
    gathered: dict[str, JSONObject] | None = None,
    *,
    thinking: bool = False,
) -> Case:
    """Return a case about what is answered: `heard`, `lost` and `gathered` by the dialect of the client.

    With `thinking` clients ask for reasoning where their dialect returns it on request only.
    """
    asked = {**HI, "messages": {**HI["messages"], "thinking": {"type": "adaptive"}}} if thinking else HI
    not_said = ("$.thinking mode dropped (the server decides by itself)",)
    unsaid = {"messages": not_said} if thinking else {}
    across = {
        (client, upstream): Across(
            told=HI[upstream],
            heard=heard[client],
            lost=(*unsaid.get(client, ()), *(lost or {}).get(client, ())),
            gathered=(gathered or {}).get(client),
        )
        for client in HI
        for upstream in answered
        if client != upstream
    }
    return Case(name=name, asked=asked, answered=answered, across=across)
