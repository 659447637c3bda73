"""What upstreams of each dialect say, written by hand: one small answer, whole and as a stream, cut into its frames.

It says two words, counts five tokens in and two out, and ends. A stream is in four parts, so that a fault can stand
between any two of them: up to the first word, the second word, the end that is told, and the mark behind it. Wires
without a mark have none in `done`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.model.json import JSON, JSONObject

FIRST, SECOND = "Hel", "lo"
CREATED = 1_700_000_000
MODEL = "small-0101"
MOMENT = "2023-11-14T22:13:20Z"


class Wire(Struct, frozen=True):
    """An answer of one dialect. `error` is an error as it stands amid the stream."""

    media_type: str
    begun: tuple[bytes, ...]
    more: tuple[bytes, ...]
    ended: tuple[bytes, ...]
    done: tuple[bytes, ...]
    whole: bytes
    error: bytes

    @property
    def stream(self) -> bytes:
        """The whole stream."""
        return b"".join((*self.begun, *self.more, *self.ended, *self.done))


def written(value: JSON) -> bytes:
    """Return JSON as servers write it: in UTF-8, without escapes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def data(value: JSON, name: str = "") -> bytes:
    """Return one server-sent event."""
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + written(value) + b"\n\n"


def line(value: JSON) -> bytes:
    """Return one line."""
    return written(value) + b"\n"


def named(value: JSONObject) -> bytes:
    """Return one event that is named as its type says."""
    return data(value, str(value["type"]))


EVENTS, LINES, OBJECT = "text/event-stream", "application/x-ndjson", "application/json"
DONE = b"data: [DONE]\n\n"
OVERLOADED = "Overloaded, come back later"


def chat_chunk(delta: JSONObject, finish: str | None = None, **more: JSON) -> bytes:
    """Return a chunk of one choice."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": CREATED, "model": MODEL}
    return data(head | {"choices": [choice]} | more)


def chat_end(finish: str | None = "stop") -> tuple[bytes, ...]:
    """Return the chunks that end a stream, but for the mark."""
    return (chat_chunk({}, finish), chat_chunk({}, choices=[], usage=CHAT_USAGE))


CHAT_USAGE: JSONObject = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
OPENAI_ERROR: JSONObject = {
    "error": {"message": OVERLOADED, "type": "server_error", "param": None, "code": "service_unavailable"}
}


def chat(first: str = FIRST, second: str = SECOND) -> Wire:
    """Return an answer of OpenAI's chat API."""
    choice = {"index": 0, "message": {"role": "assistant", "content": first + second}, "finish_reason": "stop"}
    whole = {"id": "chatcmpl-1", "object": "chat.completion", "created": CREATED, "model": MODEL, "choices": [choice]}
    return Wire(
        media_type=EVENTS,
        begun=(chat_chunk({"role": "assistant", "content": ""}), chat_chunk({"content": first})),
        more=(chat_chunk({"content": second}),),
        ended=chat_end(),
        done=(DONE,),
        whole=written(whole | {"usage": CHAT_USAGE}),
        error=data(OPENAI_ERROR),
    )


def completions_chunk(text: str, finish: str | None = None, **more: JSON) -> bytes:
    """Return a chunk of one choice."""
    choice = {"text": text, "index": 0, "logprobs": None, "finish_reason": finish}
    head = {"id": "cmpl-1", "object": "text_completion", "created": CREATED, "model": MODEL}
    return data(head | {"choices": [choice]} | more)


def completions(first: str = FIRST, second: str = SECOND) -> Wire:
    """Return an answer of OpenAI's API for texts."""
    choice = {"text": first + second, "index": 0, "logprobs": None, "finish_reason": "stop"}
    whole = {"id": "cmpl-1", "object": "text_completion", "created": CREATED, "model": MODEL, "choices": [choice]}
    return Wire(
        media_type=EVENTS,
        begun=(completions_chunk(first),),
        more=(completions_chunk(second),),
        ended=(completions_chunk("", "stop"), completions_chunk("", choices=[], usage=CHAT_USAGE)),
        done=(DONE,),
        whole=written(whole | {"usage": CHAT_USAGE}),
        error=data(OPENAI_ERROR),
    )


def gemini_chunk(parts: list[JSON], finish: str | None = None, output: int = 1, **more: JSON) -> JSONObject:
    """Return a chunk, which is an answer of its own."""
    candidate: JSONObject = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    usage = {"promptTokenCount": 5, "candidatesTokenCount": output, "totalTokenCount": 5 + output}
    said: JSONObject = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL, "responseId": "r1"}
    return said | more


