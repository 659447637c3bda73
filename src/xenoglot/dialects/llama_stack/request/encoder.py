"""Encodes requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.loss import form_of
from xenoglot.codec.requests.adapt_request import as_turns
from xenoglot.codec.requests.assistant_turns import turns_for
from xenoglot.codec.requests.compacted_history import open_history
from xenoglot.codec.requests.encode_context import EncodeContext, came_from, stateless
from xenoglot.dialects.llama_stack.extras import NAME, own_fields
from xenoglot.dialects.llama_stack.request.fields import REQUEST
from xenoglot.dialects.llama_stack.request.message_encoder import MessageEncoder
from xenoglot.dialects.llama_stack.request.sampling import encode_output, encode_sampling
from xenoglot.dialects.llama_stack.tools import encode_choice, encode_tools
from xenoglot.errors import WireError
from xenoglot.model.request import Request

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.target import Target
    from xenoglot.model.json import JSONObject


def encode_request(request: Request, losses: Losses, target: Target) -> JSONObject:
    """Return the request for a server; one that came in this dialect goes out as it came.

    Raises:
        WireError: the server cannot do something that the request wants: several answers, or a conversation that it
        keeps.
    """
    home = came_from(request, NAME)
    refuse_unsayable(request)
    request = as_turns(request, losses)
    if request.context_management is not None:
        request, losses = open_history(request, losses)
    crossing = EncodeContext(losses, target, home)
    form, own = form_of(request.extra, NAME), own_fields(request.extra, "$", losses)
    turns, joined = turns_for(request.messages, crossing, NAME)
    body: JSONObject = {"model_id": request.model, "messages": MessageEncoder(joined).encode(turns)}
    last = request.messages[-1] if request.messages else None
    if last is not None and last.role == "assistant" and not home and target.prefill == "none":
        losses.approximated("$.messages", "prefill", "the server answers the last turn, and does not continue it")
    tools = encode_tools(request, crossing)
    if tools or "tools" in form:
        body["tools"] = tools
    body |= encode_choice(request, own, crossing, tools=bool(tools))
    body |= encode_sampling(request.sampling, form, own, crossing)
    body |= encode_output(request.output, crossing)
    drop_unknown(request, losses)
    return body | stream_field(request, form) | own


def refuse_unsayable(request: Request) -> None:
    """Raise for what would be another request if it were left out.

    Raises:
        WireError: several answers are wanted, or the request continues a conversation that the client did not send.
    """
    if request.sampling.n is not None and request.sampling.n > 1:
        raise WireError("$.n", "this model gives one answer per request; ask for 1, or send several requests")
    if request.previous is not None:
        raise stateless(request)


def drop_unknown(request: Request, losses: Losses) -> None:
    """Record what the dialect has no field for; not to store is what it does anyway."""
    REQUEST.note_unsupported(request, losses)


def stream_field(request: Request, form: JSONObject) -> JSONObject:
    """Return `stream`, where it is true or was sent."""
    return {"stream": request.stream} if request.stream or "unstreamed" in form else {}
