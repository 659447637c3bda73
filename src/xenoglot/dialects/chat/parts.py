"""Encodes and decodes content parts: text, images, audio, files, and parts that only some servers know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.data_url import data_url, source_of
from xenoglot.codec.hosted_text import hosted_words
from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import kind_of, name_of
from xenoglot.codec.reader import Reader, leave, left, need_object
from xenoglot.codec.requests.checks import audio_format
from xenoglot.dialects.chat.extras import NAME, extra_of, own_fields
from xenoglot.dialects.openai.options import CACHE_TTLS
from xenoglot.model.content import (
    Audio,
    CacheMark,
    File,
    HostedCall,
    HostedResult,
    Image,
    Inline,
    Nested,
    Opaque,
    Part,
    Plain,
    Reasoning,
    Refusal,
    Remote,
    Stored,
    Text,
    Video,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.content import Extra, Source
    from xenoglot.model.json import JSON, JSONObject

_MARKS = {"prompt_cache_breakpoint": ("mode", "explicit"), "cache_control": ("type", "ephemeral")}
"""The keys of a cache mark, OpenAI's and that of OpenRouter, and the constant each object holds."""


def decode_part(item: JSON, path: str) -> Part:
    """Return one part of a content list; a kind we do not know is carried whole.

    Raises:
        WireError: it is no object, has no type, or lacks what its type needs.
    """
    reader = Reader(item, path)
    decode = _DECODERS.get(reader.need("type", str))
    part = decode(reader) if decode is not None else None
    if part is None:
        text = item.get("text")
        return Opaque(dialect=NAME, data=item, text=text if isinstance(text, str) else None)
    return part


ODD_TEXTS = {"content": "texts that the server did not write as text parts are read as text"}
"""What is tolerated where `as_written_by_models` changes a part."""


def as_written_by_models(item: JSON) -> JSON:
    """Return a part of an answer's content in the form of a text part, where a server wrote a text otherwise.

    Some write bare strings, texts without a type, or the parts of `responses`.
    """
    if isinstance(item, str):
        return {"type": "text", "text": item}
    if isinstance(item, dict) and item.get("type") in (None, "output_text") and isinstance(item.get("text"), str):
        return {**item, "type": "text"}
    return item


def take_cache(reader: Reader) -> CacheMark | None:
    """Take the cache mark of an object, under whichever key it stands."""
    for key, (name, word) in _MARKS.items():
        inner = reader.object(key)
        if inner is not None:
            bare = inner.take_word(name, (word,)) is None
            return CacheMark(ttl=inner.take("ttl", str), extra=extra_of(inner, {"key": key, "bare": bare}))
    return None


def encode_cache(mark: CacheMark | None, where: str, crossing: EncodeContext) -> JSONObject:
    """Return the field that marks a cache breakpoint, where the server is known to take it."""
    if mark is None:
        return {}
    form = form_of(mark.extra, NAME)
    if form:
        name, word = _MARKS[form["key"]]
        constant = {} if "bare" in form else {name: word}
        ttl = {} if mark.ttl is None else {"ttl": mark.ttl}
        return {form["key"]: {**constant, **ttl, **own_fields(mark.extra, where, crossing.losses)}}
    if not crossing.target.cache_marks:
        crossing.losses.dropped(where, "cache", "the server decides what it caches")
        return {}
    if mark.ttl is not None and mark.ttl not in CACHE_TTLS:
        crossing.losses.approximated(where, "cache.ttl", "the server's default lifetime")
        return {"prompt_cache_breakpoint": {"mode": "explicit"}}
    return {"prompt_cache_breakpoint": {"mode": "explicit"} | ({} if mark.ttl is None else {"ttl": mark.ttl})}


def encode_part(part: Part, where: str, crossing: EncodeContext) -> JSONObject | None:
    """Return one part of a content list, or `None` (and a loss) where the wire has no field for it."""
    encoded: JSONObject | None = None
    match part:
        case Text():
            encoded = _encode_text(part, where, crossing)
        case Image() | Audio() | Video() | File():
            encoded = _encode_medium(part, where, crossing)
        case Refusal():
            own = own_fields(part.extra, where, crossing.losses)
            encoded = {"type": "refusal", "refusal": part.text, **own}
        case Reasoning() if "part" in form_of(part.extra, NAME):
            encoded = _encode_thinking(part)
        case Opaque():
            encoded = encode_opaque(part, where, crossing)
        case HostedCall() | HostedResult():
            words = hosted_words(part, where, crossing.losses)
            encoded = None if words is None else _encode_text(words, where, crossing)
        case _:
            crossing.losses.dropped(where, name_of(part), "it has no place in a content list")
    return encoded


