"""Request fields that text-only models do not support, recorded as losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.fields import CORE, STATELESS, Fields, FieldTexts
from xenoglot.codec.requests.adapt_request import check_tools
from xenoglot.codec.requests.encode_context import stateless
from xenoglot.codec.requests.provider_tools import as_function
from xenoglot.errors import WireError
from xenoglot.model.request import Request, Thinking, Tool

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses

NAME: Final = "own"
"""Our name where fields are sorted by the dialect that understands them: we understand none beyond the model."""

_REQUEST: Final = Fields(
    Request, "$", (*CORE, "thinking"), neutral=STATELESS, texts=FieldTexts("the model has no such setting")
)
_TOOL: Final = Fields(
    Tool,
    "$.tools",
    ("name", "description", "parameters", "kind", "namespace", "definition"),
    texts=FieldTexts("the prompt has the name, the description and the schema alone"),
)
_THINKING: Final = Fields(
    Thinking,
    "$.thinking",
    ("mode", "effort", "budget_tokens"),
    texts=FieldTexts("thoughts are shown as the model writes them"),
)


def report_unsupported(request: Request, losses: Losses) -> None:
    """Record what no model of this kind supports: the form of the answer, and every field without a parameter.

    Raises:
        WireError: without it the answer would be to another question.
    """
    check_tools(request, NAME)
    losses.carry(request.extra, "$", NAME)
    if request.previous is not None:
        raise stateless(request)
    if request.output is not None and request.output.kind != "text":
        losses.dropped("$", "output", "the model is not held to a form")
    _REQUEST.note_unsupported(request, losses)
    if request.thinking is not None:
        _THINKING.note_unsupported(request.thinking, losses)
    if request.tool_choice is not None and not request.tools:
        if request.tool_choice.mode == "required":
            raise WireError("$.tool_choice", "a tool must be called, and there is none")
        losses.dropped("$", "tool_choice", "there are no tools")


def report_tools(request: Request, losses: Losses) -> None:
    """Record that the model does not support tools.

    Raises:
        WireError: a call is demanded.
    """
    choice = request.tool_choice
    if choice is not None and choice.mode == "required":
        raise WireError("$.tool_choice", "the model does not support tools, so none can be required")
    if choice is not None and choice.mode == "none":
        return
    for index in range(len(request.tools)):
        losses.dropped(f"$.tools[{index}]", "tool", "the model receives none")
    if choice is not None and choice.names:
        losses.dropped("$.tool_choice", "names", "the model receives no tools")


def report_tool(tool: Tool, where: str, losses: Losses) -> None:
    """Record what the prompt omits of a tool, and that one of a provider is a function for the model."""
    losses.carry(tool.extra, where, NAME)
    _TOOL.note_unsupported(tool, losses, where)
    as_function(tool, where, losses)


def wants_thinking(thinking: Thinking | None) -> bool | None:
    """Return whether the request wants the model to think; `None` if it does not set that."""
    if thinking is None or (thinking.mode is None and thinking.effort is None and thinking.budget_tokens is None):
        return None
    return thinking.mode != "disabled" and thinking.effort != "none"
