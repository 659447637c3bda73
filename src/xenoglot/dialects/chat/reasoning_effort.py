"""Encodes reasoning effort in each field that servers read; OpenAI defines the one for a level only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.fields import Fields
from xenoglot.dialects.chat.extras import own_fields
from xenoglot.dialects.chat.request.fields import BUDGET, REASONING
from xenoglot.model.request import budget_of, effort_of, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Effort, Thinking

WHERE = "$.thinking"

_USUAL: Mapping[str, str] = {"effort": "reasoning_effort", "budget": "thinking", "switch": "thinking"}
"""Kind of reasoning setting -> its default field."""


def encode_thinking(
    thinking: Thinking, max_tokens: int | None, form: JSONObject, crossing: EncodeContext
) -> JSONObject:
    """Return the reasoning effort fields; `form` is how the request spelled them."""
    target = crossing.target
    if target.thinking == "none":
        if not _off(thinking):
            crossing.losses.dropped("$", "thinking", "the server takes no settings for thinking")
        return {}
    if crossing.home and target.thinking_field in (None, form.get("thinking")) and target.thinking == "effort":
        return _as_said(thinking, form, crossing)
    field = target.thinking_field or _USUAL[target.thinking]
    for name in ("display", "summary"):
        if getattr(thinking, name) is not None and (field, name) != ("reasoning", "display"):
            crossing.losses.dropped(WHERE, name, "the dialect has no such field")
    own_fields(thinking.extra, WHERE, crossing.losses)
    return _WRITERS[field](thinking, max_tokens, crossing)


def _off(thinking: Thinking) -> bool:
    return thinking.mode == "disabled" or thinking.effort == "none"


def _as_said(thinking: Thinking, form: JSONObject, crossing: EncodeContext) -> JSONObject:
    own = own_fields(thinking.extra, WHERE, crossing.losses)
    match form.get("thinking"):
        case "reasoning":
            return {"reasoning": _object(REASONING, thinking, own, crossing)}
        case "thinking":
            return {"thinking": _object(BUDGET, thinking, own, crossing)}
        case _:
            return _as_effort(thinking, None, crossing)


def _object(table: Fields, thinking: Thinking, own: JSONObject, crossing: EncodeContext) -> JSONObject:
    fields: JSONObject = {}
    table.write(thinking, fields, {}, crossing)
    return fields | own


def _as_effort(thinking: Thinking, _max_tokens: int | None, crossing: EncodeContext) -> JSONObject:
    if thinking.mode == "disabled":
        return {"reasoning_effort": _word("none", crossing)}
    if thinking.effort is not None:
        for name in ("mode", "budget_tokens"):
            if getattr(thinking, name) is not None:
                crossing.losses.dropped(WHERE, name, "the effort stands for it")
        return {"reasoning_effort": _word(thinking.effort, crossing)}
    if thinking.budget_tokens is not None:
        effort = effort_of(thinking.budget_tokens)
        crossing.losses.approximated(WHERE, "budget_tokens", f"written as the effort `{effort}`")
        return {"reasoning_effort": _word(effort, crossing)}
    if thinking.mode is not None:
        crossing.losses.dropped(WHERE, "mode", "the server decides by itself")
    return {}


def _word(wanted: Effort, crossing: EncodeContext) -> Effort:
    """Write the effort as a word that the server knows (pitfall-26, pitfall-27)."""
    known = crossing.target.efforts
    word = nearest(wanted, known) if known else wanted
    if word != wanted:
        crossing.losses.approximated(WHERE, "effort", f"`{wanted}` is written as `{word}`")
    return word


def _budget(thinking: Thinking, max_tokens: int | None, crossing: EncodeContext) -> int | None:
    if thinking.budget_tokens is not None or thinking.effort is None:
        return thinking.budget_tokens
    budget = budget_of(thinking.effort, max_tokens)
    crossing.losses.approximated(WHERE, "effort", f"written as a budget of {budget} tokens")
    return budget


def _switch(thinking: Thinking, crossing: EncodeContext) -> bool | None:
    """Return whether to reason, for a server with only a switch; `None` if it is not set."""
    if _off(thinking):
        return False
    if thinking.effort is None and thinking.budget_tokens is None and thinking.mode is None:
        return None
    for name in ("effort", "budget_tokens"):
        if getattr(thinking, name) is not None:
            crossing.losses.approximated(WHERE, name, "thinking is turned on, without an amount")
    return True


def _as_object(thinking: Thinking, max_tokens: int | None, crossing: EncodeContext) -> JSONObject:
    """Turn reasoning on or off; write the amount as a budget in the same field, or as a word in another."""
    if _off(thinking):
        return {"thinking": {"type": "disabled"}}
    if crossing.target.thinking == "switch":
        on = _switch(thinking, crossing)
        return {} if on is None else {"thinking": {"type": "enabled"}}
    if crossing.target.thinking == "effort":
        mode = {} if thinking.mode is None else {"thinking": {"type": "enabled"}}
        return mode | _as_effort(replace(thinking, mode=None), None, crossing)
    budget = _budget(thinking, max_tokens, crossing)
    mode_word = "enabled" if budget is not None else thinking.mode or "enabled"
    return {"thinking": {"type": mode_word} | ({} if budget is None else {"budget_tokens": budget})}


def _as_template(thinking: Thinking, _max_tokens: int | None, crossing: EncodeContext) -> JSONObject:
    on = _switch(thinking, crossing)
    return {} if on is None else {"chat_template_kwargs": {"enable_thinking": on}}


def _as_reasoning(thinking: Thinking, _max_tokens: int | None, crossing: EncodeContext) -> JSONObject:
    """Write OpenRouter's object, which takes a word or a budget (see its `reasoning-tokens` page)."""
    shown: JSONObject = {"exclude": True} if thinking.display == "omitted" else {}
    if _off(thinking):
        return {"reasoning": {"enabled": False, **shown}}
    if thinking.effort is not None:
        if thinking.budget_tokens is not None:
            crossing.losses.dropped(WHERE, "budget_tokens", "the effort stands for it")
        return {"reasoning": {"effort": _word(thinking.effort, crossing), **shown}}
    if thinking.budget_tokens is not None:
        return {"reasoning": {"max_tokens": thinking.budget_tokens, **shown}}
    said = {**({} if thinking.mode is None else {"enabled": True}), **shown}
    return {"reasoning": said} if said else {}


def _as_flag(thinking: Thinking, max_tokens: int | None, crossing: EncodeContext) -> JSONObject:
    if _off(thinking):
        return {"enable_thinking": False}
    budget = _budget(thinking, max_tokens, crossing)
    if budget is None and thinking.mode is None:
        return {}
    return {"enable_thinking": True} | ({} if budget is None else {"thinking_budget": budget})


_WRITERS: Mapping[str, Callable[[Thinking, int | None, EncodeContext], JSONObject]] = {
    "reasoning_effort": _as_effort,
    "thinking": _as_object,
    "reasoning": _as_reasoning,
    "enable_thinking": _as_flag,
    "chat_template_kwargs": _as_template,
}
