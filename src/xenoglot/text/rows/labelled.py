"""Syntax rows of families that write a word before each call: `function`, `Tool Call`."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from xenoglot.text.payloads.json_calls import JSONCalls, Named
from xenoglot.text.payloads.reframr import FreeText
from xenoglot.text.rows.shared import FENCED_JSON, TAGGED_JSON
from xenoglot.text.syntax import CallSyntax, ReasoningSyntax, Syntax, ToolPromptSyntax

_VLLM: Final = "https://github.com/vllm-project/vllm/blob/main/vllm/"
_TOOLS: Final = "# Tools\n\nYou may call these functions:\n{tools}\n\nWrite each call in this form:\n"

_THINK: Final = ReasoningSyntax(open=("<think>",), close=("</think>",))

# ---- Step-Audio 2

_STEP_AUDIO2: Final = Syntax(
    name="step_audio2",
    title="Step-Audio 2",
    source=f"{_VLLM}tool_parsers/step_audio_2_tool_parser.py",
    note="The kind of the call, its name and its arguments, each on a line.",
    models=("step-audio-2*", "step-audio2*"),
    calls=(
        CallSyntax(
            open=("<tool_call>function\n", "<tool_call>\nfunction\n"),
            close=("</tool_call>",),
            joint="",
            payload=Named(gap="\n"),
        ),
    ),
    slips=(TAGGED_JSON,),
    thoughts=(_THINK,),
    dropped=("<|EOT|>",),
    telling=ToolPromptSyntax(tools=_TOOLS + '<tool_call>function\nNAME\n{"argument": "value"}</tool_call>'),
)

# ---- RWKV

_RWKV: Final = Syntax(
    name="rwkv",
    title="RWKV 7",
    source=f"{_VLLM}tool_parsers/rwkv_tool_parser.py",
    note="A heading in Markdown, and a code block with the call. The heading may be forgotten.",
    models=("rwkv*",),
    calls=(CallSyntax(begin=("**Tool Call:**",), open=("```json",), close=("```",), payload=JSONCalls()),),
    slips=(replace(FENCED_JSON, payload=JSONCalls(strict=True), place="line", auto=False), TAGGED_JSON),
    thoughts=(ReasoningSyntax(open=("<think>",), close=("</think>",), implied=True, asked=True, calls=True),),
    telling=ToolPromptSyntax(
        tools=_TOOLS + '**Tool Call:**\n```json\n{"name": "NAME", "arguments": {"argument": "value"}}\n```'
    ),
)

# ---- Code World Model

_CWM_OPEN: Final = ("<tool: function>", "<tool:function>")
_CWM_CLOSE: Final = ("</tool>",)

_CWM: Final = Syntax(
    name="cwm",
    title="Code World Model",
    source=f"{_VLLM}tool_parsers/cwm_tool_parser.py",
    note="A name, then a JSON object or plain text, which is the argument `command`.",
    models=("cwm*", "facebook-cwm*"),
    calls=(
        CallSyntax(open=_CWM_OPEN, close=_CWM_CLOSE, padding="\n", payload=Named()),
        CallSyntax(open=_CWM_OPEN, close=_CWM_CLOSE, payload=FreeText(another="<tool:", field="command", values=False)),
    ),
    thoughts=(_THINK,),
    telling=ToolPromptSyntax(tools=_TOOLS + '<tool: function>\nNAME {"argument": "value"}\n</tool>'),
)

ROWS: Final = (_STEP_AUDIO2, _RWKV, _CWM)
