"""Session affinity: groups requests that share a prompt cache, and finds the target of such a group.

A target is chosen by rendezvous hashing: each of them draws a number from the group's text and its own name, and the
highest is home. So any number of gateways agree without a word between them, and when a target goes or comes only the
groups that it had, or gets, are moved.
"""

from __future__ import annotations

import math
import re
from hashlib import blake2b
from operator import itemgetter
from typing import TYPE_CHECKING

import msgspec

from xenoglot.codec.json.json_io import encode_json
from xenoglot.model.content import (
    Audio,
    File,
    Image,
    Inline,
    Nested,
    Opaque,
    Plain,
    Remote,
    Stored,
    Text,
    ToolResult,
    Video,
)
from xenoglot.model.hosted import HostedTool
from xenoglot.model.request import RequestTool, Tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from xenoglot.model.content import Part, Source
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request

SESSION_HEADERS = (
    "x-session-id",  # OpenRouter, https://openrouter.ai/docs/guides/features/prompt-caching, and many after it
    "x-litellm-session-id",  # https://docs.litellm.ai/docs/proxy/request_headers
    "x-claude-code-session-id",  # https://code.claude.com/docs/en/llm-gateway-protocol
    "x-opencode-session",  # https://opencode.ai/docs/go
    "x-session-affinity",  # opencode to other providers, Fireworks
    "session-id",  # Codex 0.149 and later: the root session of a tree of threads
    "session_id",  # Codex before that, pi
    "conversation-id",
    "conversation_id",  # Codex up to 0.40
    "x-amp-thread-id",  # Amp
)
"""Request headers that name a session, best first. Not among them: ids of single requests (`x-client-request-id`)."""

SESSION_FIELDS = (
    "session_id",  # OpenRouter's body field
    "litellm_session_id",  # https://docs.litellm.ai/docs/proxy/ui_logs_sessions
    "conversation_id",
)
"""Fields of the body, or of its `metadata`, with the same meaning."""

_HEADERS, _FIELDS = frozenset(SESSION_HEADERS), frozenset(SESSION_FIELDS)
_NAME = itemgetter(0)

_LEGACY_SESSION = re.compile(r"_session_([0-9a-fA-F-]{36})\Z")
"""The end of Claude Code's `user_id` before 2.1.78; since then it is a JSON object with a `session_id`."""

PREFIX_CHARACTERS = 4096
"""How much of a bare prompt stands for its beginning."""
PIECE_CHARACTERS = 65_536
"""Characters of one text or image that stand for all of it, together with its length."""

_CELLS = 2.0**64


def session_of(request: Request, headers: Sequence[tuple[str, str]]) -> str | None:
    """Return a digest of the session that a request names, or `None` if it names none.

    `headers` have lower-case names. What a client sends for routing (headers, then fields) takes precedence over what
    it sends for other purposes: its cache key, and the session in the id of its user. An id of the user alone is none,
    for all of an application's requests may have the same; nor is the id of an earlier answer, which changes with every
    turn.
    """
    said = None if _HEADERS.isdisjoint(map(_NAME, headers)) else _first_header(headers)
    if not said:
        extra = request.extra
        fields = bool(request.metadata) or (extra is not None and bool(extra.fields))
        if not fields and request.cache_key is None and request.user is None:
            return None  # of most clients
        said = _first_field(request) or request.cache_key or _users_session(request.user)
    return _digest([said.encode("utf-8", "surrogatepass")]) if said else None


def _first_header(headers: Sequence[tuple[str, str]]) -> str | None:
    shown = {name: value.strip() for name, value in reversed(headers)}
    return next((shown[name] for name in SESSION_HEADERS if shown.get(name)), None)


def _first_field(request: Request) -> str | None:
    places = (request.extra.fields if request.extra else {}, request.metadata or {})
    if all(map(_FIELDS.isdisjoint, places)):
        return None
    return next((found for place in places for name in SESSION_FIELDS if (found := _text(place, name))), None)


def _text(fields: JSONObject, name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) and value else None


def _users_session(user: str | None) -> str | None:
    if user is None:
        return None
    if user.startswith("{"):
        try:
            fields: JSON = msgspec.json.decode(user)
        except (ValueError, RecursionError):
            return None
        return _text(fields, "session_id") if isinstance(fields, dict) else None
    found = _LEGACY_SESSION.search(user)
    return None if found is None else found[1]


def prefix_of(request: Request) -> str:
    """Return a digest of what a prompt begins with, as far as it stays the same for all turns of a conversation.

    That is what providers cache by: the model, the tools, the system turns and the first turn of the user. Cache marks
    wander from turn to turn and are no part of it, nor are parts that only their dialect understands.
    """
    return _digest(_prefix_pieces(request))


def _prefix_pieces(request: Request) -> Iterator[bytes]:
    yield request.model.encode("utf-8", "surrogatepass")
    for tool in request.tools:
        yield encode_json(_tool(tool))
    if request.prompt is not None:
        yield encode_json([text[:PREFIX_CHARACTERS] for text in request.prompt.texts[:1]])
    for message in request.messages:
        yield message.role.encode()
        yield from _part_pieces(message.content)
        if message.role not in ("system", "developer"):
            return


def _tool(tool: RequestTool) -> JSON:
    match tool:
        case Tool():
            return (tool.kind, tool.namespace, tool.name, tool.description, tool.parameters, tool.format)
        case HostedTool():
            return (tool.kind, tool.allowed_domains, tool.blocked_domains)
        case Opaque():
            return tool.data


def _part_pieces(parts: Iterable[Part]) -> Iterator[bytes]:
    for part in parts:
        match part:
            case Text(text=text):
                yield from _clipped(text)
            case Image(source=source) | Audio(source=source) | Video(source=source) | File(source=source):
                yield from _source_pieces(source)
            case ToolResult(call_id=name, content=content):
                yield name.encode("utf-8", "surrogatepass")
                yield from _part_pieces(content)
            case _:
                pass  # what its dialect alone understands, or the model's own words


def _source_pieces(source: Source | None) -> Iterator[bytes]:
    match source:
        case Inline(data=text) | Plain(text=text) | Remote(url=text) | Stored(id=text):
            yield from _clipped(text)
        case Nested(parts=parts):
            yield from _part_pieces(parts)
        case None:
            pass


def _clipped(text: str) -> Iterator[bytes]:
    yield str(len(text)).encode()
    yield text[:PIECE_CHARACTERS].encode("utf-8", "surrogatepass")


def _digest(pieces: Iterable[bytes]) -> str:
    """Return a digest of the pieces, in which it matters where one ends."""
    digest = blake2b(digest_size=16)
    for piece in pieces:
        digest.update(len(piece).to_bytes(8, "big"))
        digest.update(piece)
    return digest.hexdigest()


def rendezvous(key: str, weights: Mapping[str, float]) -> tuple[str, ...]:
    """Return the names in `weights`: first the target of `key`, then the fallbacks, in order.

    Each name is home to a share of all keys like its weight; a name of weight 0 comes after all others. Of names with
    the same draw, which do not occur, the smaller one is first.
    """
    return tuple(sorted(weights, key=lambda name: (-_draw(key, name, weights[name]), name)))


def _draw(key: str, name: str, weight: float) -> float:
    """Return the number that `name` draws for `key`: the larger, the likelier its weight makes it."""
    pieces = [text.encode("utf-8", "surrogatepass") for text in (key, name)]
    cell = int(_digest(pieces)[:16], 16)
    return -weight / math.log((cell + 0.5) / _CELLS)
