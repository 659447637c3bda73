"""Syntax rows of families that write all calls of an answer as one JSON list, or JSON without a marker."""

from __future__ import annotations

from typing import Final

from xenoglot.text.payloads.json_calls import JSONCalls
from xenoglot.text.rows.shared import FORGOTTEN
from xenoglot.text.syntax import CallSyntax, ReasoningSyntax, Syntax, ToolPromptSyntax

_HUB: Final = "https://huggingface.co/"
_VLLM: Final = "https://github.com/vllm-project/vllm/blob/main/"

_LIST: Final = JSONCalls(listed=True)
_BARE: Final = JSONCalls(strict=True)
_BARE_LIST: Final = JSONCalls(listed=True, strict=True)
_THINK: Final = ReasoningSyntax(open=("<think>",), close=("</think>",))

_FENCED: Final = CallSyntax(open=("```json\n", "```\n"), close=("```",), place="line", payload=_BARE_LIST, auto=False)
"""After words only where the family is known: any answer may show an object in a code block."""
_WRAPPED: Final = CallSyntax(
    begin=tuple(f'{{{blank}"{key}":' for key in ("tool_calls", "tool_call") for blank in ("", " ", "\n  ", "\n    ")),
    end=("}",),
    place="start",
    payload=_BARE_LIST,
)
_TOOL_CALLS: Final = CallSyntax(begin=("<tool_calls>",), end=("</tool_calls>",), payload=_LIST)
_FUNCTOOLS: Final = CallSyntax(begin=("functools",), payload=_LIST)

_STEPS: Final = ("Here are my reasoning steps:",)
_FINAL: Final = ("[BEGIN FINAL RESPONSE]",)
_APRIEL_ENDS: Final = (
    "\n[END FINAL RESPONSE]\n",
    "\n[END FINAL RESPONSE]",
    "[END FINAL RESPONSE]",
    "\n<|end|>",
    "<|end|>",
)

_TOLD_LIST: Final = (
    "You may call these functions:\n{tools}\n\nWrite all calls as one JSON list of objects with a name and arguments:\n"
)
_EXAMPLE: Final = '[{"name": <function-name>, "arguments": <args-dict>}]'

