"""Syntax rows of families that write answers in channels, and of reasoning markers."""

from __future__ import annotations

from typing import Final

from xenoglot.text.formats import glimmer, inkling
from xenoglot.text.formats.harmony import HarmonyParser
from xenoglot.text.payloads.json_calls import JSONCalls, Named
from xenoglot.text.payloads.keyed import Keyed
from xenoglot.text.payloads.python_text import LETTERS
from xenoglot.text.payloads.pythonic import Pythonic
from xenoglot.text.syntax import CallSyntax, ReasoningSyntax, Syntax, ToolPromptSyntax

_TURN_ENDS: Final = ("<end_of_turn>", "<eos>")

_GEMMA: Final = (
    Syntax(
        name="gemma3",
        title="Gemma 3",
        source="https://ai.google.dev/gemma/docs/capabilities/function-calling",
        note="No form of its own: it writes what it is prompted for, mostly one of Google's guide, fenced or not.",
        models=("*gemma-3*", "gemma3*", "*gemma-2*", "gemma2*", "medgemma*"),
        calls=(
            CallSyntax(
                open=("```tool_code\n",),
                close=("```",),
                payload=Pythonic(listed=False, starts="[" + LETTERS),
                place="line",
            ),
            CallSyntax(open=("```tool_code\n",), close=("```",), payload=JSONCalls(strict=True), place="line"),
            CallSyntax(open=("```json\n",), close=("```",), payload=JSONCalls(strict=True), place="line", auto=False),
            CallSyntax(payload=Pythonic(), place="start", auto=False),
            CallSyntax(
                payload=JSONCalls(arguments=("parameters", "arguments"), strict=True), place="start", auto=False
            ),
        ),
        dropped=_TURN_ENDS,
        telling=ToolPromptSyntax(
            tools=(
                "You may call these functions:\n{tools}\n\nTo call any of them, write the calls in Python's syntax, of "
                "literals alone, one on a line, and nothing else:\n"
                '```tool_code\nfirst_function(name="value", count=2)\nsecond_function()\n```'
            ),
            tool="function",
            result="```tool_output\n{content}\n```",
        ),
    ),
    Syntax(
        name="functiongemma",
        title="FunctionGemma",
        source="https://ai.google.dev/gemma/docs/functiongemma/formatting-and-best-practices",
        note="Strings stand between <escape> tokens. It stops where the tool's answer would begin.",
        models=("*functiongemma*",),
        calls=(
            CallSyntax(
                open=("<start_function_call>",),
                close=("<end_function_call>",),
                joint="",
                payload=Keyed(quote="<escape>"),
            ),
        ),
        dropped=("<start_function_response>", *_TURN_ENDS),
        telling=ToolPromptSyntax(
            tools=(
                "You can do function calling with the following functions:\n{tools}\n\nWrite each call in this form:\n"
                "<start_function_call>call:NAME{KEY:<escape>TEXT<escape>,KEY:NUMBER}<end_function_call>"
            ),
            tool="function",
            result="<start_function_response>response:{name}{value:<escape>{content}<escape>}<end_function_response>",
        ),
    ),
    Syntax(
        name="gemma4",
        title="Gemma 4",
        source="https://github.com/ggml-org/llama.cpp/blob/master/models/templates/gemma4.jinja",
        note=(
            "Strings stand between tokens of their own. Now and then a token is written twice or left out: a line that "
            "begins with `call:` and a declared tool is a call."
        ),
        models=("*gemma-4*", "gemma4*"),
        calls=(
            CallSyntax(
                open=("<|tool_call>", "<|tool_call|>"),
                close=("<tool_call|>", "<tool_call|><tool_call|>"),
                joint="",
                payload=Keyed(quote='<|"|>'),
            ),
        ),
        slips=tuple(
            CallSyntax(
                open=(opening,),
                close=("<tool_call|>", "</call>"),
                payload=Keyed(quote='<|"|>', prefix=""),
                place="line",
                auto=False,
            )
            for opening in ("call:", "<call>")
        ),
        thoughts=(
            ReasoningSyntax(
                open=tuple(
                    f"{'<|channel>' * count}{label}" for count in (1, 2) for label in ("thought\n", "thought", "")
                ),
                close=("<channel|>",),
                calls=True,
                place="anywhere",
            ),
            ReasoningSyntax(open=("thought\n",), close=("<channel|>",), calls=True, auto=False),
        ),
        dropped=("<|tool_response>", "<turn|>", "<channel|>", *_TURN_ENDS),
        strays=("<tool_call|>",),
        telling=ToolPromptSyntax(
            tools=(
                "You may call these functions:\n{tools}\n\nWrite each call in this form:\n"
                '<|tool_call>call:NAME{KEY:<|"|>TEXT<|"|>,KEY:NUMBER}<tool_call|>'
            ),
            tool="function",
            result='<|tool_response>response:{name}{value:<|"|>{content}<|"|>}<tool_response|>',
        ),
    ),
)

