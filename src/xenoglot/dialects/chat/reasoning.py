"""Encodes and decodes reasoning in messages, under all field names that servers use.

`reasoning_content` is DeepSeek's and llama.cpp's, `reasoning` vLLM's and OpenRouter's, `reasoning_details` OpenRouter's
list (https://openrouter.ai/docs/use-cases/reasoning-tokens), `thinking_blocks` LiteLLM's. Reasoning that comes in
a list and in a string is taken once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs
from msgspec.structs import replace

from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader
from xenoglot.dialects.chat.extras import NAME, extra_of, own_fields
from xenoglot.model.content import Extra, Opaque, Origin, Reasoning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject

STRINGS = ("reasoning_content", "reasoning")
LISTS = ("reasoning_details", "thinking_blocks")
FIELDS = frozenset({*STRINGS, *LISTS})

FORMATS = {
    "anthropic-claude-v1": Origin(dialect="messages"),
    "openai-responses-v1": Origin(dialect="responses"),
    "xai-responses-v1": Origin(dialect="responses", provider="xai"),
    "google-gemini-v1": Origin(dialect="gemini"),
}
"""The dialect of the server that signed a detail, by its `format`; any other signature is of this dialect."""

_OUR_FORMAT = "xenoglot:"
"""Prefix of a dialect's name: the `format` of a signature for which OpenRouter has none."""

_KINDS = {
    "reasoning.text": {"text": "text", "signature": "signature"},
    "reasoning.summary": {"summary": "summary"},
    "reasoning.encrypted": {"data": "encrypted"},
    "thinking": {"thinking": "text", "signature": "signature"},
    "redacted_thinking": {"data": "encrypted"},
}
"""The details of a list by type: their fields, and ours."""


def take_reasoning(reader: Reader) -> list[Part]:
    """Take all reasoning of a message, in order."""
    if FIELDS.isdisjoint(reader.rest()):
        return []
    parts = _take_list(reader)
    listed = "".join(said(part) for part in parts if isinstance(part, Reasoning))
    fields: list[str] = []
    text = ""
    for key in STRINGS:
        value = reader.peek(key)
        if isinstance(value, str) and value and listed in value and text in ("", value):
            text = value
            fields.append(key)
            reader.take(key, str)
    if not fields:
        return parts
    before, _, after = text.rpartition(listed) if listed else (text, "", "")
    extra = None if fields == ["reasoning_content"] else Extra(dialect=NAME, form={"fields": fields})
    thoughts = [[Reasoning(text=said, extra=extra)] if said else [] for said in (before, after)]
    return [*thoughts[0], *_with_fields(parts, fields), *thoughts[1]]


def said(part: Reasoning | Opaque) -> str:
    """Return the text of a reasoning part: its content, then its summaries."""
    return "" if isinstance(part, Opaque) else (part.text or "") + summary_of(part)


def summary_of(part: Reasoning) -> str:
    """Return the summaries of a reasoning part, a paragraph each."""
    return "\n\n".join(part.summary or ())


def list_of(part: Opaque) -> str | None:
    """Return the list of a message that an entry stood in, if `part` is one that we did not understand."""
    if part.dialect == NAME and isinstance(part.data, dict):
        return next((key for key in (*LISTS, "tool_calls") if isinstance(part.data.get(key), list)), None)
    return None


def decode_detail(item: JSON, path: str, key: str) -> Reasoning | Opaque:
    """Return one entry of the list `key`; a type that we do not know is carried whole."""
    reader = Reader(item, path)
    kind = reader.take_if("type", str)
    fields = _KINDS.get(kind or "")
    if kind is None or fields is None:
        return Opaque(dialect=NAME, data={key: [item]})
    found = {ours: value for name, ours in fields.items() if (value := reader.take_if(name, str)) is not None}
    sealed = "signature" in found or "encrypted" in found
    shape, provider = reader.take_if("format", str), reader.take_if("provider", str)
    index = {"index": reader.take_any("index")} if type(reader.peek("index")) is int else None
    form = {"list": key, "type": kind, "format": shape, "provider": provider, "index": index}
    summary = (found["summary"],) if "summary" in found else None
    return Reasoning(
        text=found.get("text"),
        summary=summary,
        signature=found.get("signature"),
        encrypted=found.get("encrypted"),
        redacted="encrypted" in found,
        origin=_origin(kind, shape or "", provider) if sealed or shape in FORMATS else None,
        id=reader.take_if("id", str),
        extra=extra_of(reader, form),
    )