def encode_opaque(part: Opaque, where: str, crossing: EncodeContext) -> JSONObject | None:
    """Return our own part as it came, another dialect's as its text."""
    if part.dialect == NAME:
        own: JSONObject = part.data
        return own
    if part.text is None:
        crossing.losses.dropped(where, kind_of(part), f"only {part.dialect} has it")
        return None
    crossing.losses.approximated(where, kind_of(part), "written as text")
    return {"type": "text", "text": part.text}


def _decode_text(reader: Reader) -> Part:
    text = reader.need("text", str)
    return Text(text=text, cache=take_cache(reader), extra=extra_of(reader, {}))


def _decode_refusal(reader: Reader) -> Part:
    return Refusal(text=reader.need("refusal", str), extra=extra_of(reader, {"part": True}))


def _decode_image(reader: Reader) -> Part:
    cache = take_cache(reader)
    url = reader.take_if("image_url", str)
    if url is not None:
        return Image(source=source_of(url), cache=cache, extra=extra_of(reader, {"bare": True}))
    inner = need_object(reader, "image_url")
    source, detail = source_of(inner.need("url", str)), inner.take("detail", str)
    return Image(source=source, detail=detail, cache=cache, extra=_nested(reader, "image_url", inner))


def _decode_video(reader: Reader) -> Part:
    """Read a video, as vLLM, SGLang and OpenRouter take it (https://openrouter.ai/docs/guides/overview/multimodal/videos)."""
    cache = take_cache(reader)
    inner = need_object(reader, "video_url")
    return Video(source=source_of(inner.need("url", str)), cache=cache, extra=_nested(reader, "video_url", inner))


def _decode_audio(reader: Reader) -> Part:
    cache = take_cache(reader)
    inner = need_object(reader, "input_audio")
    source = Inline(data=inner.need("data", str))
    return Audio(
        source=source,
        format=inner.take("format", str),
        cache=cache,
        extra=_nested(reader, "input_audio", inner),
    )


def _decode_file(reader: Reader) -> Part | None:
    inner = need_object(reader, "file")
    data, name = inner.take("file_data", str), inner.take("filename", str)
    source: Source | None = None
    raw = False
    if data is not None:
        source = source_of(data)
        raw = isinstance(source, Remote) and "://" not in data
        source = Inline(data=data) if raw else source
    elif (file_id := inner.take("file_id", str)) is not None:
        source = Stored(id=file_id)
    if source is None:
        return None
    cache = take_cache(reader)
    return File(source=source, name=name, cache=cache, extra=_nested(reader, "file", inner, raw=raw))


def _decode_thinking(reader: Reader) -> Part | None:
    """Read Mistral's thinking part (https://docs.mistral.ai/capabilities/reasoning), where it is one text."""
    thought = reader.take_any("thinking")
    if isinstance(thought, list) and len(thought) == 1:
        listed = thought[0]
        if isinstance(listed, dict) and listed.keys() == {"type", "text"} and listed["type"] == "text":
            thought = listed["text"]
            if isinstance(thought, str):
                return Reasoning(text=thought, extra=extra_of(reader, {"part": "list"}))
    if isinstance(thought, str):
        return Reasoning(text=thought, extra=extra_of(reader, {"part": "string"}))
    return None


_DECODERS: dict[str, Callable[[Reader], Part | None]] = {
    "text": _decode_text,
    "refusal": _decode_refusal,
    "image_url": _decode_image,
    "video_url": _decode_video,
    "input_audio": _decode_audio,
    "file": _decode_file,
    "thinking": _decode_thinking,
}


def _nested(reader: Reader, key: str, inner: Reader, **form: JSON) -> Extra | None:
    nulls = leave(reader, key, inner)
    return extra_of(reader, {key: None if nulls is True else nulls, **form})


def _encode_text(part: Text, where: str, crossing: EncodeContext) -> JSONObject:
    if part.citations:
        crossing.losses.dropped(where, "citations", "a request cannot cite")
    if part.logprobs and not crossing.home:
        crossing.losses.dropped(where, "logprobs", "a request has none")
    own = own_fields(part.extra, where, crossing.losses)
    return {"type": "text", "text": part.text, **encode_cache(part.cache, where, crossing), **own}


