"""Syntax rows of families that write calls in Python syntax."""

from __future__ import annotations

from typing import Final

from xenoglot.text.payloads.json_calls import JSONCalls
from xenoglot.text.payloads.python_dicts import PythonDicts
from xenoglot.text.payloads.python_text import LETTERS
from xenoglot.text.payloads.pythonic import Pythonic
from xenoglot.text.syntax import CallSyntax, ReasoningSyntax, Syntax, ToolPromptSyntax

_VLLM: Final = "https://github.com/vllm-project/vllm/blob/main/"

_LIST: Final = CallSyntax(payload=Pythonic(), place="start", auto=False)
_THINK: Final = ReasoningSyntax(open=("<think>",), close=("</think>",))
_THINK_IMPLIED: Final = ReasoningSyntax(open=("<think>",), close=("</think>",), implied=True)
_CHATML_ENDS: Final = ("<|im_end|>", "<|endoftext|>")

_TOLD_LIST: Final = ToolPromptSyntax(
    tools=(
        "You may call these functions:\n{tools}\n\nTo call any of them, answer with a list of calls in Python's syntax,"
        " of literals alone, and nothing else:\n"
        '[first_function(name="value", count=2), second_function()]'
    ),
    tool="function",
    result='{"name": "{name}", "output": {content}}',
    escaped=True,
)

_MARKED_LIST: Final = CallSyntax(begin=("<|python_start|>",), end=("<|python_end|>",), payload=Pythonic())

_LLAMA4: Final = Syntax(
    name="llama4",
    title="Llama 4",
    source=f"{_VLLM}examples/tool_chat_template_llama4_pythonic.jinja",
    note="A list of calls, with or without tags around it; prompted for JSON it writes the objects of Llama 3.",
    models=("llama-4*", "llama4*", "meta-llama-4*"),
    calls=(
        _LIST,
        _MARKED_LIST,
        CallSyntax(begin=("<|python_start|>",), end=("<|python_end|>",), between=(";",), payload=JSONCalls()),
        CallSyntax(payload=JSONCalls(arguments=("parameters", "arguments"), strict=True), place="start", auto=False),
    ),
    dropped=("<|eot|>", "<|eom|>", "<|header_start|>assistant<|header_end|>\n\n"),
    telling=_TOLD_LIST,
)

_PYTHONIC: Final = Syntax(
    name="pythonic",
    title="ToolACE, and any model with a prompt for a list of calls",
    source=f"{_VLLM}examples/tool_chat_template_toolace.jinja",
    note="No marker: the whole answer is the list. In prose it is prose, but between Llama 4's markers.",
    models=("toolace*", "watt-tool*"),
    calls=(_LIST,),
    slips=(_MARKED_LIST,),
    dropped=("<|eot_id|>",),
    telling=_TOLD_LIST,
)

_OLMO3_CALLS: Final = CallSyntax(
    begin=("<function_calls>",),
    end=("</function_calls>",),
    payload=Pythonic(listed=False, words=False, starts=LETTERS),
)
_OLMO3_TOLD: Final = ToolPromptSyntax(
    tools=(
        "You may call these functions:\n<functions>\n{tools}\n</functions>\n\n"
        "To call any of them, write each call on a line of its own, in Python's syntax, between these tags:\n"
        "<function_calls>\nfirst_function(name='value', count=2)\nsecond_function()\n</function_calls>"
    ),
    tool="function",
)

_OLMO3: Final = (
    Syntax(
        name="olmo3",
        title="Olmo 3 Instruct",
        source=f"{_VLLM}examples/tool_chat_template_olmo3.jinja",
        note="One call a line; its template writes `true` and `null` as JSON does.",
        models=("olmo-3*", "olmo3*"),
        calls=(_OLMO3_CALLS,),
        thoughts=(_THINK,),
        dropped=_CHATML_ENDS,
        telling=_OLMO3_TOLD,
    ),
    Syntax(
        name="olmo3_think",
        title="Olmo 3 Think",
        source="https://huggingface.co/allenai/Olmo-3-7B-Think/blob/main/chat_template.jinja",
        note="As Olmo 3; but the prompt ends in the opening tag, so an answer begins inside the reasoning.",
        models=("olmo-3*think*", "olmo3*think*"),
        calls=(_OLMO3_CALLS,),
        thoughts=(_THINK_IMPLIED,),
        dropped=_CHATML_ENDS,
        telling=_OLMO3_TOLD,
    ),
)

