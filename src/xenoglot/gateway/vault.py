"""What clients do not bring back of an answer though its maker wants it: taken from answers, put into requests. Pure.

Clients strip reasoning, its seals, and what only the upstream's dialect knows of a part; some upstreams refuse the next
request without them (DeepSeek's `reasoning_content`, Gemini's thought signatures), others forget what they thought. A
turn is found again by the id of any of its calls, a turn without calls by its words. Ids repeat where servers count, so
a call has to ask the same of the same tool as well.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.json import decode, encode
from msgspec.structs import replace

from xenoglot.codec.wire import decode_json, encode_json
from xenoglot.errors import WireError
from xenoglot.model.content import Extra, Part, Reasoning, Text, ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xenoglot.model.request import Message

_CALL, _WORDS = "call:", "text:"


class Thought(Struct, frozen=True, kw_only=True):
    """A thought, and the key of what stood behind it in the turn; `None` at its end."""

    part: Reasoning
    before: str | None = None


class Kept(Struct, frozen=True, kw_only=True):
    """What of a turn is not said again: its thoughts, and by key what only its dialect knows of the other parts."""

    thoughts: tuple[Thought, ...] = ()
    extras: dict[str, Extra] = {}


def kept(parts: Sequence[Part]) -> Kept | None:
    """Return what a client may leave out of an answer when it brings it back; `None` if there is no such thing."""
    thoughts: list[Thought] = []
    extras: dict[str, Extra] = {}
    behind: str | None = None
    for part in reversed(parts):
        if isinstance(part, Reasoning):
            thoughts.append(Thought(part=part, before=behind))
        elif isinstance(part, Text | ToolCall):
            behind = _key(part)
            if part.extra is not None and part.extra.fields:
                extras[behind] = part.extra
    return Kept(thoughts=tuple(reversed(thoughts)), extras=extras) if thoughts or extras else None


def keys(parts: Sequence[Part]) -> list[str]:
    """Return the keys under which a turn is kept and looked for: of its calls, or of all its words; often none."""
    calls = [_key(part) for part in parts if isinstance(part, ToolCall)]
    if calls:
        return calls
    words = "".join(part.text for part in parts if isinstance(part, Text)).strip()
    return [_digest(_WORDS, words)] if words else []


def restored(message: Message, found: Kept) -> Message:
    """Return the turn with what it lacks of `found`; what the client brought back itself stays as it is."""
    parts = [_completed(part, found.extras) for part in message.content]
    if found.thoughts and _lacks_thoughts(parts, found):
        parts = list(_thoughtful([part for part in parts if not isinstance(part, Reasoning)], found.thoughts))
    return replace(message, content=tuple(parts))


def pack(found: Kept) -> bytes:
    """Return `found` as it is stored."""
    return encode(found)


def unpack(payload: bytes) -> Kept | None:
    """Return what was stored; `None` where another version of the gateway wrote it otherwise."""
    try:
        return decode(payload, type=Kept)
    except ValueError:
        return None


def _lacks_thoughts(parts: Sequence[Part], found: Kept) -> bool:
    """Whether the client left the thoughts out, or brought back their words without the seals that were on them."""
    brought = [part for part in parts if isinstance(part, Reasoning)]
    return not brought or (
        not any(map(_is_sealed, brought)) and any(_is_sealed(thought.part) for thought in found.thoughts)
    )


def _is_sealed(part: Reasoning) -> bool:
    return part.signature is not None or part.encrypted is not None


def _completed(part: Part, extras: dict[str, Extra]) -> Part:
    """Return the part with what only its dialect knows of it, unless it came with something of that kind."""
    if not isinstance(part, Text | ToolCall) or (part.extra is not None and part.extra.fields):
        return part
    extra = extras.get(_key(part))
    return part if extra is None else replace(part, extra=extra)


def _thoughtful(parts: Sequence[Part], thoughts: Sequence[Thought]) -> Iterator[Part]:
    """Yield the parts, each thought before what it stood before; where that is not there any more, at the front."""
    there = {_key(part) for part in parts if isinstance(part, Text | ToolCall)}
    last = [thought for thought in thoughts if thought.before is None]
    yield from (thought.part for thought in thoughts if thought.before is not None and thought.before not in there)
    waiting = [thought for thought in thoughts if thought.before in there]
    for part in parts:
        key = _key(part) if isinstance(part, Text | ToolCall) else None
        yield from (thought.part for thought in waiting if key is not None and thought.before == key)
        waiting = [thought for thought in waiting if thought.before != key]
        yield part
    yield from (thought.part for thought in last)


def _key(part: Text | ToolCall) -> str:
    if isinstance(part, Text):
        return _digest(_WORDS, part.text.strip())
    return _digest(_CALL, f"{part.id}\0{part.name}\0{_value(part.arguments)}")


def _value(arguments: str) -> str:
    """Return arguments spelled one way: clients parse them and write them again."""
    try:
        return encode_json(decode_json(arguments or "{}")).decode()
    except WireError:
        return arguments


def _digest(kind: str, text: str) -> str:
    return kind + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
