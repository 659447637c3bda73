"""Encodes reasoning effort and the requested summary as `reasoning`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.dialects.responses.extras import own_fields
from xenoglot.model.request import effort_of, nearest

if TYPE_CHECKING:
    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Effort, Thinking

WHERE = "$.thinking"
TOLD = "auto"
"""The `summary` that is requested when a client of another dialect wants to see the reasoning."""


def is_wanted(thinking: Thinking | None, crossing: EncodeContext) -> bool:
    """Whether the request turns thinking on."""
    if thinking is None or crossing.target.thinking == "none":
        return False
    return thinking.mode != "disabled" and thinking.effort != "none"


def encode_thinking(thinking: Thinking, form: JSONObject, crossing: EncodeContext) -> JSONObject:
    """Return `reasoning`, or nothing (and a loss) if the server takes no such settings."""
    if crossing.target.thinking == "none":
        if thinking.mode != "disabled" and thinking.effort != "none":
            crossing.losses.dropped("$", "thinking", "the server takes no settings for thinking")
        return {}
    own = own_fields(thinking.extra, WHERE, crossing.losses)
    effort = thinking.effort if crossing.home else _effort(thinking, crossing)
    summary = thinking.summary if crossing.home else _summary(thinking, crossing)
    said = {"effort": None if effort is None else _known(effort, crossing), form.get("summary", "summary"): summary}
    reasoning = {key: value for key, value in said.items() if value is not None} | own
    return {"reasoning": reasoning} if reasoning else {}


def _effort(thinking: Thinking, crossing: EncodeContext) -> Effort | None:
    if thinking.mode == "disabled":
        return "none"
    if thinking.effort is not None:
        for name in ("mode", "budget_tokens"):
            if getattr(thinking, name) is not None:
                crossing.losses.dropped(WHERE, name, "the effort stands for it")
        return thinking.effort
    if thinking.mode is not None and thinking.budget_tokens is None:
        crossing.losses.dropped(WHERE, "mode", "the server decides by itself")
    if thinking.budget_tokens is None:
        return None
    effort = effort_of(thinking.budget_tokens)
    crossing.losses.approximated(WHERE, "budget_tokens", f"written as the effort `{effort}`")
    return effort


def _known(wanted: Effort, crossing: EncodeContext) -> Effort:
    """Return the word of the server for an effort (pitfall-26, pitfall-27)."""
    known = crossing.target.efforts
    word = nearest(wanted, known) if known else wanted
    if word != wanted:
        crossing.losses.approximated(WHERE, "effort", f"`{wanted}` is written as `{word}`")
    return word


def _summary(thinking: Thinking, crossing: EncodeContext) -> str | None:
    if thinking.display is None or thinking.summary is not None:
        return thinking.summary
    told = thinking.display == "summarized"
    why = f"written as the summary `{TOLD}`" if told else "thoughts are told where a summary is asked for"
    crossing.losses.emulated(WHERE, "display", why)
    return TOLD if told else None
