"""Encodes and decodes content parts of messages and tool results: text, images, audio, files, refusals.

Source: `openai/types/responses/response_input_content.py`, `response_output_text.py` and their neighbours in the SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from xenoglot.codec.data_url import data_url, source_of
from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import kind_of, name_of
from xenoglot.codec.reader import Reader, leave, left, need_object
from xenoglot.codec.requests.checks import audio_format
from xenoglot.dialects.openai.options import CACHE_TTLS
from xenoglot.dialects.responses.extras import NAME, extra_of, own_fields
from xenoglot.dialects.responses.output_text import ITEM, decode_output_text, encode_output_text
from xenoglot.model.content import (
    Audio,
    CacheMark,
    File,
    Image,
    Inline,
    Nested,
    Opaque,
    Part,
    Plain,
    Refusal,
    Remote,
    Stored,
    Text,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.content import Extra, Source
    from xenoglot.model.json import JSON, JSONObject

TextKind = Literal["input_text", "output_text"]
"""The type of a text: in the input of the model, and in its output."""

_TEXTS = ("input_text", "output_text", "text")
_CACHE_KEY = "prompt_cache_breakpoint"


def decode_part(item: JSON, path: str, usual: TextKind) -> Part:
    """Return one part of a content list in which texts are `usual`; a kind we do not know is carried whole.

    Raises:
        WireError: it is no object, has no type, or lacks what its type needs.
    """
    reader = Reader(item, path)
    kind = reader.need("type", str)
    if kind in _TEXTS:
        return _decode_text(reader, kind, usual)
    decode = _DECODERS.get(kind)
    part = decode(reader) if decode is not None else None
    if part is None:
        text = item.get("text")
        return Opaque(dialect=NAME, data=item, text=text if isinstance(text, str) else None)
    return part


def encode_input(part: Part, where: str, crossing: EncodeContext, *, result: bool = False) -> JSONObject | None:
    """Return one part of the model's input, or `None` (and a loss) if the dialect cannot express it.

    `result` is set for a part of a tool's result.
    """
    encoded: JSONObject | None = None
    match part:
        case Text():
            encoded = _encode_text(part, "input_text", where, crossing)
        case Image():
            encoded = _encode_image(part, where, crossing, needs_detail=not (result or crossing.home))
        case Audio():
            encoded = _encode_audio(part, where, crossing)
        case File():
            encoded = _encode_file(part, where, crossing)
        case Refusal():
            encoded = _encode_refusal(part, where, crossing)
        case Opaque():
            encoded = encode_opaque(part, "input_text", where, crossing.losses)
        case _:
            crossing.losses.dropped(where, name_of(part), "it has no place in a content list")
    return encoded


def encode_said(part: Part, where: str, crossing: EncodeContext, *, answer: bool) -> JSONObject | None:
    """Return one part of the model's output, or `None` (and a loss) if the dialect cannot express it.

    `answer` is set if it is for a client, which gets all required fields.
    """
    losses = crossing.losses
    encoded: JSONObject | None = None
    match part:
        case Text():
            encoded = _encode_text(part, "output_text", where, crossing)
        case Refusal():
            if part.logprobs:
                losses.dropped(where, "logprobs", "a refusal has none")
            encoded = {"type": "refusal", "refusal": part.text, **_own(part.extra, where, losses)}
        case Opaque():
            encoded = encode_opaque(part, "output_text", where, losses)
            if encoded is not None and answer and part.dialect != NAME:
                encoded |= {"logprobs": []}
        case Image() | Audio() | File() if crossing.home and not answer:
            encoded = encode_input(part, where, crossing)
        case Audio(transcript=str(transcript)):
            losses.approximated(where, "audio", "written as its transcript")
            encoded = encode_output_text(Text(text=transcript), where, losses, whole=answer)
        case _:
            losses.dropped(where, name_of(part), "model output is text only in this dialect")
    return encoded


def encode_opaque(part: Opaque, usual: TextKind, where: str, losses: Losses) -> JSONObject | None:
    """Return our own part as it came, another dialect's as its text."""
    if part.dialect == NAME:
        own: JSONObject = part.data
        return own
    if part.text is None:
        losses.dropped(where, kind_of(part), f"only {part.dialect} has it")
        return None
    losses.approximated(where, kind_of(part), "written as text")
    return {"type": usual, "text": part.text} | ({"annotations": []} if usual == "output_text" else {})


