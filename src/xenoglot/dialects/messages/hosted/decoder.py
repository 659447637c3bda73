"""Decodes blocks of tools that the server runs: `server_tool_use`, `mcp_tool_use` and the results of each.

Source: `anthropic/types/beta/beta_server_tool_use_block_param.py` and its neighbours `*_tool_result_block_param.py` in
the official SDK. A block of another shape stays as it came.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Final

from xenoglot.codec.json.tool_arguments import arguments_of
from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.names import read_id
from xenoglot.dialects.messages.extras import NAME, keep_rest, take_cache
from xenoglot.model.content import CodeOutput, FoundTool, HostedCall, HostedResult, SearchResult, Text

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.model.content import HostedContent, HostedKind, Part
    from xenoglot.model.json import JSON, JSONObject

    Found = tuple[HostedContent, ...]
    DecodePart = Callable[[JSON, str], Part]

SERVER_CALL: Final = "server_tool_use"
MCP_CALL: Final = "mcp_tool_use"
CALLS: Final = (SERVER_CALL, MCP_CALL)

BM25: Final = "tool_search_tool_bm25"
"""The search for tools that stands for any: it takes words, the other one a pattern."""

NAMES: Final[dict[str, HostedKind]] = {
    "web_search": "web_search",
    "web_fetch": "web_fetch",
    "code_execution": "code_execution",
    "bash_code_execution": "code_execution",
    "text_editor_code_execution": "code_execution",
    "mcp": "mcp",
    BM25: "tool_search",
    "tool_search_tool_regex": "tool_search",
}
"""The names of tools that the server runs; another is its own."""

SEARCH_RESULT: Final = "tool_search_tool_result"

RESULTS: Final[dict[str, HostedKind]] = {
    f"{name}_tool_result": kind for name, kind in NAMES.items() if kind != "tool_search"
} | {SEARCH_RESULT: "tool_search"}
"""The types of blocks with what came out of them."""

RESULT: Final = "_tool_result"

TOOLS_FOUND: Final = "tool_search_tool_search_result"

SEAL: Final = "xenoglot.text."
"""Beginning of an `encrypted_content` that is a text in base64."""

_PRINTED: Final = ("code_execution_result", "bash_code_execution_result", "encrypted_code_execution_result")


def decode_hosted_call(reader: Reader, kind: str) -> HostedCall | None:
    """Return the call in a block of type `kind`; `None` for a tool that only this dialect has."""
    server = reader.take("server_name", str) if kind == MCP_CALL else None
    name = reader.peek("name")
    known = "mcp" if kind == MCP_CALL else NAMES.get(name) if isinstance(name, str) else None
    if known is None:
        return None
    return HostedCall(
        id=read_id(reader.need("id", str)),
        kind=known,
        name=_own_name(reader.need("name", str), known),
        arguments=arguments_of(reader.take_any("input") or {}),
        server=server,
        cache=take_cache(reader),
        extra=reader.extra(NAME),
    )


def _own_name(name: str, kind: HostedKind) -> str | None:
    return None if name in (kind, BM25) else name


def decode_hosted_result(reader: Reader, kind: str, decode_part: DecodePart) -> HostedResult | None:
    """Return the result in a block of type `kind`; `None` for one of a shape that we do not know."""
    name = kind.removesuffix(RESULT)
    known = RESULTS[kind]
    form: JSONObject = {"result": kind}
    read = _Result(reader, form, decode_part)
    error: str | None = None
    if known == "mcp":
        found = read.of_server()
        error = "error" if reader.peek("is_error") is True else None
        form["is_error"] = reader.take("is_error", bool)
    elif (failed := read.error(name)) is not None:
        found, error = (), failed
    else:
        found = read.listed() if known == "web_search" else read.object()
    if found is None:
        return None
    return HostedResult(
        call_id=read_id(reader.need("tool_use_id", str)),
        kind=known,
        name=None if known == "tool_search" else _own_name(name, known),
        content=found,
        error=error,
        cache=take_cache(reader),
        extra=reader.extra(NAME, **form),
    )


class _Result:
    """Reads the `content` of a result; what is not understood of it remains with the block."""

    def __init__(self, block: Reader, form: JSONObject, decode_part: DecodePart) -> None:
        self._block = block
        self._form = form
        self._decode_part = decode_part

    def error(self, name: str) -> str | None:
        content = self._block.peek("content")
        if not isinstance(content, dict) or content.get("type") != f"{name}{RESULT}_error":
            return None
        inner = self._inner(content)
        inner.take("type", str)
        code = inner.take("error_code", str)
        self._keep(inner)
        return code or "unavailable"

    def listed(self) -> Found | None:
        items = self._block.peek("content")
        if not isinstance(items, list) or not all(_is_found(item) for item in items):
            return None
        return tuple(map(_found, self._block.objects("content")))

    def object(self) -> Found | None:
        content = self._block.peek("content")
        kind = content.get("type") if isinstance(content, dict) else None
        if not isinstance(content, dict) or not isinstance(kind, str):
            return None
        inner = self._inner(content)
        inner.take("type", str)
        found = self._known(inner, kind)
        if found is None:
            return None
        self._form["content"] = kind
        self._keep(inner)
        return found

    def _inner(self, content: JSONObject) -> Reader:
        return Reader(content, self._block.at("content"))

    def _keep(self, inner: Reader) -> None:
        self._block.take("content", dict)
        keep_rest(self._block, "content", inner, self._form)

    def _known(self, inner: Reader, kind: str) -> Found | None:
        if kind == "web_fetch_result" and isinstance(inner.peek("content"), dict):
            page = self._decode_part(inner.take("content", dict), inner.at("content"))
            return SearchResult(url=inner.take("url", str)), page
        if kind in _PRINTED:
            return _printed(inner)
        if kind == TOOLS_FOUND:
            return _tools_found(inner)
        if kind == "text_editor_code_execution_view_result":
            return (Text(text=inner.need("content", str)),)
        return () if kind.startswith("text_editor_code_execution_") else None

    def of_server(self) -> Found | None:
        content = self._block.peek("content")
        if isinstance(content, str):
            self._form["content"] = "string"
            return (Text(text=self._block.need("content", str)),)
        if content is None:
            return () if "content" not in self._block.rest() else None
        if not isinstance(content, list):
            return None
        if not content:
            self._form["content"] = "empty"
        path = self._block.at("content")
        items = self._block.need("content", list)
        return tuple(self._decode_part(item, f"{path}[{index}]") for index, item in enumerate(items))


def _tools_found(inner: Reader) -> Found | None:
    items = inner.peek("tool_references")
    if not isinstance(items, list) or not all(_is_reference(item) for item in items):
        return None
    return tuple(map(_tool_found, inner.objects("tool_references")))


def _is_reference(item: JSON) -> bool:
    is_typed = isinstance(item, dict) and item.get("type") == "tool_reference"
    return is_typed and isinstance(item.get("tool_name"), str)


def _tool_found(reader: Reader) -> FoundTool:
    reader.take("type", str)
    return FoundTool(name=reader.need("tool_name", str), extra=reader.extra(NAME))


def _is_found(item: JSON) -> bool:
    return isinstance(item, dict) and item.get("type") == "web_search_result"


def _found(reader: Reader) -> SearchResult:
    reader.take("type", str)
    text = unsealed_text(reader.peek("encrypted_content"))
    if text is not None:
        reader.take("encrypted_content", str)
    return SearchResult(
        url=reader.take("url", str),
        title=reader.take("title", str),
        text=text,
        age=reader.take("page_age", str),
        extra=reader.extra(NAME),
    )


def sealed_text(text: str) -> str:
    """Return the text of a result as `encrypted_content`, which clients send back unread.

    A result of the dialect has no field for a text: its server encrypts it. What another server has found is not
    secret; it is written so that the next request has it again.
    """
    return SEAL + b64encode(text.encode("utf-8", "surrogatepass")).decode()


def unsealed_text(content: JSON) -> str | None:
    """Return the text in an `encrypted_content` of `sealed_text`; `None` for one of a server."""
    if not isinstance(content, str) or not content.startswith(SEAL):
        return None
    try:
        text = b64decode(content.removeprefix(SEAL), validate=True).decode("utf-8", "surrogatepass")
    except ValueError:
        return None
    return text if sealed_text(text) == content else None


def _printed(reader: Reader) -> Found | None:
    items = reader.peek("content")
    if not isinstance(items, list):
        return None
    ids = [item.get("file_id") for item in items if isinstance(item, dict) and item.keys() == {"type", "file_id"}]
    if len(ids) != len(items) or not all(isinstance(file_id, str) for file_id in ids):
        return None
    reader.take("content", list)
    said = {key: reader.take(key, str) for key in ("stdout", "stderr")}
    absent = [key for key, text in said.items() if text is None]
    output = CodeOutput(
        stdout=said["stdout"] or "",
        stderr=said["stderr"] or "",
        exit_code=reader.take("return_code", int),
        file_ids=tuple(str(file_id) for file_id in ids),
        extra=Reader({}).extra(NAME, absent=absent or None),
    )
    return (output,)
