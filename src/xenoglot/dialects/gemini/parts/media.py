"""Encodes and decodes images, audio and files: `inlineData` and `fileData` of a part.

Source: `Blob` and `FileData` (https://ai.google.dev/api/caching#Blob).
"""

from __future__ import annotations

import re
from base64 import b64encode
from typing import TYPE_CHECKING, NamedTuple

from xenoglot.codec.loss import INLINED, form_of
from xenoglot.codec.opaque import name_of
from xenoglot.codec.reader import need_object
from xenoglot.codec.unknown_fields import keep_rest
from xenoglot.dialects.gemini.extras import NAME, with_rest
from xenoglot.dialects.google.shared import place_of, with_said
from xenoglot.model.content import Audio, File, Image, Inline, Nested, Plain, Remote, Stored, Video

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.reader import Reader
    from xenoglot.model.json import JSONObject

_BY_ENDING = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
    "heic": "image/heic",
    "wav": "audio/wav",
    "mp3": "audio/mp3",
    "mp4": "video/mp4",
    "mov": "video/quicktime",
    "webm": "video/webm",
    "txt": "text/plain",
    "pdf": "application/pdf",
}
_LIKELY = {Image: "image/jpeg", Audio: "audio/wav", Video: "video/mp4", File: "application/pdf"}
"""The media type that is assumed for a part whose type is not set."""


_METADATA = "videoMetadata"
_OFFSETS = {"startOffset": "start", "endOffset": "end"}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s")
"""A `Duration` of protocol buffers in JSON."""

_VIDEO_HOSTS = ("youtube.com", "www.youtube.com", "m.youtube.com", "youtu.be")
"""Hosts whose addresses are videos, although neither a type nor an ending shows it."""


def is_video(uri: str | None, media_type: str | None) -> bool:
    """Return whether a file is a video, by its type, its host or its ending."""
    if media_type is None and uri is not None:
        host = uri.partition("://")[2].partition("/")[0].lower()
        media_type = "video/" if host in _VIDEO_HOSTS else _guessed(uri)
    return media_type is not None and media_type.lower().startswith("video/")


def read_inline(reader: Reader) -> Image | Audio | File:
    """Take `inlineData`: a part whose bytes come along."""
    blob = need_object(reader, "inlineData")
    data = blob.need("data", str)
    media_type = blob.take("mimeType", str) or ""
    kind = media_type.partition("/")[0]
    name = blob.take("displayName", str) if kind not in ("image", "audio") else None
    form: JSONObject = {}
    keep_rest(reader, "inlineData", blob, form)
    extra = reader.extra(NAME, **form)
    if kind == "image":
        return Image(source=Inline(data=data, media_type=media_type), extra=extra)
    if kind == "audio":
        return Audio(source=Inline(data=data), format=media_type.removeprefix("audio/"), extra=extra)
    return File(source=Inline(data=data, media_type=media_type or None), name=name, extra=extra)


def read_file(reader: Reader) -> Image | Audio | File:
    """Take `fileData`: a part whose bytes are fetched, by any server or by Google's servers alone."""
    file = need_object(reader, "fileData")
    uri = file.need("fileUri", str)
    media_type = file.take("mimeType", str)
    kind = (media_type or _guessed(uri) or "").partition("/")[0]
    name = file.take("displayName", str) if kind not in ("image", "audio") else None
    form: JSONObject = {"mimeType": media_type or "absent"}
    if kind not in ("image", "audio") and media_type not in (None, _LIKELY[File], _guessed(uri)):
        file.rest()["mimeType"] = media_type  # no other dialect has a type beside an address
    keep_rest(reader, "fileData", file, form)
    extra = reader.extra(NAME, **form)
    source = place_of(uri)
    if kind == "image":
        return Image(source=source, extra=extra)
    if kind == "audio":
        spelled = None if media_type is None else media_type.removeprefix("audio/")
        return Audio(source=source, format=spelled, extra=extra)
    return File(source=source, name=name, extra=extra)


def read_video(reader: Reader) -> Video | None:
    """Take a video with its `videoMetadata`; one whose place is malformed is left to its own dialect.

    Source: `VideoMetadata` (https://ai.google.dev/api/caching#VideoMetadata); offsets are seconds, as in `1.5s`.
    """
    key = "inlineData" if "inlineData" in reader else "fileData"
    blob = reader.peek(key)
    place = blob.get("data" if key == "inlineData" else "fileUri")
    media_type = blob.get("mimeType")
    if not isinstance(place, str) or not isinstance(media_type, str | None):
        return None
    inner = need_object(reader, key)
    for name in ("data", "fileUri", "mimeType"):
        inner.take_any(name)
    source = Inline(data=place, media_type=media_type) if key == "inlineData" else place_of(place)
    form: JSONObject = {} if key == "inlineData" else {"mimeType": media_type or "absent"}
    keep_rest(reader, key, inner, form)
    fields: JSONObject = {}
    if isinstance(reader.peek(_METADATA), dict) and (metadata := reader.object(_METADATA)) is not None:
        fields = _take_metadata(metadata, form)
        keep_rest(reader, _METADATA, metadata, form, said=bool(fields))
    return Video(source=source, **fields, extra=reader.extra(NAME, **form))


