"""Encodes canonical requests for a server of this dialect.

What came from this dialect returns as it came, unless the `Target` requires a change; what comes from another is fitted
to what servers accept, and each difference is a `Loss`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.loss import form_of
from xenoglot.codec.requests.adapt_request import as_turns, fold_system
from xenoglot.codec.requests.compacted_history import open_history
from xenoglot.codec.requests.encode_context import EncodeContext, came_from, stateless
from xenoglot.dialects.converse.extras import NAME, with_rest
from xenoglot.dialects.converse.parts.encoder import PartEncoder
from xenoglot.dialects.converse.request.fields import (
    ADDITIONAL,
    ADDITIONAL_KEY,
    INFERENCE,
    INFERENCE_KEY,
    REQUEST,
    SAMPLING,
)
from xenoglot.dialects.converse.request.output_config import encode_output, encode_thinking
from xenoglot.dialects.converse.request.turn_order import WireTurn, mend
from xenoglot.dialects.converse.tools import encode_config
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.target import Target
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Message, Request

_ROLES = {"user": "user", "assistant": "assistant", "tool": "user", "system": "system", "developer": "system"}

_COUNTED = ("messages", "system", "toolConfig", ADDITIONAL_KEY)
"""The fields of a request whose tokens can be counted (`ConverseTokensRequest`)."""


def encode_request(request: Request, losses: Losses, target: Target) -> JSONObject:
    """Return `request` as the body of a call.

    Raises:
        WireError: the dialect cannot express it, and leaving it out would not be the same request: several candidates,
            or a conversation that the server is to remember.
    """
    if request.sampling.n is not None and request.sampling.n > 1:
        raise WireError("$.n", "this model gives one answer per request; ask for 1, or send several requests")
    if request.previous is not None:
        raise stateless(request)
    request = as_turns(request, losses)
    if request.context_management is not None:
        request, losses = open_history(request, losses)
    context = EncodeContext(losses, target, came_from(request, NAME))
    form = form_of(request.extra, NAME)
    parts = PartEncoder(losses, home=context.home, target=target)
    body: JSONObject = {"model": request.model, **_conversation(request.messages, parts, form, context)}
    body |= encode_config(request, parts, context)
    additional = _sampling(request, body, form, context)
    encode_output(request.output, body, form, context)
    if request.thinking is not None:
        encode_thinking(request.thinking, body, additional, context)
    if additional:
        body[ADDITIONAL_KEY] = additional
    if request.stream or "stream" in form:
        body["stream"] = request.stream
    REQUEST.write(request, body, form, context)
    if request.cache is not None:
        losses.dropped("$", "cache", "the server caches up to the marks inside")
    return with_rest(body, request.extra, "$", losses)


def encode_count_request(request: Request, losses: Losses, target: Target) -> JSONObject:
    """Return the question how many tokens `request` has."""
    body = encode_request(request, losses, target)
    return {"model": body["model"], "input": {"converse": {key: body[key] for key in _COUNTED if key in body}}}


def _sampling(request: Request, body: JSONObject, form: JSONObject, context: EncodeContext) -> JSONObject:
    """Write the sampling into `body`; return what goes to the model as it is."""
    inference: JSONObject = {}
    additional: JSONObject = {}
    INFERENCE.write_known(request.sampling, inference, form, context)
    ADDITIONAL.write_known(request.sampling, additional, form, context)
    SAMPLING.note_unsupported(request.sampling, context.losses)
    if inference:
        body[INFERENCE_KEY] = inference
    return additional


def _conversation(
    messages: Sequence[Message], parts: PartEncoder, form: JSONObject, context: EncodeContext
) -> JSONObject:
    losses, home = context.losses, context.home
    hoisted = next((index for index, one in enumerate(messages) if not _is_head(one)), len(messages))
    body: JSONObject = {}
    system = [block for index in range(hoisted) for block in _system(messages[index], index, parts, losses)]
    if system or form.get("system") == "empty":
        body["system"] = system
    rest = messages[hoisted:]
    if home:
        body["messages"] = [_as_it_came(one, index, parts, losses) for index, one in enumerate(rest, hoisted)]
        return body
    folded = messages
    if _has_system(rest):
        for index, one in enumerate(rest, hoisted):
            if one.role in ("system", "developer"):
                losses.carry(one.extra, f"$.messages[{index}]", NAME)
        folded, losses = fold_system(messages, losses)
        parts = PartEncoder(losses, home=home, target=context.target)
    turns = [_turn(one, index, parts, losses) for index, one in enumerate(folded[hoisted:], hoisted)]
    body["messages"] = [turn.encode() for turn in mend(turns, losses, prefill=context.target.prefill == "native")]
    return body


def _has_system(messages: Sequence[Message]) -> bool:
    return any(one.role in ("system", "developer") for one in messages)


def _is_head(message: Message) -> bool:
    """Return whether a message is written in `system` if all before it are; not if it came among the messages."""
    return message.role in ("system", "developer") and not form_of(message.extra, NAME).get("inline")


def _system(message: Message, index: int, parts: PartEncoder, losses: Losses) -> list[JSONObject]:
    where = f"$.messages[{index}]"
    _report(message, where, losses)
    losses.carry(message.extra, where, NAME)
    return parts.blocks(message.content, f"{where}.content", "system")


def _as_it_came(message: Message, index: int, parts: PartEncoder, losses: Losses) -> JSONObject:
    """Return a turn that came from this dialect."""
    where, role = f"$.messages[{index}]", _ROLES[message.role]
    own: JSONObject = {"role": role, "content": parts.blocks(message.content, f"{where}.content", role)}
    return with_rest(own, message.extra, where, losses)


def _turn(message: Message, index: int, parts: PartEncoder, losses: Losses) -> WireTurn:
    where, role = f"$.messages[{index}]", _ROLES[message.role]
    _report(message, where, losses)
    losses.carry(message.extra, where, NAME)
    role = "user" if role == "system" else role
    blocks = parts.blocks(message.content, f"{where}.content", role)
    if message.content and not blocks:
        losses.dropped(where, "message", "nothing of it is left")
    return WireTurn(role, blocks, where)


def _report(message: Message, where: str, losses: Losses) -> None:
    if message.role == "developer":
        losses.approximated(where, "role", "`developer` is written as `system`")
    for name in ("name", "id"):
        if getattr(message, name) is not None:
            losses.dropped(where, name, "a message of the dialect has none")
