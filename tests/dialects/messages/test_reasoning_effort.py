"""`thinking` of a request of this dialect, for servers of each dialect: `between_tools` and `display`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get, names

if TYPE_CHECKING:
    from xenoglot.model.json import JSONObject

OFF: dict[str, JSONObject] = {
    "converse": {"additionalModelRequestFields": {"thinking": {"type": "disabled"}}},
    "chat": {"reasoning_effort": "none"},
    "gemini": {"generationConfig": {"maxOutputTokens": 3000, "thinkingConfig": {"thinkingBudget": 0}}},
    "ollama": {"think": False},
    "ollama_generate": {"think": False},
    "responses": {"reasoning": {"effort": "none"}},
}
"""How servers are told not to think, in the dialects that can say so."""


def sent(name: str, thinking: JSONObject, losses: Losses, target: Target) -> JSONObject:
    asked = {"role": "user", "content": "Hi"}
    request = get("messages").decode_request(
        {"model": "m", "max_tokens": 3000, "thinking": thinking, "messages": [asked]}
    )
    body: JSONObject = get(name).encode_request(request, losses, target)
    return body


@pytest.mark.parametrize("name", [name for name in names() if name != "messages"])
def test_between_tools_is_off_elsewhere(name: str) -> None:
    """The SDK's types: thinking is off, and progress between calls comes as blocks of thinking."""
    losses = Losses()
    body = sent(name, {"type": "between_tools"}, losses, Target())
    said = [str(loss) for loss in losses if "thinking" in str(loss)]
    if name in OFF:
        assert {key: body.get(key) for key in OFF[name]} == OFF[name]
        assert said == ["$.thinking type dropped (only messages has it)"]
    elif name == "interactions":
        assert body["generation_config"]["thinking_level"] == "minimal"
        assert said == [
            "$.thinking type dropped (only messages has it)",
            "$.thinking mode approximated (`none` is written as `minimal`)",
        ]
    else:
        assert said == ["$ thinking dropped (the dialect has no such field)"]


@pytest.mark.parametrize("target", [Target(), Target(thinking="budget"), Target(thinking="none")], ids=str)
def test_between_tools_goes_home(target: Target) -> None:
    losses = Losses()
    body = sent("messages", {"type": "between_tools"}, losses, target)
    written = {
        "effort": ({"type": "between_tools"}, []),
        "budget": ({"type": "disabled"}, ["$.thinking type approximated (`between_tools` is written as `disabled`)"]),
        "none": (None, []),
    }
    assert (body.get("thinking"), [str(loss) for loss in losses]) == written[target.thinking]


@pytest.mark.parametrize("display", ["omitted", "summarized"])
@pytest.mark.parametrize("name", names())
def test_display_goes_home_or_is_a_loss(name: str, display: str) -> None:
    losses = Losses()
    thinking = {"type": "enabled", "budget_tokens": 2000, "display": display}
    body = sent(name, thinking, losses, Target())
    said = [f"{loss.where} {loss.what} {loss.how}" for loss in losses if "thinking" in str(loss)]
    match name:
        case "messages":
            assert (body["thinking"], said) == (thinking, [])
        case "converse":
            assert (body["additionalModelRequestFields"]["thinking"], said) == (thinking, [])
        case "gemini":
            assert body["generationConfig"]["thinkingConfig"]["includeThoughts"] is (display == "summarized")
            assert said == []
        case "interactions":
            summaries = "auto" if display == "summarized" else "none"
            assert body["generation_config"]["thinking_summaries"] == summaries
            assert said == ["$.thinking budget_tokens approximated"]
        case "responses":
            assert body["reasoning"].get("summary") == ("auto" if display == "summarized" else None)
            assert "$.thinking display emulated" in said
        case _:
            assert {"$ thinking dropped", "$.thinking display dropped"} & {*said}
