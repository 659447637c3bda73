"""Encodes and decodes `response_format`: the form of the text, and the media that the answer may be made of.

It is one format or several, each of a type (`text`, `image`, `audio`, `video`), or a bare JSON schema, which older
clients send with `response_mime_type`. Source: `ResponseFormat` in
`google/genai/_gaos/types/interactions/responseformat.py` of the official SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader
from xenoglot.dialects.google.shared import with_said
from xenoglot.dialects.interactions.extras import NAME, own_fields
from xenoglot.dialects.interactions.request.fields import OUTPUT
from xenoglot.model.request import MediaOutput, OutputFormat

if TYPE_CHECKING:
    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request

KEY: Final = "response_format"
_MIME: Final = "response_mime_type"
_MODALITIES: Final = "response_modalities"

_JSON: Final = "application/json"
_TEXT: Final = "text/plain"
_KINDS: Final = ("text", "image", "audio", "video")
_SHAPES: Final = {
    "audio/wav": "wav",
    "audio/mp3": "mp3",
    "audio/ogg_opus": "opus",
    "audio/l16": "pcm16",
}
"""Types of sound, and our words."""
_TYPES: Final = {shape: word for word, shape in _SHAPES.items()}

_IMAGE: Final = ("aspect_ratio", "image_size")


class Formats(NamedTuple):
    """What the formats of a request ask for; `media` are the fields of a `MediaOutput`, `rest` what was not read."""

    output: OutputFormat | None
    media: JSONObject
    rest: list[JSON]


def take_formats(reader: Reader, media: JSONObject, form: JSONObject) -> tuple[OutputFormat | None, MediaOutput | None]:
    """Take the form of the answer; `media` are fields that the request has elsewhere."""
    value = reader.peek(KEY)
    output: OutputFormat | None = None
    rest: list[JSON] = []
    fields: JSONObject = {}
    if isinstance(value, dict | list):
        reader.take_any(KEY)
        form[KEY] = [value]
        output, fields, rest = _read(value)
        if rest:
            reader.rest()[KEY] = rest
    media_type = reader.take_word(_MIME, (_JSON, _TEXT))
    if media_type is not None:
        form[_MIME] = media_type
        output = output or OutputFormat(kind="json" if media_type == _JSON else "text")
    listed = reader.peek(_MODALITIES)
    if isinstance(listed, list) and all(isinstance(one, str) for one in listed):
        form[_MODALITIES] = reader.take(_MODALITIES, list)
        fields["modalities"] = tuple(one.lower() for one in listed)
    fields = {**media, **fields}
    return output, MediaOutput(**fields) if fields else None


def _read(value: JSON) -> Formats:
    output: OutputFormat | None = None
    media: JSONObject = {}
    rest: list[JSON] = []
    modalities: list[str] = []
    for item in value if isinstance(value, list) else [value]:
        kind = item.get("type") if isinstance(item, dict) else None
        if not isinstance(item, dict) or kind not in _KINDS:
            if isinstance(item, dict) and output is None and item:
                output = OutputFormat(kind="json_schema", schema=item)
            else:
                rest.append(item)
            continue
        reader = Reader(item)
        reader.take("type", str)
        if kind == "text" and output is None:
            output = _text_format(reader)
        elif kind != "text":
            media |= _media_format(reader, str(kind))
        modalities.append(str(kind))
        if left := {key: one for key, one in reader.rest().items() if one is not None}:
            rest.append({"type": kind, **left})
    if any(kind != "text" for kind in modalities):
        media["modalities"] = tuple(dict.fromkeys(modalities))
    return Formats(output, media, rest)


def _text_format(reader: Reader) -> OutputFormat:
    media_type = reader.take_word("mime_type", (_JSON, _TEXT))
    schema = reader.take_if("schema", dict)
    if schema is not None:
        return OutputFormat(kind="json_schema", schema=schema)
    return OutputFormat(kind="json" if media_type == _JSON else "text")


def _media_format(reader: Reader, kind: str) -> JSONObject:
    fields: JSONObject = {}
    if kind == "image":
        fields = {key: found for key in _IMAGE if (found := reader.take_if(key, str)) is not None}
    elif kind == "audio" and (media_type := reader.take_word("mime_type", _SHAPES)) is not None:
        fields = {"audio_format": _SHAPES[media_type]}
    return fields


def encode_formats(request: Request, own: JSONObject, crossing: EncodeContext) -> JSONObject:
    """Return the fields for the form of the answer; as they came, if they still ask for the same."""
    form = form_of(request.extra, NAME)
    output, media = request.output, request.media
    body: JSONObject = {key: form[key] for key in (_MIME, _MODALITIES) if key in form}
    if output is not None:
        OUTPUT.note_unsupported(output, crossing.losses)
        own_fields(output.extra, "$.output", crossing.losses)
    if media is not None:
        own_fields(media.extra, "$.media", crossing.losses)
    unread: JSON = None
    if KEY in form:
        body[KEY], unread = form[KEY][0], own.pop(KEY, None)
    if body and _means(body, output, media):
        return body
    if unread is not None:
        crossing.losses.dropped("$.output", KEY, "another form of the answer is wanted than the request came with")
    formats = [] if media is None else _media(media, form, crossing)
    if output is not None or (media is not None and "text" in media.modalities and set(media.modalities) != {"text"}):
        listed = () if media is None else media.modalities
        formats.insert(listed.index("text") if "text" in listed else 0, _text(output))
    if not formats:
        return {}
    return {KEY: formats[0] if len(formats) == 1 else formats}


def _means(body: JSONObject, output: OutputFormat | None, media: MediaOutput | None) -> bool:
    """Return whether the form of the answer is still what it was when the request came with `body`."""
    wanted, found = take_formats(Reader(body), {}, {})
    found, media = found or MediaOutput(), media or MediaOutput()
    fields = ("modalities", "audio_format", *(_IMAGE if any(getattr(found, key) for key in _IMAGE) else ()))
    return wanted == output and all(getattr(found, key) == getattr(media, key) for key in fields)


def _text(output: OutputFormat | None) -> JSONObject:
    if output is None or output.kind == "text":
        return {"type": "text"} if output is None else {"type": "text", "mime_type": _TEXT}
    written: JSONObject = {"type": "text", "mime_type": _JSON}
    return with_said(written, schema=output.schema if output.kind == "json_schema" else None)


def _media(media: MediaOutput, form: JSONObject, crossing: EncodeContext) -> list[JSONObject]:
    formats: list[JSONObject] = []
    kinds = [kind for kind in media.modalities if kind != "text"]
    elsewhere = "image_config" in form
    if not elsewhere and "image" not in kinds and (media.aspect_ratio or media.image_size):
        kinds.append("image")
        crossing.losses.approximated("$.media", "modalities", "a size of images asks for one")
    if media.audio_format is not None and "audio" not in kinds:
        crossing.losses.dropped("$.media", "audio_format", "no sound is requested")
    for kind in kinds:
        written: JSONObject = {"type": kind}
        if kind == "image" and not elsewhere:
            with_said(written, **{key: getattr(media, key) for key in _IMAGE})
        elif kind == "audio" and media.audio_format is not None:
            if media.audio_format in _TYPES:
                written["mime_type"] = _TYPES[media.audio_format]
            else:
                crossing.losses.dropped("$.media", "audio_format", "the dialect has no such format")
        formats.append(written)
    return formats
