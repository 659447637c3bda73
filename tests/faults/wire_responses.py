"""What upstreams of each dialect say, written by hand: one small answer, whole and as a stream, cut into its frames.

It says two words, counts five tokens in and two out, and ends. A stream is in four parts, so that a fault can stand
between any two of them: up to the first word, the second word, the end that is told, and the mark behind it. Wires
without a mark have none in `done`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.codec.framing.binary_events import EXCEPTION, encode_message
from xenoglot.codec.framing.sse import ServerSentEvent

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.model.json import JSON, JSONObject

FIRST, SECOND = "Hel", "lo"
CREATED = 1_700_000_000
MODEL = "small-0101"
TIMESTAMP = "2023-11-14T22:13:20Z"


class WireResponse(Struct, frozen=True):
    """An answer of one dialect. `error` is an error as it stands amid the stream."""

    media_type: str
    first_frames: tuple[bytes, ...]
    middle_frames: tuple[bytes, ...]
    last_frames: tuple[bytes, ...]
    end_mark: tuple[bytes, ...]
    whole: bytes
    error: bytes

    @property
    def stream(self) -> bytes:
        """The whole stream."""
        return b"".join((*self.first_frames, *self.middle_frames, *self.last_frames, *self.end_mark))


def json_bytes(value: JSON) -> bytes:
    """Return JSON as servers write it: in UTF-8, without escapes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def sse_event(value: JSON, name: str = "") -> bytes:
    """Return one server-sent event."""
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + json_bytes(value) + b"\n\n"


def json_line(value: JSON) -> bytes:
    """Return one line."""
    return json_bytes(value) + b"\n"


def typed_event(value: JSONObject) -> bytes:
    """Return one event that is named as its type says."""
    return sse_event(value, str(value["type"]))


EVENTS, LINES, OBJECT = "text/event-stream", "application/x-ndjson", "application/json"
BINARY = "application/vnd.amazon.eventstream"
DONE = b"data: [DONE]\n\n"
OVERLOADED = "Overloaded, come back later"


def chat_chunk(delta: JSONObject, finish: str | None = None, **more: JSON) -> bytes:
    """Return a chunk of one choice."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": CREATED, "model": MODEL}
    return sse_event(head | {"choices": [choice]} | more)


def chat_end(finish: str | None = "stop") -> tuple[bytes, ...]:
    """Return the chunks that end a stream, but for the mark."""
    return (chat_chunk({}, finish), chat_chunk({}, choices=[], usage=CHAT_USAGE))


CHAT_USAGE: JSONObject = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
OPENAI_ERROR: JSONObject = {
    "error": {"message": OVERLOADED, "type": "server_error", "param": None, "code": "service_unavailable"}
}


def chat(first: str = FIRST, second: str = SECOND) -> WireResponse:
    """Return an answer of OpenAI's chat API."""
    choice = {"index": 0, "message": {"role": "assistant", "content": first + second}, "finish_reason": "stop"}
    whole = {"id": "chatcmpl-1", "object": "chat.completion", "created": CREATED, "model": MODEL, "choices": [choice]}
    return WireResponse(
        media_type=EVENTS,
        first_frames=(chat_chunk({"role": "assistant", "content": ""}), chat_chunk({"content": first})),
        middle_frames=(chat_chunk({"content": second}),),
        last_frames=chat_end(),
        end_mark=(DONE,),
        whole=json_bytes(whole | {"usage": CHAT_USAGE}),
        error=sse_event(OPENAI_ERROR),
    )


def completions_chunk(text: str, finish: str | None = None, **more: JSON) -> bytes:
    """Return a chunk of one choice."""
    choice = {"text": text, "index": 0, "logprobs": None, "finish_reason": finish}
    head = {"id": "cmpl-1", "object": "text_completion", "created": CREATED, "model": MODEL}
    return sse_event(head | {"choices": [choice]} | more)


def completions(first: str = FIRST, second: str = SECOND) -> WireResponse:
    """Return an answer of OpenAI's API for texts."""
    choice = {"text": first + second, "index": 0, "logprobs": None, "finish_reason": "stop"}
    whole = {"id": "cmpl-1", "object": "text_completion", "created": CREATED, "model": MODEL, "choices": [choice]}
    return WireResponse(
        media_type=EVENTS,
        first_frames=(completions_chunk(first),),
        middle_frames=(completions_chunk(second),),
        last_frames=(completions_chunk("", "stop"), completions_chunk("", choices=[], usage=CHAT_USAGE)),
        end_mark=(DONE,),
        whole=json_bytes(whole | {"usage": CHAT_USAGE}),
        error=sse_event(OPENAI_ERROR),
    )


