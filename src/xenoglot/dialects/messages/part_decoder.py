"""Decodes content blocks to parts, with their type names and the marker tags that we leave in them.

Source: `anthropic/types/beta/beta_content_block_param.py` and `beta_content_block.py` of the official SDK.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.json.tool_arguments import arguments_of
from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.names import read_id
from xenoglot.codec.responses.reasoning import unpack
from xenoglot.dialects.messages.citations import decode_citation
from xenoglot.dialects.messages.context_management import COMPACTION, read_block
from xenoglot.dialects.messages.extras import NAME, keep_rest, take_cache
from xenoglot.dialects.messages.fast.frequent_shapes import plain_text
from xenoglot.dialects.messages.hosted.decoder import CALLS, RESULTS, decode_hosted_call, decode_hosted_result
from xenoglot.errors import WireError
from xenoglot.model.content import (
    Extra,
    File,
    Image,
    Inline,
    Nested,
    Opaque,
    Origin,
    Part,
    Plain,
    Reasoning,
    Remote,
    Source,
    Stored,
    Text,
    ToolCall,
    ToolResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from xenoglot.model.json import JSON, JSONObject

UNSIGNED = "xenoglot:unsigned"
"""The `signature` of unsigned thinking: the field is required, and a made-up signature would be false."""

CONTAINER = "container_upload"
"""The block of a file that is put into the container of the code execution tool."""

BILLING_HEADER = "x-anthropic-billing-header:"
"""Begins a system block that changes with every request and is meant for Anthropic alone (pitfall-2)."""

MAX_DEPTH = 16
"""How deep content may stand in content; the dialect itself needs three levels."""


def decode_parts(value: JSON, path: str, answer_id: str | None = None) -> tuple[Part, ...]:
    """Return the parts of a list of blocks; a string is one block of text. `answer_id` as for `decode_part`."""
    if isinstance(value, str):
        return (Text(text=value),)
    if not isinstance(value, list):
        raise WireError(path, "Input should be a string or a list of content blocks")
    if path.count(".content[") > MAX_DEPTH:
        raise WireError(path, "content is nested too deeply")
    return tuple(
        plain_text(block) or decode_part(block, f"{path}[{index}]", answer_id) for index, block in enumerate(value)
    )


def decode_part(value: JSON, path: str, answer_id: str | None = None) -> Part:
    """Return the part of one block; a block of a kind that we do not know becomes `Opaque`.

    `answer_id` is the id of the answer that the block is part of: a tool call without an id of its own gets one
    derived from it.

    Raises:
        WireError: the block has no `type`, or a field of it is missing or of the wrong type.
    """
    reader = Reader(value, path)
    kind = reader.need("type", str)
    if kind == "tool_use":
        return _read_tool_use(reader, answer_id)
    if kind == CONTAINER and answer_id is None:
        return _read_container(reader)
    read = _READERS.get(kind)
    part = _read_hosted(reader, kind) if read is None else read(reader)
    return opaque(value, answered=answer_id is not None) if part is None else part


def with_own_id(content: JSONObject, taken: Collection[str]) -> JSONObject:
    """Return the block of an answer; a call whose id another one has already loses it, and gets a derived one."""
    said = content.get("id")
    if content.get("type") == "tool_use" and isinstance(said, str) and said in taken:
        return {key: value for key, value in content.items() if key != "id"}
    return content


def with_own_ids(content: JSON) -> JSON:
    """Return the blocks of an answer, each as `with_own_id` gives it."""
    if not isinstance(content, list):
        return content
    taken: set[str] = set()
    blocks: list[JSON] = []
    for block in content:
        own = with_own_id(block, taken) if isinstance(block, dict) else block
        if isinstance(own, dict) and isinstance(own.get("id"), str):
            taken.add(own["id"])
        blocks.append(own)
    return blocks


def derived_id(answer_id: str, path: str) -> str:
    """Return a tool call's id that is the same whenever the same answer is read."""
    return "toolu_" + sha256(f"{answer_id}:{path}".encode()).hexdigest()[:24]


def opaque(block: JSONObject, *, answered: bool = False) -> Opaque:
    """Return a block as it came, with its words where it has any that others can use (pitfall-8).

    If the model `answered` it, a block of results has no words: what a tool of the server found, or a summary of the
    turns before, is no output of the model.
    """
    unsaid = answered and _is_result(block.get("type"))
    return Opaque(dialect=NAME, data=block, text=None if unsaid else _words(block) or None)


def _is_result(kind: JSON) -> bool:
    return isinstance(kind, str) and kind.endswith("_result")


def sealed(part: Reasoning, signature: JSON) -> Reasoning:
    """Return `part` with the wire's `signature`; none and an empty one leave it unsigned."""
    if not isinstance(signature, str) or not signature:
        extra = part.extra or Extra(dialect=NAME)
        return replace(part, extra=replace(extra, form={**extra.form, "signature": signature}))
    if signature == UNSIGNED:
        return part
    brought = unpack(signature)
    if brought is None:
        return replace(part, signature=signature, origin=Origin(dialect=NAME))
    extra = part.extra or Extra(dialect=NAME)
    return replace(
        part,
        signature=brought.signature,
        encrypted=brought.encrypted,
        origin=brought.origin,
        extra=replace(extra, form={**extra.form, "signature": signature}),
    )


