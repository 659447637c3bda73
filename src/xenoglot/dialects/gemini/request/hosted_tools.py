"""Encodes and decodes tools that the server runs: `googleSearch`, `urlContext` and `codeExecution`.

Source: `Tool` and `GoogleSearch` (https://ai.google.dev/api/caching#Tool) and `google/genai/types.py` of the official
SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.hosted_tools import note_settings
from xenoglot.dialects.gemini.extras import NAME, with_rest
from xenoglot.model.content import Extra
from xenoglot.model.hosted import HostedTool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import HostedKind
    from xenoglot.model.json import JSONObject

_KINDS: Final[dict[str, HostedKind]] = {
    "googleSearch": "web_search",
    "urlContext": "web_fetch",
    "codeExecution": "code_execution",
}
_WORDS: Final[Mapping[str, str]] = {kind: word for word, kind in _KINDS.items()}


def decode_hosted_tools(entry: JSONObject) -> list[HostedTool] | None:
    """Return the tools of an entry without its functions; `None` if one of them is only this dialect's."""
    if not entry or not all(word in _KINDS and isinstance(value, dict) for word, value in entry.items()):
        return None
    return [_decode(word, Reader(value, "$.tools")) for word, value in entry.items()]


def _decode(word: str, reader: Reader) -> HostedTool:
    blocked = reader.strings("excludeDomains") if word == "googleSearch" else None
    extra = Extra(dialect=NAME, fields=reader.rest(), form={"tool": word})
    return HostedTool(kind=_KINDS[word], blocked_domains=blocked, extra=extra)


def encode_hosted_tool(tool: HostedTool, where: str, losses: Losses) -> JSONObject | None:
    """Return the entry of a tool; `None` for one that the dialect lacks."""
    word = _WORDS.get(tool.kind)
    if word is None:
        return None
    written = ("blocked_domains",) if tool.kind == "web_search" else ()
    note_settings(tool, where, losses, *written)
    own: JSONObject = {}
    if written and tool.blocked_domains is not None:
        own["excludeDomains"] = list(tool.blocked_domains)
    return {word: with_rest(own, tool.extra, where, losses)}