def gemini(first: str = FIRST, second: str = SECOND) -> Wire:
    """Return an answer of Google's API."""
    return Wire(
        media_type=EVENTS,
        begun=(data(gemini_chunk([{"text": first}])),),
        more=(data(gemini_chunk([{"text": second}], output=2)),),
        ended=(data(gemini_chunk([{"text": ""}], "STOP", 2)),),
        done=(),
        whole=written(gemini_chunk([{"text": first + second}], "STOP", 2)),
        error=data({"error": {"code": 503, "message": OVERLOADED, "status": "UNAVAILABLE"}}),
    )


METRICS: list[JSON] = [
    {"metric": "prompt_tokens", "value": 5, "unit": None},
    {"metric": "completion_tokens", "value": 2, "unit": None},
    {"metric": "total_tokens", "value": 7, "unit": None},
]


def stack_event(kind: str, delta: JSONObject, stop: str | None = None, metrics: JSON = None) -> bytes:
    """Return an event of Llama Stack's chat API."""
    event = {"event_type": kind, "delta": delta, "logprobs": None, "stop_reason": stop}
    return data({"metrics": metrics, "event": event})


def stack_text(text: str) -> JSONObject:
    """Return a piece of text."""
    return {"type": "text", "text": text}


def llama_stack(first: str = FIRST, second: str = SECOND) -> Wire:
    """Return an answer of Llama Stack's chat API."""
    message = {"role": "assistant", "content": first + second, "stop_reason": "end_of_turn", "tool_calls": []}
    return Wire(
        media_type=EVENTS,
        begun=(stack_event("start", stack_text("")), stack_event("progress", stack_text(first))),
        more=(stack_event("progress", stack_text(second)),),
        ended=(stack_event("complete", stack_text(""), "end_of_turn", METRICS),),
        done=(),
        whole=written({"metrics": METRICS, "completion_message": message, "logprobs": None}),
        error=data({"error": {"message": f"503: {OVERLOADED}"}}),
    )


def stack_piece(delta: str, stop: str | None = None, metrics: JSON = None) -> bytes:
    """Return a piece of Llama Stack's API for texts."""
    return data({"metrics": metrics, "delta": delta, "stop_reason": stop, "logprobs": None})


def llama_stack_completion(first: str = FIRST, second: str = SECOND) -> Wire:
    """Return an answer of Llama Stack's API for texts."""
    whole = {"metrics": METRICS, "content": first + second, "stop_reason": "end_of_turn", "logprobs": None}
    return Wire(
        media_type=EVENTS,
        begun=(stack_piece(first),),
        more=(stack_piece(second),),
        ended=(stack_piece("", "end_of_turn", METRICS),),
        done=(),
        whole=written(whole),
        error=data({"error": {"message": f"503: {OVERLOADED}"}}),
    )


MESSAGE: JSONObject = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL}


def message_start() -> bytes:
    """Return the event that begins a stream of Anthropic's."""
    empty: JSONObject = {"content": [], "stop_reason": None, "stop_sequence": None}
    usage: JSONObject = {"input_tokens": 5, "output_tokens": 1}
    return named({"type": "message_start", "message": MESSAGE | empty | {"usage": usage}})


def block_start(index: int, block: JSONObject) -> bytes:
    """Return the event that opens a block."""
    return named({"type": "content_block_start", "index": index, "content_block": block})


def block_delta(index: int, delta: JSONObject) -> bytes:
    """Return an event by which a block grows."""
    return named({"type": "content_block_delta", "index": index, "delta": delta})


def block_stop(index: int) -> bytes:
    """Return the event that closes a block."""
    return named({"type": "content_block_stop", "index": index})


def message_delta(stop: str | None = "end_turn") -> bytes:
    """Return the event that says why a message ends."""
    delta: JSONObject = {"stop_reason": stop, "stop_sequence": None}
    return named({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 2}})


MESSAGE_STOP = named({"type": "message_stop"})


def messages(first: str = FIRST, second: str = SECOND) -> Wire:
    """Return an answer of Anthropic's API."""
    whole: JSONObject = {"stop_reason": "end_turn", "stop_sequence": None}
    usage: JSONObject = {"input_tokens": 5, "output_tokens": 2}
    return Wire(
        media_type=EVENTS,
        begun=(
            message_start(),
            block_start(0, {"type": "text", "text": ""}),
            block_delta(0, {"type": "text_delta", "text": first}),
        ),
        more=(block_delta(0, {"type": "text_delta", "text": second}),),
        ended=(block_stop(0), message_delta()),
        done=(MESSAGE_STOP,),
        whole=written(MESSAGE | whole | {"content": [{"type": "text", "text": first + second}], "usage": usage}),
        error=named({"type": "error", "error": {"type": "overloaded_error", "message": OVERLOADED}}),
    )