def gemini_chunk(parts: list[JSON], finish: str | None = None, output: int = 1, **more: JSON) -> JSONObject:
    """Return a chunk, which is an answer of its own."""
    candidate: JSONObject = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    usage = {"promptTokenCount": 5, "candidatesTokenCount": output, "totalTokenCount": 5 + output}
    said: JSONObject = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL, "responseId": "r1"}
    return said | more


def gemini(first: str = FIRST, second: str = SECOND) -> WireResponse:
    """Return an answer of Google's API."""
    return WireResponse(
        media_type=EVENTS,
        first_frames=(sse_event(gemini_chunk([{"text": first}])),),
        middle_frames=(sse_event(gemini_chunk([{"text": second}], output=2)),),
        last_frames=(sse_event(gemini_chunk([{"text": ""}], "STOP", 2)),),
        end_mark=(),
        whole=json_bytes(gemini_chunk([{"text": first + second}], "STOP", 2)),
        error=sse_event({"error": {"code": 503, "message": OVERLOADED, "status": "UNAVAILABLE"}}),
    )


METRICS: list[JSON] = [
    {"metric": "prompt_tokens", "value": 5, "unit": None},
    {"metric": "completion_tokens", "value": 2, "unit": None},
    {"metric": "total_tokens", "value": 7, "unit": None},
]


def interaction_event(kind: str, **fields: JSON) -> bytes:
    """Return an event of an interaction."""
    return b"event: " + kind.encode() + b"\n" + sse_event({"event_type": kind, **fields})


def converse_event(kind: str, value: JSONObject) -> bytes:
    """Return one message of Bedrock's event stream; an exception by its name."""
    marked = EXCEPTION if kind.endswith("Exception") else None
    return encode_message(ServerSentEvent(json_bytes(value), kind, marked))


def converse(first: str = FIRST, second: str = SECOND) -> WireResponse:
    """Return an answer of Bedrock's Converse API."""
    usage = {"inputTokens": 5, "outputTokens": 2, "totalTokens": 7}
    metadata: JSONObject = {"usage": usage, "metrics": {"latencyMs": 9}}
    message: JSONObject = {"role": "assistant", "content": [{"text": first + second}]}
    return WireResponse(
        media_type=BINARY,
        first_frames=(
            converse_event("messageStart", {"role": "assistant"}),
            converse_event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": first}}),
        ),
        middle_frames=(converse_event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": second}}),),
        last_frames=(
            converse_event("contentBlockStop", {"contentBlockIndex": 0}),
            converse_event("messageStop", {"stopReason": "end_turn"}),
            converse_event("metadata", metadata),
        ),
        end_mark=(),
        whole=json_bytes({"output": {"message": message}, "stopReason": "end_turn", **metadata}),
        error=converse_event("serviceUnavailableException", {"message": OVERLOADED}),
    )


def interaction(status: str, **fields: JSON) -> JSONObject:
    """Return an interaction."""
    return {"id": "v1_up", "object": "interaction", "model": MODEL, "status": status, **fields}


def interactions(first: str = FIRST, second: str = SECOND) -> WireResponse:
    """Return an answer of Google's Interactions API."""
    usage = {"total_tokens": 7, "total_input_tokens": 5, "total_output_tokens": 2}
    step: JSONObject = {"type": "model_output", "content": [{"type": "text", "text": first + second}]}
    return WireResponse(
        media_type=EVENTS,
        first_frames=(
            interaction_event("interaction.created", interaction=interaction("in_progress")),
            interaction_event("step.start", index=0, step={"type": "model_output"}),
            interaction_event("step.delta", index=0, delta={"type": "text", "text": first}),
        ),
        middle_frames=(interaction_event("step.delta", index=0, delta={"type": "text", "text": second}),),
        last_frames=(interaction_event("step.stop", index=0),),
        end_mark=(interaction_event("interaction.completed", interaction=interaction("completed", usage=usage)),),
        whole=json_bytes(interaction("completed", steps=[step], usage=usage)),
        error=interaction_event("error", error={"code": "unavailable", "message": OVERLOADED}),
    )


def stack_event(kind: str, delta: JSONObject, stop: str | None = None, metrics: JSON = None) -> bytes:
    """Return an event of Llama Stack's chat API."""
    event = {"event_type": kind, "delta": delta, "logprobs": None, "stop_reason": stop}
    return sse_event({"metrics": metrics, "event": event})


def stack_text(text: str) -> JSONObject:
    """Return a piece of text."""
    return {"type": "text", "text": text}


def llama_stack(first: str = FIRST, second: str = SECOND) -> WireResponse:
    """Return an answer of Llama Stack's chat API."""
    message = {"role": "assistant", "content": first + second, "stop_reason": "end_of_turn", "tool_calls": []}
    return WireResponse(
        media_type=EVENTS,
        first_frames=(stack_event("start", stack_text("")), stack_event("progress", stack_text(first))),
        middle_frames=(stack_event("progress", stack_text(second)),),
        last_frames=(stack_event("complete", stack_text(""), "end_of_turn", METRICS),),
        end_mark=(),
        whole=json_bytes({"metrics": METRICS, "completion_message": message, "logprobs": None}),
        error=sse_event({"error": {"message": f"503: {OVERLOADED}"}}),
    )


def stack_piece(delta: str, stop: str | None = None, metrics: JSON = None) -> bytes:
    """Return a piece of Llama Stack's API for texts."""
    return sse_event({"metrics": metrics, "delta": delta, "stop_reason": stop, "logprobs": None})


def llama_stack_completion(first: str = FIRST, second: str = SECOND) -> WireResponse:
    """Return an answer of Llama Stack's API for texts."""
    whole = {"metrics": METRICS, "content": first + second, "stop_reason": "end_of_turn", "logprobs": None}
    return WireResponse(
        media_type=EVENTS,
        first_frames=(stack_piece(first),),
        middle_frames=(stack_piece(second),),
        last_frames=(stack_piece("", "end_of_turn", METRICS),),
        end_mark=(),
        whole=json_bytes(whole),
        error=sse_event({"error": {"message": f"503: {OVERLOADED}"}}),
    )


MESSAGE: JSONObject = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL}