def _encode_medium(part: Image | Audio | Video | File, where: str, crossing: EncodeContext) -> JSONObject | None:
    match part:
        case Image():
            return _encode_image(part, where, crossing)
        case Audio():
            return _encode_audio(part, where, crossing)
        case Video():
            return _encode_video(part, where, crossing)
        case File():
            return _encode_file(part, where, crossing)


def _url_of(source: Source, kind: str, where: str, crossing: EncodeContext) -> str | None:
    """Return the URL of a medium, that of its data where these are inline; `None` (and a loss) for any other source."""
    match source:
        case Inline():
            return data_url(source)
        case Remote(url=url):
            return url
        case _:
            crossing.losses.dropped(where, kind, "only a URL or inline data can be written")
            return None


def _encode_image(part: Image, where: str, crossing: EncodeContext) -> JSONObject | None:
    url = _url_of(part.source, "image", where, crossing)
    if url is None:
        return None
    form, own = form_of(part.extra, NAME), own_fields(part.extra, where, crossing.losses)
    detail = {} if part.detail is None else {"detail": part.detail}
    image: JSON = url if "bare" in form else {"url": url, **detail, **left(own, form, "image_url")}
    return {"type": "image_url", "image_url": image, **encode_cache(part.cache, where, crossing), **own}


def _encode_video(part: Video, where: str, crossing: EncodeContext) -> JSONObject | None:
    url = _url_of(part.source, "video", where, crossing)
    if url is None:
        return None
    for name in ("start", "end", "fps"):
        if getattr(part, name) is not None:
            crossing.losses.dropped(where, name, "a video of the dialect has no such field")
    form, own = form_of(part.extra, NAME), own_fields(part.extra, where, crossing.losses)
    video = {"url": url, **left(own, form, "video_url")}
    return {"type": "video_url", "video_url": video, **encode_cache(part.cache, where, crossing), **own}


def _encode_audio(part: Audio, where: str, crossing: EncodeContext) -> JSONObject | None:
    if not isinstance(part.source, Inline):
        if part.transcript is not None:
            crossing.losses.approximated(where, "audio", "written as its transcript")
            return {"type": "text", "text": part.transcript}
        crossing.losses.dropped(where, "audio", "only inline data can be written")
        return None
    form, own = form_of(part.extra, NAME), own_fields(part.extra, where, crossing.losses)
    kind = audio_format(part, home=crossing.home)
    audio = {"data": part.source.data, **({"format": kind} if kind else {}), **left(own, form, "input_audio")}
    return {"type": "input_audio", "input_audio": audio, **encode_cache(part.cache, where, crossing), **own}


def _encode_file(part: File, where: str, crossing: EncodeContext) -> JSONObject | None:
    for name, value in (("context", part.context), ("citable", part.citable)):
        if value is not None:
            crossing.losses.dropped(where, name, "a file has no such field")
    if isinstance(part.source, Plain | Nested):
        return _file_as_text(part.source, part, where, crossing)
    form, own = form_of(part.extra, NAME), own_fields(part.extra, where, crossing.losses)
    said = _file_source(part.source, where, crossing, raw="raw" in form)
    if said is None:
        return None
    named = {} if part.name is None else {"filename": part.name}
    file = {**said, **named, **left(own, form, "file")}
    return {"type": "file", "file": file, **encode_cache(part.cache, where, crossing), **own}


def _file_source(source: Source, where: str, crossing: EncodeContext, *, raw: bool) -> JSONObject | None:
    match source:
        case Inline():
            return {"file_data": source.data if raw else data_url(source)}
        case Remote(url=url):
            if not crossing.home:
                crossing.losses.approximated(where, "file", "only some servers fetch a file by its URL")
            return {"file_data": url}
        case Stored(id=file_id) if crossing.home:
            return {"file_id": file_id}
        case _:
            crossing.losses.dropped(where, "file", "the id of a file means something to its own provider only")
            return None


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
    return {"type": "text", "text": title + text, **encode_cache(part.cache, where, crossing)}


def _encode_thinking(part: Reasoning) -> JSONObject:
    listed = form_of(part.extra, NAME)["part"] == "list"
    thinking: JSON = [{"type": "text", "text": part.text}] if listed else part.text
    rest = part.extra.fields if part.extra is not None else {}
    return {"type": "thinking", "thinking": thinking, **rest}
