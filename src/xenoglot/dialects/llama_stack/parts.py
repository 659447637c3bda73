"""Encodes and decodes interleaved content: a text, one item, or a list of items, each a text or an image.

Source: `llama_stack/apis/common/content_types.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.data_url import data_url, source_of
from xenoglot.codec.hosted_text import hosted_words
from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import name_of
from xenoglot.codec.reader import Reader, expected, leave
from xenoglot.dialects.llama_stack.extras import NAME, own_fields, rest_of
from xenoglot.model.content import (
    Audio,
    File,
    HostedCall,
    HostedResult,
    Image,
    Inline,
    Nested,
    Opaque,
    Part,
    Plain,
    Refusal,
    Remote,
    Text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject

_BEGINNINGS = {"iVBORw0KGgo": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif"}
_RIFF, _WEBP = "UklGR", "RUJQ"
"""How images begin, in base64: the wire's `data` has no media type."""


def media_type(data: str) -> str | None:
    """Return what kind of image base64 `data` begins like."""
    if data.startswith(_RIFF) and data[12:16] == _WEBP:
        return "image/webp"
    return next((kind for beginning, kind in _BEGINNINGS.items() if data.startswith(beginning)), None)


def decode_content(value: JSON, path: str) -> tuple[list[Part], str | None]:
    """Return the parts of `value`, and how it was spelled where it was no text: `item` or `list`.

    Raises:
        WireError: it is none of the three, or an item lacks what its type needs.
    """
    if isinstance(value, str):
        return ([Text(text=value)] if value else []), None
    if isinstance(value, dict):
        return [decode_item(value, path)], "item"
    if isinstance(value, list):
        return [decode_item(item, f"{path}[{index}]") for index, item in enumerate(value)], "list"
    raise expected(path, "str, object or list", value)


def decode_item(item: JSON, path: str) -> Part:
    """Return one item; a kind or a form that we do not know is carried whole."""
    reader = Reader(item, path)
    kind = reader.need("type", str)
    if kind == "text":
        return Text(text=reader.need("text", str), extra=reader.extra(NAME))
    image = _decode_image(reader) if kind == "image" else None
    if image is not None:
        return image
    text = item.get("text")
    return Opaque(dialect=NAME, data=item, text=text if isinstance(text, str) else None)


def _decode_image(reader: Reader) -> Image | None:
    inner = reader.object("image")
    if inner is None:
        return None
    url, data = inner.object("url"), None
    nested: JSON = None
    if url is not None:
        source: Inline | Remote = source_of(url.need("uri", str))
        nested = leave(inner, "url", url)
    elif (data := inner.take("data", str)) is not None:
        source = Inline(data=data, media_type=media_type(data))
    else:
        return None
    nulls = leave(reader, "image", inner)
    form = {"image": None if nulls is True else nulls, "url": None if nested is True else nested}
    return Image(source=source, extra=reader.extra(NAME, **form, data=None if data is None else True))


def encode_content(items: Sequence[JSONObject], spelled: str | None) -> JSON:
    """Return the items as they were `spelled`; else a lone text as text, nothing as an empty one, others as a list."""
    if spelled == "list":
        return list(items)
    if spelled == "item" and len(items) == 1:
        return items[0]
    if all(item.keys() == {"type", "text"} and item["type"] == "text" for item in items[:2]) and len(items) <= 1:
        return "".join(item["text"] for item in items)
    return list(items)


def encode_item(part: Part, where: str, losses: Losses) -> JSONObject | None:
    """Return one item, or `None` (and a loss) where it cannot be expressed."""
    if getattr(part, "cache", None) is not None:
        losses.dropped(where, "cache", "the server decides what it caches")
    match part:
        case Text():
            if part.citations:
                losses.dropped(where, "citations", "the dialect cites nothing")
            return {"type": "text", "text": part.text, **own_fields(part.extra, where, losses)}
        case Image():
            return _encode_image(part, where, losses)
        case Opaque(dialect="llama_stack", data=dict() as own):
            return own
        case HostedCall() | HostedResult():
            words = hosted_words(part, where, losses)
            return None if words is None else {"type": "text", "text": words.text}
        case _:
            text = in_words(part, where, losses)
            return None if text is None else {"type": "text", "text": text}


def in_words(part: Part, where: str, losses: Losses) -> str | None:
    """Return the words of a part that is no text, or `None` if it has none; either is a loss."""
    kind = name_of(part)
    text: str | None = None
    match part:
        case Refusal():
            text = part.text
        case Audio():
            text = part.transcript
        case File(source=Plain() | Nested() as source):
            text = (f"{part.name}\n" if part.name else "") + _document(source)
            _beside(part, where, losses)
        case Opaque():
            text = part.text
        case _:
            pass  # it says nothing in words
    own_fields(getattr(part, "extra", None), where, losses)
    if text is None:
        losses.dropped(where, kind, "the dialect holds texts and images only")
    else:
        losses.approximated(where, kind, "written as text")
    return text


def _beside(part: File, where: str, losses: Losses) -> None:
    """Record what becomes of a document's fields other than its text."""
    if part.name:
        losses.emulated(where, "name", "stands in the line before its text")
    for name in ("context", "citable"):
        if getattr(part, name) is not None:
            losses.dropped(where, name, "the dialect has no such field")


def _document(source: Plain | Nested) -> str:
    if isinstance(source, Plain):
        return source.text
    return "\n".join(inner.text for inner in source.parts if isinstance(inner, Text))


def _encode_image(part: Image, where: str, losses: Losses) -> JSONObject | None:
    """Return an image; inline bytes need a URL, which has their media type (L5)."""
    form, own = form_of(part.extra, NAME), own_fields(part.extra, where, losses)
    if part.detail is not None:
        losses.dropped(where, "detail", NO_DETAIL)
    rest = rest_of(own, form, "image")
    match part.source:
        case Inline(data=data) as source if form.get("data") or source.media_type is None:
            return {"type": "image", "image": {"data": data, **rest}, **own}
        case Inline() as source:
            uri = data_url(source)
        case Remote(url=uri):
            pass
        case _:
            losses.dropped(where, "image", "only a URL or inline data can be written")
            return None
    return {"type": "image", "image": {"url": {"uri": uri, **rest_of(rest, form, "url")}, **rest}, **own}


NO_DETAIL = "an image of the dialect has no such field"