def message_start() -> bytes:
    """Return the event that begins a stream of Anthropic's."""
    empty: JSONObject = {"content": [], "stop_reason": None, "stop_sequence": None}
    usage: JSONObject = {"input_tokens": 5, "output_tokens": 1}
    return typed_event({"type": "message_start", "message": MESSAGE | empty | {"usage": usage}})


def block_start(index: int, block: JSONObject) -> bytes:
    """Return the event that opens a block."""
    return typed_event({"type": "content_block_start", "index": index, "content_block": block})


def block_delta(index: int, delta: JSONObject) -> bytes:
    """Return an event by which a block grows."""
    return typed_event({"type": "content_block_delta", "index": index, "delta": delta})


def block_stop(index: int) -> bytes:
    """Return the event that closes a block."""
    return typed_event({"type": "content_block_stop", "index": index})


def message_delta(stop: str | None = "end_turn") -> bytes:
    """Return the event that says why a message ends."""
    delta: JSONObject = {"stop_reason": stop, "stop_sequence": None}
    return typed_event({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 2}})


MESSAGE_STOP = typed_event({"type": "message_stop"})


def messages(first: str = FIRST, second: str = SECOND) -> WireResponse:
    """Return an answer of Anthropic's API."""
    whole: JSONObject = {"stop_reason": "end_turn", "stop_sequence": None}
    usage: JSONObject = {"input_tokens": 5, "output_tokens": 2}
    return WireResponse(
        media_type=EVENTS,
        first_frames=(
            message_start(),
            block_start(0, {"type": "text", "text": ""}),
            block_delta(0, {"type": "text_delta", "text": first}),
        ),
        middle_frames=(block_delta(0, {"type": "text_delta", "text": second}),),
        last_frames=(block_stop(0), message_delta()),
        end_mark=(MESSAGE_STOP,),
        whole=json_bytes(MESSAGE | whole | {"content": [{"type": "text", "text": first + second}], "usage": usage}),
        error=typed_event({"type": "error", "error": {"type": "overloaded_error", "message": OVERLOADED}}),
    )


def ollama_line(content: str, *, done: bool = False, **more: JSON) -> JSONObject:
    """Return a line of Ollama's chat."""
    message = {"role": "assistant", "content": content}
    head: JSONObject = {"model": MODEL, "created_at": TIMESTAMP, "message": message, "done": done}
    return head | (OLLAMA_END if done else {}) | more


OLLAMA_END: JSONObject = {"done_reason": "stop", "total_duration": 9, "prompt_eval_count": 5, "eval_count": 2}


def ollama(first: str = FIRST, second: str = SECOND) -> WireResponse:
    """Return an answer of Ollama's chat API."""
    return WireResponse(
        media_type=LINES,
        first_frames=(json_line(ollama_line(first)),),
        middle_frames=(json_line(ollama_line(second)),),
        last_frames=(json_line(ollama_line("", done=True)),),
        end_mark=(),
        whole=json_bytes(ollama_line(first + second, done=True)),
        error=json_line({"error": OVERLOADED}),
    )


def generate_line(text: str, *, done: bool = False, **more: JSON) -> JSONObject:
    """Return a line of Ollama's generation."""
    head: JSONObject = {"model": MODEL, "created_at": TIMESTAMP, "response": text, "done": done}
    return head | (OLLAMA_END if done else {}) | more