_TAGGED: Final = (
    Syntax(
        name="smollm",
        title="SmolLM 2 and 3",
        source=f"{_HUB}HuggingFaceTB/SmolLM2-1.7B-Instruct/blob/main/instructions_function_calling.md",
        note="A list between the tags of Hermes, an empty one where no tool is needed; SmolLM 3 writes one object.",
        models=("smollm*",),
        calls=(CallSyntax(begin=("<tool_call>",), end=("</tool_call>",), payload=_LIST),),
        thoughts=(_THINK,),
        dropped=("<|im_end|>",),
        telling=ToolPromptSyntax(tools=f"{_TOLD_LIST}<tool_call>{_EXAMPLE}</tool_call>"),
    ),
    Syntax(
        name="nemotron",
        title="Llama Nemotron",
        source=f"{_HUB}nvidia/Llama-3_3-Nemotron-Super-49B-v1_5/blob/main/tokenizer_config.json",
        note="Nemotron 3 writes the form of Qwen3-Coder.",
        models=("llama-3*nemotron*", "nemotron-4*", "nemotron-mini*", "nemotron:*"),
        calls=(CallSyntax(begin=("<TOOLCALL>",), end=("</TOOLCALL>",), payload=_LIST),),
        thoughts=(_THINK,),
        dropped=("<|eot_id|>",),
        telling=ToolPromptSyntax(
            tools=f"{_TOLD_LIST}<TOOLCALL>{_EXAMPLE}</TOOLCALL>",
            tool="function",
            separator=", ",
            result="<TOOL_RESPONSE>[{content}]</TOOL_RESPONSE>",
        ),
    ),
    Syntax(
        name="nemotron_nano",
        title="Nemotron Nano 2",
        source=f"{_HUB}nvidia/NVIDIA-Nemotron-Nano-9B-v2/blob/main/tokenizer_config.json",
        note="The prompt ends in the opening tag, so an answer begins inside the reasoning.",
        models=("nvidia-nemotron-nano-*-v2*", "nemotron-nano-*-v2*"),
        calls=(CallSyntax(begin=("<TOOLCALL>",), end=("</TOOLCALL>",), payload=_LIST),),
        thoughts=(ReasoningSyntax(open=("<think>",), close=("</think>",), implied=True),),
        dropped=("<SPECIAL_12>",),
        telling=ToolPromptSyntax(
            tools=f"{_TOLD_LIST}<TOOLCALL>{_EXAMPLE}</TOOLCALL>",
            tool="function",
            separator=", ",
            result="<TOOL_RESPONSE>[{content}]</TOOL_RESPONSE>",
        ),
    ),
    Syntax(
        name="jamba",
        title="Jamba 1.5",
        source=f"{_HUB}ai21labs/AI21-Jamba-1.5-Mini/blob/main/tokenizer_config.json",
        note="Its answers begin with a space.",
        models=("ai21-jamba*", "jamba*"),
        calls=(_TOOL_CALLS,),
        dropped=("<|eom|>", "<|endoftext|>"),
        telling=ToolPromptSyntax(tools=f"{_TOLD_LIST}<tool_calls>{_EXAMPLE}</tool_calls>"),
    ),
    Syntax(
        name="hunyuan",
        title="Hunyuan A13B and dense",
        source=f"{_HUB}tencent/Hunyuan-A13B-Instruct/blob/main/tokenizer_config.json",
        note="Words and calls may stand between answer tags. Hunyuan 3 writes keys and values.",
        models=("hunyuan-a13b*", "hunyuan-*b-instruct*", "hunyuan-large*", "hunyuan-t1*", "hunyuan-turbos*"),
        calls=(_TOOL_CALLS,),
        thoughts=(_THINK,),
        dropped=("<answer>\n", "\n</answer>", "<answer>", "</answer>", "<|eos|>"),
        telling=ToolPromptSyntax(
            tools=f"{_TOLD_LIST}<tool_calls>{_EXAMPLE}</tool_calls>",
            result="<tool_response>{content}</tool_response>",
        ),
    ),
    Syntax(
        name="minimax_m1",
        title="MiniMax M1",
        source=f"{_HUB}MiniMaxAI/MiniMax-M1-40k/blob/main/docs/function_call_guide.md",
        note="One object a line, no list; a broken line is text. A call within reasoning is not made.",
        models=("minimax-m1*", "minimax-text-01*"),
        calls=(CallSyntax(begin=("<tool_calls>",), end=("</tool_calls>",), payload=JSONCalls(), lines=True),),
        thoughts=(_THINK,),
        telling=ToolPromptSyntax(
            tools=(
                "# Tools\nYou may call these tools:\n<tools>\n{tools}\n</tools>\n\nWrite each call as a JSON object on "
                'a line between these tags:\n<tool_calls>\n{"name": <tool-name>, "arguments": <args-json-object>}\n'
                "</tool_calls>"
            ),
            tool="function",
            result="tool name: {name}\ntool result: {content}",
        ),
    ),
    Syntax(
        name="apriel",
        title="Apriel 1.5",
        source=f"{_HUB}ServiceNow-AI/Apriel-1.5-15b-Thinker/blob/main/chat_template.jinja",
        note="It thinks under a headline, and answers between two marks.",
        models=("apriel*",),
        calls=(_TOOL_CALLS,),
        thoughts=(
            ReasoningSyntax(open=_STEPS, close=_FINAL),
            ReasoningSyntax(open=("<thinking>",), close=("</thinking>",)),
        ),
        dropped=_APRIEL_ENDS,
        telling=ToolPromptSyntax(tools=f"{_TOLD_LIST}<tool_calls>{_EXAMPLE}</tool_calls>"),
    ),
    Syntax(
        name="apriel16",
        title="Apriel 1.6",
        source="https://github.com/ggml-org/llama.cpp/blob/master/models/templates/Apriel-1.6-15b-Thinker-fixed.jinja",
        note="The prompt ends in the headline, so an answer begins inside the reasoning.",
        models=("apriel-1.6*",),
        calls=(_TOOL_CALLS,),
        thoughts=(ReasoningSyntax(open=_STEPS, close=_FINAL, implied=True),),
        dropped=_APRIEL_ENDS,
        telling=ToolPromptSyntax(tools=f"{_TOLD_LIST}<tool_calls>{_EXAMPLE}</tool_calls>"),
    ),
    Syntax(
        name="pangu",
        title="openPangu Embedded",
        source=f"{_HUB}FreedomIntelligence/openPangu-Embedded-7B-V1.1",
        note="Its markers are unused places of the vocabulary.",
        models=("openpangu*", "pangu-*"),
        calls=(
            CallSyntax(begin=("[unused11]",), end=("[unused12]",), payload=_LIST),
            CallSyntax(begin=("<|tool_call_start|>",), end=("<|tool_call_end|>",), payload=_LIST),
        ),
        thoughts=(ReasoningSyntax(open=("[unused16]", "<think>"), close=("[unused17]", "</think>")),),
        dropped=("[unused10]",),
        telling=ToolPromptSyntax(tools=f"{_TOLD_LIST}[unused11]{_EXAMPLE}[unused12]"),
    ),
    Syntax(
        name="apertus",
        title="Apertus",
        source=f"{_HUB}swiss-ai/Apertus-8B-Instruct-2509/blob/main/chat_template.jinja",
        note="A call is an object whose only key is the name of the tool.",
        models=("apertus*",),
        calls=(
            CallSyntax(
                begin=("<|tools_prefix|>",),
                end=("<|tools_suffix|>",),
                payload=JSONCalls(keyed=True, listed=True),
            ),
        ),
        thoughts=(ReasoningSyntax(open=("<|inner_prefix|>", "<think>"), close=("<|inner_suffix|>", "</think>")),),
        dropped=("<|assistant_end|>",),
        telling=ToolPromptSyntax(
            tools=(
                "You may call these functions:\n{tools}\n\nWrite all calls as one JSON list:\n"
                '<|tools_prefix|>[{"<function-name>": <args-dict>}]<|tools_suffix|>'
            ),
            tool="function",
        ),
    ),
)

