"""Encodes reasoning effort in the fields that a server of this dialect accepts.

The rules (https://docs.claude.com/en/docs/build-with-claude/extended-thinking): a budget is at least 1,024 tokens and
less than `max_tokens`; thinking goes with no forced tool, no other temperature than 1, no `top_p` under 0.95 and no
`top_k`; in a loop of tools with a budget the assistant's last turn begins with its thinking.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.dialects.messages.extras import EFFORTS, NAME, with_rest, with_said
from xenoglot.model.request import LEAST_BUDGET, budget_of, effort_of, nearest

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.target import Target
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Effort, Request, Thinking

WHERE = "$.thinking"
LEAST_TOP_P = 0.95


def reasoning_requested(request: Request) -> bool:
    """Return whether the client expects `thinking` blocks: servers of the dialect reason if `thinking` is set."""
    return request.thinking is not None and request.thinking.mode in ("enabled", "adaptive")


def encode_thinking(thinking: Thinking, body: JSONObject, losses: Losses, target: Target, *, home: bool) -> None:
    """Write `thinking` into `body`, which holds all but the fields of no consequence to it."""
    if target.thinking == "none":
        if thinking.mode != "disabled" and thinking.effort != "none":
            losses.dropped(WHERE, "thinking", "the server takes no settings for thinking")
        return
    if home and target.thinking == "effort":
        _write_home(thinking, body, losses, target)
    elif target.thinking == "effort":
        _write_effort(thinking, body, losses, target)
    else:
        _write_budget(thinking, body, losses, target)
    if not home:
        _make_room(body, losses)
    _fit_budget(body, losses, target)


def _write_home(thinking: Thinking, body: JSONObject, losses: Losses, target: Target) -> None:
    if thinking.mode is not None:
        own = with_said(
            {"type": _special_type(thinking) or thinking.mode},
            budget_tokens=thinking.budget_tokens,
            display=thinking.display,
        )
        body["thinking"] = with_rest(own, thinking.extra, WHERE, losses)
    if thinking.effort is not None:
        _write_word(thinking.effort, body, losses, target)


def _special_type(thinking: Thinking) -> str | None:
    """Return the `type` of a request of this dialect that no `mode` stands for."""
    extra = thinking.extra
    special: str | None = extra.fields.get("type") if extra is not None and extra.dialect == NAME else None
    return special


def _wanted(thinking: Thinking) -> bool:
    return thinking.mode != "disabled" and thinking.effort != "none"


def _display(thinking: Thinking, losses: Losses) -> str | None:
    if thinking.display is None and thinking.summary is not None:
        losses.approximated(WHERE, "summary", "written as `display: summarized`")
        return "summarized"
    return thinking.display


def _write_effort(thinking: Thinking, body: JSONObject, losses: Losses, target: Target) -> None:
    """Write a word, and let the model think as it sees fit (pitfall-49)."""
    if not _wanted(thinking):
        body["thinking"] = with_rest({"type": "disabled"}, thinking.extra, WHERE, losses)
        return
    own = with_said({"type": "adaptive"}, display=_display(thinking, losses))
    body["thinking"] = with_rest(own, thinking.extra, WHERE, losses)
    if thinking.mode == "enabled":
        losses.approximated(WHERE, "mode", "written as `adaptive`")
    effort = thinking.effort
    if effort is None and thinking.budget_tokens is not None:
        effort = effort_of(thinking.budget_tokens)
        losses.approximated(WHERE, "budget_tokens", f"written as the effort `{effort}`")
    elif thinking.budget_tokens is not None:
        losses.dropped(WHERE, "budget_tokens", "the server takes an effort, not a token budget")
    if effort is not None:
        _write_word(effort, body, losses, target)


def _write_word(effort: Effort, body: JSONObject, losses: Losses, target: Target) -> None:
    """Write the effort in a word that the server knows (pitfall-27)."""
    word = nearest(effort, target.efforts or EFFORTS)
    if word != effort:
        losses.approximated(WHERE, "effort", f"`{effort}` is written as `{word}`")
    body.setdefault("output_config", {})["effort"] = word


def _write_budget(thinking: Thinking, body: JSONObject, losses: Losses, target: Target) -> None:
    """Write a budget, for a model without `adaptive` (pitfall-25)."""
    if not _wanted(thinking):
        body["thinking"] = with_rest({"type": "disabled"}, thinking.extra, WHERE, losses)
        if (special := _special_type(thinking)) is not None:
            losses.approximated(WHERE, "type", f"`{special}` is written as `disabled`")
        return
    if thinking.mode is None and thinking.effort is None:
        return
    if thinking.mode == "adaptive":
        losses.approximated(WHERE, "mode", "written as `enabled`")
    budget = thinking.budget_tokens
    if budget is None:
        effort = thinking.effort or "high"  # the dialect's default (`BetaOutputConfigParam.effort`)
        budget = budget_of(effort, body.get("max_tokens", target.default_max_tokens))
        losses.approximated(WHERE, "effort", f"written as a budget of {budget} tokens")
    elif thinking.effort is not None:
        losses.dropped(WHERE, "effort", "the server takes a token budget, not an effort")
    own = with_said({"type": "enabled", "budget_tokens": budget}, display=_display(thinking, losses))
    body["thinking"] = with_rest(own, thinking.extra, WHERE, losses)


def _make_room(body: JSONObject, losses: Losses) -> None:
    """Remove settings that are not allowed with thinking, or thinking if they matter more."""
    mode = body.get("thinking", {}).get("type", "disabled")
    if mode == "disabled":
        return
    if body.get("tool_choice", {}).get("type") in ("any", "tool"):
        losses.dropped(WHERE, "thinking", "the dialect allows no thinking if a tool is forced")
        del body["thinking"]
    elif mode == "enabled" and _resumes_unthought(body):
        losses.dropped(WHERE, "thinking", "the last turn calls tools without signed thinking before them")
        del body["thinking"]
    else:
        _drop_sampling(body, losses)


def _resumes_unthought(body: JSONObject) -> bool:
    """Whether the conversation is amid a loop of tools that began without thinking."""
    turns = [turn for turn in body["messages"] if turn["role"] == "assistant"]
    last = body["messages"][-1]["content"]
    answers = isinstance(last, list) and any(block["type"] == "tool_result" for block in last)
    if not turns or not answers:
        return False
    content = turns[-1]["content"]
    return isinstance(content, str) or content[0]["type"] not in ("thinking", "redacted_thinking")


def _drop_sampling(body: JSONObject, losses: Losses) -> None:
    if body.get("temperature", 1) != 1:
        losses.dropped("$.sampling", "temperature", "with thinking only 1 is allowed")
        del body["temperature"]
    if body.get("top_p", 1) < LEAST_TOP_P:
        losses.dropped("$.sampling", "top_p", f"with thinking {LEAST_TOP_P} is the lowest")
        del body["top_p"]
    if body.pop("top_k", None) is not None:
        losses.dropped("$.sampling", "top_k", "not allowed with thinking")


def _fit_budget(body: JSONObject, losses: Losses, target: Target) -> None:
    """Keep the budget below `max_tokens`: raise these, or lower it where the server has a limit."""
    budget = body.get("thinking", {}).get("budget_tokens")
    max_tokens = body.get("max_tokens")
    if budget is None or max_tokens is None or budget < max_tokens:
        return
    limit = target.max_tokens_limit
    raised = budget + max_tokens
    if limit is None or raised <= limit:
        body["max_tokens"] = raised
        losses.approximated("$.sampling", "max_tokens", f"raised to {raised}: the budget for thinking must be less")
    elif limit > LEAST_BUDGET:
        body["max_tokens"] = limit
        body["thinking"]["budget_tokens"] = max(LEAST_BUDGET, limit // 2)
        losses.approximated(WHERE, "budget_tokens", f"lowered: the server generates at most {limit} tokens")
    else:
        del body["thinking"]
        losses.dropped(WHERE, "thinking", f"the server generates at most {limit} tokens, less than any budget")
