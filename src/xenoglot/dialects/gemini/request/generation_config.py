"""Encodes and decodes sampling and the output format: `generationConfig`.

Source: `GenerationConfig` (https://ai.google.dev/api/generate-content#generationconfig).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from xenoglot.codec.loss import form_of
from xenoglot.codec.unknown_fields import keep_rest
from xenoglot.dialects.gemini.extras import NAME, with_rest
from xenoglot.dialects.gemini.reasoning_effort import encode_thinking, take_thinking
from xenoglot.dialects.gemini.request.fields import OUTPUT, SAMPLING
from xenoglot.dialects.gemini.request.media_output import KEYS, encode_media, take_media
from xenoglot.dialects.gemini.schemas import as_spelled, json_schema
from xenoglot.dialects.google.shared import with_said
from xenoglot.model.content import Extra
from xenoglot.model.request import MediaOutput, OutputFormat, Sampling, Thinking

if TYPE_CHECKING:
    from xenoglot.codec.reader import Reader
    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Request

KEY = "generationConfig"

_JSON = "application/json"
_TEXT = "text/plain"


class Generation(NamedTuple):
    """The decoded fields of a `generationConfig`."""

    sampling: Sampling = Sampling()
    output: OutputFormat | None = None
    thinking: Thinking | None = None
    media: MediaOutput | None = None


def take_generation(reader: Reader, form: JSONObject) -> Generation:
    """Take the configuration of a request; unknown fields stay where it was."""
    config = reader.object(KEY)
    if config is None:
        return Generation()
    generation = Generation(
        sampling=Sampling(**SAMPLING.read(config, form)),
        output=_take_output(config),
        thinking=take_thinking(config),
        media=None if KEYS.isdisjoint(config.rest()) else take_media(config, form),
    )
    keep_rest(reader, KEY, config, form, said=generation != Generation())
    return generation


def _take_output(config: Reader) -> OutputFormat | None:
    """Take the form of the answer; one that is neither text nor JSON stays where it was."""
    media_type = config.take_word("responseMimeType", (_JSON, _TEXT))
    if media_type != _JSON:
        return None if media_type is None else OutputFormat(kind="text")
    if isinstance(config.peek("responseJsonSchema"), dict):
        return OutputFormat(kind="json_schema", schema=config.take("responseJsonSchema", dict))
    schema = config.take_if("responseSchema", dict)
    if schema is None:
        return OutputFormat(kind="json")
    extra = Extra(dialect=NAME, form={"schema": schema})
    return OutputFormat(kind="json_schema", schema=json_schema(schema), extra=extra)


def encode_generation(request: Request, crossing: EncodeContext) -> JSONObject:
    """Return `generationConfig`, in the field of its name, or nothing where nothing is set.

    Raises:
        WireError: there are more stop strings than the server takes.
    """
    config: JSONObject = {}
    SAMPLING.write(request.sampling, config, form_of(request.extra, NAME), crossing)
    if request.output is not None:
        config |= _output(request.output, crossing)
    if request.media is not None:
        config |= encode_media(request.media, form_of(request.extra, NAME), crossing)
    max_tokens = config.get("maxOutputTokens")
    config |= encode_thinking(request.thinking, crossing.losses, crossing.target, max_tokens=max_tokens)
    return {KEY: config} if config else {}


def _output(output: OutputFormat, crossing: EncodeContext) -> JSONObject:
    losses, where = crossing.losses, "$.output"
    if output.kind == "text":
        return {"responseMimeType": _TEXT}
    config: JSONObject = {"responseMimeType": _JSON}
    if output.kind == "json_schema":
        suffix, schema = as_spelled(output.schema, form_of(output.extra, NAME))
        with_said(config, **{f"response{suffix or 'Schema'}": schema})
    OUTPUT.note_unsupported(output, losses)
    return with_rest(config, output.extra, where, losses)