_HARMONY_CALL: Final = CallSyntax(
    open=("<|channel|>commentary to=functions.",),
    close=("<|call|>",),
    between=("<|start|>assistant",),
    payload=Named(infix=(" <|constrain|>json<|message|>",)),
    auto=False,
)
"""How a call is written; it is read as every message is."""

_HARMONY: Final = Syntax(
    name="gpt_oss",
    title="gpt-oss (Harmony)",
    source="https://github.com/openai/harmony/blob/main/docs/format.md",
    note=(
        "Messages with headers: reasoning in the channel `analysis`, text in `final`, text before calls and the calls "
        "in `commentary`. A call may stand in `analysis` too, and its recipient in either part of the header. Where a "
        "server strips the tokens, the remaining names of channels show the same (not by `auto`)."
    ),
    models=("*gpt-oss*", "gptoss*", "gpt_oss*", "llm-jp-4*"),
    calls=(_HARMONY_CALL,),
    own=HarmonyParser,
    opens=("<|channel|>", "<|start|>assistant"),
    telling=ToolPromptSyntax(
        tools=(
            "# Valid channels: analysis, commentary, final. Channel must be included for every message.\n"
            "Calls to these tools must go to the commentary channel: 'functions'.\n\n# Tools\n\n## functions\n\n{tools}"
        ),
        tool="function",
        result="<|start|>functions.{name} to=assistant<|channel|>commentary<|message|>{content}<|end|>",
    ),
)

_GLIMMER: Final = Syntax(
    name="muse_glimmer",
    title="Muse Glimmer, Muse Spark",
    source="https://github.com/ollama/ollama/blob/main/model/renderers/glimmer.go",
    note=(
        "Every message has a recipient: `self` for reasoning, `user` for text, a tool for its calls. A call counts at "
        "the start of a message alone; a name may have its namespace before it, `read.read`. The start of a header "
        "may be missing, and the section around a call."
    ),
    models=("*muse-glimmer*", "*glimmer*", "*muse-spark*"),
    calls=(glimmer.FORM,),
    own=glimmer.GlimmerParser,
    opens=("to=self<|message|>", "to=user<|message|>"),
    telling=ToolPromptSyntax(
        tools=(
            "You may call these functions:\n{tools}\n\nWrite calls in this form; strings stand as they are, lists and "
            'objects are JSON:\n<atem:function_calls>\n<atem:invoke name="NAME">\n'
            '<atem:parameter name="KEY">VALUE</atem:parameter>\n</atem:invoke>\n</atem:function_calls>'
        ),
        tool="function",
        result='<tool_output name="{name}">\n{content}\n</tool_output>',
    ),
)

_THINK: Final = Syntax(
    name="think",
    title="Reasoning of any spelling",
    source="https://github.com/open-webui/open-webui/blob/main/backend/open_webui/utils/middleware.py",
    note="F-S1. For any model that thinks and calls no tools: all known tags, of any model.",
    models=("deepseek-r1-zero*", "kimi-vl*thinking*", "sky-t1*", "openthinker*", "marco-o1*", "reflection*"),
    thoughts=(
        ReasoningSyntax(open=("<think>",), close=("</think>",)),
        ReasoningSyntax(open=("<thinking>",), close=("</thinking>",)),
        ReasoningSyntax(open=("<thought>",), close=("</thought>",)),
        ReasoningSyntax(open=("<Thought>",), close=("</Thought>",)),
        ReasoningSyntax(open=("<reasoning>",), close=("</reasoning>",)),
        ReasoningSyntax(open=("<reason>",), close=("</reason>",)),
        ReasoningSyntax(open=("<seed:think>",), close=("</seed:think>",)),
        ReasoningSyntax(open=("[THINK]",), close=("[/THINK]",)),
        ReasoningSyntax(open=("<|START_THINKING|>",), close=("<|END_THINKING|>",)),
        ReasoningSyntax(open=("◁think▷",), close=("◁/think▷",)),
        ReasoningSyntax(open=("<|begin_of_thought|>",), close=("<|end_of_thought|>",)),
        ReasoningSyntax(open=("<|inner_prefix|>",), close=("<|inner_suffix|>",)),
    ),
)

_INKLING: Final = Syntax(
    name="inkling",
    title="Inkling",
    source="https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/parser/inkling_renderer.py",
    note=(
        "Every message has a kind of content. The header of a call repeats the tool's name; the name in the call's "
        "object counts."
    ),
    models=("*inkling*",),
    calls=(inkling.FORM,),
    own=inkling.parser,
    opens=("<|message_model|>", "<|content_thinking|>", "<|content_text|>"),
    telling=ToolPromptSyntax(
        tools=(
            "You may call these tools:\n[{tools}]\n\nWrite each call in this form:\n"
            '<|message_model|>NAME<|content_invoke_tool_json|>{"name": NAME, "args": {...}}<|end_message|>'
        ),
        tool="function",
        separator=", ",
        result="<|message_tool|>{name}<|content_text|>{content}<|end_message|>",
    ),
)

ROWS: Final[tuple[Syntax, ...]] = (*_GEMMA, _HARMONY, _GLIMMER, _INKLING, _THINK)
