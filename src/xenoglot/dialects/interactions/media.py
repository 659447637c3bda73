"""Encodes and decodes images, sounds, videos and documents: contents with `data` or a `uri`.

Source: `ImageContent`, `AudioContent`, `VideoContent` and `DocumentContent` in
`google/genai/_gaos/types/interactions` of the official SDK.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeAlias

from xenoglot.codec.loss import INLINED, form_of
from xenoglot.codec.opaque import name_of
from xenoglot.codec.reader import Reader, leave, left
from xenoglot.dialects.google.shared import place_of, with_said
from xenoglot.dialects.interactions.extras import NAME, NO_CACHE, extra_of, own_fields, step_free
from xenoglot.model.content import Audio, File, Image, Inline, Remote, Stored, Video

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSONObject

Medium: TypeAlias = Image | Audio | Video | File

TYPES: Final[dict[str, type[Medium]]] = {"image": Image, "audio": Audio, "video": Video, "document": File}
_WORDS: Final = {kind: word for word, kind in TYPES.items()}

_DETAILS: Final = ("low", "high")
"""Values of `resolution` that images of other dialects have, too."""

_CUT: Final = "processing"
_OFFSETS: Final = {"start_offset": "start", "end_offset": "end"}
_DURATION: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s")
"""A `Duration` of protocol buffers in JSON."""


def is_medium(item: JSONObject) -> bool:
    """Whether a content is one of these, with its bytes or their place."""
    if item.get("type") not in TYPES:
        return False
    data, uri = item.get("data"), item.get("uri")
    return isinstance(data, str) != isinstance(uri, str) and isinstance(item.get("mime_type"), str | None)


def decode_medium(reader: Reader) -> Medium:
    """Return the part of a content that `is_medium`."""
    kind = TYPES[reader.need("type", str)]
    media_type, data = reader.take("mime_type", str), reader.take("data", str)
    form: JSONObject = {}
    source: Inline | Remote | Stored
    if data is not None:
        source = Inline(data=data, media_type=media_type)
    else:
        source = place_of(reader.need("uri", str))
        form["mime_type"] = media_type
    if kind is Image:
        return Image(source=source, detail=reader.take_word("resolution", _DETAILS), extra=extra_of(reader, form))
    if kind is Audio:
        return _audio(source, media_type, reader, form)
    if kind is Video:
        cut = _take_cut(reader, form)
        return Video(source=source, **cut, extra=extra_of(reader, form))
    if media_type is not None and data is None:  # no other dialect has a type beside an address
        reader.rest()["mime_type"] = media_type
    return File(source=source, extra=extra_of(reader, form))


def _audio(source: Inline | Remote | Stored, media_type: str | None, reader: Reader, form: JSONObject) -> Audio:
    shape = None if media_type is None or not media_type.startswith("audio/") else media_type.removeprefix("audio/")
    if shape is not None and isinstance(source, Inline):
        source = Inline(data=source.data)
    return Audio(source=source, format=shape, extra=extra_of(reader, form))


def _take_cut(reader: Reader, form: JSONObject) -> JSONObject:
    """Take how a video is cut, where `processing` sets it."""
    value = reader.peek(_CUT)
    if not isinstance(value, dict) or value.get("type") != "static":
        return {}
    fields: JSONObject = {}
    inner = Reader(value, reader.at(_CUT))
    for key, name in _OFFSETS.items():
        offset = inner.peek(key)
        found = _DURATION.fullmatch(offset) if isinstance(offset, str) else None
        if found is not None and _offset(float(found[1])) == offset:
            fields[name] = float(found[1])
            inner.take(key, str)
    if type(inner.peek("fps")) in (int, float):
        fields["fps"] = inner.take_any("fps")
    if fields:
        reader.take(_CUT, dict)
        inner.take("type", str)
        form[_CUT] = leave(reader, _CUT, inner)
    return fields


def _offset(seconds: float) -> str:
    return f"{seconds:g}s" if seconds.is_integer() else f"{seconds}s"


def encode_medium(part: Medium, where: str, losses: Losses, *, home: bool) -> JSONObject | None:
    """Return the content of a part; `None` if its bytes cannot be had."""
    form, own = form_of(part.extra, NAME), step_free(own_fields(part.extra, where, losses))
    place = _place(part, form, home=home)
    if place is None:
        losses.dropped(where, name_of(part), "the dialect takes bytes, or an address to fetch them from")
        return None
    written: JSONObject = {"type": _WORDS[type(part)], **place}
    match part:
        case Image(detail=detail) if detail is not None:
            if detail in _DETAILS:
                written["resolution"] = detail
            else:
                losses.dropped(where, "detail", "the dialect has no such resolution")
        case Video():
            written |= _cut(part, form, own)
        case File():
            _note_document(part, form, where, losses)
        case _:
            pass  # nothing beside its bytes
    if part.cache is not None:
        losses.dropped(where, "cache", NO_CACHE)
    return written | own


def _place(part: Medium, form: JSONObject, *, home: bool) -> JSONObject | None:
    match part.source:
        case Inline(data=data, media_type=media_type):
            if isinstance(part, Audio) and part.format:
                media_type = f"audio/{part.format}"
            return with_said({"data": data}, mime_type=media_type)
        case Remote(url=uri):
            return with_said({"uri": uri}, mime_type=form.get("mime_type") or _sound_type(part))
        case Stored(id=uri) if home:  # the id of a file means something to its own provider only
            return with_said({"uri": uri}, mime_type=form.get("mime_type") or _sound_type(part))
        case _:
            return None


def _sound_type(part: Medium) -> str | None:
    return f"audio/{part.format}" if isinstance(part, Audio) and part.format else None


def _cut(part: Video, form: JSONObject, own: JSONObject) -> JSONObject:
    found: JSONObject = {
        key: _offset(value) for key, name in _OFFSETS.items() if (value := getattr(part, name)) is not None
    }
    if part.fps is not None:
        found["fps"] = part.fps
    return {_CUT: {"type": "static", **found, **left(own, form, _CUT)}} if found else {}


def _note_document(part: File, form: JSONObject, where: str, losses: Losses) -> None:
    if part.name is not None and INLINED not in form:
        losses.dropped(where, "name", "a document of the dialect has none")
    for field in ("context", "citable"):
        if getattr(part, field) is not None:
            losses.dropped(where, field, "the dialect has no such field")
