"""Streams that break in the middle, and what each SDK makes of them. Data for `test_broken`."""

from __future__ import annotations

from msgspec import Struct

from tests.matrix.case import Pair, delta, start, stream_body, text_block
from tests.matrix.refusals import REQUEST
from tests.matrix.upstream import Reply, stream_reply
from xenoglot.codec.json.json_io import encode_json
from xenoglot.model.json import JSONObject


class Break(Struct, frozen=True, kw_only=True):
    """One way to break; `raised` is the SDK's error as `test_refusals.error_of` tells it."""

    name: str
    answered: dict[str, Reply]
    raised: dict[Pair, JSONObject]


BEGUN: dict[str, bytes] = {
    "chat": stream_body("chat", (delta(role="assistant", content=""), delta(content="Hel"))).removesuffix(
        b"data: [DONE]\n\n"
    ),
    "messages": stream_body("messages", (start({"input_tokens": 5, "output_tokens": 1}), *text_block(0, "Hel")[:-1])),
}
"""Streams up to their first word."""

HEARD = "Hel"
"""What is heard of each of them before it breaks."""

FINISHED: dict[str, bytes] = {"chat": stream_body("chat", (delta("stop"),)), "messages": b""}


def error_frame(upstream: str, error: JSONObject) -> bytes:
    """Return an error as each wire says it amid a stream."""
    name = b"event: error\n" if upstream == "messages" else b""
    return name + b"data: %s\n\n" % encode_json(error)


OVERLOADED: dict[str, JSONObject] = {
    "chat": {"error": {"message": "Overloaded", "type": "overloaded_error", "param": None, "code": 529}},
    "messages": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
}
TOO_LONG: dict[str, JSONObject] = {
    "chat": {
        "error": {
            "message": "This model's maximum context length is 10 tokens. "
            "However, your messages resulted in 12 tokens.",
            "type": "invalid_request_error",
            "param": None,
            "code": "context_length_exceeded",
        }
    },
    "messages": {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "prompt is too long: 12 tokens > 10 maximum"},
    },
}


def openai_break(message: str, kind: str, code: str | int | None) -> JSONObject:
    """Return openai's error for an error amid a stream."""
    return {"class": "APIError", "body": {"message": message, "type": kind, "param": None, "code": code}}


def anthropic_break(message: str, kind: str, **more: str) -> JSONObject:
    """Return anthropic's error for an error amid a stream; the gateway's own have the `request_id` besides."""
    body = {"type": "error", "error": {"type": kind, "message": message}} | more
    return {"class": "APIStatusError", "status": 200, "body": body}


def everywhere(message: str) -> dict[Pair, JSONObject]:
    """Return what clients hear of a fault of the upstream's that it did not tell itself."""
    chat = openai_break(message, "server_error", "upstream_error")
    messages = anthropic_break(message, "api_error", request_id=REQUEST)
    return {pair: {"chat": chat, "messages": messages}[pair[0]] for pair in PAIRS}


PAIRS = tuple((client, upstream) for client in BEGUN for upstream in BEGUN)
CUT_OFF = "connection lost: the upstream closed it"
UNREADABLE = "server error: the upstream's stream cannot be read: $: not valid JSON: Input data was truncated"
MALFORMED = "the upstream's stream is malformed: $: not valid JSON: Input data was truncated"

BREAKS = (
    Break(
        name="error-event-pitfall-105",
        answered={name: stream_reply(BEGUN[name], late=error_frame(name, OVERLOADED[name])) for name in BEGUN},
        raised={
            ("chat", "chat"): openai_break("Overloaded", "overloaded_error", 529),
            ("chat", "messages"): openai_break("Overloaded", "server_error", "service_unavailable"),
            ("messages", "chat"): anthropic_break("Overloaded", "overloaded_error", request_id=REQUEST),
            ("messages", "messages"): anthropic_break("Overloaded", "overloaded_error"),
        },
    ),
    Break(
        name="error-event-too-long-pitfall-123",
        answered={name: stream_reply(BEGUN[name], late=error_frame(name, TOO_LONG[name])) for name in BEGUN},
        raised={
            ("chat", "chat"): {"class": "APIError", "body": TOO_LONG["chat"]["error"]},
            ("chat", "messages"): {"class": "APIError", "body": TOO_LONG["chat"]["error"]},
            ("messages", "chat"): {
                "class": "APIStatusError",
                "status": 200,
                "body": TOO_LONG["messages"] | {"request_id": REQUEST},
            },
            ("messages", "messages"): {"class": "APIStatusError", "status": 200, "body": TOO_LONG["messages"]},
        },
    ),
    Break(
        name="cut-between-frames-pitfall-104",
        answered={name: stream_reply(BEGUN[name], "cut", late=b"") for name in BEGUN},
        raised=everywhere(CUT_OFF),
    ),
    Break(
        name="cut-inside-a-frame-pitfall-104",
        answered={name: stream_reply(BEGUN[name], "cut", late=b"data: {") for name in BEGUN},
        raised=everywhere(CUT_OFF)
        | {
            ("messages", "messages"): {"class": "RemoteProtocolError"},  # towards chat the half frame is held back
        },
    ),
    Break(
        name="ended-early-pitfall-103",
        answered={name: stream_reply(BEGUN[name], late=b"") for name in BEGUN},
        raised=everywhere("connection lost: the upstream's stream ended without being complete"),
    ),
    Break(
        name="no-json-U22",
        answered={name: stream_reply(BEGUN[name], late=b"event: message_stop\ndata: {\n\n") for name in BEGUN},
        raised={
            ("chat", "chat"): openai_break(UNREADABLE, "server_error", "upstream_error"),
            ("chat", "messages"): openai_break(MALFORMED, "server_error", "upstream_error"),
            ("messages", "chat"): anthropic_break(UNREADABLE, "api_error", request_id=REQUEST),
            ("messages", "messages"): anthropic_break(MALFORMED, "api_error", request_id=REQUEST),
        },
    ),
)
