"""Call syntaxes that many families write in addition to their own."""

from __future__ import annotations

from typing import Final

from xenoglot.text.payloads.json_calls import JSONCalls, Named
from xenoglot.text.payloads.markup import Markup
from xenoglot.text.syntax import CallSyntax

_OPEN: Final = ("<tool_call>",)
_CLOSE: Final = ("</tool_call>",)

TAGGED_JSON: Final = CallSyntax(open=_OPEN, close=_CLOSE, payload=JSONCalls(), padding="\n")
"""`<tool_call>{"name": NAME, "arguments": {...}}</tool_call>`"""

TAGGED_NAME: Final = CallSyntax(open=_OPEN, close=_CLOSE, payload=Named(), auto=False)
"""`<tool_call>NAME {...}</tool_call>`"""

TAGGED_FUNCTION: Final = CallSyntax(
    open=_OPEN,
    close=_CLOSE,
    padding="\n",
    payload=Markup(
        call=("<function=", '<function="'),
        call_name_end=(">", '">'),
        call_end=("</function>",),
        parameter=("<parameter=", '<parameter="'),
        name_end=(">", '">'),
        parameter_end=("</parameter>",),
        padded=True,
    ),
)
"""`<tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>`"""

FUNCTION: Final = CallSyntax(
    open=("<function=", '<function="'),
    close=("</tool_call>",),
    payload=Markup(
        call_name_end=(">", '">'),
        call_end=("</function>",),
        parameter=("<parameter=", '<parameter="'),
        name_end=(">", '">'),
        parameter_end=("</parameter>",),
    ),
)
"""The same where the outer tags are forgotten, both of them or the first."""

TAGGED: Final = (TAGGED_JSON, TAGGED_FUNCTION, FUNCTION, TAGGED_NAME)
"""All that models trained on the tags of Hermes write between them, now and then instead of their own form."""

BARE_JSON: Final = CallSyntax(payload=JSONCalls(strict=True), auto=False)
"""`{"name": NAME, "arguments": {...}}`, or a list of such, as the whole answer: so write models that forget markers."""

FENCED_JSON: Final = CallSyntax(
    open=("```json\n", "```\n"), close=("```",), place="start", payload=JSONCalls(listed=True, strict=True)
)
"""The same in a code block."""

FORGOTTEN: Final = (BARE_JSON, FENCED_JSON)
