"""What clients do not bring back of an answer though its maker wants it: taken from answers, put into requests. Pure.

Clients strip reasoning, its signatures, and what only the upstream's dialect knows of a part; some upstreams refuse the
next request without them (DeepSeek's `reasoning_content`, Gemini's thought signatures), others lose their reasoning. A
turn is found again by the id of any of its calls, a turn without calls by its words. Ids repeat where servers count, so
a call has to ask the same of the same tool as well; and some clients drop them (Ollama's), so what all calls of a turn
ask finds it too, after the same words.
"""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.json import decode, encode
from msgspec.structs import replace

from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.errors import WireError
from xenoglot.model.content import Extra, Part, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xenoglot.model.request import Message

_CALL, _CALLS, _WORDS = "call:", "calls:", "text:"


class CachedReasoning(Struct, frozen=True, kw_only=True):
    """Reasoning, and the label of the part that followed it in the turn; `None` at its end."""

    part: Reasoning
    before: str | None = None


class CachedTurn(Struct, frozen=True, kw_only=True):
    """The parts of a turn that clients drop: its reasoning, and by label what only its dialect knows of other parts."""

    thoughts: tuple[CachedReasoning, ...] = ()
    extras: dict[str, Extra] = {}


def may_strip(part: Part | None) -> bool:
    """Whether a client may leave out `part`, or something of it."""
    if isinstance(part, Text | ToolCall):
        return part.extra is not None and bool(part.extra.fields)
    return isinstance(part, Reasoning)


def kept(parts: Sequence[Part]) -> CachedTurn | None:
    """Return what a client may leave out of an answer when it brings it back; `None` if there is no such thing."""
    thoughts: list[CachedReasoning] = []
    extras: dict[str, Extra] = {}
    behind: str | None = None
    for part, label in reversed([*zip(parts, _labels(parts), strict=True)]):
        if isinstance(part, Reasoning):
            thoughts.append(CachedReasoning(part=part, before=behind))
        elif isinstance(part, Text | ToolCall):
            behind = label
            if part.extra is not None and part.extra.fields:
                extras[label] = part.extra
    return CachedTurn(thoughts=tuple(reversed(thoughts)), extras=extras) if thoughts or extras else None


def keys(parts: Sequence[Part], before: Message | None = None) -> list[str]:
    """Return the keys under which a turn is kept and looked for, the surest first; often none.

    They are those of its calls by their ids, and of all of them together after the words of the turn `before` it; or
    of its own words after those: common words occur in many conversations.
    """
    calls = [part for part in parts if isinstance(part, ToolCall)]
    if calls:
        together = "\0".join([_heard(before), *map(_asked, calls)])
        return [*(_digest(_CALL, f"{call.id}\0{_asked(call)}") for call in calls), _digest(_CALLS, together)]
    words = "".join(part.text for part in parts if isinstance(part, Text)).strip()
    return [_digest(_WORDS, f"{_heard(before)}\0{words}")] if words else []


def restored(message: Message, found: CachedTurn) -> Message:
    """Return the turn with what it lacks of `found`; what the client brought back itself stays as it is."""
    parts = [
        _completed(part, found.extras.get(label))
        for part, label in zip(message.content, _labels(message.content), strict=True)
    ]
    if found.thoughts and _lacks_thoughts(parts, found):
        parts = list(_thoughtful([part for part in parts if not isinstance(part, Reasoning)], found.thoughts))
    return replace(message, content=tuple(parts))


def places(where: str, before: Message, after: Message) -> Iterator[tuple[str, str | None]]:
    """Yield where each part of a restored turn stands, and where the client had it: nowhere, if it left it out."""
    new = (Reasoning,) if _thoughts_of(before) != _thoughts_of(after) else ()
    stood = iter([place for place, part in enumerate(before.content) if not isinstance(part, new)])
    for place, part in enumerate(after.content):
        yield f"{where}.content[{place}]", None if isinstance(part, new) else f"{where}.content[{next(stood)}]"


def pack(found: CachedTurn) -> bytes:
    """Return `found` as it is stored."""
    return encode(found)


def unpack(payload: bytes) -> CachedTurn | None:
    """Return what was stored; `None` where another version of the gateway wrote it otherwise."""
    try:
        return decode(payload, type=CachedTurn)
    except ValueError:
        return None


def _lacks_thoughts(parts: Sequence[Part], found: CachedTurn) -> bool:
    """Whether the client omitted the reasoning, or returned its words without their signatures."""
    brought = [part for part in parts if isinstance(part, Reasoning)]
    return not brought or (
        not any(map(_is_sealed, brought)) and any(_is_sealed(thought.part) for thought in found.thoughts)
    )


def _is_sealed(part: Reasoning) -> bool:
    return part.signature is not None or part.encrypted is not None


def _completed(part: Part, extra: Extra | None) -> Part:
    """Return the part with what only its dialect knows of it, unless it came with something of that kind."""
    if extra is None or not isinstance(part, Text | ToolCall) or (part.extra is not None and part.extra.fields):
        return part
    return replace(part, extra=extra)


def _thoughtful(parts: Sequence[Part], thoughts: Sequence[CachedReasoning]) -> Iterator[Part]:
    """Yield the parts, each reasoning part before the part that it preceded; at the front if that is gone."""
    labels = _labels(parts)
    last = [thought for thought in thoughts if thought.before is None]
    yield from (thought.part for thought in thoughts if thought.before is not None and thought.before not in labels)
    waiting = [thought for thought in thoughts if thought.before in labels]
    for part, label in zip(parts, labels, strict=True):
        if label:
            yield from (thought.part for thought in waiting if thought.before == label)
        yield part
    yield from (thought.part for thought in last)


def _thoughts_of(message: Message) -> list[Part]:
    return [part for part in message.content if isinstance(part, Reasoning)]


def _labels(parts: Sequence[Part]) -> list[str]:
    """Return what each text and call of a turn is known by within it, ids apart: equal ones are counted."""
    counts: Counter[str] = Counter()
    labels: list[str] = []
    for part in parts:
        said = ""
        if isinstance(part, Text | ToolCall):
            said = _digest(_WORDS, part.text.strip()) if isinstance(part, Text) else _digest(_CALL, _asked(part))
            counts[said] += 1
        labels.append(f"{said}:{counts[said]}" if said else "")
    return labels


def _asked(call: ToolCall) -> str:
    return f"{call.name}\0{_value(call.arguments)}"


def _heard(message: Message | None) -> str:
    """Return the words of a turn, and of the results of tools in it."""
    parts = () if message is None else message.content
    heard = [inner for part in parts for inner in (part.content if isinstance(part, ToolResult) else (part,))]
    return "\n".join(part.text.strip() for part in heard if isinstance(part, Text))


def _value(arguments: str) -> str:
    """Return arguments spelled one way: clients parse them and write them again."""
    try:
        return encode_json(decode_json(arguments or "{}")).decode()
    except WireError:
        return arguments


def _digest(kind: str, text: str) -> str:
    return kind + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
