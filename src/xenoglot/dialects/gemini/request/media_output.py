"""Decodes and encodes what media a request wants as its answer, in `generationConfig`.

Source: `responseModalities`, `speechConfig` and `imageConfig` of `GenerationConfig`
(https://ai.google.dev/api/generate-content#generationconfig).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.fields import Field, Fields
from xenoglot.codec.unknown_fields import keep_rest
from xenoglot.dialects.gemini.extras import NAME
from xenoglot.model.request import MediaOutput

if TYPE_CHECKING:
    from xenoglot.codec.reader import Reader
    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.json import JSON, JSONObject

KEYS: Final = frozenset({"responseModalities", "speechConfig", "imageConfig"})

_MODALITIES: Final = "responseModalities"
_VOICE: Final = ("speechConfig", "voiceConfig", "prebuiltVoiceConfig")
"""The objects around the name of a voice."""


def _take_text(reader: Reader, key: str, _form: JSONObject) -> JSON:
    return reader.take_if(key, str)


IMAGES: Final = Fields(
    MediaOutput,
    "$.media",
    (Field("aspect_ratio", "aspectRatio", read=_take_text), Field("image_size", "imageSize", read=_take_text)),
)


def take_media(config: Reader, form: JSONObject) -> MediaOutput | None:
    """Take the fields of a configuration that has any of `KEYS`; what is not understood stays where it is.

    Raises:
        WireError: one of them is of a wrong type.
    """
    fields: JSONObject = {}
    modalities = config.strings(_MODALITIES)
    if modalities is not None:
        fields["modalities"] = tuple(one.lower() for one in modalities)
        if not modalities or [one.upper() for one in modalities] != list(modalities):
            form[_MODALITIES] = list(modalities)
    voice = _take_voice(config, _VOICE)
    if voice is not None:
        fields["voice"] = voice
    if isinstance(config.peek("imageConfig"), dict) and (images := config.object("imageConfig")) is not None:
        found = IMAGES.read(images, {})
        fields |= found
        keep_rest(config, "imageConfig", images, said=bool(found))
    return MediaOutput(**fields) if fields else None


def _take_voice(outer: Reader, path: tuple[str, ...]) -> str | None:
    """Take the name of the voice within the objects of `path`; the rest of each stays where it was."""
    if not path:
        return outer.take_if("voiceName", str)
    key = path[0]
    if not isinstance(outer.peek(key), dict) or (inner := outer.object(key)) is None:
        return None
    voice = _take_voice(inner, path[1:])
    keep_rest(outer, key, inner, said=voice is not None)
    return voice


def encode_media(media: MediaOutput, form: JSONObject, context: EncodeContext) -> JSONObject:
    """Return the fields of the configuration."""
    losses = context.losses
    losses.carry(media.extra, "$.media", NAME)
    config: JSONObject = {}
    spelled = form.get(_MODALITIES)
    if spelled is not None and tuple(one.lower() for one in spelled) == media.modalities:
        config[_MODALITIES] = spelled
    elif media.modalities:
        wanted = media.modalities
        if not context.home and "audio" in wanted and "text" in wanted:
            losses.approximated("$.media", "modalities", "sound comes without its text")
            wanted = tuple(one for one in wanted if one != "text")
        config[_MODALITIES] = [one.upper() for one in wanted]
    if media.voice is not None:
        config |= _voice(media.voice, context)
    if media.audio_format is not None:
        losses.dropped("$.media", "audio_format", "the server decides on the format")
    images: JSONObject = {}
    IMAGES.write_known(media, images, {}, context)
    if images:
        config["imageConfig"] = images
    return config


def _voice(voice: str, context: EncodeContext) -> JSONObject:
    if not context.home and not voice[:1].isupper():  # all of Google's are names, like `Kore`
        context.losses.dropped("$.media", "voice", "the voices of the dialect are others; the server's default speaks")
        return {}
    written: JSONObject = {"voiceName": voice}
    for key in reversed(_VOICE):
        written = {key: written}
    return written
