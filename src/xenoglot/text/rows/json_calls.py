"""Syntax rows of families that write a call as a JSON object between two markers."""

from __future__ import annotations

from typing import Final

from xenoglot.text.payloads.code import Code
from xenoglot.text.payloads.json_calls import JSONCalls, Named
from xenoglot.text.payloads.reframr import FreeText
from xenoglot.text.rows import json_lists
from xenoglot.text.rows.shared import FORGOTTEN, FUNCTION, TAGGED_FUNCTION, TAGGED_JSON, TAGGED_NAME
from xenoglot.text.syntax import CallSyntax, ReasoningSyntax, Syntax, ToolPromptSyntax

_OPEN: Final = ("<tool_call>",)
_CLOSE: Final = ("</tool_call>",)
_HUB: Final = "https://huggingface.co/"
_VLLM: Final = "https://github.com/vllm-project/vllm/blob/main/"

_TAGGED: Final = (TAGGED_JSON,)
_SLIPS: Final = (TAGGED_FUNCTION, FUNCTION, TAGGED_NAME, *FORGOTTEN)
_THINK: Final = ReasoningSyntax(open=("<think>",), close=("</think>",), calls=True, line=True)
_THINK_IMPLIED: Final = ReasoningSyntax(open=("<think>",), close=("</think>",), implied=True, calls=True, line=True)
_CHATML_ENDS: Final = ("<|im_end|>", "<|endoftext|>")

_IN_TAGS: Final = ToolPromptSyntax(
    tools=(
        "# Tools\n\nYou may call one or more functions. Their signatures:\n<tools>\n{tools}\n</tools>\n\n"
        "For each call write a JSON object with the function's name and its arguments between these tags:\n"
        '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
    )
)

_HERMES: Final = (
    Syntax(
        name="hermes",
        title="Hermes 2 and 3, Qwen 2.5, Qwen 3",
        source=f"{_HUB}NousResearch/Hermes-3-Llama-3.1-8B/blob/main/tokenizer_config.json",
        note="Hermes 2 Pro writes the arguments before the name. The same form: EXAONE 4, Ling 1 and 2, Trinity.",
        models=(
            *("hermes-2*", "hermes-3*", "hermes-4*", "hermes3*", "hermes4*", "nous-hermes*", "nous-hermes2*"),
            *("llama-3-groq*", "llama3-groq*"),
            *("deephermes*", "openhermes*", "qwen2*", "qwen2.5*", "qwen3*", "qwen-max*", "qwen-plus*", "qwen-turbo*"),
            *("exaone-4*", "exaone4*", "exaone-deep*", "ling-*", "ring-*", "trinity*", "motif-2*", "jan-*", "lucy*"),
        ),
        calls=_TAGGED,
        slips=_SLIPS,
        thoughts=(_THINK,),
        dropped=_CHATML_ENDS,
        telling=_IN_TAGS,
    ),
    Syntax(
        name="qwen3_thinking",
        title="QwQ, Qwen 3 Thinking 2507, Reka Edge, Holo2, Kolibri 1",
        source=f"{_HUB}Qwen/Qwen3-30B-A3B-Thinking-2507/blob/main/tokenizer_config.json",
        note="As Hermes; but the prompt ends in the opening tag, so an answer begins inside the reasoning.",
        models=(
            "qwq*",
            "qwen3*thinking*",
            "qwen3-vl*thinking*",
            "openreasoning*",
            "reka-edge*",
            "holo2*",
            "kolibri-1*",
        ),
        calls=_TAGGED,
        slips=_SLIPS,
        thoughts=(_THINK_IMPLIED,),
        dropped=_CHATML_ENDS,
        telling=_IN_TAGS,
    ),
    Syntax(
        name="qwen25_coder",
        title="Qwen 2.5 Coder",
        source=f"{_VLLM}examples/tool_chat_template_qwen2_5_coder.jinja",
        note="Its prompt wants <tool_call>; it often writes <tools>, a line an object, a code block, or a bare object.",
        models=("qwen2.5-coder*", "qwen2_5-coder*"),
        calls=(
            *_TAGGED,
            CallSyntax(open=("<tools>",), close=("</tools>",), payload=JSONCalls()),
            CallSyntax(
                open=("```json\n", "```\n"),
                close=("```",),
                payload=JSONCalls(strict=True),
                place="line",
                auto=False,
            ),
        ),
        slips=_SLIPS,
        dropped=_CHATML_ENDS,
        telling=_IN_TAGS,
    ),
    Syntax(
        name="mimo",
        title="MiMo 7B",
        source=f"{_HUB}XiaomiMiMo/MiMo-7B-RL/blob/main/tokenizer_config.json",
        note="The template of Qwen 2.5, with reasoning. MiMo V2 writes the form of Qwen3-Coder.",
        models=("mimo-7b*", "mimo-vl*"),
        calls=_TAGGED,
        slips=_SLIPS,
        thoughts=(_THINK,),
        dropped=_CHATML_ENDS,
        telling=_IN_TAGS,
    ),
    Syntax(
        name="granite4",
        title="Granite 4",
        source=f"{_HUB}ibm-granite/granite-4.0-h-tiny/blob/main/chat_template.jinja",
        note="As Hermes; it likes to write the arguments as a string that holds the object.",
        models=("granite-4*", "granite4*"),
        calls=_TAGGED,
        slips=_SLIPS,
        thoughts=(_THINK,),
        dropped=("<|end_of_text|>",),
        telling=_IN_TAGS,
    ),
)

