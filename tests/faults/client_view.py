"""What clients of each dialect hear, read by hand: the words, the end, and the error, from the bytes that came.

Nothing here is read by Xenoglot's own decoders: a fault that both sides of a codec share would stay unseen.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from botocore.eventstream import EventStreamBuffer
from msgspec import Struct

from xenoglot.model.json import JSON

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from xenoglot.model.json import JSONObject

KIND_STATUS = {
    "invalid_request": 400,
    "context_overflow": 400,
    "billing": 402,
    "not_found": 404,
    "conflict": 409,
    "too_large": 413,
    "rate_limit": 429,
    "internal": 500,
    "upstream": 502,
    "overloaded": 503,
    "timeout": 504,
}
OPENAI: dict[str, tuple[str, str | None]] = {
    "invalid_request": ("invalid_request_error", None),
    "context_overflow": ("invalid_request_error", "context_length_exceeded"),
    "billing": ("insufficient_quota", "insufficient_quota"),
    "not_found": ("invalid_request_error", "not_found"),
    "conflict": ("invalid_request_error", "conflict"),
    "too_large": ("invalid_request_error", "request_too_large"),
    "rate_limit": ("rate_limit_error", "rate_limit_exceeded"),
    "internal": ("server_error", "internal_error"),
    "upstream": ("server_error", "upstream_error"),
    "overloaded": ("server_error", "service_unavailable"),
    "timeout": ("server_error", "timeout"),
}
ANTHROPIC = {
    "invalid_request": "invalid_request_error",
    "context_overflow": "invalid_request_error",
    "billing": "billing_error",
    "not_found": "not_found_error",
    "conflict": "conflict_error",
    "too_large": "request_too_large",
    "rate_limit": "rate_limit_error",
    "internal": "api_error",
    "upstream": "api_error",
    "overloaded": "overloaded_error",
    "timeout": "timeout_error",
}
GOOGLE = {
    "invalid_request": "INVALID_ARGUMENT",
    "context_overflow": "INVALID_ARGUMENT",
    "billing": "FAILED_PRECONDITION",
    "not_found": "NOT_FOUND",
    "conflict": "ABORTED",
    "too_large": "INVALID_ARGUMENT",
    "rate_limit": "RESOURCE_EXHAUSTED",
    "internal": "INTERNAL",
    "upstream": "UNAVAILABLE",
    "overloaded": "UNAVAILABLE",
    "timeout": "DEADLINE_EXCEEDED",
}


INTERACTIONS = {
    "invalid_request": "invalid_request",
    "context_overflow": "invalid_request",
    "billing": "failed_precondition",
    "not_found": "not_found",
    "conflict": "aborted",
    "too_large": "request_too_large",
    "rate_limit": "resource_exhausted",
    "internal": "internal",
    "upstream": "upstream_failure",
    "overloaded": "unavailable",
    "timeout": "deadline_exceeded",
}


BEDROCK = {
    "invalid_request": "ValidationException",
    "context_overflow": "ValidationException",
    "billing": "ServiceQuotaExceededException",
    "not_found": "ResourceNotFoundException",
    "conflict": "ConflictException",
    "too_large": "ValidationException",
    "rate_limit": "ThrottlingException",
    "internal": "InternalServerException",
    "upstream": "InternalServerException",
    "overloaded": "ServiceUnavailableException",
    "timeout": "ModelTimeoutException",
}
BEDROCK_STREAMED = {
    "internal": "internalServerException",
    "upstream": "modelStreamErrorException",
    "timeout": "modelStreamErrorException",
    "rate_limit": "throttlingException",
    "overloaded": "serviceUnavailableException",
}


class ReceivedError(Struct, frozen=True):
    """An error as a client reads it: the words by which it knows which, and the sentence."""

    codes: tuple[JSON, ...]
    message: str


class ReceivedStream(Struct, frozen=True):
    """A stream as a client reads it: the text, whether it was told that this is all, and the error."""

    text: str
    ended: bool
    error: ReceivedError | None = None


def error_status(client: str, kind: str) -> int:
    """Return the status by which a client of the dialect knows a failure of that kind."""
    return 529 if (client, kind) == ("messages", "overloaded") else KIND_STATUS[kind]


def error_codes(client: str, kind: str, *, streamed: bool = False) -> tuple[JSON, ...]:  # noqa: PLR0911 - one for each dialect
    """Return the words by which a client of the dialect knows a failure of that kind."""
    match client:
        case "responses" if streamed:
            told = OPENAI[kind][1]
            return ("invalid_prompt" if told is None or kind in ("not_found", "too_large") else told,)
        case "chat" | "completions" | "responses":
            return OPENAI[kind]
        case "messages":
            return (ANTHROPIC[kind],)
        case "converse" if streamed:
            return (BEDROCK_STREAMED.get(kind, "validationException"),)
        case "converse":
            return (BEDROCK[kind],)
        case "interactions":
            return (INTERACTIONS[kind],)
        case "gemini":
            return (KIND_STATUS[kind], GOOGLE[kind])
        case "llama_stack" | "llama_stack_completion":
            return (KIND_STATUS[kind],)
        case _:
            return ()


def read_error(client: str, body: bytes) -> ReceivedError:
    """Return what an error's body tells; it must be of the dialect's own shape, and of no other."""
    value = json.loads(body)
    match client:
        case "messages":
            assert value.keys() == {"type", "error", "request_id"}, value
            assert value["type"] == "error"
            return ReceivedError((value["error"]["type"],), value["error"]["message"])
        case "converse":
            assert value.keys() == {"__type", "message"}, value
            return ReceivedError((value["__type"],), value["message"])
        case "llama_stack" | "llama_stack_completion":
            assert value.keys() == {"status", "title", "detail"}, value
            return ReceivedError((value["status"],), value["detail"])
        case _:
            return _error(client, value)


def _error(client: str, value: JSONObject) -> ReceivedError:
    """Return what is under `error`, as most dialects have it."""
    error = value["error"]
    match client:
        case "chat" | "completions" | "responses":
            assert error.keys() >= {"message", "type", "param", "code"}, value
            return ReceivedError((error["type"], error["code"]), error["message"])
        case "interactions":
            assert error.keys() == {"code", "message"}, value
            return ReceivedError((error["code"],), error["message"])
        case "gemini":
            assert error.keys() >= {"code", "message", "status"}, value
            return ReceivedError((error["code"], error["status"]), error["message"])
        case "llama_stack" | "llama_stack_completion":
            status, _, message = error["message"].partition(": ")
            return ReceivedError((int(status),), message)
        case _:
            assert isinstance(error, str), value
            return ReceivedError((), error)


def frames(client: str, body: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the frames of a stream with their names; comments and empty ones are passed over."""
    if client == "converse":
        messages = EventStreamBuffer()
        messages.add_data(body)
        for message in messages:
            named = message.headers.get(":exception-type") or message.headers[":event-type"]
            yield named, message.payload
        return
    if client in ("ollama", "ollama_generate"):
        yield from (("", line) for line in body.split(b"\n") if line)
        return
    for block in body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n\n"):
        lines = [line.partition(b":") for line in block.split(b"\n") if line and not line.startswith(b":")]
        fields = [(name, value.removeprefix(b" ")) for name, _, value in lines]
        said = b"\n".join(value for name, value in fields if name == b"data")
        if said:
            yield "".join(value.decode() for name, value in fields if name == b"event"), said


