"""Encodes requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import left
from xenoglot.codec.requests.adapt_request import as_turns, fold_system
from xenoglot.codec.requests.assistant_turns import turns_for
from xenoglot.codec.requests.compacted_history import open_history
from xenoglot.codec.requests.custom_tools import wrap_custom
from xenoglot.codec.requests.encode_context import EncodeContext, came_from, stateless
from xenoglot.dialects.chat.extras import NAME, own_fields
from xenoglot.dialects.chat.reasoning_effort import encode_thinking
from xenoglot.dialects.chat.request.fields import REQUEST, SAMPLING
from xenoglot.dialects.chat.request.media_output import encode_media, with_sound
from xenoglot.dialects.chat.request.message_encoder import MessageEncoder
from xenoglot.dialects.chat.request.web_search import encode_search
from xenoglot.dialects.chat.tools import (
    encode_choice,
    encode_function_call,
    encode_functions,
    encode_tools,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.target import Target
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Message, Request


def encode_request(request: Request, losses: Losses, target: Target) -> JSONObject:
    """Return the request for a server.

    One that came in this dialect goes out as it came, except for what a `target` other than the default demands.

    Raises:
        WireError: the server cannot do something that the request wants.
    """
    home = came_from(request, NAME)
    request = as_turns(request, losses)
    if request.context_management is not None:
        request, losses = open_history(request, losses)
    crossing = EncodeContext(losses, target, home)
    if not crossing.takes(target.custom_tools):  # most servers answer a tool of another type with a 400 (pitfall-62)
        request = wrap_custom(request, losses)
    form, own = form_of(request.extra, NAME), own_fields(request.extra, "$", losses)
    turns, joined = _turns(request.messages, crossing)
    body: JSONObject = {"model": request.model, "messages": MessageEncoder(joined).encode(turns)}
    _note_prefill(request, crossing)
    if request.tools or request.tool_choice is not None or request.parallel_tool_calls is not None or form:
        body |= _tools(request, form, crossing)
    SAMPLING.write(request.sampling, body, form, crossing)
    if request.thinking is not None:
        body |= encode_thinking(request.thinking, request.sampling.max_tokens, form, crossing)
    if request.media is not None:
        media = encode_media(request.media, form, own, crossing)
        body |= media if home else with_sound(media, request.media, crossing, stream=request.stream)
    REQUEST.write(request, body, form, crossing)
    if request.previous is not None:
        raise stateless(request)
    if request.stream or "unstreamed" in form:
        body["stream"] = request.stream
    if request.stream or request.stream_usage is not None or "stream_options" in form:
        body |= _stream_options(request, form, own, crossing)
    return body | own if own else body


def _turns(messages: Sequence[Message], crossing: EncodeContext) -> tuple[Sequence[Message], EncodeContext]:
    """Return the turns as the server takes them, and the context that records their losses where they stood."""
    if not crossing.target.inline_system:
        messages, moved = fold_system(messages, crossing.losses)
        crossing = replace(crossing, losses=moved)
    return turns_for(messages, crossing, NAME)


def _note_prefill(request: Request, crossing: EncodeContext) -> None:
    last = request.messages[-1] if request.messages else None
    if last is not None and last.role == "assistant" and not crossing.home and crossing.target.prefill == "none":
        where = f"$.messages[{len(request.messages) - 1}]"
        crossing.losses.approximated(where, "prefill", "the server may answer the last turn, not continue it")


def _tools(request: Request, form: JSONObject, crossing: EncodeContext) -> JSONObject:
    legacy = "functions" in form
    fields = encode_search(request.tools, crossing)
    tools = encode_functions(request, crossing) if legacy else encode_tools(request, crossing)
    if tools or legacy or "tools" in form:
        fields["functions" if legacy else "tools"] = tools
    allowed = bool(tools) or crossing.home
    if request.tool_choice is not None:
        if not allowed:
            crossing.losses.dropped("$", "tool_choice", "there are no tools")
        elif "function_call" in form:
            fields["function_call"] = encode_function_call(request.tool_choice, crossing)
        else:
            fields["tool_choice"] = encode_choice(request.tool_choice, request.tools, crossing)
    if request.parallel_tool_calls is not None and (not legacy or "parallel" in form):
        if allowed:
            fields["parallel_tool_calls"] = request.parallel_tool_calls
        else:
            crossing.losses.dropped("$", "parallel_tool_calls", "there are no tools")
    return fields


def _stream_options(request: Request, form: JSONObject, own: JSONObject, crossing: EncodeContext) -> JSONObject:
    """Ask for usage at the end of a stream (pitfall-101).

    A request of this dialect is sent unchanged; `stream_usage` of the request asks for usage all the same.
    """
    options: JSONObject = {}
    if not crossing.target.stream_usage:
        if crossing.home and request.stream_usage is not None:
            crossing.losses.dropped("$", "stream_usage", "the server does not take it")
        return {}
    if crossing.home and request.stream_usage is not None:
        options["include_usage"] = request.stream_usage
    elif request.stream and not crossing.home:
        options["include_usage"] = True
    if "stream_options" in form:
        options |= left(own, form, "stream_options")
    return {"stream_options": options} if options or "stream_options" in form else {}
