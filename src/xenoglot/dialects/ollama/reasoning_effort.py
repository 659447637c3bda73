"""Encodes and decodes reasoning effort: on, off, or a level."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.reader import expected
from xenoglot.dialects.ollama.extras import FAMILY, own_fields
from xenoglot.model.request import Thinking, effort_of, nearest

if TYPE_CHECKING:
    from xenoglot.codec.reader import Reader
    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Effort, Request

_WORDS: tuple[Effort, ...] = ("low", "medium", "high", "max")
"""`ThinkValue` in `api/types.go`."""


def reasoning_requested(request: Request) -> bool:
    """Return whether the client expects `thinking`: a model that can think does so unless `think` is false.

    Source: https://docs.ollama.com/capabilities/thinking, `ChatHandler` in `server/routes.go`.
    """
    return request.thinking is None or (request.thinking.mode != "disabled" and request.thinking.effort != "none")


def take_thinking(reader: Reader) -> Thinking | None:
    """Take `think`; a word that we do not know stays in the rest.

    Raises:
        WireError: it is neither a truth value nor a word.
    """
    value = reader.peek("think")
    if value is None:
        return None
    if isinstance(value, bool):
        return Thinking(mode="enabled" if reader.take("think", bool) else "disabled")
    if not isinstance(value, str):
        raise expected(reader.at("think"), "bool or str", value)
    effort: Effort | None = reader.take_word("think", _WORDS)
    return None if effort is None else Thinking(effort=effort)


def encode_thinking(thinking: Thinking, crossing: EncodeContext) -> JSONObject:
    """Return `think`, or nothing where the server is to decide by itself."""
    losses, where = crossing.losses, "$.thinking"
    if crossing.target.thinking == "none":
        losses.dropped("$", "thinking", "the server takes no settings for thinking")
        return {}
    own_fields(thinking.extra, where, losses, FAMILY)
    for name in ("display", "summary"):
        if getattr(thinking, name) is not None:
            losses.dropped(where, name, "the dialect has no such field")
    if thinking.mode == "disabled" or thinking.effort == "none":
        return {"think": False}
    if thinking.effort is not None:
        return {"think": _word(thinking, thinking.effort, crossing)}
    if thinking.budget_tokens is not None:
        effort = effort_of(thinking.budget_tokens)
        word = nearest(effort, crossing.target.efforts or _WORDS)
        losses.approximated(where, "budget_tokens", f"written as the effort `{word}`")
        return {"think": word}
    if thinking.mode == "enabled":
        return {"think": True}
    if thinking.mode is not None:
        losses.dropped(where, "mode", "the server decides by itself")
    return {}


def _word(thinking: Thinking, effort: Effort, crossing: EncodeContext) -> Effort:
    for name in ("mode", "budget_tokens"):
        if getattr(thinking, name) is not None:
            crossing.losses.dropped("$.thinking", name, "the effort stands for it")
    word = nearest(effort, crossing.target.efforts or _WORDS)
    if word != effort:
        crossing.losses.approximated("$.thinking", "effort", f"`{effort}` is written as `{word}`")
    return word
