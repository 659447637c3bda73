"""Results and resources of MCP servers, decoded into message parts.

They are decoded as JSON by the names in the specification (https://modelcontextprotocol.io/specification, "Tool Result"
and "Resources"): content of a later revision is reported to the model as not displayable, never a failure.
"""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING

from xenoglot.codec.json.json_io import to_text
from xenoglot.model.content import Audio, File, Image, Inline, Text
from xenoglot.tools.tool_output import ToolOutput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject

_SOUNDS = {"audio/mpeg": "mp3", "audio/x-wav": "wav", "audio/wave": "wav"}
"""Audio format names of models that differ from the second half of the media type."""


def output_of(result: JSONObject) -> ToolOutput:
    """Return the output of a call; structured content is returned as JSON if there is no other content."""
    structured = result.get("structuredContent")
    content = tuple(part for block in _list(result.get("content")) for part in _block(block))
    if not content and structured is not None:
        content = (Text(text=to_text(structured)),)
    return ToolOutput(content=content, is_error=result.get("isError") is True, data=structured)


def resource_output(result: JSONObject) -> ToolOutput:
    """Return the content of a resource that was read."""
    return ToolOutput(content=tuple(part for one in _list(result.get("contents")) for part in _contents(one)))


def _block(block: JSON) -> Iterator[Part]:
    """Yield the parts that a block of content is."""
    if not isinstance(block, dict):
        return
    match block.get("type"):
        case "text":
            yield Text(text=_text(block, "text"))
        case "image" | "audio":
            yield _media(_text(block, "data"), _text(block, "mimeType"), "")
        case "resource":
            yield from _contents(block.get("resource"))
        case "resource_link":
            yield Text(text=_link(block))
        case kind:
            yield Text(text=f"[content of type {to_text(kind)}, which cannot be shown]")


def _contents(contents: JSON) -> Iterator[Part]:
    """Yield the content of a resource: its text, or its bytes as media."""
    if not isinstance(contents, dict):
        return
    if isinstance(contents.get("text"), str):
        yield Text(text=contents["text"])
    elif isinstance(contents.get("blob"), str):
        yield _media(contents["blob"], _text(contents, "mimeType"), _text(contents, "uri"))


def _media(data: str, media_type: str, uri: str) -> Part:
    if not _is_base64(data):
        return Text(text=f"[{media_type or 'content'} that is no base64]")
    source = Inline(data, media_type or "application/octet-stream")
    kind, _, form = media_type.partition("/")
    if kind == "image":
        return Image(source=source)
    if kind == "audio":
        return Audio(source=source, format=_SOUNDS.get(media_type, form))
    return File(source=source, name=uri.rpartition("/")[2] or None)


def _is_base64(data: str) -> bool:
    try:
        b64decode(data, validate=True)
    except ValueError:
        return False
    return bool(data)


def _link(block: JSONObject) -> str:
    said = [_text(block, name) for name in ("title", "name", "description", "mimeType")]
    told = ", ".join(dict.fromkeys(text for text in said if text))
    return f"[resource {_text(block, 'uri')}{': ' + told if told else ''}]"


def _text(value: JSONObject, name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""


def _list(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else []
