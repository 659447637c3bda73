"""Syntax rows of families that write a name followed by a JSON object, or use markers of several parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.json.json_io import to_text
from xenoglot.text.formats import functionary
from xenoglot.text.payloads.code import Code
from xenoglot.text.payloads.json_calls import JSONCalls, Named
from xenoglot.text.payloads.python_text import LETTERS
from xenoglot.text.payloads.pythonic import Pythonic
from xenoglot.text.rows import deepseek, labelled, python_lists, tagged
from xenoglot.text.rows.shared import FORGOTTEN
from xenoglot.text.syntax import CallSyntax, ReasoningSyntax, Syntax, ToolPromptSyntax

if TYPE_CHECKING:
    from collections.abc import Sequence

_HUB: Final = "https://huggingface.co/"
_VLLM: Final = "https://github.com/vllm-project/vllm/blob/main/"
_LLAMA_CPP: Final = "https://github.com/ggml-org/llama.cpp/blob/master/"

# ---- Llama 3

_LLAMA3_ENDS: Final = ("<|eom_id|>", "<|eot_id|>", "<|end_of_text|>")
_LLAMA3_JSON: Final = JSONCalls(arguments=("parameters", "arguments"))
_LLAMA3_BARE: Final = JSONCalls(arguments=("parameters", "arguments"), strict=True)
_FUNCTION_TAG: Final = CallSyntax(open=("<function=",), close=("</function>",), payload=Named(infix=(">",)))

_CODE: Final = CallSyntax(begin=("<|python_tag|>",), end=_LLAMA3_ENDS, payload=Code(), auto=False)

_LLAMA3: Final = Syntax(
    name="llama3",
    title="Llama 3.1, 3.2, 3.3",
    source="https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1/",
    note=(
        "JSON, bare or after the python tag; `tool.call(…)` after it; the function tag; small ones a list in Python's"
        " syntax. Code after the python tag calls the tool `code_interpreter` or `python`; else it is text."
    ),
    models=(
        *("llama-3.1*", "llama-3.2*", "llama-3.3*", "llama3.1*", "llama3.2*", "llama3.3*", "llama-3-*", "llama3*"),
        *(
            "llama-3_*",
            "llama3_*",
            "meta-llama-3*",
            "hermes-llama*",
            "dolphin-llama3*",
            "dolphin3*",
            "tulu3*",
            "tulu-3*",
        ),
    ),
    calls=(
        CallSyntax(payload=_LLAMA3_BARE, between=(";",), place="start", auto=False),
        CallSyntax(begin=("<|python_tag|>",), between=(";",), payload=_LLAMA3_JSON),
        CallSyntax(begin=("<|python_tag|>",), payload=Pythonic(listed=False, method=".call", starts=LETTERS)),
        _CODE,
        _FUNCTION_TAG,
        CallSyntax(payload=Pythonic(), place="start", auto=False),
    ),
    dropped=(*_LLAMA3_ENDS, "<|start_header_id|>assistant<|end_header_id|>\n\n"),
    telling=ToolPromptSyntax(
        tools=(
            "Environment: ipython\n\nYou may call these functions:\n{tools}\n\n"
            "To call one, answer with a JSON object and nothing else; values are literals, never variables:\n"
            '{"name": <function-name>, "parameters": <args-dict>}'
        ),
        separator="\n\n",
        result='{"output": {content}}',
        escaped=True,
    ),
)

# ---- Mistral

_MISTRAL_OPEN: Final = ("[TOOL_CALLS]",)

_MISTRAL: Final = Syntax(
    name="mistral",
    title="Mistral, Ministral, Devstral, Magistral",
    source="https://github.com/mistralai/mistral-common/tree/main/src/mistral_common/tokens/tokenizers",
    note=(
        "Tokenizers before v11 write a list; v11 a name and its object; v13 `[ARGS]` between them, some an id. "
        "Every call has the marker but those in a list. Reasoning may follow text."
    ),
    models=(
        *("mistral*", "ministral*", "mixtral*", "devstral*", "magistral*", "codestral*", "pixtral*", "open-mistral*"),
        *("open-mixtral*", "mathstral*", "voxtral*", "labs-*stral*", "mamba-codestral*"),
    ),
    calls=(
        CallSyntax(open=_MISTRAL_OPEN, joint="", payload=Named(infix=("[ARGS]",), mark=("[CALL_ID]",), void=("</s>",))),
        CallSyntax(open=_MISTRAL_OPEN, close=("[/TOOL_CALLS]",), payload=JSONCalls(listed=True, ids=("id",))),
        CallSyntax(open=_MISTRAL_OPEN, payload=Named()),
    ),
    slips=FORGOTTEN,
    thoughts=(
        ReasoningSyntax(open=("[THINK]",), close=("[/THINK]", "</think>"), place="anywhere"),
        ReasoningSyntax(open=("<think>",), close=("[/THINK]", "</think>")),
    ),
    dropped=("</s>",),
    telling=ToolPromptSyntax(
        tools=(
            "[AVAILABLE_TOOLS] [{tools}][/AVAILABLE_TOOLS]\n"
            "To call a tool, write its name and a JSON object with its arguments behind these markers:\n"
            '[TOOL_CALLS]tool_name[ARGS]{"argument": "value"}'
        ),
        separator=", ",
        result="[TOOL_RESULTS]{content}[/TOOL_RESULTS]",
        own_id=r"[A-Za-z0-9]{9}",
        named="{name}[CALL_ID]{id}",
    ),
)

# ---- Kimi

_KIMI_ARGUMENTS: Final = ("<|tool_call_argument_begin|>",)
_KIMI_CALLS: Final = CallSyntax(
    begin=("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"),
    end=("<|tool_calls_section_end|>", "<|tool_call_section_end|>"),
    open=("<|tool_call_begin|>",),
    close=("<|tool_call_end|>",),
    joint="",
    payload=Named(infix=_KIMI_ARGUMENTS, spelled="functions.{name}:{number}", space="."),
)
_KIMI_LONE: Final = CallSyntax(
    open=_KIMI_CALLS.open, close=_KIMI_CALLS.close, end=_KIMI_CALLS.end, payload=_KIMI_CALLS.payload
)
"""Calls without the markers of their section, which the model forgets."""
_KIMI_TOLD: Final = ToolPromptSyntax(
    tools=(
        "You may call these functions:\n{tools}\n\nTo call any of them, write for each its name, its number from 0 on, "
        "and a JSON object with its arguments in this form:\n<|tool_calls_section_begin|><|tool_call_begin|>"
        'functions.function_name:0<|tool_call_argument_begin|>{"argument": "value"}<|tool_call_end|>'
        "<|tool_calls_section_end|>"
    ),
    result="## Return of {id}\n{content}",
    own_id=r"functions\..+:\d{1,6}",
    made_id="functions.{name}:{number}",
    named="{id}",
)

_KIMI: Final = (
    Syntax(
        name="kimi_k2",
        title="Kimi K2",
        source=f"{_HUB}moonshotai/Kimi-K2-Instruct/blob/main/docs/tool_call_guidance.md",
        note="The name stands in an id, `functions.name:0`; K2 Thinking also calls within its reasoning.",
        models=("kimi-k2*", "kimi-linear*", "kimi-dev*"),
        calls=(_KIMI_CALLS,),
        slips=(_KIMI_LONE,),
        thoughts=(ReasoningSyntax(open=("<think>",), close=("</think>",), calls=True),),
        dropped=("<|im_end|>",),
        strays=_KIMI_ARGUMENTS,
        telling=_KIMI_TOLD,
    ),
    Syntax(
        name="kimi_k25",
        title="Kimi K2.5, K2.6",
        source=f"{_HUB}moonshotai/Kimi-K2.5/blob/main/chat_template.jinja",
        note="As Kimi K2; but the prompt ends in the opening tag, so an answer begins inside the reasoning.",
        models=("kimi-k2.5*", "kimi-k2.6*", "kimi-k2-5*", "kimi-k2-6*"),
        calls=(_KIMI_CALLS,),
        slips=(_KIMI_LONE,),
        thoughts=(ReasoningSyntax(open=("<think>",), close=("</think>",), calls=True, implied=True),),
        dropped=("<|im_end|>",),
        strays=_KIMI_ARGUMENTS,
        telling=_KIMI_TOLD,
    ),
)

# ---- Cohere

_COHERE_JSON: Final = JSONCalls(
    name=("tool_name", "name"), arguments=("parameters", "arguments"), listed=True, ids=("tool_call_id",)
)
_ACTIONS: Final = CallSyntax(begin=("<|START_ACTION|>",), end=("<|END_ACTION|>",), close=("]",), payload=_COHERE_JSON)


def _actions(calls: Sequence[tuple[str, str]]) -> str:
    """Return calls as the template writes them: a list with numbers."""
    said = ",\n".join(
        f'    {{"tool_call_id": "{number}", "tool_name": {to_text(name)}, "parameters": {arguments or "{}"}}}'
        for number, (name, arguments) in enumerate(calls)
    )
    return f"<|START_ACTION|>[\n{said}\n]<|END_ACTION|>"


_COHERE_TURNS: Final = ("<|END_OF_TURN_TOKEN|>", "<|START_OF_TURN_TOKEN|>", "<|CHATBOT_TOKEN|>")
_COHERE_WORDS: Final = ("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>")
_COHERE_TOKENS: Final = (*_COHERE_WORDS, *_COHERE_TURNS)
_ACTIONS_TOLD: Final = ToolPromptSyntax(
    tools=(
        "## Available Tools\n```json\n[{tools}]\n```\n\nTo use tools, write a list of JSON objects:\n"
        '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": <tool-name>, "parameters": <args-dict>}\n]'
        "<|END_ACTION|>"
    ),
    tool="function",
    separator=",\n",
    result="<|START_TOOL_RESULT|>{content}<|END_TOOL_RESULT|>",
)

_COHERE: Final = (
    Syntax(
        name="command_r",
        title="Command R, Command R+",
        source=f"{_VLLM}examples/command_r_tool_chat_template.jinja",
        note="The word `Action:` and a list in a code block; `directly-answer` is no declared tool, and stays text.",
        models=(
            "command-r",
            "command-r:*",
            "command-r-*",
            "c4ai-command-r-*",
            "command-r-plus*",
            "c4ai-command-r-plus*",
        ),
        calls=(
            CallSyntax(
                open=("Action:\n```json", "Action: ```json", "Action:```json", "Action:\n\n```json"),
                close=("```",),
                payload=_COHERE_JSON,
                place="line",
            ),
        ),
        dropped=_COHERE_TURNS,
        citations=True,
        telling=ToolPromptSyntax(
            tools=(
                "## Available Tools\n{tools}\n\nTo use tools, write `Action:` and a list of JSON objects:\n"
                'Action:\n```json\n[\n    {"tool_name": <tool-name>, "parameters": <args-dict>}\n]\n```'
            ),
            tool="python",
            separator="\n\n",
            result="<results>\n{content}</results>",
        ),
    ),
    Syntax(
        name="command_a",
        title="Command R7B, Command A",
        source=f"{_LLAMA_CPP}models/templates/CohereForAI-c4ai-command-r7b-12-2024-tool_use.jinja",
        note=(
            "A list between markers, from which a comma may be missing; words stand between markers too. The marks of "
            "citations (`<co>`) are removed, with a loss."
        ),
        models=("command-r7b*", "c4ai-command-r7b*", "command-a*", "c4ai-command-a*"),
        calls=(_ACTIONS,),
        write=_actions,
        thoughts=(ReasoningSyntax(open=("<|START_THINKING|>",), close=("<|END_THINKING|>",)),),
        dropped=_COHERE_TOKENS,
        headers=_COHERE_WORDS,
        citations=True,
        telling=_ACTIONS_TOLD,
    ),
    Syntax(
        name="north",
        title="North",
        source="https://github.com/ollama/ollama/blob/main/model/parsers/cohere.go",
        note="As Command A; but the prompt ends in the opening marker, so an answer begins inside the reasoning.",
        models=("north-*", "command-a-plus*"),
        calls=(_ACTIONS,),
        write=_actions,
        thoughts=(ReasoningSyntax(open=("<|START_THINKING|>",), close=("<|END_THINKING|>",), implied=True),),
        dropped=_COHERE_TOKENS,
        headers=_COHERE_WORDS,
        citations=True,
        telling=_ACTIONS_TOLD,
    ),
)

# ---- Functionary

_FUNCTIONARY: Final = (
    Syntax(
        name="functionary_v31",
        title="Functionary 3.1",
        source=f"{_LLAMA_CPP}models/templates/meetkai-functionary-medium-v3.1.jinja",
        note="The function tag of Llama 3. Code after the python tag calls the tool `python`.",
        models=("functionary*3.1*",),
        calls=(_FUNCTION_TAG, _CODE),
        dropped=_LLAMA3_ENDS,
        telling=ToolPromptSyntax(
            tools=(
                "You may call these functions:\n{tools}\n\nTo call any of them, answer with this and nothing else:\n"
                '<function=function_name>{"argument": "value"}</function>'
            ),
            tool="function",
            separator="\n\n",
        ),
    ),
    Syntax(
        name="functionary_v32",
        title="Functionary 3.2",
        source=f"{_LLAMA_CPP}models/templates/meetkai-functionary-medium-v3.2.jinja",
        note="Each message has a recipient after arrows: a tool, or `all` for text. The prompt ends in arrows.",
        models=("functionary*3.2*",),
        calls=(functionary.FORM,),
        own=functionary.FunctionaryParser,
        write=functionary.written,
        telling=ToolPromptSyntax(
            tools=(
                "You may call these functions:\n{tools}\n\nBegin every message with a recipient, a function or `all`:\n"
                '>>>function_name\n{"argument": "value"}'
            ),
            tool="function",
            separator="\n\n",
        ),
    ),
)

ROWS: Final = (
    _LLAMA3,
    _MISTRAL,
    *deepseek.ROWS,
    *_KIMI,
    *_COHERE,
    *_FUNCTIONARY,
    *python_lists.ROWS,
    *tagged.ROWS,
    *labelled.ROWS,
)
