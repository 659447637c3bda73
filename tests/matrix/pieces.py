"""The pieces of streams that crossed from one dialect to another, as the SDKs give them out: for `test_iteration`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.matrix.case import (
    block,
    chat_usage,
    delta,
    last_usage,
    response_envelope,
    stop,
    text_block,
    tool_block,
)
from tests.matrix.cases.reasoning import SEAL, thought

if TYPE_CHECKING:
    from tests.matrix.case import Pair
    from xenoglot.model.json import JSON, JSONObject

TO_CHAT = ("chat", "messages")
TO_MESSAGES = ("messages", "chat")


def chunks(*said: JSONObject) -> list[JSONObject]:
    """Return the chunks of a whole stream for a client of `chat`."""
    envelope = response_envelope(*TO_CHAT) | {"object": "chat.completion.chunk"}
    first = delta(role="assistant", content=None)
    return [{**envelope, "usage": None, **chunk} for chunk in (first, *said)]


def events(*said: JSONObject) -> list[JSONObject]:
    """Return the events of a whole stream for a client of `messages`; the first is written before any count came."""
    nothing: JSONObject = {"content": [], "stop_reason": None, "stop_sequence": None}
    usage = {"input_tokens": 0, "output_tokens": 0}
    message = response_envelope(*TO_MESSAGES) | nothing | {"usage": usage}
    return [{"type": "message_start", "message": message}, *said]


def calling(index: int, **fields: JSON) -> JSONObject:
    """Return the chunk of a tool call."""
    return delta(tool_calls=[{"index": index, **fields}])


PIECES: dict[tuple[str, Pair], list[JSONObject]] = {
    ("text", TO_CHAT): chunks(delta(content="Hel"), delta(content="lo"), delta("stop"), last_usage(chat_usage(5, 2))),
    ("text", TO_MESSAGES): events(
        *text_block(0, "Hel", "lo"), *stop("end_turn", {"input_tokens": 5, "output_tokens": 2})
    ),
    ("tools-parallel-pitfall-90", TO_CHAT): chunks(
        delta(content="I look."),
        calling(0, id="toolu_1", type="function", function={"name": "weather", "arguments": ""}),
        calling(0, function={"arguments": '{"city":'}),
        calling(0, function={"arguments": '"Paris"}'}),
        calling(1, id="toolu_2", type="function", function={"name": "weather", "arguments": ""}),
        calling(1, function={"arguments": '{"city":"Rome"}'}),
        delta("tool_calls"),
        last_usage(chat_usage(30, 20)),
    ),
    ("tools-parallel-pitfall-90", TO_MESSAGES): events(
        *text_block(0, "I look."),
        *tool_block(1, "call_1", "weather", '{"city":', ' "Paris"}'),
        *tool_block(2, "call_2", "weather", '{"city":"Rome"}'),
        *stop("tool_use", {"input_tokens": 30, "output_tokens": 20}),
    ),
    ("tools-interleaved-pitfall-89", TO_MESSAGES): events(
        *tool_block(0, "call_1", "weather", '{"city":"Pa', 'ris"}'),
        *tool_block(1, "call_2", "weather", '{"city":', '"Rome"}'),
        *stop("tool_use", {"input_tokens": 30, "output_tokens": 20}),
    ),
    ("reasoning-signed-pitfall-50", TO_CHAT): chunks(
        delta(reasoning_content="They "),
        delta(reasoning_content="greet."),
        delta(
            reasoning_details=[
                {
                    "type": "reasoning.text",
                    "text": "They greet.",
                    "signature": SEAL,
                    "format": "anthropic-claude-v1",
                    "index": 0,
                }
            ]
        ),
        delta(content="Hello"),
        delta("stop"),
        last_usage(chat_usage(5, 30)),
    ),
    ("reasoning-signed-pitfall-50", TO_MESSAGES): events(
        *thought(0, "They ", "greet."),
        *text_block(1, "Hello"),
        *stop("end_turn", {"input_tokens": 5, "output_tokens": 30}),
    ),
    ("reasoning-redacted-pitfall-11", TO_CHAT): chunks(
        delta(
            reasoning_details=[
                {"type": "reasoning.encrypted", "data": "b3BhcXVl", "format": "anthropic-claude-v1", "index": 0}
            ]
        ),
        delta(content="Hello"),
        delta("stop"),
        last_usage(chat_usage(5, 30)),
    ),
    ("reasoning-encrypted-elsewhere", TO_MESSAGES): events(
        *block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {
                "type": "signature_delta",
                "signature": "xenoglot:sealed:WyJyZXNwb25zZXMiLG51bGwsbnVsbCwiYzJWaGJHVmsiXQ==",
            },
        ),
        *text_block(1, "Hello"),
        *stop("end_turn", {"input_tokens": 5, "output_tokens": 30}),
    ),
    ("ending-length-pitfall-68", TO_CHAT): chunks(delta(content="Hel"), delta("length"), last_usage(chat_usage(5, 2))),
    ("ending-stop-string-pitfall-70", TO_CHAT): chunks(
        delta(content="Hel"),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "stop_reason": "END"}]},
        last_usage(chat_usage(5, 2)),
    ),
    ("ending-pause-pitfall-71", TO_CHAT): chunks(
        delta(content="Hel"),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "native_finish_reason": "pause_turn"}]},
        last_usage(chat_usage(5, 2)),
    ),
    ("ending-refusal-pitfall-72", TO_CHAT): chunks(
        delta(content="Hel"),
        delta(refusal="Not that."),
        delta("content_filter"),
        last_usage(chat_usage(5, 2)),
    ),
    ("ending-refusal-pitfall-72", TO_MESSAGES): events(
        *text_block(0, "I will", " not."), *stop("refusal", {"input_tokens": 5, "output_tokens": 2})
    ),
}