def encode_details(part: Reasoning | Opaque, index: int, where: str, losses: Losses) -> list[JSONObject]:
    """Return the list entries of a reasoning part: one as it came, or one for each of its sides from `index` on."""
    if isinstance(part, Opaque):
        return [part.data[list_of(part)][0]]
    form, own = form_of(part.extra, NAME), own_fields(part.extra, where, losses)
    named = {} if part.id is None else {"id": part.id}
    if "list" in form:
        ours = {**structs.asdict(part), "summary": summary_of(part)}
        kind = form["type"]
        said_of_it: JSONObject = {key: form[key] for key in ("format", "provider") if key in form}
        said_of_it |= {name: ours[our] for name, our in _KINDS[kind].items() if ours[our] is not None}
        return [{"type": kind, **said_of_it, **named, **form.get("index", {}), **own}]
    details: list[JSONObject] = []
    if part.text is not None or part.signature is not None:
        sides = {"text": part.text, "signature": part.signature}
        details.append({"type": "reasoning.text"} | {key: side for key, side in sides.items() if side is not None})
    if part.summary is not None:
        if len(part.summary) > 1:
            losses.approximated(where, "summary", "several summaries are written as one")
        details.append({"type": "reasoning.summary", "summary": summary_of(part)})
    if part.encrypted is not None:
        details.append({"type": "reasoning.encrypted", "data": part.encrypted})
    return [{**side, **named, **_label(part), "index": index + place} for place, side in enumerate(details)]


def is_listed(part: Reasoning | Opaque) -> bool:
    """Whether reasoning needs an entry in a list: it came from one, or it has a signature."""
    return isinstance(part, Opaque) or part.origin is not None or "list" in form_of(part.extra, NAME)


def is_sealed(part: Reasoning) -> bool:
    """Whether the reasoning has data that only the server that made it can read or check."""
    return part.signature is not None or part.encrypted is not None


def answer_fields(parts: Sequence[tuple[str, Reasoning | Opaque]], losses: Losses) -> JSONObject:
    """Return the reasoning of an answer: words for everyone, and a list for what must be brought back.

    After reasoning that other servers signed, all are listed: only the list has their order.
    """
    fields: JSONObject = {}
    if text := "".join(said(part) for _, part in parts):
        fields |= dict.fromkeys(_names(parts), text)
    lists: dict[str, list[JSONObject]] = {}
    came_listed = any("list" in _form(part) for _, part in parts)
    for where, thought in parts:
        part = thought
        if isinstance(part, Reasoning) and not is_listed(part):
            part = drop_seal(part, where, losses)
            note_summary(part, where, losses)
        if is_listed(part) or (lists and said(part) and not came_listed):
            items = lists.setdefault(_form(part).get("list", "reasoning_details"), [])
            items += encode_details(part, len(items), where, losses)
    return {**fields, **{key: items for key, items in lists.items() if items}}


def history_fields(parts: Sequence[tuple[str, Reasoning | Opaque]], crossing: EncodeContext) -> JSONObject:
    """Return the reasoning of an earlier answer: our own as it came, another dialect's where the server wants it."""
    field = crossing.target.reasoning_field
    if field == "none":
        for where, _ in parts:
            crossing.losses.dropped(where, "reasoning", "the server takes none back")
        return {}
    kept = [(where, _openable(part, where, crossing)) for where, part in parts]
    if crossing.home and (field == STRINGS[0] or any("list" in _form(part) for _, part in parts)):
        return answer_fields(kept, crossing.losses)
    thoughts = [(where, part) for where, part in kept if isinstance(part, Reasoning)]
    lists: list[JSONObject] = []
    for where, part in thoughts:
        if field == "reasoning_details" or is_sealed(part):
            lists += encode_details(part, len(lists), where, crossing.losses)
    words = {} if field == "reasoning_details" else _words(thoughts, field, crossing)
    return words | ({"reasoning_details": lists} if lists else {})


