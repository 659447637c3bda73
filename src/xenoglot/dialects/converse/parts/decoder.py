"""Decodes blocks of content to parts: unions, whose only field is the kind of the block.

Source: `ContentBlock`, `SystemContentBlock` and `ToolResultContentBlock` in the published model of the API.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.json.json_io import to_text
from xenoglot.codec.json.tool_arguments import arguments_of
from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader, expected
from xenoglot.codec.requests.names import read_id
from xenoglot.codec.responses.reasoning import unpack
from xenoglot.codec.unknown_fields import keep_rest
from xenoglot.dialects.converse import citations
from xenoglot.dialects.converse.extras import NAME, read_cache_point, take_member
from xenoglot.dialects.converse.parts.media import decode_media
from xenoglot.model.content import (
    Audio,
    Extra,
    File,
    Image,
    Opaque,
    Origin,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Video,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.model.json import JSON, JSONObject

STATUSES = {"success": False, "error": True}
"""`ToolResultStatus`, and whether the tool failed."""

MARKABLE = (Text, Image, Audio, Video, File, ToolCall, ToolResult)
"""Parts that a cache point after them is a mark of."""


def decode_blocks(value: JSON, path: str) -> tuple[Part, ...]:
    """Return the parts of a list of blocks; a cache point is the mark of the part before it.

    Raises:
        WireError: it is no list of objects, or a block lacks what its kind needs.
    """
    if not isinstance(value, list):
        raise expected(path, "list", value)
    parts: list[Part] = []
    for index, block in enumerate(value):
        where = f"{path}[{index}]"
        mark = read_cache_point(block, where)
        last = parts[-1] if parts else None
        if mark is not None and isinstance(last, MARKABLE) and last.cache is None:
            parts[-1] = replace(last, cache=mark)
        else:
            parts.append(decode_block(block, where))
    return tuple(parts)


def decode_block(block: JSON, path: str) -> Part:
    """Return the part of one block; a block of a kind that is not known becomes `Opaque`.

    Raises:
        WireError: it is no object, or lacks what its kind needs.
    """
    reader = Reader(block, path)
    text = reader.take_if("text", str)
    if text is not None:
        return Text(text=text, extra=reader.extra(NAME))
    for kind, read in _READERS.items():
        if isinstance(reader.peek(kind), dict):
            part = read(block, path)
            return opaque(block) if part is None else part
    if "json" in block:
        value = reader.rest().pop("json")
        return Text(text=to_text(value), extra=Extra(dialect=NAME, fields=reader.rest(), form={"block": "json"}))
    return opaque(block)


def opaque(block: JSONObject) -> Opaque:
    """Return a block as it came, with its words if it has any that others can use."""
    return Opaque(dialect=NAME, data=block, text=_words(block))


def _words(block: JSONObject) -> str | None:
    match block:
        case {"guardContent": {"text": {"text": str() as text}}}:
            return text
        case {"searchResult": {"title": str() as title, "source": str() as source, "content": [*pieces]}}:
            texts = [piece.get("text") for piece in pieces if isinstance(piece, dict)]
            return "\n".join([title, source, *(text for text in texts if isinstance(text, str))])
        case _:
            return None


def derived_id(path: str) -> str:
    """Return the id of a tool call whose server gave it none."""
    return "tooluse_" + sha256(path.encode()).hexdigest()[:22]


def sealed(part: Reasoning, signature: str) -> Reasoning:
    """Return `part` with its signature, which may wrap that of another dialect."""
    brought = unpack(signature)
    if brought is None:
        return replace(part, signature=signature, origin=Origin(dialect=NAME))
    form: JSONObject = {**form_of(part.extra, NAME), "signature": signature}
    fields = {} if part.extra is None else part.extra.fields
    return replace(
        part,
        signature=brought.signature,
        encrypted=brought.encrypted,
        origin=brought.origin,
        extra=Extra(dialect=NAME, fields=fields, form=form),
    )


def _read_reasoning(block: JSON, path: str) -> Part | None:
    reader = take_member(block, "reasoningContent", path)
    redacted = reader.take_if("redactedContent", str)
    if redacted is not None:
        return Reasoning(encrypted=redacted, redacted=True, origin=Origin(dialect=NAME), extra=reader.extra(NAME))
    inner = reader.object("reasoningText")
    if inner is None:
        return None
    text, signature = inner.take("text", str), inner.take("signature", str)
    form: JSONObject = {"text": "absent"} if text is None else {}
    keep_rest(reader, "reasoningText", inner, form)
    part = Reasoning(text=text or "", origin=Origin(dialect=NAME), extra=reader.extra(NAME, **form))
    return part if signature is None else sealed(part, signature)


def _read_call(block: JSON, path: str) -> Part | None:
    reader = take_member(block, "toolUse", path)
    if "type" in reader:  # `server_tool_use`: the server runs the tool itself
        return None
    call_id = reader.take("toolUseId", str)
    return ToolCall(
        id=derived_id(path) if call_id is None else read_id(call_id),
        name=reader.need("name", str),
        arguments=arguments_of(reader.take_any("input") or {}),
        extra=reader.extra(NAME),
    )


def _read_result(block: JSON, path: str) -> Part | None:
    reader = take_member(block, "toolResult", path)
    if "type" in reader:
        return None
    content = reader.take("content", list)
    status = reader.take_word("status", STATUSES)
    return ToolResult(
        call_id=read_id(reader.need("toolUseId", str)),
        content=() if content is None else decode_blocks(content, reader.at("content")),
        is_error=None if status is None else STATUSES[status],
        extra=reader.extra(NAME, content="absent" if content is None else None),
    )


def _media(kind: str) -> Callable[[JSON, str], Part | None]:
    return lambda block, path: decode_media(block, kind, path)


_READERS: dict[str, Callable[[JSON, str], Part | None]] = {
    **{kind: _media(kind) for kind in ("image", "document", "video", "audio")},
    "toolUse": _read_call,
    "toolResult": _read_result,
    "reasoningContent": _read_reasoning,
    citations.BLOCK: citations.decode_citations,
}
"""How each kind of block is read. A reader that returns `None` leaves the block as it came."""
