"""Syntax rows of families that write a call as `<invoke name="NAME">` with one tag for each parameter."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from xenoglot.text.payloads.json_calls import JSONCalls
from xenoglot.text.payloads.markup import Markup
from xenoglot.text.payloads.nested import Nested
from xenoglot.text.rows.shared import FORGOTTEN
from xenoglot.text.syntax import CallSyntax, ReasoningSyntax, Syntax, ToolPromptSyntax

_HUB: Final = "https://huggingface.co/"

_THINK: Final = ReasoningSyntax(open=("<think>",), close=("</think>",))
_THINK_IMPLIED: Final = ReasoningSyntax(open=("<think>",), close=("</think>",), implied=True, calls=True)

_TOOLS: Final = (
    "# Tools\n\nYou may call these functions:\n<tools>\n{tools}\n</tools>\n\nWrite each call in this form:\n"
)


def _invoke(*prefixes: str, **more: tuple[str, ...]) -> Markup:
    """Return calls with tags that begin with one of `prefixes`."""
    tags = prefixes or ("",)
    return Markup(
        call=_named("invoke", tags),
        call_name_end=('">', "'>", ">"),
        call_void=('"/>', '" />', "'/>"),
        call_end=tuple(f"</{prefix}invoke>" for prefix in tags),
        parameter=_named("parameter", tags),
        parameter_end=(
            *(f"</{prefix}parameter>" for prefix in tags),
            *(f"</{prefix.strip()}>" for prefix in dict.fromkeys(tags) if "texts" in more),  # the name is forgotten
        ),
        name_end=more.get("name_end", ('">', "'>", ">")),
        texts=more.get("texts", ()),
        jsons=more.get("jsons", ()),
        trim="nothing",
        object="texts" in more,
        abrupt="texts" in more,
        wrappers=("arguments", "input") if "texts" in more else (),
    )


def _named(tag: str, prefixes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"<{prefix}{tag} name={quote}" for prefix in prefixes for quote in ('"', "'", ""))


_SAID: Final = {
    "name_end": ('" string="true">', '" string="false">', '">'),
    "texts": ('" string="true">',),
    "jsons": ('" string="false">',),
}
"""DeepSeek marks each value as a string or not."""

_DSML: Final = "｜DSML｜"  # noqa: RUF001  full-width bars are what the model writes
_MARKS: Final = (_DSML, f"{_DSML} ", "‖DSML‖", "｜｜DSML｜｜", "|DSML|")  # noqa: RUF001  the same
"""The mark as it is meant, as V4.1 writes it, and as models and servers garble it."""

_SECTIONS: Final = ("function_calls", "tool_calls", "calls")
_GARBLED: Final = ("toolcalls", "tool")
"""The section as models garble it; read, and never written."""
_SECTION_ENDS: Final = tuple(f"</{mark}{section}>" for mark in _MARKS for section in (*_SECTIONS, *_GARBLED))
_GCML: Final = "｜GCML｜"  # noqa: RUF001  the same


def _marked(mark: str, section: str) -> str:
    return (
        f'{_TOOLS}<{mark}{section}>\n<{mark}invoke name="NAME">\n'
        f'<{mark}parameter name="KEY" string="true|false">VALUE</{mark}parameter>\n'
        f"</{mark}invoke>\n</{mark}{section}>\n\n"
        '`string` is "true" for strings, which stand as they are; any other value is JSON.'
    )


ROWS: Final[tuple[Syntax, ...]] = (
    Syntax(
        name="deepseek_v32",
        title="DeepSeek V3.2, V4 and V4.1",
        source="https://github.com/ggml-org/llama.cpp/blob/master/models/templates/DeepSeek-V3.2.jinja",
        note=(
            "DSML: the model marks each value that is a string. V4 calls the section `tool_calls`, "
            "V4.1 `calls`, with a space before each name."
        ),
        models=("*deepseek-v3.2*", "deepseek-v3p2*", "*deepseek-v4*", "*deepseek.v3.2*"),
        calls=(
            CallSyntax(
                begin=tuple(f"<{mark}{section}>" for mark in _MARKS for section in (*_SECTIONS, *_GARBLED)),
                end=_SECTION_ENDS,
                padding="\n",
                payload=_invoke(*_MARKS, **_SAID),
            ),
            # the section's own tag is forgotten now and then
            CallSyntax(
                open=_named("invoke", _MARKS),
                end=_SECTION_ENDS,
                payload=replace(_invoke(*_MARKS, **_SAID), call=()),
            ),
        ),
        thoughts=(_THINK_IMPLIED,),
        dropped=("<｜end▁of▁sentence｜>",),  # noqa: RUF001  as above
        telling=ToolPromptSyntax(
            tools=_marked(_DSML, "function_calls"),
            result="<function_results>\n<result>{content}</result>\n</function_results>",
            tool="function",
        ),
    ),
    Syntax(
        name="gigachat35",
        title="GigaChat 3.5",
        source="https://github.com/ggml-org/llama.cpp/blob/master/models/templates/GigaChat3.5.jinja",
        note="DeepSeek's DSML under another name.",
        models=("*gigachat3.5*", "gigachat-3.5*"),
        calls=(
            CallSyntax(
                begin=(f"<{_GCML}tool_calls>", f"<{_GCML}function_calls>"),
                end=(f"</{_GCML}tool_calls>", f"</{_GCML}function_calls>"),
                payload=_invoke(_GCML, **_SAID),
            ),
        ),
        thoughts=(_THINK,),
        telling=ToolPromptSyntax(
            tools=_marked(_GCML, "tool_calls"),
            result='<function_response name="{name}">{content}</function_response>',
        ),
    ),
    Syntax(
        name="minimax_m2",
        title="MiniMax M2",
        source=f"{_HUB}MiniMaxAI/MiniMax-M2/blob/main/chat_template.jinja",
        note="The prompt opens the reasoning. Quotes of a name or the outer tags may be missing, or are Claude's.",
        models=("*minimax-m2*",),
        calls=(
            CallSyntax(
                begin=("<minimax:tool_call>", "<function_calls>"),
                end=("</minimax:tool_call>", "</function_calls>"),
                padding="\n",
                payload=_invoke(),
            ),
            CallSyntax(
                open=_named("invoke", ("",))[:2], end=("</minimax:tool_call>",), payload=replace(_invoke(), call=())
            ),
        ),
        slips=FORGOTTEN,
        thoughts=(_THINK_IMPLIED,),
        dropped=("[e~[",),
        telling=ToolPromptSyntax(
            tools=(
                f'{_TOOLS}<minimax:tool_call>\n<invoke name="NAME">\n<parameter name="KEY">VALUE</parameter>\n'
                "</invoke>\n</minimax:tool_call>"
            ),
            result="<response>{content}</response>",
        ),
    ),
    Syntax(
        name="dots",
        title="dots.llm2",
        source="https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/function_call/dots_detector.py",
        note="As MiniMax M2 in other tags; now and then a JSON object stands in them.",
        models=("dots.*", "dots-*"),
        calls=(
            CallSyntax(begin=("<dots_function_call>",), end=("</dots_function_call>",), payload=_invoke()),
            CallSyntax(open=("<dots_function_call>",), close=("</dots_function_call>",), payload=JSONCalls()),
        ),
        thoughts=(_THINK,),
        strays=("</dots_function_call>",),
        telling=ToolPromptSyntax(
            tools=(
                f'{_TOOLS}<dots_function_call>\n<invoke name="NAME">\n<parameter name="KEY">VALUE</parameter>\n'
                "</invoke>\n</dots_function_call>"
            ),
        ),
    ),
    Syntax(
        name="step3",
        title="Step 3",
        source=f"{_HUB}stepfun-ai/step3/blob/main/chat_template.jinja",
        note="The prompt opens the reasoning. Later models write the form of Qwen3-Coder.",
        models=("step3*", "step-3*", "*stepfun-ai_step3*"),
        calls=(
            CallSyntax(
                begin=("<｜tool_calls_begin｜>",),  # noqa: RUF001  full-width bars are what the model writes
                end=("<｜tool_calls_end｜>",),  # noqa: RUF001  the same
                open=(
                    "<｜tool_call_begin｜>function<｜tool_sep｜>",  # noqa: RUF001  the same
                    "<｜tool_call_begin｜>",  # noqa: RUF001  the same
                ),
                close=("<｜tool_call_end｜>",),  # noqa: RUF001  the same
                between=("<｜tool_sep｜>",),  # noqa: RUF001  the same
                payload=_invoke("steptml:"),
            ),
        ),
        thoughts=(_THINK_IMPLIED,),
        telling=ToolPromptSyntax(
            tools=(
                f"{_TOOLS}<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜>"  # noqa: RUF001  the same
                '<steptml:invoke name="NAME">\n<steptml:parameter name="KEY">VALUE</steptml:parameter>\n'
                "</steptml:invoke><｜tool_call_end｜>\n<｜tool_calls_end｜>"  # noqa: RUF001  the same
            ),
        ),
    ),
    Syntax(
        name="minimax_m3",
        title="MiniMax M3",
        source="https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/function_call/minimax_m3.py",
        note=(
            "A tag is a parameter's name, and every tag has a mark before it; lists and objects are tags in tags. "
            "The model decides whether it thinks; only a request that asks for reasoning begins inside it."
        ),
        models=("*minimax-m3*",),
        calls=(
            CallSyntax(
                begin=("]<]minimax[>[<tool_call>",),
                end=("]<]minimax[>[</tool_call>",),
                payload=Nested(mark="]<]minimax[>["),
            ),
        ),
        thoughts=(
            ReasoningSyntax(
                open=("<mm:think>", "<think>"),
                close=("</mm:think>", "</think>"),
                implied=True,
                asked=True,
                calls=True,
            ),
        ),
        dropped=("[e~[",),
        telling=ToolPromptSyntax(
            tools=(
                f"{_TOOLS}]<]minimax[>[<tool_call>\n"
                ']<]minimax[>[<invoke name="NAME">]<]minimax[>[<KEY>VALUE]<]minimax[>[</KEY>]<]minimax[>[</invoke>\n'
                "]<]minimax[>[</tool_call>\n\nThe items of a list stand in tags named `item`, the members of an object "
                "in tags of their names."
            ),
            result="<response>{content}</response>",
        ),
    ),
)
