"""Encodes and decodes sampling: `options`, and the fields for log probabilities beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.reader import Reader
from xenoglot.dialects.ollama.extras import OPTION
from xenoglot.dialects.ollama.request.fields import LOGPROBS, OPTIONS
from xenoglot.model.request import Sampling

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