def _read_hosted(reader: Reader, kind: str) -> Part | None:
    """Return what a tool of the server did; `None` for a block that is of none, or of one that we do not know."""
    if kind in CALLS:
        return decode_hosted_call(reader, kind)
    if kind in RESULTS:
        return decode_hosted_result(reader, kind, decode_part)
    return None


def _read_text(reader: Reader) -> Part | None:
    text = reader.need("text", str)
    citations = reader.take("citations", list)
    return Text(
        text=text,
        citations=tuple(
            decode_citation(citation, f"{reader.path}.citations[{index}]")
            for index, citation in enumerate(citations or ())
        ),
        cache=take_cache(reader),
        extra=reader.extra(NAME, citations="empty" if citations == [] else None),
    )


def _read_image(reader: Reader) -> Part | None:
    form: JSONObject = {}
    source = _take_source(reader, form)
    if not isinstance(source, (Inline, Remote, Stored)):
        return None
    return Image(source=source, cache=take_cache(reader), extra=reader.extra(NAME, **form))


def _read_document(reader: Reader) -> Part | None:
    form: JSONObject = {}
    source = _take_source(reader, form)
    if source is None:
        return None
    citable = None
    citations = reader.object("citations")
    if citations is not None:
        citable = citations.take("enabled", bool)
        keep_rest(reader, "citations", citations, form, said=citable is not None)
    return File(
        source=source,
        name=reader.take("title", str),
        context=reader.take("context", str),
        citable=citable,
        cache=take_cache(reader),
        extra=reader.extra(NAME, **form),
    )


def _read_container(reader: Reader) -> Part:
    """Take a file for the container of the code execution tool (`beta_container_upload_block_param.py`)."""
    source = Stored(id=reader.need("file_id", str))
    return File(source=source, cache=take_cache(reader), extra=reader.extra(NAME, block=CONTAINER))


def _take_source(block: Reader, form: JSONObject) -> Source | None:
    """Take the `source` of an image or a document, or return `None` if it is of a kind that we do not know."""
    reader = Reader(block.need("source", dict), block.at("source"))
    source: Source
    match reader.need("type", str):
        case "base64":
            source = Inline(data=reader.need("data", str), media_type=reader.take("media_type", str))
        case "url":
            source = Remote(url=reader.need("url", str))
        case "file":
            source = Stored(id=reader.need("file_id", str))
        case "text":
            source = Plain(text=reader.need("data", str), media_type=reader.take("media_type", str))
        case "content":
            content = reader.take_any("content")
            parts = decode_parts(content, reader.at("content"))
            source = Nested(parts=parts, form="string" if isinstance(content, str) else None)
        case _:
            return None
    keep_rest(block, "source", reader, form)
    return source


def _read_thinking(reader: Reader) -> Part | None:
    text = reader.need("thinking", str)
    signature = reader.take("signature", str)
    return sealed(Reasoning(text=text, extra=reader.extra(NAME)), signature)


def _read_redacted(reader: Reader) -> Part | None:
    data = reader.need("data", str)
    return Reasoning(encrypted=data, redacted=True, origin=Origin(dialect=NAME), extra=reader.extra(NAME))


def _read_tool_use(reader: Reader, answer_id: str | None) -> Part:
    if answer_id is None:
        call_id, value = read_id(reader.need("id", str)), reader.need("input", dict)
    else:  # a server's slip is worth mending, a client's is worth telling
        call_id, value = (reader.take("id", str) or derived_id(answer_id, reader.path)), reader.take_any("input")
    return ToolCall(
        id=call_id,
        name=reader.need("name", str),
        arguments=arguments_of(value or {}),
        namespace=reader.take_if("toolset_name", str),
        cache=take_cache(reader),
        extra=reader.extra(NAME),
    )


def _read_tool_result(reader: Reader) -> Part | None:
    content = reader.take_any("content")
    spelled = "string" if isinstance(content, str) else ("empty" if content == [] else None)
    return ToolResult(
        call_id=read_id(reader.need("tool_use_id", str)),
        content=() if content is None else decode_parts(content, reader.at("content")),
        is_error=reader.take("is_error", bool),
        cache=take_cache(reader),
        extra=reader.extra(NAME, content=spelled),
    )


_READERS: dict[str, Callable[[Reader], Part | None]] = {
    "text": _read_text,
    "image": _read_image,
    "document": _read_document,
    "thinking": _read_thinking,
    "redacted_thinking": _read_redacted,
    "tool_result": _read_tool_result,
    COMPACTION: read_block,
}
"""How each block is read. A reader that returns `None` leaves the block as it came."""


def _words(value: JSON, depth: int = 0) -> str:
    """Return what a reader without knowledge of the block could read of it: names, titles, places, texts."""
    inner: JSON = None
    match value:
        case str():
            return value
        case list():
            return "\n".join(filter(None, (_words(item, depth + 1) for item in value if depth < MAX_DEPTH)))
        case {"type": "tool_reference", "tool_name": str() as name}:
            inner = f"The tool `{name}` can be called."
        case {"type": "search_result", "title": title, "source": source, "content": content}:
            inner = [title, source, content]
        case {"type": "web_search_result", "title": title, "url": url}:
            inner = [title, url]
        case {"type": "text", "text": text}:
            inner = text
        case {"type": str() as kind, "content": content} if _is_result(kind):
            inner = content
    return "" if inner is None or depth > MAX_DEPTH else _words(inner, depth + 1)