def _take_metadata(metadata: Reader, form: JSONObject) -> JSONObject:
    fields: JSONObject = {}
    for key, name in _OFFSETS.items():
        offset = metadata.peek(key)
        seconds = _seconds(offset) if isinstance(offset, str) else None
        if seconds is not None:
            fields[name] = seconds
            metadata.take(key, str)
            if _offset(seconds) != offset:
                form.setdefault("offsets", {})[key] = offset
    if type(metadata.peek("fps")) in (int, float):
        fields["fps"] = metadata.take_any("fps")
    return fields


def _seconds(offset: str) -> float | None:
    match = _DURATION.fullmatch(offset)
    return None if match is None else float(match[1])


def _offset(seconds: float) -> str:
    return f"{seconds:g}s" if seconds.is_integer() else f"{seconds}s"


def _metadata(part: Video, form: JSONObject) -> JSONObject:
    """Return the field with the cut of a video; empty if it is seen whole."""
    found: JSONObject = {}
    for key, name in _OFFSETS.items():
        seconds = getattr(part, name)
        if seconds is not None:
            spelled = form.get("offsets", {}).get(key)
            found[key] = spelled if spelled is not None and _seconds(spelled) == seconds else _offset(seconds)
    if part.fps is not None:
        found["fps"] = part.fps
    return {_METADATA: found} if found else {}


def _guessed(uri: str) -> str | None:
    path = uri.partition("?")[0].partition("#")[0]
    return _BY_ENDING.get(path.rpartition(".")[2].lower())


def encode_medium(part: Image | Audio | Video | File, where: str, losses: Losses, *, home: bool) -> JSONObject | None:
    """Return the part of an image, audio or a file; `None` if its bytes cannot be had."""
    form = form_of(part.extra, NAME)
    own = _place(part, form, _Notes(where, losses), home=home)
    if own is None:
        losses.dropped(where, name_of(part), "the dialect takes bytes, or an address to fetch them from")
        return None
    if isinstance(part, File):
        _name(part, own, where, losses, home=home)
    elif isinstance(part, Image) and part.detail is not None:
        losses.dropped(where, "detail", "not every server of the dialect takes such a wish")
    elif isinstance(part, Video):
        own |= _metadata(part, form)
    if part.cache is not None:
        losses.dropped(where, "cache", "the server decides what it caches")
    return with_rest(own, part.extra, where, losses)


class _Notes(NamedTuple):
    """The path of a part, and the `Losses` for it."""

    where: str
    losses: Losses

    def guess(self, media_type: str) -> str:
        """Return `media_type`, which is assumed, and record that."""
        self.losses.approximated(self.where, "media_type", f"not set; `{media_type}` is written")
        return media_type


def _place(part: Image | Audio | Video | File, form: JSONObject, notes: _Notes, *, home: bool) -> JSONObject | None:
    match part.source:
        case Inline(data=data, media_type=media_type):
            if isinstance(part, Audio) and part.format:
                media_type = f"audio/{part.format}"
            if media_type is None and not home:
                media_type = notes.guess(_LIKELY[type(part)])
            return {"inlineData": with_said({"data": data}, mimeType=media_type)}
        case Plain(text=text, media_type=media_type):
            notes.losses.emulated(notes.where, "source", "the text of the file is written as bytes")
            data = b64encode(text.encode("utf-8", "surrogatepass")).decode()
            return {"inlineData": {"mimeType": media_type or "text/plain", "data": data}}
        case Remote(url=uri):
            return {"fileData": _typed(part, uri, form, notes)}
        case Stored(id=uri) if home:  # the id of a file means something to its own provider only
            return {"fileData": _typed(part, uri, form, notes)}
        case Stored() | Nested() | None:
            return None


def _typed(part: Image | Audio | Video | File, uri: str, form: JSONObject, notes: _Notes) -> JSONObject:
    spelled = form.get("mimeType")
    if spelled == "absent":
        return {"fileUri": uri}
    if isinstance(part, Audio) and part.format:
        spelled = f"audio/{part.format}"
    if spelled is None:
        likely, guessed = _LIKELY[type(part)], _guessed(uri)
        if guessed is not None and (isinstance(part, File) or guessed[:5] == likely[:5]):
            return {"mimeType": guessed, "fileUri": uri}
        spelled = notes.guess(likely)
    return {"mimeType": spelled, "fileUri": uri}


def _name(part: File, own: JSONObject, where: str, losses: Losses, *, home: bool) -> None:
    (inner,) = own.values()
    if home and INLINED in form_of(part.extra, NAME):
        return  # Google's servers take no name beside the bytes
    if home:
        with_said(inner, displayName=part.name)
    elif part.name is not None:
        losses.dropped(where, "name", "a file of the dialect has none")
    for field in ("context", "citable"):
        if getattr(part, field) is not None:
            losses.dropped(where, field, "the dialect has no such field")