def ollama_line(content: str, *, done: bool = False, **more: JSON) -> JSONObject:
    """Return a line of Ollama's chat."""
    message = {"role": "assistant", "content": content}
    head: JSONObject = {"model": MODEL, "created_at": MOMENT, "message": message, "done": done}
    return head | (OLLAMA_END if done else {}) | more


OLLAMA_END: JSONObject = {"done_reason": "stop", "total_duration": 9, "prompt_eval_count": 5, "eval_count": 2}


def ollama(first: str = FIRST, second: str = SECOND) -> Wire:
    """Return an answer of Ollama's chat API."""
    return Wire(
        media_type=LINES,
        begun=(line(ollama_line(first)),),
        more=(line(ollama_line(second)),),
        ended=(line(ollama_line("", done=True)),),
        done=(),
        whole=written(ollama_line(first + second, done=True)),
        error=line({"error": OVERLOADED}),
    )


def generate_line(text: str, *, done: bool = False, **more: JSON) -> JSONObject:
    """Return a line of Ollama's generation."""
    head: JSONObject = {"model": MODEL, "created_at": MOMENT, "response": text, "done": done}
    return head | (OLLAMA_END if done else {}) | more


def ollama_generate(first: str = FIRST, second: str = SECOND) -> Wire:
    """Return an answer of Ollama's API for texts."""
    return Wire(
        media_type=LINES,
        begun=(line(generate_line(first)),),
        more=(line(generate_line(second)),),
        ended=(line(generate_line("", done=True)),),
        done=(),
        whole=written(generate_line(first + second, done=True)),
        error=line({"error": OVERLOADED}),
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
    return named({"type": "response.output_text.delta", **ITEM, "delta": text})


def responses(first: str = FIRST, second: str = SECOND) -> Wire:
    """Return an answer of OpenAI's newer API."""
    text = first + second
    part: JSONObject = {"type": "output_text", "text": text, "annotations": []}
    item = response_item(text)
    return Wire(
        media_type=EVENTS,
        begun=(
            named({"type": "response.created", "response": response_object("in_progress", [])}),
            named({"type": "response.output_item.added", "output_index": 0, "item": response_item("", "in_progress")}),
            named({"type": "response.content_part.added", **ITEM, "part": part | {"text": ""}}),
            text_delta(first),
        ),
        more=(text_delta(second),),
        ended=(
            named({"type": "response.output_text.done", **ITEM, "text": text}),
            named({"type": "response.content_part.done", **ITEM, "part": part}),
            named({"type": "response.output_item.done", "output_index": 0, "item": item}),
        ),
        done=(named({"type": "response.completed", "response": response_object("completed", [item])}),),
        whole=written(response_object("completed", [item])),
        error=named(
            {
                "type": "response.failed",
                "response": response_object("failed", [])
                | {"error": {"code": "service_unavailable", "message": OVERLOADED}},
            }
        ),
    )


WIRES: dict[str, Callable[..., Wire]] = {
    "chat": chat,
    "completions": completions,
    "gemini": gemini,
    "llama_stack": llama_stack,
    "llama_stack_completion": llama_stack_completion,
    "messages": messages,
    "ollama": ollama,
    "ollama_generate": ollama_generate,
    "responses": responses,
}
DIALECTS = tuple(WIRES)
TALKERS = ("chat", "gemini", "llama_stack", "messages", "ollama", "responses")
"""Those that hold a conversation, with tools in it."""
MARKED = ("chat", "completions", "messages", "responses")
"""Those whose streams end in a mark of their own, behind which nothing counts."""
HELLO = {name: wire() for name, wire in WIRES.items()}


def error_body(upstream: str, message: str, word: str | None = None, code: JSON = None, status: int = 400) -> bytes:
    """Return the body of an error; `word` and `code` are what the dialect says beside the sentence, where it can."""
    match upstream:
        case "chat" | "completions" | "responses":
            return written({"error": {"message": message, "type": word, "param": None, "code": code}})
        case "messages":
            return written({"type": "error", "error": {"type": word, "message": message}, "request_id": "req_u"})
        case "gemini":
            return written({"error": {"code": status, "message": message, "status": word}})
        case "llama_stack" | "llama_stack_completion":
            return written({"status": status, "title": "Error", "detail": message})
        case _:
            return written({"error": message})
