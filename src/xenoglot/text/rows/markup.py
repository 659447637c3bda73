"""Syntax rows of families that write the parameters of a call between tags."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from xenoglot.text.payloads.json_calls import JSONCalls, Named
from xenoglot.text.payloads.markup import Markup
from xenoglot.text.rows import invoke
from xenoglot.text.rows.shared import FORGOTTEN, FUNCTION, TAGGED_FUNCTION, TAGGED_JSON, TAGGED_NAME
from xenoglot.text.syntax import CallSyntax, ReasoningSyntax, Syntax, ToolPromptSyntax

_SPACE: Final = "\N{LATIN CAPITAL LETTER G WITH DOT ABOVE}"
"""How some vocabularies spell a space; servers that do not decode it leave it in the text."""
_HUB: Final = "https://huggingface.co/"
_CHATML_ENDS: Final = ("<|im_end|>", "<|endoftext|>")

_THINK: Final = ReasoningSyntax(open=("<think>",), close=("</think>",))
_THINK_IMPLIED: Final = ReasoningSyntax(open=("<think>",), close=("</think>",), implied=True, calls=True)
_THINK_LINE: Final = ReasoningSyntax(open=("<think>",), close=("</think>",), implied=True, calls=True, line=True)
"""The tag of calls is that of Hermes: in the midst of a line it is spoken of."""

_TOOLS: Final = (
    "# Tools\n\nYou may call these functions:\n<tools>\n{tools}\n</tools>\n\nWrite each call in this form:\n"
)

# ---- Qwen3-Coder's: <function=NAME><parameter=KEY>VALUE</parameter></function>

_QWEN_CALLS: Final = (TAGGED_FUNCTION, FUNCTION)
_SLIPS: Final = (TAGGED_JSON, TAGGED_NAME, *FORGOTTEN)
_EXACT: Final = Markup(
    call=("<function=", '<function="'),
    call_name_end=(">", '">'),
    call_end=("</function>",),
    parameter=("<parameter=", '<parameter="'),
    name_end=(">", '">'),
    parameter_end=("</parameter>",),
    trim="nothing",
)
"""The same where all that stands between the tags of a parameter is its value."""
_QWEN_TELLING: Final = ToolPromptSyntax(
    tools=(
        f"{_TOOLS}<tool_call>\n<function=NAME>\n<parameter=KEY>\nVALUE\n</parameter>\n</function>\n</tool_call>\n\n"
        "Strings stand as they are, on as many lines as they need; lists and objects are JSON."
    )
)


def _named(tag: str) -> tuple[str, ...]:
    """Return the spellings of `tag` up to its name."""
    return (f'<{tag} name="', f"<{tag} name='", f'<{tag}name="', f'<{tag} name = "')


_QWEN: Final = (
    Syntax(
        name="qwen3_coder",
        title="Qwen3-Coder",
        source=f"{_HUB}Qwen/Qwen3-Coder-30B-A3B-Instruct/blob/main/chat_template.jinja",
        note=(
            "One line break on each side of a value on lines of its own is the tags'. Booleans and nothing may be "
            "spelt as in Python."
        ),
        models=("*qwen3-coder*", "qwen3coder*", "qwen3_coder*", "ornith*"),
        calls=_QWEN_CALLS,
        slips=_SLIPS,
        thoughts=(_THINK,),
        dropped=_CHATML_ENDS,
        telling=_QWEN_TELLING,
    ),
    Syntax(
        name="qwen3_5",
        title="Qwen 3.5 and later, BerryLM",
        source=f"{_HUB}Qwen/Qwen3.5-35B-A3B/blob/main/chat_template.jinja",
        note="As Qwen3-Coder; the prompt opens the reasoning, and a call may end it.",
        models=("*qwen3.5*", "qwen3_5*", "*qwen3.6*", "*qwen3.7*", "*qwen3.8*", "berrylm*"),
        calls=_QWEN_CALLS,
        slips=_SLIPS,
        thoughts=(_THINK_LINE,),
        dropped=_CHATML_ENDS,
        telling=_QWEN_TELLING,
    ),
    Syntax(
        name="minicpm_v",
        title="MiniCPM-V",
        source="https://github.com/vllm-project/vllm/blob/main/vllm/parser/minicpmv.py",
        note="As Qwen 3.5; the prompt opens the reasoning where it is requested.",
        models=("minicpm-v*", "minicpm_v*", "minicpmv*"),
        calls=_QWEN_CALLS,
        slips=_SLIPS,
        thoughts=(replace(_THINK_LINE, asked=True),),
        dropped=(
            *_CHATML_ENDS,
            *(f"<{mark}reserved_{number}{mark}>" for number in range(12, 16) for mark in ("", "|")),
        ),
        telling=_QWEN_TELLING,
    ),
    Syntax(
        name="mimo_v2",
        title="MiMo V2",
        source="https://github.com/vllm-project/vllm/pull/58019",
        note="As Qwen 3.5, but no line break next to a value is the tags': all of it is the value's.",
        models=("*mimo-v2*",),
        calls=(
            CallSyntax(open=("<tool_call>",), close=("</tool_call>",), padding="\n", payload=_EXACT),
            CallSyntax(open=_EXACT.call, close=("</tool_call>",), payload=replace(_EXACT, call=())),
        ),
        slips=_SLIPS,
        thoughts=(_THINK_LINE,),
        dropped=_CHATML_ENDS,
        telling=ToolPromptSyntax(
            tools=(
                f"{_TOOLS}<tool_call>\n<function=NAME>\n<parameter=KEY>VALUE</parameter>\n</function>\n</tool_call>\n\n"
                "Strings stand as they are, on as many lines as they need; lists and objects are JSON."
            )
        ),
    ),
    Syntax(
        name="nemotron3",
        title="Nemotron 3 and 3.5, Granite 4.2",
        source=f"{_HUB}nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16/blob/main/chat_template.jinja",
        note="As Qwen3-Coder; the prompt opens the reasoning, and a call may end it.",
        models=("*nemotron-3-*", "*nemotron-3.5-*", "nemotron3*", "granite-4.2*", "granite4.2*"),
        calls=_QWEN_CALLS,
        slips=_SLIPS,
        thoughts=(_THINK_LINE,),
        dropped=_CHATML_ENDS,
        telling=_QWEN_TELLING,
    ),
    Syntax(
        name="step3p5",
        title="Step 3.5 and later",
        source=f"{_HUB}stepfun-ai/Step-3.5-Flash/blob/main/chat_template.jinja",
        note="As Qwen3-Coder; the prompt opens the reasoning.",
        models=("*step-3.5*", "step3.5*", "step3p5*", "step-3p5*", "*step-3.7*", "step3.7*"),
        calls=_QWEN_CALLS,
        slips=_SLIPS,
        thoughts=(_THINK_LINE,),
        dropped=_CHATML_ENDS,
        telling=_QWEN_TELLING,
    ),
    Syntax(
        name="seed_oss",
        title="Seed-OSS",
        source=f"{_HUB}ByteDance-Seed/Seed-OSS-36B-Instruct/blob/main/chat_template.jinja",
        note="Notes on the thinking budget stand within the reasoning, and stay.",
        models=("*seed-oss*", "seed_oss*", "seed-36b*"),
        calls=(
            CallSyntax(
                open=("<seed:tool_call>",),
                close=("</seed:tool_call>",),
                padding="\n",
                payload=Markup(
                    call=("<function=",),
                    call_end=("</function>",),
                    parameter=("<parameter=",),
                    parameter_end=("</parameter>",),
                ),
            ),
        ),
        thoughts=(ReasoningSyntax(open=("<seed:think>",), close=("</seed:think>",)),),
        dropped=("<seed:eos>",),
        telling=ToolPromptSyntax(
            tools=(
                f"{_TOOLS}<seed:tool_call>\n<function=NAME>\n<parameter=KEY>VALUE</parameter>\n</function>\n"
                "</seed:tool_call>"
            ),
        ),
    ),
    Syntax(
        name="bullet",
        title="Bullets",
        source="https://github.com/Alishahryar1/free-claude-code/blob/main/providers/common/heuristic_tool_parser.py",
        note="F-S2. A call ends at the next bullet, or at words; the last value need not be closed.",
        calls=(
            CallSyntax(
                open=("● <function=", "●<function=", "●\n<function="),
                payload=Markup(
                    call_end=("</function>",),
                    parameter=("<parameter=",),
                    parameter_end=("</parameter>",),
                    trim="blanks",
                    loose=True,
                    line="",
                ),
            ),
        ),
        thoughts=(_THINK,),
        strays=(
            *(f"<|tool_call{mark}|>" for mark in ("_begin", "_argument_begin", "_end")),
            *(f"<|tool_calls_section_{mark}|>" for mark in ("begin", "end")),
        ),
        telling=ToolPromptSyntax(tools=f"{_TOOLS}● <function=NAME><parameter=KEY>VALUE</parameter></function>"),
    ),
    Syntax(
        name="minicpm5",
        title="MiniCPM 5",
        source="https://github.com/vllm-project/vllm/blob/main/vllm/tool_parsers/minicpm5xml_tool_parser.py",
        note=(
            "A value may stand in a CDATA section, the parameters in `<arguments>`. Smaller models forget the space "
            "before `name`."
        ),
        models=("*minicpm5*", "minicpm-5*"),
        calls=(
            CallSyntax(
                open=(*_named("function"), f'<function{_SPACE}name="'),
                payload=Markup(
                    call_name_end=('">', "'>", '"><arguments>'),
                    call_end=("</function>", "</arguments></function>"),
                    parameter=(*_named("param"), f'<param{_SPACE}name="'),
                    wrappers=("properties", "arguments", "input", "parameters"),
                    name_end=('">', "'>"),
                    parameter_end=("</param>",),
                    wrapped=("<![CDATA[", "]]>"),
                    line="",
                ),
            ),
        ),
        thoughts=(ReasoningSyntax(open=("<think>",), close=("</think>",), implied=True, asked=True, calls=True),),
        dropped=_CHATML_ENDS,
        telling=ToolPromptSyntax(tools=f'{_TOOLS}<function name="NAME"><param name="KEY">VALUE</param></function>'),
    ),
)

# ---- GLM's: NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>

_GLM_VALUE: Final = "<arg_key>KEY</arg_key>\n<arg_value>VALUE</arg_value>"


def _pairs(*, line: str, name_end: tuple[str, ...] = (), tag: str = "arg") -> Markup:
    return Markup(
        call_name_end=name_end,
        parameter=(f"<{tag}_key>",),
        name_end=(f"</{tag}_key>",),
        value=(f"<{tag}_value>",),
        parameter_end=(f"</{tag}_value>",),
        trim="nothing",
        line=line,
    )


_USER_TAGS: Final = tuple(
    CallSyntax(open=("<user>",), close=("</user>",), payload=payload, auto=False)
    for payload in (_pairs(line="\n"), JSONCalls())
)
"""Laguna writes the tag of another role in place of its own."""

_GLM_CALLS: Final = (CallSyntax(open=("<tool_call>",), close=("</tool_call>",), payload=_pairs(line="\n")),)
_GLM_TELLING: Final = ToolPromptSyntax(
    tools=f"{_TOOLS}<tool_call>NAME\n{_GLM_VALUE}\n</tool_call>",
    result="<tool_response>\n{content}\n</tool_response>",
)


def _hy4(*tags: str) -> tuple[str, ...]:
    """Return tags of Hunyuan 4: as its open weights write them, and as its service does."""
    return tuple(f"<{tag}{suffix}>" for tag in tags for suffix in (":opensource", ""))


_GLM: Final = (
    Syntax(
        name="glm45",
        title="GLM 4.5 and 4.6",
        source=f"{_HUB}zai-org/GLM-4.5/blob/main/chat_template.jinja",
        note="A value is all that stands between its tags.",
        models=(
            "*glm-4.5*",
            "glm4.5*",
            "glm-4p5*",
            "*glm-4.6*",
            "glm4.6*",
            "glm-4p6*",
        ),
        calls=_GLM_CALLS,
        slips=_SLIPS,
        thoughts=(_THINK,),
        dropped=("<|observation|>", "<|user|>", "<|endoftext|>"),
        telling=_GLM_TELLING,
    ),
    Syntax(
        name="laguna",
        title="Laguna",
        source="https://github.com/ollama/ollama/blob/main/model/parsers/laguna.go",
        note="As GLM 4.5. Where reasoning is requested, the prompt opens it; a call ends it.",
        models=("laguna*", "poolside*"),
        calls=_GLM_CALLS,
        slips=(*_SLIPS, *_USER_TAGS),
        thoughts=(ReasoningSyntax(open=("<think>",), close=("</think>",), implied=True, asked=True, calls=True),),
        telling=_GLM_TELLING,
    ),
    Syntax(
        name="telechat4",
        title="TeleChat 4",
        source="https://github.com/vllm-project/vllm/blob/main/vllm/tool_parsers/telechat4_tool_parser.py",
        note="As GLM 4.5 with tags of its own, or a name and a JSON object. The prompt opens the reasoning.",
        models=("telechat4*", "telechat-4*"),
        calls=(
            CallSyntax(open=("<tool_call>",), close=("</tool_call>",), joint="", payload=_pairs(line="", tag="param")),
            TAGGED_NAME,
        ),
        slips=(TAGGED_JSON, *FORGOTTEN),
        thoughts=(_THINK_LINE,),
        telling=ToolPromptSyntax(
            tools=(f"{_TOOLS}<tool_call>NAME<param_key>KEY</param_key><param_value>VALUE</param_value></tool_call>"),
        ),
    ),
    Syntax(
        name="iquest",
        title="IQuest Q1",
        source="https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/function_call/iquest_q1_detector.py",
        note="As GLM 4.7 between tags of its own.",
        models=("iquest-q1*", "iquest_q1*"),
        calls=(
            CallSyntax(open=("<iquest_tool_call>",), close=("</iquest_tool_call>",), joint="", payload=_pairs(line="")),
        ),
        thoughts=(_THINK_IMPLIED,),
        telling=ToolPromptSyntax(
            tools=f"{_TOOLS}<iquest_tool_call>NAME{_GLM_VALUE.replace(chr(10), '')}</iquest_tool_call>",
            result="<tool_response>{content}</tool_response>",
        ),
    ),
    Syntax(
        name="glm47",
        title="GLM 4.7 and 5, Ling 3, Spark 2.5 and 3",
        source=f"{_HUB}zai-org/GLM-4.7/blob/main/chat_template.jinja",
        note=(
            "As GLM 4.5 without line breaks; the prompt opens the reasoning. GLM 5.3 Flash also writes the name, `>` "
            "and a JSON object; a title and a slash may stand before the name."
        ),
        models=(
            "*glm-4.7*",
            "glm4.7*",
            "glm-4p7*",
            "*glm-5*",
            "glm5*",
            "ling-3*",
            "ring-3*",
            "spark2.5*",
            "spark-2.5*",
            "spark3*",
            "spark-3*",
        ),
        calls=(CallSyntax(open=("<tool_call>",), close=("</tool_call>",), joint="", payload=_pairs(line="")),),
        slips=(
            CallSyntax(open=("<tool_call>",), close=("</tool_call>",), payload=Named(infix=(">",), space="/")),
            *_SLIPS,
        ),
        thoughts=(_THINK_IMPLIED,),
        dropped=("<|observation|>", "<|user|>", "<|endoftext|>", "<|role_end|>"),
        telling=ToolPromptSyntax(
            tools=f"{_TOOLS}<tool_call>NAME{_GLM_VALUE.replace(chr(10), '')}</tool_call>",
            result="<tool_response>{content}</tool_response>",
        ),
    ),
    Syntax(
        name="hunyuan3",
        title="Hunyuan 3",
        source="https://github.com/vllm-project/vllm/blob/main/vllm/tool_parsers/hy_v3_tool_parser.py",
        note="As GLM 4.5 in a section of its own, with a mark after the name.",
        models=("hy3*", "hy-3*", "*hunyuan-3*", "hunyuan3*"),
        calls=(
            CallSyntax(
                begin=("<tool_calls>",),
                end=("</tool_calls>",),
                open=("<tool_call>",),
                close=("</tool_call>",),
                payload=_pairs(line="\n", name_end=("<tool_sep>",)),
            ),
        ),
        thoughts=(ReasoningSyntax(open=("<think>",), close=("</think>",), implied=True, asked=True),),
        telling=ToolPromptSyntax(
            tools=f"{_TOOLS}<tool_calls>\n<tool_call>NAME<tool_sep>\n{_GLM_VALUE}\n</tool_call>\n</tool_calls>",
        ),
    ),
    Syntax(
        name="hunyuan4",
        title="Hunyuan 4",
        source="https://github.com/vllm-project/vllm/blob/main/vllm/tool_parsers/hy_v4_tool_parser.py",
        note="As GLM 4.5 in a section of its own; the tags of its open weights end in `:opensource`.",
        models=("hy4*", "hy-4*", "*hunyuan-4*", "hunyuan4*"),
        calls=(
            CallSyntax(
                begin=_hy4("tool_calls"),
                end=_hy4("/tool_calls"),
                open=_hy4("tool_call"),
                close=_hy4("/tool_call"),
                payload=Markup(
                    call_name_end=(),
                    parameter=_hy4("arg_key"),
                    name_end=_hy4("/arg_key"),
                    value=_hy4("arg_value"),
                    parameter_end=_hy4("/arg_value"),
                    trim="nothing",
                    line="",
                ),
            ),
        ),
        thoughts=(ReasoningSyntax(open=_hy4("think"), close=_hy4("/think"), implied=True, asked=True),),
        telling=ToolPromptSyntax(
            tools=(
                f"{_TOOLS}<tool_calls:opensource><tool_call:opensource>NAME<arg_key:opensource>KEY</arg_key:opensource>"
                "<arg_value:opensource>VALUE</arg_value:opensource></tool_call:opensource></tool_calls:opensource>"
            ),
        ),
    ),
)

ROWS: Final[tuple[Syntax, ...]] = (*_QWEN, *_GLM, *invoke.ROWS)
