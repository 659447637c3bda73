"""Encodes and decodes requests of `POST /api/chat`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.adapt_request import as_turns
from xenoglot.codec.requests.assistant_turns import turns_for
from xenoglot.codec.requests.compacted_history import open_history
from xenoglot.codec.requests.encode_context import EncodeContext, came_from
from xenoglot.dialects.ollama.extras import CHAT, extra_of, own_fields
from xenoglot.dialects.ollama.request.message_decoder import decode_messages
from xenoglot.dialects.ollama.request.message_encoder import MessageEncoder
from xenoglot.dialects.ollama.request.settings import decode_settings, encode_settings
from xenoglot.dialects.ollama.tools import decode_tools, encode_tools
from xenoglot.model.content import Extra

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.target import Target
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request


def decode_request(body: JSON) -> Request:
    """Return what a client asks; without messages, that the model be loaded (see `loading`).

    Raises:
        WireError: a field is missing or of a wrong type.
    """
    reader = Reader(body)
    form: JSONObject = {}
    settings = decode_settings(reader, form)
    form["messages"] = "messages" not in reader.rest()
    messages, tools = decode_messages(reader), decode_tools(reader)
    extra = extra_of(reader, CHAT.name, form) or Extra(dialect=CHAT.name)
    return replace(settings, messages=messages, tools=tools, extra=extra)


def encode_request(request: Request, losses: Losses, target: Target) -> JSONObject:
    """Return the request for a server; one that came in this dialect goes out as it came.

    Raises:
        WireError: the server cannot do something that the request wants.
    """
    home = came_from(request, CHAT.name)
    request = as_turns(request, losses)
    if request.context_management is not None:
        request, losses = open_history(request, losses)
    crossing = EncodeContext(losses, target, home)
    form, own = form_of(request.extra, CHAT.name), own_fields(request.extra, "$", losses, CHAT.name)
    body: JSONObject = {"model": request.model}
    turns, joined = turns_for(request.messages, crossing, CHAT.name)
    messages = MessageEncoder(joined).encode(turns)
    if messages or not ("messages" in form or "messages" in own):
        body["messages"] = messages
    _note_prefill(request, crossing)
    if tools := encode_tools(request, crossing):
        body["tools"] = tools
    body |= encode_settings(request, form, own, crossing)
    return {**form.get("blanks", {}), **own, **body}


def _note_prefill(request: Request, crossing: EncodeContext) -> None:
    last = request.messages[-1] if request.messages else None
    if last is not None and last.role == "assistant" and not crossing.home and crossing.target.prefill == "none":
        crossing.losses.approximated("$.messages", "prefill", "the server may answer the last turn, not continue it")
