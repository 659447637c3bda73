"""Encodes canonical requests for a server of this dialect.

Requests of this dialect are sent unchanged, unless the `Target` asks for something else. Requests of other dialects are
made valid here, and each difference is a `Loss`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.loss import form_of
from xenoglot.codec.requests.adapt_request import as_turns
from xenoglot.codec.requests.compacted_history import open_history
from xenoglot.codec.requests.encode_context import EncodeContext, came_from, stateless
from xenoglot.dialects.gemini.extras import NAME, with_rest
from xenoglot.dialects.gemini.parts.encoder import PartEncoder
from xenoglot.dialects.gemini.parts.history_pieces import with_pieces
from xenoglot.dialects.gemini.request.aliases import respelled
from xenoglot.dialects.gemini.request.decoder import ROLES
from xenoglot.dialects.gemini.request.fields import REQUEST
from xenoglot.dialects.gemini.request.generation_config import encode_generation
from xenoglot.dialects.gemini.request.turn_order import WireContent, mend
from xenoglot.dialects.gemini.signatures import sign_words, take_borrowed
from xenoglot.dialects.gemini.tools import encode_choice, encode_tools

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.target import Target
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Message, Request

MODELS = "models/"
"""Begins the full name of a model; its path has it already."""

_ROLES = {**{role: word for word, role in ROLES.items()}, "system": "system", "developer": "system"}


def encode_request(request: Request, losses: Losses, target: Target) -> JSONObject:
    """Return `request` as the body of a call.

    Raises:
        WireError: the dialect lacks something that the request needs, and without it the request would be another.
    """
    home = came_from(request, NAME)
    if request.previous is not None and not home:
        raise stateless(request)
    request = as_turns(request, losses)
    if request.context_management is not None:
        request, losses = open_history(request, losses)
    crossing = EncodeContext(losses, target, home)
    form = form_of(request.extra, NAME)
    parts = PartEncoder(losses, home=home, target=target)
    body: JSONObject = {"model": request.model.removeprefix(MODELS), **_conversation(request.messages, parts, crossing)}
    tools = encode_tools(request, parts, crossing)
    if tools or "tools" in form:
        body["tools"] = tools
    body |= encode_choice(request, parts, crossing, tools=bool(tools))
    body |= encode_generation(request, crossing)
    if request.stream or "stream" in form:
        body["stream"] = request.stream
    REQUEST.write(request, body, form, crossing)
    if request.cache is not None:
        losses.dropped("$", "cache", "the server decides what it caches")
    body = with_rest(body, request.extra, "$", losses)
    spelled: JSONObject = respelled(body, form.get("spelling", {}))
    return spelled


def encode_count_request(request: Request, losses: Losses, target: Target) -> JSONObject:
    """Return the question how many tokens `request` has."""
    body = encode_request(request, losses, target)
    body.pop("stream", None)
    model = body["model"]
    return {"model": model, "generateContentRequest": {**body, "model": MODELS + model}}


def _conversation(messages: Sequence[Message], parts: PartEncoder, crossing: EncodeContext) -> JSONObject:
    hoisted = next((index for index, message in enumerate(messages) if not _is_system(message)), len(messages))
    body: JSONObject = {}
    if crossing.home and hoisted:
        body["systemInstruction"] = _content(messages[0], "$.messages[0]", parts, crossing.losses)
        hoisted = 1
    elif system := _system(messages[:hoisted], parts, crossing.losses):
        body["systemInstruction"] = {"parts": system}
    numbered = [(f"$.messages[{index}]", message) for index, message in enumerate(messages[hoisted:], hoisted)]
    if crossing.home:
        body["contents"] = [_content(message, where, parts, crossing.losses) for where, message in numbered]
        return body
    turns = mend([_turn(message, where, parts, crossing.losses) for where, message in numbered], crossing.losses)
    if turns[-1].role == "model" and crossing.target.prefill == "none":
        crossing.losses.approximated("$.messages", "prefill", "the server may answer the last turn, not continue it")
    body["contents"] = [turn.encode() for turn in turns]
    return body


def _is_system(message: Message) -> bool:
    return message.role in ("system", "developer")


def _content(message: Message, where: str, parts: PartEncoder, losses: Losses) -> JSONObject:
    """Return a content that came from this dialect, as it came."""
    form = form_of(message.extra, NAME)
    role = _ROLES[message.role]
    own: JSONObject = {} if form.get("role") == "absent" or _is_system(message) else {"role": role}
    if _is_system(message) and "role" in form:
        own["role"] = form["role"]
    content = parts.parts(with_pieces(message), f"{where}.content", role)
    if content or "parts" not in form:
        own["parts"] = content
    return with_rest(own, message.extra, where, losses)


def _system(messages: Sequence[Message], parts: PartEncoder, losses: Losses) -> list[JSONObject]:
    system: list[JSONObject] = []
    for index, message in enumerate(messages):
        where = f"$.messages[{index}]"
        _report(message, where, losses)
        system += parts.parts(message.content, f"{where}.content", "system")
    return system


def _turn(message: Message, where: str, parts: PartEncoder, losses: Losses) -> WireContent:
    extra, signature = take_borrowed(message.extra, where, losses)
    _report(replace(message, extra=extra), where, losses)
    role = "model" if message.role == "assistant" else "user"
    if _is_system(message):
        losses.approximated(where, "role", "a system turn among the others is written as the user's")
    content = parts.parts(message.content, f"{where}.content", role)
    sign_words(content, signature)
    if message.content and not content:
        losses.dropped(where, "message", "no content is left")
    return WireContent(role, content, where)


def _report(message: Message, where: str, losses: Losses) -> None:
    losses.carry(message.extra, where, NAME)
    if message.role == "developer":
        losses.approximated(where, "role", "`developer` is written as `system`")
    for field in ("name", "id"):
        if getattr(message, field) is not None:
            losses.dropped(where, field, "a turn of the dialect has none")
