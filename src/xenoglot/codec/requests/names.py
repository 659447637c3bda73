"""Adapts names and ids of tools to what a target allows, and restores them in its answer.

OpenAI takes tool names of `[a-zA-Z0-9_-]{1,64}`, Messages of up to 128 (`FunctionDefinition.name`, `ToolParam.name` in
the SDKs); Messages takes ids of `[a-zA-Z0-9_-]+`. What fits is not touched. What does not is shortened to a readable
head and eight digits of its SHA-256, so the same name is the same everywhere and two names stay two.

A client of Messages gets ids that fit too, but sends them back: they are spelled so that the id that the model wrote
(`functions.weather:0` of Kimi, whose prompt needs it) is found again without any memory.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.model.content import ToolCall
from xenoglot.model.events import BlockEnded, BlockStarted, Event
from xenoglot.model.request import RequestTool, Tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.model.request import Request

_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")
_FITTING = re.compile(r"[a-zA-Z0-9_-]+").fullmatch
_DIGITS = 8

_SPELLED = re.compile(r"toolu_as_((?:[a-zA-Z0-9-]|__|_[0-9a-f]{2})+)").fullmatch
_UNSAFE = re.compile(rb"[^a-zA-Z0-9-]")
_UNIT = re.compile(rb"_(_|[0-9a-f]{2})")


def spell_id(call_id: str) -> str:
    """Return `call_id` if it is of `[a-zA-Z0-9_-]`, else spelled in these characters (see `read_id`)."""
    if (call_id.isascii() and (call_id.isidentifier() or _FITTING(call_id))) or not call_id:
        return call_id
    raw = call_id.encode("utf-8", "surrogatepass")
    return "toolu_as_" + _UNSAFE.sub(_spelled_byte, raw).decode()


def read_id(call_id: str) -> str:
    """Return the id that `spell_id` spelled as `call_id`; any other id as it is."""
    found = _SPELLED(call_id) if call_id.startswith("toolu_as_") else None
    if found is None:
        return call_id
    try:
        meant = _UNIT.sub(_read_byte, found[1].encode()).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return call_id
    return meant if spell_id(meant) == call_id else call_id


def _spelled_byte(found: re.Match[bytes]) -> bytes:
    return b"__" if found[0] == b"_" else b"_%02x" % found[0][0]


def _read_byte(found: re.Match[bytes]) -> bytes:
    return b"_" if found[1] == b"_" else bytes.fromhex(found[1].decode())


def fit(name: str, limit: int) -> str:
    """Return `name` if it is 1 to `limit` characters of `[a-zA-Z0-9_-]`, else its deterministic stand-in."""
    if len(name) <= limit and name.isascii() and (name.isidentifier() or _FITTING(name)):  # the first is the quicker
        return name
    cleaned = _FOREIGN.sub("_", name)
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    head = cleaned[: max(limit - _DIGITS - 1, 0)]
    return f"{head}_{digest}" if head else digest[:limit]


def qualified(name: str, namespace: str | None) -> str:
    """Return the name of a tool where the target has no namespaces."""
    return name if namespace is None else f"{namespace}__{name}"


def namespace_of(name: str, tools: Iterable[RequestTool]) -> str | None:
    """Return the namespace of the tool that a choice calls `name`, because a choice has none."""
    return namespaces_of(tools).get(name)


def namespaces_of(tools: Iterable[RequestTool]) -> dict[str, str | None]:
    """Return the namespaces of all tools by the names that a choice calls them.

    Of several tools with one name, the one without a namespace is meant, else the first.
    """
    spaces: dict[str, str | None] = {}
    for tool in tools:
        if isinstance(tool, Tool):
            spaces[tool.name] = None if tool.namespace is None else spaces.get(tool.name, tool.namespace)
    return spaces


class RestoreNames:
    """Restores the client's tool names (and namespaces) in an answer. `limit` is that of the target."""

    __slots__ = ("_names",)

    def __init__(self, request: Request, limit: int) -> None:
        self._names: dict[str, tuple[str, str | None]] = {}
        for tool in request.tools:
            if isinstance(tool, Tool):
                fitted = fit(qualified(tool.name, tool.namespace), limit)
                if fitted != tool.name:
                    self._names[fitted] = (tool.name, tool.namespace)

    def __bool__(self) -> bool:
        """Whether there is anything to put back."""
        return bool(self._names)

    def feed(self, event: Event, /) -> Sequence[Event]:
        """Return the event, its tool call named as the client knows it."""
        if isinstance(event, (BlockStarted, BlockEnded)) and isinstance(event.part, ToolCall):
            known = self._names.get(event.part.name)
            if known is not None:
                return (replace(event, part=replace(event.part, name=known[0], namespace=known[1])),)
        return (event,)

    def close(self) -> Sequence[Event]:
        """Return nothing: nothing is buffered."""
        return ()