_ERNIE_WORDS: Final = ("<response>\n", "\n</response>\n", "\n</response>", "<response>", "</response>", "</s>")

_PLAMO_CALL: Final = Named(
    prefix=("<|plamo:begin_tool_name:plamo|>",),
    infix=(
        "<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>",
        "<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|>",
    ),
    suffix=("<|plamo:end_tool_arguments:plamo|>",),
    starts="<",
)

_OTHERS: Final = (
    Syntax(
        name="ernie45",
        title="ERNIE 4.5",
        source=f"{_HUB}baidu/ERNIE-4.5-21B-A3B-Thinking/blob/main/tokenizer_config.json",
        note="As Hermes; words may stand in <response> tags.",
        models=("ernie-4.5*", "ernie4.5*", "ernie-4_5*"),
        calls=_TAGGED,
        slips=_SLIPS,
        thoughts=(_THINK,),
        dropped=_ERNIE_WORDS,
        telling=_IN_TAGS,
    ),
    Syntax(
        name="ernie45_thinking",
        title="ERNIE 4.5 Thinking, ERNIE X1",
        source=f"{_HUB}baidu/ERNIE-4.5-21B-A3B-Thinking/blob/main/tokenizer_config.json",
        note="The prompt ends in the opening tag, so an answer begins inside the reasoning.",
        models=("ernie-4.5*thinking*", "ernie-x1*"),
        calls=_TAGGED,
        slips=_SLIPS,
        thoughts=(_THINK_IMPLIED,),
        dropped=_ERNIE_WORDS,
        telling=_IN_TAGS,
    ),
    Syntax(
        name="longcat",
        title="LongCat Flash",
        source=f"{_HUB}meituan-longcat/LongCat-Flash-Chat/blob/main/tokenizer_config.json",
        note="The form of Hermes with markers of its own; reasoning too.",
        models=("longcat*",),
        calls=(CallSyntax(open=("<longcat_tool_call>",), close=("</longcat_tool_call>",), payload=JSONCalls()),),
        thoughts=(ReasoningSyntax(open=("<longcat_think>", "<think>"), close=("</longcat_think>", "</think>")),),
        dropped=("</longcat_s>",),
        telling=ToolPromptSyntax(
            tools=(
                "## Tools\nYou may call these tools:\n{tools}\n\nFor each call write:\n<longcat_tool_call>\n"
                '{"name": <function-name>, "arguments": <args-dict>}\n</longcat_tool_call>'
            ),
            result="<longcat_tool_response>\n{content}\n</longcat_tool_response>",
        ),
    ),
    Syntax(
        name="internlm",
        title="InternLM 2 and 3, Intern-S1",
        source=f"{_HUB}internlm/internlm2_5-7b-chat/blob/main/tokenizer_config.json",
        note=(
            "Arguments are called parameters. Intern-S1 puts a space between the two markers, and thinks. "
            "Code for its interpreter calls a declared `code_interpreter` or `python`."
        ),
        models=("internlm2*", "internlm3*", "intern-s1*", "interns1*"),
        calls=(
            CallSyntax(
                open=("<|action_start|><|plugin|>", "<|action_start|> <|plugin|>"),
                close=("<|action_end|>",),
                payload=JSONCalls(arguments=("parameters", "arguments")),
            ),
            CallSyntax(
                open=("<|action_start|><|interpreter|>", "<|action_start|> <|interpreter|>"),
                close=("<|action_end|>",),
                payload=Code(),
            ),
        ),
        thoughts=(_THINK,),
        dropped=("<|im_end|>",),
        telling=ToolPromptSyntax(
            tools=(
                "You may call these functions:\n{tools}\nTo call one, write:\n<|action_start|><|plugin|>\n"
                '{"name": <function-name>, "parameters": <args-dict>}<|action_end|>'
            ),
            tool="function",
        ),
    ),
    Syntax(
        name="granite_fc",
        title="Granite 20B function calling",
        source=f"{_VLLM}examples/tool_chat_template_granite_20b_fc.jinja",
        note="A marker before each call, none after it.",
        models=("granite-20b-functioncalling*", "granite-20b-fc*"),
        calls=(CallSyntax(open=("<function_call>",), payload=JSONCalls()),),
        dropped=("<|endoftext|>",),
        telling=ToolPromptSyntax(
            tools=(
                "You may call these functions:\n{tools}\nWrite each call on a line of its own:\n"
                '<function_call> {"name": <function-name>, "arguments": <args-dict>}'
            ),
            tool="function",
            result="<function_response> {content}",
        ),
    ),
    Syntax(
        name="gigachat3",
        title="GigaChat 3 and 3.1",
        source=f"{_HUB}ai-sage/GigaChat3-10B-A1.8B/blob/main/chat_template.jinja",
        note="A call is a message in the role `function call`; GigaChat 3.1 has one token for that.",
        models=("gigachat3-*", "gigachat-3*"),
        calls=(CallSyntax(open=("function call<|role_sep|>", "<|function_call|>"), payload=JSONCalls()),),
        dropped=("<|message_sep|>\n\n", "<|message_sep|>", "</s>"),
        telling=ToolPromptSyntax(
            tools=(
                "You may call these functions:\n{tools}\nTo call one, write:\n<|function_call|>"
                '{"name": <function-name>, "arguments": <args-dict>}'
            ),
            tool="function",
        ),
    ),
    Syntax(
        name="plamo3",
        title="PLaMo 3",
        source=f"{_VLLM}vllm/parser/plamo3.py",
        note=(
            "Every part of a call has markers of its own, of which the outer two of a call may be missing; the "
            "arguments are a JSON object. The prompt opens the reasoning, and a call may end it."
        ),
        models=("plamo-3*", "plamo3*"),
        calls=(
            CallSyntax(
                begin=("<|plamo:begin_tool_requests:plamo|>",),
                open=("<|plamo:begin_tool_request:plamo|>",),
                close=("<|plamo:end_tool_request:plamo|>",),
                end=("<|plamo:end_tool_requests:plamo|>",),
                payload=_PLAMO_CALL,
            ),
            CallSyntax(
                begin=("<|plamo:begin_tool_requests:plamo|>",),
                close=("<|plamo:end_tool_request:plamo|>",),
                end=("<|plamo:end_tool_requests:plamo|>",),
                payload=_PLAMO_CALL,
            ),
        ),
        thoughts=(
            ReasoningSyntax(
                open=("<|plamo:begin_think:plamo|>",),
                close=("<|plamo:end_think:plamo|>",),
                implied=True,
                calls=True,
                place="anywhere",
            ),
        ),
        dropped=("<|plamo:tag|>",),
    ),
    Syntax(
        name="reframr",
        title="Reframr",
        source=f"{_HUB}OkeyMeta/Reframr-RFM-v2",
        note=("A name and an object after the marker, at a line's start; arguments that are no object become `input`."),
        models=("reframr*",),
        calls=(
            CallSyntax(open=_OPEN, close=_CLOSE, place="line", payload=Named()),
            CallSyntax(open=_OPEN, close=_CLOSE, place="line", payload=JSONCalls()),
            CallSyntax(open=_OPEN, close=_CLOSE, place="line", payload=FreeText(another="<tool_call>"), auto=False),
        ),
        telling=ToolPromptSyntax(
            tools=(
                "You may call these tools:\n{tools}\nTo call one, begin your answer with its name and a JSON object:\n"
                '<tool_call>name {"argument": "value"}'
            ),
            tool="function",
            result="<tool_result>\n{content}\n</tool_result>",
        ),
    ),
)

ROWS: Final = (*_HERMES, *_OTHERS, *json_lists.ROWS)
