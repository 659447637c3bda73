"""Encodes canonical requests for a server of this dialect.

A request that came in this dialect is returned unchanged, unless the `Target` requires something else. A request from
another dialect has nothing stored at the server (`store` is false) unless its client requested that: elsewhere it is
the default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.loss import form_of
from xenoglot.codec.requests.adapt_request import as_turns
from xenoglot.codec.requests.compacted_history import open_history
from xenoglot.codec.requests.encode_context import EncodeContext, came_from, stateless
from xenoglot.dialects.interactions.extras import NAME, own_fields
from xenoglot.dialects.interactions.request.decoder import MODELS
from xenoglot.dialects.interactions.request.fields import REQUEST
from xenoglot.dialects.interactions.request.generation_config import encode_generation
from xenoglot.dialects.interactions.request.input_encoder import InputEncoder
from xenoglot.dialects.interactions.request.response_format import encode_formats
from xenoglot.dialects.interactions.tools import encode_tools
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.target import Target
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Request


def encode_request(request: Request, losses: Losses, target: Target) -> JSONObject:
    """Return `request` as the body of a call.

    Raises:
        WireError: the dialect cannot express the request, and leaving a part out would make it another.
    """
    home = came_from(request, NAME)
    _refuse(request, home=home)
    request = as_turns(request, losses)
    if request.context_management is not None:
        request, losses = open_history(request, losses)
    context = EncodeContext(losses, target, home)
    form, own = form_of(request.extra, NAME), own_fields(request.extra, "$", losses)
    body: JSONObject = {"model": _model(request, form)}
    body |= InputEncoder(context).encode(request.messages, form.get("input"))
    if form.get("instruction") == "empty" and "system_instruction" not in body:
        body["system_instruction"] = ""
    last = request.messages[-1] if request.messages else None
    if last is not None and last.role == "assistant" and not home and target.prefill == "none":
        losses.approximated("$.messages", "prefill", "the server may answer the last turn, not continue it")
    tools = encode_tools(request, context)
    if tools or "tools" in form:
        body["tools"] = tools
    body |= encode_generation(request, context, own, tools=bool(tools))
    body |= encode_formats(request, own, context)
    if request.stream or "unstreamed" in form:
        body["stream"] = request.stream
    if "background" in form:
        body["background"] = form["background"]
    if request.store is None and not home:
        body["store"] = False
    REQUEST.write(request, body, form, context)
    if request.cache is not None:
        losses.dropped("$", "cache", "the server decides what it caches")
    return body | own


def _refuse(request: Request, *, home: bool) -> None:
    """Raise for what would be another request if it were left out."""
    if request.previous is not None and not home:
        raise stateless(request)
    if request.sampling.n is not None and request.sampling.n > 1:
        raise WireError("$.n", "this model gives one answer per request; ask for 1, or send several requests")


def _model(request: Request, form: JSONObject) -> str:
    prefix: str = form.get("model", "")
    return request.model if request.model.startswith(MODELS) else prefix + request.model