_LFM2: Final = Syntax(
    name="lfm2",
    title="LFM2, LFM2.5",
    source="https://docs.liquid.ai/lfm/key-concepts/tool-use",
    note=(
        "A list of calls, prompted for JSON a list of objects; sometimes a call without its brackets. Servers strip "
        "the markers of LFM2.5: a list of calls to declared tools counts first and after a sentence; one after another "
        "call is an echo. An echo that ends in the marker is removed."
    ),
    models=("lfm2*", "lfm-2*"),
    calls=(
        CallSyntax(
            begin=("<|tool_call_start|>",),
            end=("<|tool_call_end|>",),
            payload=Pythonic(starts="[" + LETTERS),
            echoed=True,
        ),
        CallSyntax(
            begin=("<|tool_call_start|>",), end=("<|tool_call_end|>",), payload=JSONCalls(listed=True), echoed=True
        ),
    ),
    slips=(
        CallSyntax(
            begin=("[",),
            end=("]",),
            between=(",",),
            payload=Pythonic(listed=False, starts=LETTERS),
            place="sentence",
            auto=False,
        ),
    ),
    thoughts=(_THINK,),
    dropped=_CHATML_ENDS,
    telling=ToolPromptSyntax(
        tools=(
            "List of tools: <|tool_list_start|>[{tools}]<|tool_list_end|>\n"
            "To call any of them, write a list of calls in Python's syntax between these markers:\n"
            '<|tool_call_start|>[first_function(name="value", count=2), second_function()]<|tool_call_end|>'
        ),
        tool="function",
        separator=", ",
        result="<|tool_response_start|>{content}<|tool_response_end|>",
    ),
)

_MINICPM3: Final = Syntax(
    name="minicpm3",
    title="MiniCPM 3",
    source=f"{_VLLM}examples/tool_chat_template_minicpm3.jinja",
    note="A code block of calls, one a line; reasoning has markers of their own. MiniCPM 5 writes XML.",
    models=("minicpm3*", "minicpm-3*"),
    calls=(
        CallSyntax(
            begin=("<|tool_call_start|>\n```python", "<|tool_call_start|>```python"),
            end=("```\n<|tool_call_end|>", "```<|tool_call_end|>"),
            payload=Pythonic(listed=False, words=False, starts=LETTERS),
        ),
    ),
    thoughts=(ReasoningSyntax(open=("<|thought_start|>",), close=("<|thought_end|>",)),),
    dropped=("<|im_end|>",),
    telling=ToolPromptSyntax(
        tools=(
            "# Functions\nYou may call these functions:\n```python\n{tools}\n```\n\n"
            "To call any of them, write each call on a line of its own, in Python's syntax, between these markers:\n"
            '<|tool_call_start|>\n```python\nfirst_function(name="value", count=2)\nsecond_function()\n```\n'
            "<|tool_call_end|>"
        ),
        tool="python",
        separator="\n\n",
    ),
)

_SARASHINA: Final = Syntax(
    name="sarashina",
    title="Sarashina 2.2",
    source="https://github.com/lightseekorg/smg/blob/main/crates/tool_parser/src/parsers/sarashina.rs",
    note="A list of Python's dicts. Its marker is a token that servers strip: then the list is the whole answer.",
    models=("sarashina*",),
    calls=(
        CallSyntax(begin=("<|tool_calls|>",), payload=PythonDicts()),
        CallSyntax(payload=PythonDicts(), place="start", auto=False),
    ),
    dropped=("</s>",),
    telling=ToolPromptSyntax(
        tools=(
            "You may call these functions:\n{tools}\n\nTo call any of them, answer with a list of Python's dicts, and "
            "nothing else:\n<|tool_calls|>[{'name': 'first_function', 'arguments': {'name': 'value', 'count': 2}}]"
        ),
        tool="function",
    ),
)

ROWS: Final = (_LLAMA4, _PYTHONIC, *_OLMO3, _LFM2, _MINICPM3, _SARASHINA)
