"""Encodes requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import left
from xenoglot.codec.requests.adapt_request import as_turns, fold_system
from xenoglot.codec.requests.assistant_turns import turns_for
from xenoglot.codec.requests.compacted_history import open_history
from xenoglot.codec.requests.encode_context import EncodeContext, came_from, extended, stateless
from xenoglot.dialects.responses.client_calls import output_of
from xenoglot.dialects.responses.extras import NAME, own_fields
from xenoglot.dialects.responses.reasoning_effort import encode_thinking, is_wanted
from xenoglot.dialects.responses.request.context_management import triggers
from xenoglot.dialects.responses.request.decoder import ENCRYPTED, LOGPROBS
from xenoglot.dialects.responses.request.fields import REQUEST, SAMPLING, TEXT
from xenoglot.dialects.responses.request.input_encoder import InputEncoder, has_seal
from xenoglot.dialects.responses.tools import encode_choice, encode_tools
from xenoglot.errors import WireError
from xenoglot.model.content import Opaque, Text, ToolResult
from xenoglot.model.request import Request, Sampling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.target import Target
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Message


def encode_request(request: Request, losses: Losses, target: Target) -> JSONObject:
    """Return the request for a server.

    One that came in this dialect goes out as it came, except for what a `target` other than the default demands.

    Raises:
        WireError: the server has no equivalent of something in the request: several candidates (pitfall-46).
    """
    if request.sampling.n is not None and request.sampling.n > 1:
        raise WireError("$.n", "this model gives one answer per request; ask for 1, or send several requests")
    home = came_from(request, NAME)
    request = as_turns(request, losses)
    if request.context_management is not None:
        request, losses = open_history(request, losses, NAME)
    crossing = EncodeContext(losses, target, home)
    form, own = form_of(request.extra, NAME), own_fields(request.extra, "$", losses)
    body: JSONObject = {"model": request.model, **_turns(request, form, crossing)}
    body |= _tools(request, form, crossing)
    _write_sampling(request.sampling, body, form, crossing)
    body |= _began(form, own) if "began" in form and home else _answer(request, form, own, crossing)
    REQUEST.write(request, body, form, crossing)
    return body | _options(request, form, crossing) | own


def _turns(request: Request, form: JSONObject, crossing: EncodeContext) -> JSONObject:
    """Return `instructions` and `input`.

    The first message of the system is written as `instructions` if it is one plain text; otherwise as items, which keep
    its roles and parts.
    """
    messages, context = request.messages, crossing
    if not crossing.target.inline_system:
        messages, moved = fold_system(messages, crossing.losses)
        context = replace(crossing, losses=moved)
    fields: JSONObject = {"instructions": ""} if "instructions" in form else {}
    instructions = _instructions(messages, context)
    if instructions is not None:
        fields["instructions"] = instructions
    _note_prefill(request, crossing)
    first = 0 if instructions is None else 1
    turns, joined = turns_for(messages, context, NAME)
    items = InputEncoder(joined).encode(turns, first) + triggers(request, crossing.losses)
    if not crossing.home:
        return {**fields, "input": items}
    items += form.get("behind", ())
    if form.get("input") == "string" and len(items) == 1 and isinstance(items[0].get("content"), str):
        return {**fields, "input": items[0]["content"]}
    return {**fields, "input": items} if items or form.get("input") == "empty" else fields


def _instructions(messages: Sequence[Message], crossing: EncodeContext) -> str | None:
    if not messages:
        return None
    first = messages[0]
    if crossing.home and "instructions" not in form_of(first.extra, NAME):
        return None
    alone = first.content[0] if len(first.content) == 1 else None
    if first.role != "system" or not isinstance(alone, Text) or (len(messages) > 1 and _is_system(messages[1])):
        return _joined(first) if crossing.home else None
    if alone.cache is not None or not alone.text or first.name is not None or first.id is not None:
        return None
    for field in ("citations", "logprobs"):
        if getattr(alone, field):
            crossing.losses.dropped("$.messages[0].content[0]", field, "what goes to the model has none")
    own_fields(first.extra, "$.messages[0]", crossing.losses)
    own_fields(alone.extra, "$.messages[0].content[0]", crossing.losses)
    return alone.text


def _joined(message: Message) -> str:
    return "\n\n".join(part.text for part in message.content if isinstance(part, Text))


def _is_system(message: Message) -> bool:
    return message.role in ("system", "developer")


def _note_prefill(request: Request, crossing: EncodeContext) -> None:
    last = request.messages[-1] if request.messages else None
    if last is not None and last.role == "assistant" and not crossing.home and crossing.target.prefill == "none":
        where = f"$.messages[{len(request.messages) - 1}]"
        crossing.losses.approximated(where, "prefill", "the server may answer the last turn, not continue it")


def _inside(request: Request, form: JSONObject) -> list[JSON]:
    """Return the tools that items of the input define."""
    items: list[JSON] = [*form.get("behind", ())]
    for message in request.messages:
        items += form_of(message.extra, NAME).get("before", ())
        items += [part.data for part in message.content if isinstance(part, Opaque) and part.dialect == NAME]
        items += [output_of(part) for part in message.content if isinstance(part, ToolResult)]
    tools = (item.get("tools") for item in items if isinstance(item, dict))
    return [tool for listed in tools if isinstance(listed, list) for tool in listed]


def _tools(request: Request, form: JSONObject, crossing: EncodeContext) -> JSONObject:
    inside = _inside(request, form) if crossing.home else []
    tools = encode_tools(request, crossing, inside)
    fields: JSONObject = {"tools": tools} if tools or "tools" in form else {}
    allowed = bool(tools) or crossing.home
    for key in ("tool_choice", "parallel_tool_calls"):
        if getattr(request, key) is not None and not allowed:
            crossing.losses.dropped("$", key, "there are no tools")
    if request.tool_choice is not None and allowed:
        fields["tool_choice"] = encode_choice(request.tool_choice, request, crossing)
    if request.parallel_tool_calls is not None and allowed:
        fields["parallel_tool_calls"] = request.parallel_tool_calls
    return fields


def _write_sampling(sampling: Sampling, body: JSONObject, form: JSONObject, crossing: EncodeContext) -> None:
    if sampling.top_k is not None and sampling.top_k < 1 and not extended(crossing):
        sampling = replace(sampling, top_k=None)  # some clients write that there is no limit so
    SAMPLING.write(sampling, body, form, crossing)


def _began(form: JSONObject, own: JSONObject) -> JSONObject:
    """Return how the answer was to be before items in the input changed that: they do so again."""
    for key in ("reasoning", "text"):
        own.pop(key, None)
    (began,) = form["began"]
    return dict(began)


def _answer(request: Request, form: JSONObject, own: JSONObject, crossing: EncodeContext) -> JSONObject:
    """Return the fields for the thinking and the form of the answer."""
    fields: JSONObject = {}
    if request.thinking is not None:
        fields |= encode_thinking(request.thinking, form, crossing)
    elif "reasoning" in form:
        fields["reasoning"] = form["reasoning"][0]
    text: JSONObject = {}
    TEXT.write_known(request, text, form, crossing)
    if "text" in form:
        text |= left(own, form, "text")
    return fields | ({"text": text} if text or "text" in form else {})


def _options(request: Request, form: JSONObject, crossing: EncodeContext) -> JSONObject:
    if request.previous is not None and request.extra is not None and request.extra.dialect != NAME:
        raise stateless(request)
    fields: JSONObject = {}
    if request.store is None and not crossing.home:
        fields["store"] = False  # elsewhere nothing is kept unless it is said (pitfall-61)
    if request.stream or "unstreamed" in form:
        fields["stream"] = request.stream
    if included := _included(request, crossing):
        fields["include"] = included
    silent: JSONObject = form.get("silent", {})
    return fields | silent


def _included(request: Request, crossing: EncodeContext) -> list[str]:
    """Return the `include` that clients of other dialects need: probabilities, and reasoning that can be sent back."""
    if crossing.home:
        return []
    wanted = {
        LOGPROBS: bool(request.sampling.logprobs),
        ENCRYPTED: is_wanted(request.thinking, crossing) or has_seal(request.messages),
    }
    return [name for name, said in wanted.items() if said]
