"""Decodes and encodes what media a request wants as its answer: `modalities`, `audio` and `image_config`.

Source: `ChatCompletionAudioParam` in the SDK; `image_config` and the modality `image` are OpenRouter's
(https://openrouter.ai/docs/guides/overview/multimodal/image-generation).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.fields import Field, Fields
from xenoglot.codec.reader import Reader, leave, left
from xenoglot.dialects.chat.extras import NAME
from xenoglot.model.request import MediaOutput

if TYPE_CHECKING:
    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.json import JSON, JSONObject

KEYS: Final = frozenset({"modalities", "audio", "image_config"})

VOICE: Final = "alloy"
"""The voice for a request that names none of the dialect, which requires one."""

_WHOLE, _PIECES = "wav", "pcm16"
"""The format of sound for a request that names none: in pieces the server sends the second alone."""


def _take_text(reader: Reader, key: str, _form: JSONObject) -> JSON:
    return reader.take_if(key, str)


AUDIO: Final = Fields(
    MediaOutput,
    "$.media",
    (Field("voice", "voice", read=_take_text), Field("audio_format", "format", read=_take_text)),
)
IMAGES: Final = Fields(
    MediaOutput,
    "$.media",
    (Field("aspect_ratio", "aspect_ratio", read=_take_text), Field("image_size", "image_size", read=_take_text)),
)
_OBJECTS: Final = (("audio", AUDIO), ("image_config", IMAGES))


def take_media(reader: Reader, form: JSONObject) -> MediaOutput:
    """Take the fields of a request that has any of `KEYS`; unknown fields of their objects stay where they are.

    Raises:
        WireError: one of them is of a wrong type.
    """
    fields: JSONObject = {}
    modalities = reader.strings("modalities")
    if modalities is not None:
        fields["modalities"] = modalities
        if not modalities:
            form["modalities"] = True
    for key, table in _OBJECTS:
        inner = reader.object(key)
        if inner is not None:
            fields |= table.read(inner, {})
            form[key] = leave(reader, key, inner)
    return MediaOutput(**fields)


def encode_media(media: MediaOutput, form: JSONObject, own: JSONObject, context: EncodeContext) -> JSONObject:
    """Return the fields of a request; `own` are its unknown fields, from which those of the objects are taken."""
    body: JSONObject = {}
    context.losses.carry(media.extra, "$.media", NAME)
    if media.modalities or "modalities" in form:
        body["modalities"] = list(media.modalities)
    for key, table in _OBJECTS:
        inner: JSONObject = {}
        table.write_known(media, inner, {}, context)
        if inner or key in form:
            body[key] = {**inner, **left(own, form, key)}
    return body


def with_sound(body: JSONObject, media: MediaOutput, context: EncodeContext, *, stream: bool) -> JSONObject:
    """Return the fields of a request from elsewhere with a voice and a format, which the server requires for sound."""
    sound: JSONObject = body.get("audio", {})
    if "audio" not in media.modalities and not sound:
        return body
    if media.modalities == ("audio",):  # what is spoken is always written too (`modalities` in the SDK)
        context.losses.approximated("$.media", "modalities", "sound comes with its text")
        body = {**body, "modalities": ["text", "audio"]}
    voice = sound.get("voice")
    if voice is None or voice[:1].isupper():
        context.losses.approximated("$.media", "voice", f"the voices of the dialect are others; `{VOICE}` is written")
        sound = {**sound, "voice": VOICE}
    if "format" not in sound:
        shape = _PIECES if stream else _WHOLE
        context.losses.approximated("$.media", "audio_format", f"not set; `{shape}` is written")
        sound = {**sound, "format": shape}
    return {**body, "audio": sound}
