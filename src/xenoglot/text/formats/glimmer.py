"""Parser for Muse Glimmer: every message has a recipient: `self` for reasoning, `user` for text, or a tool.

Words that go before a call are for `commentary`. The prompt ends in `<|start|>assistant`, so the first header lacks
that, and so may the headers after the end of a message, or after reasoning without its end. A message to
a tool is a section of calls in tags. Source: https://github.com/ollama/ollama/blob/main/model/renderers/glimmer.go
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.text.parser.scanner import MarkerScanner
from xenoglot.text.parser.text_parser import MarkerParser
from xenoglot.text.payloads.markup import Markup
from xenoglot.text.syntax import CallSyntax, ReasoningSyntax, Syntax

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xenoglot.text.declared_tools import DeclaredTools
    from xenoglot.text.output_pieces import Piece

_START: Final = "<|start|>assistant"
_MESSAGE: Final = "<|message|>"
_NEXT: Final = "<|eom|>"
_ENDS: Final = (_NEXT, "<|eot|>")
_SELF: Final = f" to=self{_MESSAGE}"
_THINK: Final = f"{_START}{_SELF}"
_SECTION: Final = "<atem:function_calls>"

_END: Final = ("</atem:function_calls>",)
_CALL: Final = '<atem:invoke name="'
_MARKUP: Final = Markup(
    call=(_CALL,),
    call_name_end=('">', *(f'{_MESSAGE * count}">' for count in (1, 2)), _MESSAGE),
    call_end=("</atem:invoke>",),
    parameter=('<atem:parameter name="',),
    name_end=('">',),
    parameter_end=("</atem:parameter>",),
    trim="nothing",
)

FORM: Final = CallSyntax(begin=(_SECTION,), end=_END, place="start", payload=_MARKUP)
"""How calls are written, at the start of a message to any recipient: models confuse recipients."""
_LONE: Final = CallSyntax(open=(_CALL,), end=_END, place="start", payload=replace(_MARKUP, call=()))
"""A call whose section is forgotten."""


class GlimmerParser:
    """A stage from text to pieces. It holds the text until it is known whether that begins with the end of a header."""

    def __init__(self, declared: DeclaredTools) -> None:
        names = ("self", "user", "commentary", _SECTION[1:-1], *_recipients(declared))
        heads = tuple(f" to={name}{_MESSAGE}" for name in names)
        self._headers = {head: f"{_START}{head}" for head in (*heads, _MESSAGE)}
        self._headers |= {head[1:]: f"{_START}{head}" for head in heads}  # servers strip blanks
        self._markers = MarkerScanner(self._headers)
        self._parser = MarkerParser(_syntax(tuple(dict.fromkeys(self._headers.values())), heads), declared)
        self._held: str | None = ""

    def feed(self, text: str, /) -> Sequence[Piece]:
        """Take more text; return what it made."""
        if self._held is None:
            return self._parser.feed(text)
        self._held += text
        return self._decide(self._held, ended=False)

    def close(self, *, stopped: bool = False) -> Sequence[Piece]:
        """Return what was held back: the text is over. `stopped`: the model ended it; no limit cut it off."""
        made = () if self._held is None else self._decide(self._held, ended=True)
        return (*made, *self._parser.close(stopped=stopped))

    def _decide(self, text: str, *, ended: bool) -> Sequence[Piece]:
        place, marker = self._markers.find(text[: self._markers.longest], 0, ended=ended)
        if place == 0 and not marker and not ended:
            return ()
        self._held = None
        if place == 0 and marker:
            text = self._headers[marker] + text[len(marker) :]
        return self._parser.feed(text)


def _recipients(declared: DeclaredTools) -> Iterator[str]:
    """Yield the recipients that may mean a tool: its name, that in its namespace, and the namespace alone."""
    for name in declared:
        space = name.partition(".")[0]
        yield from (name, f"{space}.{name}", space)


def _syntax(headers: tuple[str, ...], bare: tuple[str, ...]) -> Syntax:
    """Return the form of an answer whose messages begin with one of `headers`.

    After the end of a message, or after reasoning without its end, they may begin with one of `bare`.
    """
    others = [header for header in headers if header != _THINK]
    others += [f"{_NEXT}{blank}" for head in bare if head != _SELF for blank in (head, head[1:])]
    others += [f"{_NEXT}{_MESSAGE}"]
    close = (*_ENDS, *others)
    until = (*bare, *(f"\n{head[1:]}" for head in bare))
    return Syntax(
        name="muse_glimmer",
        title="",
        source="",
        calls=(FORM,),
        slips=(_LONE,),
        thoughts=(
            ReasoningSyntax(open=(_THINK,), close=close, until=until, place="anywhere"),
            ReasoningSyntax(open=(_SELF, _SELF[1:]), close=close, until=until),
        ),
        headers=(*others, _NEXT),
        dropped=_ENDS,
    )