def ollama_generate(first: str = FIRST, second: str = SECOND) -> WireResponse:
    """Return an answer of Ollama's API for texts."""
    return WireResponse(
        media_type=LINES,
        first_frames=(json_line(generate_line(first)),),
        middle_frames=(json_line(generate_line(second)),),
        last_frames=(json_line(generate_line("", done=True)),),
        end_mark=(),
        whole=json_bytes(generate_line(first + second, done=True)),
        error=json_line({"error": OVERLOADED}),
    )


def response_object(status: str, output: list[JSON], **more: JSON) -> JSONObject:
    """Return an answer of OpenAI's newer API, as far as it says anything."""
    head: JSONObject = {"id": "resp_1", "object": "response", "created_at": CREATED, "status": status, "model": MODEL}
    usage: JSONObject = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    told: JSONObject = {"output": output, "usage": usage if status != "in_progress" else None, "error": None}
    return head | told | more


def response_item(text: str, status: str = "completed") -> JSONObject:
    """Return the item of a text."""
    content: list[JSON] = [{"type": "output_text", "text": text, "annotations": []}] if status == "completed" else []
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": status, "content": content}


ITEM: JSONObject = {"item_id": "msg_1", "output_index": 0, "content_index": 0}


def text_delta(text: str) -> bytes:
    """Return an event by which a text of OpenAI's newer API grows."""
    return typed_event({"type": "response.output_text.delta", **ITEM, "delta": text})


def responses(first: str = FIRST, second: str = SECOND) -> WireResponse:
    """Return an answer of OpenAI's newer API."""
    text = first + second
    part: JSONObject = {"type": "output_text", "text": text, "annotations": []}
    item = response_item(text)
    return WireResponse(
        media_type=EVENTS,
        first_frames=(
            typed_event({"type": "response.created", "response": response_object("in_progress", [])}),
            typed_event(
                {"type": "response.output_item.added", "output_index": 0, "item": response_item("", "in_progress")}
            ),
            typed_event({"type": "response.content_part.added", **ITEM, "part": part | {"text": ""}}),
            text_delta(first),
        ),
        middle_frames=(text_delta(second),),
        last_frames=(
            typed_event({"type": "response.output_text.done", **ITEM, "text": text}),
            typed_event({"type": "response.content_part.done", **ITEM, "part": part}),
            typed_event({"type": "response.output_item.done", "output_index": 0, "item": item}),
        ),
        end_mark=(typed_event({"type": "response.completed", "response": response_object("completed", [item])}),),
        whole=json_bytes(response_object("completed", [item])),
        error=typed_event(
            {
                "type": "response.failed",
                "response": response_object("failed", [])
                | {"error": {"code": "service_unavailable", "message": OVERLOADED}},
            }
        ),
    )


WIRE_RESPONSES: dict[str, Callable[..., WireResponse]] = {
    "chat": chat,
    "completions": completions,
    "converse": converse,
    "gemini": gemini,
    "interactions": interactions,
    "llama_stack": llama_stack,
    "llama_stack_completion": llama_stack_completion,
    "messages": messages,
    "ollama": ollama,
    "ollama_generate": ollama_generate,
    "responses": responses,
}
BINARY_FRAMED = ("converse",)
"""Those whose frames have checksums; faults of these are in `test_upstream_binary`."""
ALL_DIALECTS = tuple(WIRE_RESPONSES)
DIALECTS = tuple(name for name in WIRE_RESPONSES if name not in BINARY_FRAMED)
"""Those of text, whose bytes a fault may change."""
WITH_TOOLS = ("chat", "gemini", "interactions", "llama_stack", "messages", "ollama", "responses")
"""Those that hold a conversation, with tools in it."""
WITH_END_MARK = ("chat", "completions", "interactions", "messages", "responses")
"""Those whose streams end in a mark of their own, behind which nothing counts."""
HELLO = {name: wire() for name, wire in WIRE_RESPONSES.items()}


def error_body(upstream: str, message: str, word: str | None = None, code: JSON = None, status: int = 400) -> bytes:  # noqa: PLR0911 - one for each dialect
    """Return the body of an error; `word` and `code` are what the dialect says beside the sentence, where it can."""
    match upstream:
        case "chat" | "completions" | "responses":
            return json_bytes({"error": {"message": message, "type": word, "param": None, "code": code}})
        case "messages":
            return json_bytes({"type": "error", "error": {"type": word, "message": message}, "request_id": "req_u"})
        case "converse":
            return json_bytes({"message": message} | ({} if word is None else {"__type": word}))
        case "interactions":
            code = (word or "internal").lower().replace("invalid_argument", "invalid_request")
            return json_bytes({"error": {"code": code, "message": message}})
        case "gemini":
            return json_bytes({"error": {"code": status, "message": message, "status": word}})
        case "llama_stack" | "llama_stack_completion":
            return json_bytes({"status": status, "title": "Error", "detail": message})
        case _:
            return json_bytes({"error": message})
