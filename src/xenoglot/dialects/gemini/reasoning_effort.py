"""Encodes and decodes reasoning effort: `thinkingConfig`.

Source: https://ai.google.dev/gemini-api/docs/thinking. A level is the newer field for it, a budget of tokens the
older; a budget of 0 turns thinking off, -1 leaves it to the model. A server refuses both at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from xenoglot.codec.loss import form_of
from xenoglot.codec.requests.checks import MOST_TOKENS, ranged
from xenoglot.dialects.gemini.extras import NAME, with_rest
from xenoglot.dialects.google.shared import with_said
from xenoglot.model.request import Thinking, budget_of, nearest

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.reader import Reader
    from xenoglot.codec.target import Target
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Effort, Request

WHERE = "$.thinking"

LEVELS: dict[str, Effort] = {"MINIMAL": "minimal", "LOW": "low", "MEDIUM": "medium", "HIGH": "high", "XHIGH": "xhigh"}
"""`ThinkingLevel` in the SDK; servers take it in small letters too."""

_WORDS: dict[Effort, str] = {effort: level for level, effort in LEVELS.items()}
_EITHER_CASE = {**LEVELS, **{level.lower(): effort for level, effort in LEVELS.items()}}

_OFF = 0
_DYNAMIC = -1
_MODES: dict[int, Literal["disabled", "adaptive"]] = {_OFF: "disabled", _DYNAMIC: "adaptive"}


def reasoning_requested(request: Request) -> bool:
    """Return whether the client expects parts with `thought`: servers write them where `includeThoughts` is true."""
    return request.thinking is not None and request.thinking.display == "summarized"


def take_thinking(config: Reader) -> Thinking | None:
    """Take `thinkingConfig` of a `generationConfig`."""
    inner = config.object("thinkingConfig")
    if inner is None:
        return None
    level = inner.take_word("thinkingLevel", _EITHER_CASE)
    budget = ranged(inner, "thinkingBudget", int, -1, MOST_TOKENS)
    shown = inner.take("includeThoughts", bool)
    form: JSONObject = {} if level is None or level in LEVELS else {"level": level}
    if budget is not None and budget < _DYNAMIC:
        form["budget"] = budget
        budget = _DYNAMIC
    return Thinking(
        mode=None if budget is None else _MODES.get(budget, "enabled"),
        budget_tokens=budget if budget is not None and budget > 0 else None,
        effort=None if level is None else _EITHER_CASE[level],
        display=None if shown is None else "summarized" if shown else "omitted",
        extra=inner.extra(NAME, **form, own=True),
    )


def encode_thinking(thinking: Thinking | None, losses: Losses, target: Target, *, max_tokens: int | None) -> JSONObject:
    """Return `thinkingConfig` for a server of the dialect, in the field of its name."""
    if thinking is None:
        return {}
    if target.thinking == "none":
        if thinking.mode != "disabled" and thinking.effort != "none":
            losses.dropped(WHERE, "thinking", "the server takes no settings for thinking")
        return {}
    form = form_of(thinking.extra, NAME)
    own: JSONObject = {}
    off = thinking.mode == "disabled" or thinking.effort == "none"
    if off and not form:
        own["thinkingBudget"] = _OFF
    else:
        own |= _as_said(thinking, form) if form else _amount(thinking, losses, target, max_tokens)
    with_said(own, includeThoughts=_shown(thinking, losses, unsaid=None if off or form else True))
    _fit(own, losses, target, max_tokens)
    return {"thinkingConfig": with_rest(own, thinking.extra, WHERE, losses)}


def _as_said(thinking: Thinking, form: JSONObject) -> JSONObject:
    own: JSONObject = {}
    if thinking.effort is not None:
        own["thinkingLevel"] = form.get("level", _WORDS.get(thinking.effort, "HIGH"))
    match thinking.mode:
        case "disabled":
            own["thinkingBudget"] = _OFF
        case "adaptive":
            own["thinkingBudget"] = form.get("budget", _DYNAMIC)
        case "enabled":
            own["thinkingBudget"] = thinking.budget_tokens
        case None:
            pass  # only the level was said, if anything
    return own


def _shown(thinking: Thinking, losses: Losses, *, unsaid: bool | None) -> bool | None:
    """Return whether reasoning is to be shown; clients of other dialects that turn thinking on expect to see it."""
    if thinking.summary is not None:
        losses.approximated(WHERE, "summary", "written as `includeThoughts`")
    if thinking.display is not None:
        if thinking.display not in ("omitted", "summarized"):
            losses.approximated(WHERE, "display", "written as `includeThoughts`")
        return thinking.display != "omitted"
    return unsaid if thinking.summary is not None or thinking.mode in ("enabled", "adaptive") else None


def _amount(thinking: Thinking, losses: Losses, target: Target, max_tokens: int | None) -> JSONObject:
    if thinking.effort is None:
        if thinking.budget_tokens is not None:
            return {"thinkingBudget": thinking.budget_tokens}
        if thinking.mode == "enabled":
            losses.approximated(WHERE, "mode", "how much to think is left to the model")
        return {} if thinking.mode is None else {"thinkingBudget": _DYNAMIC}
    for field in ("mode", "budget_tokens"):
        if getattr(thinking, field) is not None:
            losses.dropped(WHERE, field, "the effort stands for it")
    if target.thinking == "budget":
        budget = budget_of(thinking.effort, max_tokens)
        losses.approximated(WHERE, "effort", f"written as a budget of {budget} tokens")
        return {"thinkingBudget": budget}
    word = nearest(thinking.effort, tuple(_WORDS))
    if word != thinking.effort:
        losses.approximated(WHERE, "effort", f"`{thinking.effort}` is written as `{word}`")
    return {"thinkingLevel": _WORDS[word]}


def _fit(own: JSONObject, losses: Losses, target: Target, max_tokens: int | None) -> None:
    """Use a level that the server knows, or a budget if it knows none."""
    level = own.get("thinkingLevel")
    wanted = _EITHER_CASE.get(level) if isinstance(level, str) else None
    if wanted is None:
        return
    if target.thinking == "budget":
        del own["thinkingLevel"]
        own.setdefault("thinkingBudget", budget_of(wanted, max_tokens))
        losses.approximated(WHERE, "effort", f"written as a budget of {own['thinkingBudget']} tokens")
    elif target.efforts and (word := nearest(wanted, target.efforts)) != wanted:
        own["thinkingLevel"] = _WORDS.get(word, "HIGH")
        losses.approximated(WHERE, "effort", f"`{wanted}` is written as `{word}`")