def take_cache(reader: Reader) -> CacheMark | None:
    """Take the cache breakpoint of a part; one of a mode that we do not know stays in the rest."""
    value = reader.peek(_CACHE_KEY)
    if not isinstance(value, dict) or value.get("mode") != "explicit":
        return None
    inner = Reader(reader.take(_CACHE_KEY, dict), reader.at(_CACHE_KEY))
    inner.take("mode", str)
    return CacheMark(ttl=inner.take("ttl", str), extra=extra_of(inner, {"own": True}))


def encode_cache(mark: CacheMark | None, where: str, crossing: EncodeContext) -> JSONObject:
    """Return the field that marks a cache breakpoint, where the server is known to take it."""
    if mark is None:
        return {}
    own = own_fields(mark.extra, where, crossing.losses)
    ttl = mark.ttl
    if "own" not in form_of(mark.extra, NAME):
        if not crossing.target.cache_marks:
            crossing.losses.dropped(where, "cache", "the server decides what it caches")
            return {}
        if ttl is not None and ttl not in CACHE_TTLS:
            crossing.losses.approximated(where, "cache.ttl", "the server's default lifetime")
            ttl = None
    return {_CACHE_KEY: {"mode": "explicit", **({} if ttl is None else {"ttl": ttl}), **own}}


def _own(extra: Extra | None, where: str, losses: Losses) -> JSONObject:
    own = own_fields(extra, where, losses)
    return {key: value for key, value in own.items() if not key.startswith(ITEM)}


def _decode_text(reader: Reader, kind: str, usual: TextKind) -> Part:
    reader.take("type", str)
    form: JSONObject = {} if kind == usual else {"type": kind}
    if kind == "output_text":
        return decode_output_text(reader, form)
    text = reader.need("text", str)
    return Text(text=text, cache=take_cache(reader), extra=extra_of(reader, form))


def _decode_refusal(reader: Reader) -> Part:
    return Refusal(text=reader.need("refusal", str), extra=extra_of(reader, {}))


def _decode_image(reader: Reader) -> Part | None:
    url, file_id = reader.take_if("image_url", str), None
    if url is None:
        file_id = reader.take_if("file_id", str)
    if url is None and file_id is None:
        return None
    source: Source = Stored(id=file_id) if file_id is not None else source_of(url or "")
    return Image(source=source, detail=reader.take("detail", str), cache=take_cache(reader), extra=extra_of(reader, {}))


def _decode_audio(reader: Reader) -> Part | None:
    inner = need_object(reader, "input_audio")
    source, shape = Inline(data=inner.need("data", str)), inner.take("format", str)
    nulls = leave(reader, "input_audio", inner)
    return Audio(source=source, format=shape, extra=extra_of(reader, {"input_audio": None if nulls is True else nulls}))


def _decode_file(reader: Reader) -> Part | None:
    source: Source | None = None
    raw = False
    data = reader.take_if("file_data", str)
    if data is not None:
        source = source_of(data)
        raw = isinstance(source, Remote)
        source = Inline(data=data) if raw else source
    elif (file_id := reader.take_if("file_id", str)) is not None:
        source = Stored(id=file_id)
    elif (url := reader.take_if("file_url", str)) is not None:
        source = Remote(url=url)
    if source is None:
        return None
    name = reader.take("filename", str)
    return File(source=source, name=name, cache=take_cache(reader), extra=extra_of(reader, {"raw": raw}))


_DECODERS: dict[str, Callable[[Reader], Part | None]] = {
    "refusal": _decode_refusal,
    "input_image": _decode_image,
    "input_audio": _decode_audio,
    "input_file": _decode_file,
}


