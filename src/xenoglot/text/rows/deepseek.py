"""Syntax rows of DeepSeek before V3.2: a section of calls between markers with full-width bars."""

from __future__ import annotations

from typing import Final

from xenoglot.text.payloads.json_calls import Named
from xenoglot.text.rows.shared import FORGOTTEN
from xenoglot.text.syntax import CallSyntax, ReasoningSyntax, Syntax, ToolPromptSyntax

_BAR: Final = "\N{FULLWIDTH VERTICAL LINE}"


def _token(*names: str) -> tuple[str, ...]:
    """Return the tokens of these names, and last the first of them with bars of ASCII, as some servers write it."""
    return (*(f"<{_BAR}{name}{_BAR}>" for name in names), f"<|{names[0]}|>")


_BEGIN: Final = _token("tool▁calls▁begin", "tool_calls_begin", "tool calls begin", "tool\\_calls\\_begin", "tool▁calls")
_END: Final = _token("tool▁calls▁end", "tool_calls_end")
_OPEN: Final = _token("tool▁call▁begin", "tool_call_begin")
_CLOSE: Final = _token("tool▁call▁end", "tool_call_end")
_SEPARATOR: Final = _token("tool▁sep", "tool_sep")
_STOPS: Final = _token("end▁of▁sentence")
_INNER: Final = (
    *_SEPARATOR,
    *(f"<{_BAR}tool▁output{plural}▁{end}{_BAR}>" for plural in ("", "s") for end in ("begin", "end")),
)
"""Tokens between name and arguments, and around results."""

_FENCED: Final = CallSyntax(
    begin=_BEGIN,
    end=_END,
    open=tuple(f"{marker}function{separator}" for marker in (*_OPEN, "") for separator in _SEPARATOR),
    close=_CLOSE,
    payload=Named(infix=("\n```json\n", "```json"), suffix=("\n```", "```")),
)
_UNFENCED: Final = CallSyntax(
    begin=_BEGIN, end=_END, open=_OPEN, close=_CLOSE, joint="", payload=Named(infix=_SEPARATOR)
)
_LONE: Final = tuple(
    CallSyntax(open=form.open[:marks], close=_CLOSE, end=_END, payload=form.payload)
    for form, marks in ((_FENCED, len(_OPEN) * len(_SEPARATOR)), (_UNFENCED, len(_OPEN) - 1))
)
"""Calls without the markers of their section, which models forget."""

_RESULT: Final = f"<{_BAR}tool▁output▁begin{_BAR}>{{content}}<{_BAR}tool▁output▁end{_BAR}>"
_TOLD: Final = (
    "## Tools\nYou may call these functions:\n{tools}\n\n"
    "To call any of them, write for each its name and a JSON object with its arguments in this form:\n"
)
_FENCED_TOLD: Final = ToolPromptSyntax(
    tools=(
        f"{_TOLD}{_BEGIN[0]}{_OPEN[0]}function{_SEPARATOR[0]}function_name\n"
        f'```json\n{{"argument": "value"}}\n```{_CLOSE[0]}{_END[0]}'
    ),
    result=f"<{_BAR}tool▁outputs▁begin{_BAR}>{_RESULT}<{_BAR}tool▁outputs▁end{_BAR}>",
)

ROWS: Final = (
    Syntax(
        name="deepseek_v3",
        title="DeepSeek V2.5 and V3, Cogito 2",
        source="https://github.com/vllm-project/vllm/blob/main/examples/tool_chat_template_deepseekv3.jinja",
        note=(
            "The kind, a separator, the name, and the object in a code block. The bars are U+FF5C, the spaces U+2581. "
            "Cogito thinks where the prompt asks for it."
        ),
        models=("deepseek-v2.5*", "deepseek-v3*", "deepseek-coder-v2*", "cogito-2.1*", "cogito-v2.1*", "cogito*671b*"),
        calls=(_FENCED,),
        slips=(_UNFENCED, *_LONE),
        thoughts=(ReasoningSyntax(open=("<think>",), close=("</think>",), implied=True, asked=True, calls=True),),
        dropped=_STOPS,
        strays=_INNER,
        telling=_FENCED_TOLD,
    ),
    Syntax(
        name="deepseek_r1",
        title="DeepSeek R1 and its distilled models",
        source="https://github.com/vllm-project/vllm/blob/main/examples/tool_chat_template_deepseekr1.jinja",
        note="As V3, with reasoning that the prompt opens. Distilled models spell the markers in several ways.",
        models=("*deepseek-r1*", "deepseek.r1*", "r1-1776*"),
        calls=(_FENCED,),
        slips=(_UNFENCED, *_LONE, *FORGOTTEN),
        thoughts=(ReasoningSyntax(open=("<think>",), close=("</think>",), implied=True, calls=True),),
        dropped=_STOPS,
        strays=_INNER,
        telling=_FENCED_TOLD,
    ),
    Syntax(
        name="deepseek_v31",
        title="DeepSeek V3.1",
        source=("https://github.com/ggml-org/llama.cpp/blob/master/models/templates/deepseek-ai-DeepSeek-V3.1.jinja"),
        note="Name, separator, object: neither kind nor code block. It thinks where the prompt asks for it.",
        models=("deepseek-v3.1*", "deepseek-v3_1*"),
        calls=(_UNFENCED,),
        slips=(_FENCED, *reversed(_LONE)),
        thoughts=(ReasoningSyntax(open=("<think>",), close=("</think>",), implied=True, asked=True, calls=True),),
        dropped=_STOPS,
        strays=_INNER,
        telling=ToolPromptSyntax(
            tools=(
                f'{_TOLD}{_BEGIN[0]}{_OPEN[0]}function_name{_SEPARATOR[0]}{{"argument": "value"}}{_CLOSE[0]}{_END[0]}'
            ),
            tool="function",
            result=_RESULT,
        ),
    ),
)