def read_stream(client: str, body: bytes) -> ReceivedStream:
    """Return what a client makes of a stream."""
    text, ended, error = "", False, None
    for name, said in frames(client, body):
        assert error is None, f"something stands behind an error: {said!r}"
        if said == b"[DONE]":
            ended = True
            continue
        value = json.loads(said)
        if name == "error" or name.endswith("Exception") or "error" in value or value.get("type") == "response.failed":
            error = ReceivedError((name,), value["message"]) if client == "converse" else _error_event(client, value)
        else:
            text += TEXT_READERS[client](value)
            ended = ended or _is_final(client, value)
    return ReceivedStream(text, ended, error)


def _error_event(client: str, value: JSONObject) -> ReceivedError:
    match client:
        case "messages":
            assert value["type"] == "error"
            return ReceivedError((value["error"]["type"],), value["error"]["message"])
        case "responses" if value.get("type") == "response.failed":
            error = value["response"]["error"]
            assert value["response"]["status"] == "failed"
            return ReceivedError((error["code"],), error["message"])
        case "responses":
            return ReceivedError((value.get("code"),), value["message"])
        case _:
            return _error(client, value)


def _is_final(client: str, value: JSONObject) -> bool:  # noqa: PLR0911 - one for each dialect
    """Whether a frame says that the answer is whole."""
    match client:
        case "gemini":
            return any("finishReason" in candidate for candidate in value.get("candidates", ()))
        case "converse":
            return "metrics" in value
        case "interactions":
            return bool(value["event_type"] == "interaction.completed")
        case "llama_stack":
            return bool(value["event"]["event_type"] == "complete")
        case "llama_stack_completion":
            return value.get("stop_reason") is not None
        case "messages":
            return bool(value["type"] == "message_stop")
        case "responses":
            return value["type"] in ("response.completed", "response.incomplete")
        case "ollama" | "ollama_generate":
            return value["done"] is True
        case _:
            return False


