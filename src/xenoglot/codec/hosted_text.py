"""Words for what tools of a provider did, where a dialect has no place for their calls and results.

In a history a model that did not run the tool can know of it from the words alone. An answer never has them: they are
not text of the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.opaque import name_of
from xenoglot.codec.requests.names import qualified
from xenoglot.errors import WireError
from xenoglot.model.content import (
    CodeOutput,
    File,
    FoundTool,
    HostedCall,
    HostedContent,
    HostedResult,
    Image,
    Nested,
    Opaque,
    Plain,
    SearchResult,
    Text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON

_DONE = {
    "query": "Searched for: ",
    "queries": "Searched for: ",
    "url": "Page opened: ",
    "command": "Command run: ",
    "code": "Code run:\n",
}
"""The arguments of a call that name what was done, and a phrase for each."""


def hosted_words(part: HostedCall | HostedResult, where: str, losses: Losses) -> Text | None:
    """Return the words of a call or a result in a history, or `None`; either is a loss."""
    words = words_of_hosted(part)
    _note_extras(part, where, losses)
    if words is None:
        losses.dropped(where, name_of(part), "a tool of the provider ran; the dialect has no place for it")
        return None
    losses.approximated(where, name_of(part), "a tool of the provider ran; its words are written")
    return Text(text=f"{words}\n", cache=part.cache)


def _note_extras(part: HostedCall | HostedResult, where: str, losses: Losses) -> None:
    """Report the fields that only the dialect of the tool has: the text holds none of them."""
    losses.carry(part.extra, where, "")
    for index, one in enumerate(part.content if isinstance(part, HostedResult) else ()):
        losses.carry(getattr(one, "extra", None), f"{where}.content[{index}]", "")


def words_of_hosted(part: HostedCall | HostedResult) -> str | None:
    """Return a call or a result as text; `None` if there is nothing to write."""
    if isinstance(part, HostedCall):
        return _called(part)
    told = "\n".join(filter(None, map(_told, part.content)))
    if part.error is not None:
        return "\n".join(filter(None, (f"The tool failed: {part.error}", told)))
    return told or None


AS_IMAGES: Final = "its images are written as images of the model"


def generated_images(part: HostedResult) -> tuple[Image, ...]:
    """Return the images of a result that another dialect has as images of the model itself."""
    return tuple(one for one in part.content if isinstance(one, Image)) if part.kind == "image_generation" else ()


def _called(call: HostedCall) -> str | None:
    try:
        arguments: JSON = decode_json(call.arguments or "{}")
    except WireError:
        arguments = None
    if call.kind == "tool_search":
        return f"Searched for tools: {call.arguments}" if call.arguments else None
    if call.kind == "mcp":
        return f"Tool called: {call.name or ''} {call.arguments}".rstrip()
    for key, done in _DONE.items():
        said = arguments.get(key) if isinstance(arguments, dict) else None
        listed = ", ".join(filter(None, map(_word, said))) if isinstance(said, list) else _word(said)
        if listed:
            return f"{done}{listed}"
    return None


def _word(value: JSON) -> str:
    return value if isinstance(value, str) else ""


def _told(part: HostedContent) -> str:
    match part:
        case FoundTool() | SearchResult() | CodeOutput():
            return _found(part)
        case Text(text=text) | File(source=Plain(text=text)):
            return text
        case File(source=Nested(parts=parts)):
            return _lines(map(_told, parts))
        case Opaque(text=str(text)):
            return text
        case _:
            return ""


def _found(part: FoundTool | SearchResult | CodeOutput) -> str:
    match part:
        case FoundTool(name=name, namespace=namespace):
            return f"The tool `{qualified(name, namespace)}` can be called."
        case SearchResult():
            return _lines((part.title, part.url, part.text))
        case CodeOutput():
            return _lines((part.stdout, part.stderr))


def _lines(texts: Iterable[str | None]) -> str:
    return "\n".join(text for text in texts if text)