_PREFIXED: Final = (
    Syntax(
        name="granite",
        title="Granite 3",
        source=f"{_HUB}ibm-granite/granite-3.3-8b-instruct/blob/main/tokenizer_config.json",
        note="No marker after the list. Granite 3.2 marks the start and the end of reasoning in words.",
        models=("granite-3*", "granite3*"),
        calls=(
            CallSyntax(begin=("<|tool_call|>", "<tool_call>"), end=("</tool_call>", "<|/tool_call|>"), payload=_LIST),
        ),
        slips=FORGOTTEN,
        thoughts=(
            _THINK,
            ReasoningSyntax(
                open=("Here is my thought process:", "Here's my thought process:"),
                close=("Here is my response:", "Here's my response:"),
            ),
        ),
        dropped=("<response>", "</response>", "<|end_of_text|>"),
        telling=ToolPromptSyntax(tools=f"{_TOLD_LIST}<|tool_call|>{_EXAMPLE}"),
    ),
    Syntax(
        name="phi4_mini",
        title="Phi-4 mini",
        source=f"{_VLLM}examples/tool_chat_template_phi4_mini.jinja",
        note="A word as a marker, or two tokens of its vocabulary.",
        models=("phi-4-mini*", "phi4-mini*"),
        calls=(
            _FUNCTOOLS,
            CallSyntax(begin=("<|tool_call|>",), end=("<|/tool_call|>", "</|tool_call|>"), payload=_LIST),
        ),
        slips=FORGOTTEN,
        thoughts=(_THINK,),
        dropped=("<|end|>", "<|endoftext|>"),
        telling=ToolPromptSyntax(
            tools=f"{_TOLD_LIST}functools{_EXAMPLE}",
            tool="function",
            result='{"result": {content}}',
            escaped=True,
        ),
    ),
    Syntax(
        name="firefunction",
        title="FireFunction 2",
        source=f"{_HUB}fireworks-ai/llama-3-firefunction-v2/blob/main/tokenizer_config.json",
        note="The word of Phi-4 mini, with a space before it.",
        models=("llama-3-firefunction*", "firefunction-v2*"),
        calls=(_FUNCTOOLS,),
        dropped=("<|eot_id|>",),
        telling=ToolPromptSyntax(tools=f"{_TOLD_LIST}functools{_EXAMPLE}"),
    ),
    Syntax(
        name="hyperclovax",
        title="HyperCLOVA X SEED Think",
        source=f"{_HUB}naver-hyperclovax/HyperCLOVAX-SEED-Think-14B/blob/main/tokenizer_config.json",
        note="The answer continues in the head of the message, with its recipient.",
        models=("hyperclovax-seed-think*",),
        calls=(CallSyntax(begin=("-> tool/function_call",), place="start", payload=_LIST),),
        dropped=("<|im_end|>", "<|stop|>", "<|endofturn|>"),
    ),
)

_UNMARKED: Final = (
    Syntax(
        name="xlam",
        title="xLAM",
        source=f"{_HUB}Salesforce/Llama-xLAM-2-8b-fc-r/blob/main/tokenizer_config.json",
        note="A list without markers; also in a code block, in the markers of others, or (xLAM 1) in an object.",
        models=("*xlam*",),
        calls=(
            CallSyntax(payload=_BARE_LIST, auto=False),
            _FENCED,
            CallSyntax(begin=("[TOOL_CALLS]",), payload=_LIST, auto=False),
            CallSyntax(begin=("<tool_call>",), end=("</tool_call>",), payload=_LIST),
            _WRAPPED,
        ),
        thoughts=(_THINK,),
        dropped=("<|eot_id|>", "<|im_end|>"),
        telling=ToolPromptSyntax(tools=f"{_TOLD_LIST}{_EXAMPLE}", tool="function"),
    ),
    Syntax(
        name="json",
        title="JSON without a marker",
        source="https://github.com/ggml-org/llama.cpp/blob/master/docs/function-calling.md",
        note="An answer that is an object or a list of calls, in a code block or not: Hammer, or any so prompted.",
        models=("hammer*",),
        calls=(CallSyntax(payload=_BARE), _FENCED, _WRAPPED),
        thoughts=(_THINK,),
        telling=ToolPromptSyntax(
            tools=(
                "You may call these functions:\n{tools}\n\nTo call one, answer with a JSON object and nothing else:\n"
                '{"name": <function-name>, "arguments": <args-dict>}'
            ),
            tool="function",
        ),
    ),
)

ROWS: Final = (*_TAGGED, *_PREFIXED, *_UNMARKED)