def drop_seal(part: Reasoning, where: str, losses: Losses) -> Reasoning:
    """Return the reasoning without its signature, which is a loss."""
    own_fields(part.extra, where, losses)
    if is_sealed(part):
        what = "signature" if part.signature is not None else "encrypted"
        losses.dropped(where, what, "only its maker can open it")
    return replace(part, signature=None, encrypted=None, origin=None)


def note_summary(part: Reasoning, where: str, losses: Losses) -> None:
    """Record that the summary of reasoning is written as its text."""
    if part.summary is not None:
        losses.approximated(where, "summary", "written as the reasoning itself")


def _words(thoughts: Sequence[tuple[str, Reasoning]], field: str, crossing: EncodeContext) -> JSONObject:
    for where, part in thoughts:
        own_fields(part.extra, where, crossing.losses)
        note_summary(part, where, crossing.losses)
    texts = [said(part) for _, part in thoughts if said(part)]
    if len(texts) > 1:
        crossing.losses.approximated(thoughts[0][0], "reasoning", "several parts are written as one")
    return {field: "\n\n".join(texts)} if texts else {}


def _take_list(reader: Reader) -> list[Part]:
    for key in LISTS:
        items = reader.peek(key)
        if isinstance(items, list) and items and all(isinstance(item, dict) for item in items):
            reader.take(key, list)
            return [decode_detail(item, f"{reader.at(key)}[{index}]", key) for index, item in enumerate(items)]
    return []


def _names(parts: Sequence[tuple[str, Reasoning | Opaque]]) -> list[str]:
    """Return the string fields for reasoning: those that it came in, none, or the most common one."""
    for _, part in parts:
        if "fields" in (form := _form(part)):
            fields: list[str] = form["fields"]
            return fields
    return [] if all("list" in _form(part) for _, part in parts if said(part)) else ["reasoning_content"]


def _form(part: Reasoning | Opaque) -> JSONObject:
    return {"list": list_of(part)} if isinstance(part, Opaque) else form_of(part.extra, NAME)


def _with_fields(parts: list[Part], fields: list[str]) -> list[Part]:
    """Record on the first entry of a list which string fields repeated it."""
    for place, part in enumerate(parts):
        if isinstance(part, Reasoning):
            extra = part.extra or Extra(dialect=NAME)
            noted = replace(part, extra=replace(extra, form=extra.form | {"fields": fields}))
            return [*parts[:place], noted, *parts[place + 1 :]]
    return parts


def _origin(kind: str, shape: str, provider: str | None) -> Origin:
    if kind in ("thinking", "redacted_thinking"):
        return Origin(dialect="messages", provider=provider)
    if shape.startswith(_OUR_FORMAT):
        return Origin(dialect=shape.removeprefix(_OUR_FORMAT), provider=provider)
    origin = FORMATS.get(shape, Origin(dialect=NAME))
    return origin if provider is None else replace(origin, provider=provider)


def _label(part: Reasoning) -> JSONObject:
    """Return the origin of the signature, so that the client returns that too."""
    if part.origin is None or part.origin == Origin(dialect=NAME):
        return {}
    known = (shape for shape, origin in FORMATS.items() if origin.dialect == part.origin.dialect)
    shape = next(known, None if part.origin.dialect == NAME else _OUR_FORMAT + part.origin.dialect)
    fields = {"format": shape, "provider": part.origin.provider}
    return {key: value for key, value in fields.items() if value is not None}


def _openable(part: Reasoning | Opaque, where: str, crossing: EncodeContext) -> Reasoning | Opaque:
    """Return the reasoning, without its signature if the server cannot be the one that made it.

    OpenRouter's list names the origin of each entry, so a server that accepts the list accepts all that it knows.
    What was read from such a list goes back into one, whatever dialect the client speaks.
    """
    if isinstance(part, Opaque) or not is_sealed(part):
        return part
    maker = part.origin or Origin(dialect="")
    listed = crossing.home or crossing.target.reasoning_field == "reasoning_details" or "list" in _form(part)
    known = {NAME, *(origin.dialect for origin in FORMATS.values())} if listed else {NAME}
    if maker.dialect in known and (maker.provider is None or crossing.target.provider in (None, maker.provider)):
        return part
    return drop_seal(part, where, crossing.losses)
