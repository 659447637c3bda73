"""Syntax of Inkling: every message has a content kind (reasoning, text or a call) and an end token.

The prompt ends in `<|message_model|>`, so the first header lacks that. Before a call the header repeats the tool's
name, which the call's object has too, or has no name. Source:
https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/parser/inkling_renderer.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.text.parser.text_parser import MarkerParser
from xenoglot.text.payloads.json_calls import JSONCalls
from xenoglot.text.syntax import CallSyntax, ReasoningSyntax, Syntax

if TYPE_CHECKING:
    from xenoglot.text.declared_tools import DeclaredTools

_MESSAGE: Final = "<|message_model|>"
_CALL: Final = "<|content_invoke_tool_json|>"
_END: Final = "<|end_message|>"
_THINK: Final = "<|content_thinking|>"

FORM: Final = CallSyntax(
    begin=(_CALL, f"{_MESSAGE}{_CALL}"),
    end=(_END,),
    joint="",
    payload=JSONCalls(name=("name",), arguments=("args", "arguments")),
)
"""How a call is written, after its header."""

THOUGHTS: Final = ReasoningSyntax(open=(f"{_MESSAGE}{_THINK}", _THINK), close=(_END,), place="anywhere")

_CONTENTS: Final = tuple(
    f"<|content_{kind}|>"
    for kind in ("text", "image", "audio_input", "invoke_tool_text", "tool_error", "xml", "model_end_sampling")
)

DROPPED: Final = (
    *(f"{_MESSAGE}{content}" for content in _CONTENTS),
    *_CONTENTS,
    "<|message_user|>",
    "<|message_system|>",
    "<|message_tool|>",
    "<|audio_end|>",
    "<|model_trigger_generation|>",
    _END,
)
"""The tokens that frame words; the one that begins a message counts only with what follows it."""


def parser(declared: DeclaredTools) -> MarkerParser:
    """Return a stage from text to pieces: as the row specifies, with headers that name one of the tools `declared`."""
    named = tuple(f"{_MESSAGE}{name}{_CALL}" for name in declared)
    first = tuple(f"{name}{_CALL}" for name in declared)
    syntax = Syntax(
        name="inkling",
        title="",
        source="",
        calls=(replace(FORM, begin=(*FORM.begin, *named)), replace(FORM, begin=first, place="start")),
        thoughts=(THOUGHTS,),
        dropped=DROPPED,
    )
    return MarkerParser(syntax, declared)