def _gemini(value: JSONObject) -> str:
    parts = [part for one in value.get("candidates", ()) for part in one.get("content", {}).get("parts", ())]
    return "".join(part.get("text", "") for part in parts if not part.get("thought"))


def _messages(value: JSONObject) -> str:
    return value.get("delta", {}).get("text", "") if value["type"] == "content_block_delta" else ""


def _chat(value: JSONObject) -> str:
    return "".join(choice["delta"].get("content") or "" for choice in value["choices"])


def _interactions(value: JSONObject) -> str:
    delta = value["delta"] if value["event_type"] == "step.delta" else {}
    return delta.get("text", "") if delta.get("type") == "text" else ""


def _responses(value: JSONObject) -> str:
    return value["delta"] if value["type"] == "response.output_text.delta" else ""


TEXT_READERS: dict[str, Callable[[JSONObject], str]] = {
    "chat": _chat,
    "completions": lambda value: "".join(choice["text"] for choice in value["choices"]),
    "converse": lambda value: value.get("delta", {}).get("text", ""),
    "gemini": _gemini,
    "interactions": _interactions,
    "llama_stack": lambda value: value["event"]["delta"].get("text", ""),
    "llama_stack_completion": lambda value: value["delta"],
    "messages": _messages,
    "ollama": lambda value: value["message"]["content"],
    "ollama_generate": lambda value: value["response"],
    "responses": _responses,
}


def response_text(client: str, body: bytes) -> str:  # noqa: PLR0911 - one for each dialect
    """Return the words of a whole answer."""
    value = json.loads(body)
    match client:
        case "chat":
            return str(value["choices"][0]["message"]["content"])
        case "converse":
            return "".join(block["text"] for block in value["output"]["message"]["content"])
        case "interactions":
            contents = [step["content"] for step in value["steps"] if step["type"] == "model_output"]
            return "".join(part["text"] for content in contents for part in content)
        case "llama_stack":
            return str(value["completion_message"]["content"])
        case "llama_stack_completion":
            return str(value["content"])
        case "messages":
            return "".join(block["text"] for block in value["content"] if block["type"] == "text")
        case "responses":
            contents = [item["content"] for item in value["output"] if item["type"] == "message"]
            return "".join(part["text"] for content in contents for part in content)
        case _:
            return TEXT_READERS[client](value)