def _encode_text(part: Text, usual: str, where: str, crossing: EncodeContext) -> JSONObject:
    kind = form_of(part.extra, NAME).get("type", usual)
    if kind == "output_text":
        return encode_output_text(part, where, crossing.losses, whole=crossing.home)
    for field in ("citations", "logprobs"):
        if getattr(part, field):
            crossing.losses.dropped(where, field, "what goes to the model has none")
    own = _own(part.extra, where, crossing.losses)
    return {"type": kind, "text": part.text, **encode_cache(part.cache, where, crossing), **own}


def _encode_refusal(part: Refusal, where: str, crossing: EncodeContext) -> JSONObject:
    own = _own(part.extra, where, crossing.losses)
    if crossing.home:
        return {"type": "refusal", "refusal": part.text, **own}
    crossing.losses.approximated(where, "refusal", "written as text")
    return {"type": "input_text", "text": part.text}


def _encode_image(part: Image, where: str, crossing: EncodeContext, *, needs_detail: bool) -> JSONObject | None:
    match part.source:
        case Inline() as source:
            said = {"image_url": data_url(source)}
        case Remote(url=url):
            said = {"image_url": url}
        case Stored(id=file_id) if crossing.home:
            said = {"file_id": file_id}
        case _:
            crossing.losses.dropped(where, "image", "only a URL or inline data can be written")
            return None
    own = _own(part.extra, where, crossing.losses)
    if part.detail is not None or needs_detail:  # servers that check insist on it (`ResponseInputImageParam`)
        said["detail"] = part.detail or "auto"
    return {"type": "input_image", **said, **encode_cache(part.cache, where, crossing), **own}


def _encode_audio(part: Audio, where: str, crossing: EncodeContext) -> JSONObject | None:
    if part.cache is not None:
        crossing.losses.dropped(where, "cache", "sound takes no cache mark")
    if not isinstance(part.source, Inline):
        if part.transcript is not None:
            crossing.losses.approximated(where, "audio", "written as its transcript")
            return {"type": "input_text", "text": part.transcript}
        crossing.losses.dropped(where, "audio", "only inline data can be written")
        return None
    form, own = form_of(part.extra, NAME), _own(part.extra, where, crossing.losses)
    kind = audio_format(part, home=crossing.home)
    inner = {"data": part.source.data, **({"format": kind} if kind else {}), **left(own, form, "input_audio")}
    return {"type": "input_audio", "input_audio": inner, **own}


def _encode_file(part: File, where: str, crossing: EncodeContext) -> JSONObject | None:
    for name, value in (("context", part.context), ("citable", part.citable)):
        if value is not None:
            crossing.losses.dropped(where, name, "a file has no such field")
    match part.source:
        case Inline() as source:
            raw = "raw" in form_of(part.extra, NAME)
            said = {"file_data": source.data if raw else data_url(source)}
        case Remote(url=url):
            said = {"file_url": url}
        case Stored(id=file_id) if crossing.home:
            said = {"file_id": file_id}
        case Plain() | Nested() as source:
            return _file_as_text(source, part, where, crossing)
        case _:
            crossing.losses.dropped(where, "file", "the id of a file means something to its own provider only")
            return None
    own = _own(part.extra, where, crossing.losses)
    named = {} if part.name is None else {"filename": part.name}
    return {"type": "input_file", **said, **named, **encode_cache(part.cache, where, crossing), **own}


def _file_as_text(source: Plain | Nested, part: File, where: str, crossing: EncodeContext) -> JSONObject:
    if isinstance(source, Plain):
        text = source.text
    else:
        text = "\n".join(inner.text for inner in source.parts if isinstance(inner, Text))
    crossing.losses.approximated(where, "file", "written as its text")
    title = "" if part.name is None else f"{part.name}\n"
    if title:
        crossing.losses.emulated(where, "name", "stands in the line before its text")
    own_fields(part.extra, where, crossing.losses)
    return {"type": "input_text", "text": title + text, **encode_cache(part.cache, where, crossing)}
