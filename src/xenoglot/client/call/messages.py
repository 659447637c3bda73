"""Messages as callers pass them (text, canonical messages, or a dialect's JSON), decoded into canonical messages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias, cast, get_args

from msgspec.structs import replace

from xenoglot.client.results.result import Reply
from xenoglot.client.sdk.objects import builtins
from xenoglot.dialect_registry import get
from xenoglot.errors import WireError
from xenoglot.model.content import Part, Text
from xenoglot.model.request import Message, Request, Role

if TYPE_CHECKING:
    from xenoglot.model.json import JSONObject

MessageInput: TypeAlias = str | Part | Message | Reply | Mapping[str, Any]
"""One message: the user's text or parts, a canonical message, an earlier reply, or a message's JSON in any dialect."""

Messages: TypeAlias = str | Message | Mapping[str, Any] | Sequence[MessageInput] | Request
"""A conversation, or a complete canonical request, to which the options are added."""

_BLOCKS = frozenset(
    ("tool_use", "server_tool_use", "tool_result", "thinking", "redacted_thinking", "document", "search_result")
)
"""Content types that only `messages` has; its images have a `source`."""

_ITEMS = (
    "message",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "reasoning",
)
"""Item types that only `responses` has."""

_ITEM_CONTENT = frozenset(("input_text", "input_image", "input_file", "output_text"))
"""Content types that only `responses` has."""

_BODIES: dict[str, tuple[str, JSONObject]] = {
    "chat": ("messages", {}),
    "messages": ("messages", {"max_tokens": 1}),
    "responses": ("input", {}),
    "gemini": ("contents", {}),
    "ollama": ("messages", {}),
}
"""The field of a request that holds the messages in each dialect, and the other fields that a request needs."""

_PARTS = get_args(Part)
_ROLES = get_args(Role)
_MESSAGE_PATH = re.compile(r"\$\.(?:messages|input|contents)\[(\d+)\]")


def messages_of(said: Messages) -> tuple[Message, ...]:
    """Return the messages of a conversation.

    Raises:
        WireError: a message is not valid; the error has its path.
    """
    if isinstance(said, Request):
        return said.messages
    given: object = (said,) if isinstance(said, str | Message | Mapping) else said
    if not isinstance(given, Sequence) or isinstance(given, bytes):
        found = type(given).__name__
        raise WireError("$.messages", f"found a `{found}`; expected a string, a message or a list of them")
    read: list[tuple[int, Any]] = [(index, _turn(one, f"$.messages[{index}]")) for index, one in enumerate(given)]
    turns: list[Message] = []
    for style, run in groupby(read, lambda numbered: _style(numbered[1])):
        together = list(run)
        turns += [turn for _, turn in together] if style is None else _decoded(style, together)
    if not turns:
        raise WireError("$.messages", "expected at least one message")
    return tuple(turns)


def append_turns(said: Messages, turns: tuple[Message, ...]) -> Messages:
    """Return a conversation with `turns` appended.

    Raises:
        WireError: it is none.
    """
    if not turns:
        return said
    if isinstance(said, Request):
        return replace(said, messages=(*said.messages, *turns))
    return (*messages_of(said), *turns)


def texts_of_system(said: object) -> tuple[Message, ...]:
    """Return the system message, from text or from blocks as in `messages`.

    Raises:
        WireError: it is neither.
    """
    match said:
        case "":
            return ()
        case str():
            return (Message(role="system", content=(Text(text=said),)),)
        case list():
            body = {"model": "any", "max_tokens": 1, "system": said, "messages": [{"role": "user", "content": "?"}]}
            return get("messages").decode_request(body).messages[:-1]
        case _:
            found = type(said).__name__
            raise WireError("$.system", f"found a `{found}`; expected a string, or a list of blocks of text")


def _turn(one: object, where: str) -> Message | JSONObject:
    """Return a turn, or the JSON of one."""
    match one:
        case str():
            return Message(role="user", content=(Text(text=one),))
        case Message():
            return _checked_message(one, where)
        case Reply():
            return one.message
        case _ if isinstance(one, _PARTS):
            return Message(role="user", content=(one,))
        case Mapping() if _holds_parts(one.get("content")):
            return _of_parts(one, where)
        case _ if isinstance(one, Mapping) or hasattr(one, "model_dump"):
            return _json(one, where)
        case _:
            raise WireError(where, f"found a `{type(one).__name__}`; expected a string, a `Message` or a dict")


def _checked_message(turn: Message, where: str) -> Message:
    """Return a message that the caller built, after checking its types."""
    if turn.role not in _ROLES:
        raise WireError(f"{where}.role", f"expected one of: {', '.join(_ROLES)}")
    content: object = turn.content
    if not isinstance(content, tuple | list):
        raise WireError(f"{where}.content", f"found a `{type(content).__name__}`; expected a list of parts")
    for index, part in enumerate(content):
        if not isinstance(part, _PARTS):
            raise WireError(f"{where}.content[{index}]", f"found a `{type(part).__name__}`; expected a part")
    return turn if isinstance(content, tuple) else replace(turn, content=tuple(content))


def _holds_parts(content: object) -> bool:
    return isinstance(content, tuple | list) and any(isinstance(part, _PARTS) for part in content)


def _of_parts(turn: Mapping[str, Any], where: str) -> Message:
    """Return a message whose content is canonical parts and texts."""
    for name in turn:
        if name not in {"role", "content", "name"}:
            raise WireError(f"{where}.{name}", "is allowed next to `content` in JSON only")
    content = tuple([Text(text=part) if isinstance(part, str) else part for part in turn["content"]])
    return _checked_message(Message(role=turn.get("role", "user"), content=content, name=turn.get("name")), where)


def _json(one: object, where: str) -> JSONObject:
    """Return the JSON of a turn, which may be an object of an SDK, or have some in it."""
    try:
        return cast("JSONObject", builtins(one))
    except (TypeError, ValueError, RecursionError) as error:
        raise WireError(where, f"is no JSON: {error}") from None


def _style(turn: Message | JSONObject) -> str | None:
    """Return the dialect of a message's JSON; the first that matches."""
    if isinstance(turn, Message):
        return None
    content = turn.get("content")
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    kinds = {kind for part in parts if isinstance(kind := part.get("type"), str)}
    if "parts" in turn:
        return "gemini"
    if (turn.get("type") in _ITEMS and "tool_calls" not in turn) or kinds & _ITEM_CONTENT:
        return "responses"
    if kinds & _BLOCKS or any("source" in part for part in parts):
        return "messages"
    return "ollama" if {"images", "thinking", "tool_name"} & turn.keys() else "chat"


def _decoded(style: str, run: list[tuple[int, Any]]) -> tuple[Message, ...]:
    """Return the messages of `run`, a list of (message, index) in one dialect, decoded."""
    field, beside = _BODIES[style]
    body = {"model": "any", **beside, field: [turn for _, turn in run]}
    try:
        return get(style).decode_request(body).messages
    except WireError as error:
        first = run[0][0]
        path = _MESSAGE_PATH.sub(lambda place: f"$.messages[{first + int(place[1])}]", error.path)
        raise WireError(path, error.problem) from None
