"""Encodes and decodes fields that both endpoints share: model, options, output format, reasoning effort.

Encodes and decodes sampling: `options`, and the fields for log probabilities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.reader import Reader, expected, take_blanks
from xenoglot.codec.requests.encode_context import stateless
from xenoglot.dialects.ollama.extras import FAMILY, OPTION, own_fields
from xenoglot.dialects.ollama.reasoning_effort import encode_thinking, take_thinking
from xenoglot.dialects.ollama.request.fields import LOGPROBS, OPTIONS, OUTPUT, REQUEST
from xenoglot.errors import WireError
from xenoglot.model.request import OutputFormat, Request, Sampling

if TYPE_CHECKING:
    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.json import JSONObject


def decode_sampling(reader: Reader, form: JSONObject) -> Sampling:
    """Take `options`, `logprobs` and `top_logprobs`; each option that we do not know is carried under its own name.

    Raises:
        WireError: an option is of a wrong type.
    """
    fields = LOGPROBS.read(reader, form)
    options = reader.object("options")
    if options is None:
        return Sampling(**fields)
    sampling = Sampling(**fields, **OPTIONS.read(options, form))
    rest = options.rest()
    form["options"] = {name: value for name, value in rest.items() if value is None} or True
    reader.rest().update({OPTION + name: value for name, value in rest.items() if value is not None})
    return sampling


def encode_sampling(sampling: Sampling, form: JSONObject, own: JSONObject, crossing: EncodeContext) -> JSONObject:
    """Return `options`, `logprobs` and `top_logprobs`; options that were carried are taken out of `own`.

    Raises:
        WireError: nothing is to be generated.
    """
    options: JSONObject = {}
    OPTIONS.write(sampling, options, form, crossing)
    for key in [key for key in own if key.startswith(OPTION)]:
        options[key.removeprefix(OPTION)] = own.pop(key)
    spelled = form.get("options")
    nulls = spelled if isinstance(spelled, dict) else {}
    fields: JSONObject = {"options": nulls | options} if options or spelled else {}
    LOGPROBS.write_known(sampling, fields, form, crossing)
    return fields


def decode_settings(reader: Reader, form: JSONObject) -> Request:
    """Take all but what is to be answered; `form` gets how it was spelled.

    Raises:
        WireError: there is no model, or a field is of a wrong type.
    """
    form["blanks"] = take_blanks(reader, "format", "system", "template", "suffix", "images", "context", "tools")
    stream = reader.take("stream", bool)
    form["unsaid_stream"] = stream is None
    return Request(
        model=reader.need("model", str),
        sampling=decode_sampling(reader, form),
        output=_take_output(reader),
        thinking=take_thinking(reader),
        stream=stream is not False,  # `ChatRequest.Stream`: true by default
    )


def encode_settings(request: Request, form: JSONObject, own: JSONObject, crossing: EncodeContext) -> JSONObject:
    """Return all but what is to be answered; options that were carried are taken out of `own`.

    Raises:
        WireError: it cannot be had from this server, and would be another request without.
    """
    if request.sampling.n is not None and request.sampling.n > 1:
        raise WireError("$.n", "this model gives one answer per request; ask for 1, or send several requests")
    if request.previous is not None:
        raise stateless(request)
    fields = encode_sampling(request.sampling, form, own, crossing)
    if request.output is not None:
        fields |= _output(request.output, crossing)
    if request.thinking is not None:
        fields |= encode_thinking(request.thinking, crossing)
    if not (request.stream and "unsaid_stream" in form):
        fields["stream"] = request.stream
    REQUEST.note_unsupported(request, crossing.losses)
    return fields


def _take_output(reader: Reader) -> OutputFormat | None:
    """Take `format`: the word `json`, or a schema."""
    value = reader.peek("format")
    if value is None:
        return None
    if isinstance(value, dict):
        return OutputFormat(kind="json_schema", schema=reader.take("format", dict))
    if value != "json":
        raise expected(reader.at("format"), "'json' or object", value)
    reader.take("format", str)
    return OutputFormat(kind="json")


def _output(output: OutputFormat, crossing: EncodeContext) -> JSONObject:
    losses, where = crossing.losses, "$.output"
    own_fields(output.extra, where, losses, FAMILY)
    if output.kind == "text":
        return {}
    OUTPUT.note_unsupported(output, losses)
    if output.strict is not None:
        losses.approximated(where, "strict", "the server holds to every schema strictly")
    if output.kind == "json":
        return {"format": "json"}
    if not isinstance(output.schema, dict):
        losses.approximated(where, "schema", "no object; any JSON is requested")
        return {"format": "json"}
    return {"format": output.schema}
