"""Encodes and decodes steps of tools that the server ran: a call, and its result in a step of its own.

Sources: `GoogleSearchCallStep`, `URLContextCallStep`, `CodeExecutionCallStep`, `MCPServerToolCallStep`,
`FileSearchCallStep`, `ToolSearchCallStep` and their results in `google/genai/_gaos/types/interactions` of the official
SDK. A step of another shape, and those of tools that no other dialect has (`google_maps_call`), stay as they came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.json.tool_arguments import RAW_ARGUMENTS, input_of, text_of
from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import name_of
from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.names import qualified
from xenoglot.dialects.google.shared import with_said
from xenoglot.dialects.interactions.content import decode_contents
from xenoglot.dialects.interactions.extras import NAME, NO_CACHE, extra_of, own_fields
from xenoglot.dialects.interactions.tool_calls import outcome, take_outcome
from xenoglot.model.content import CodeOutput, Extra, FoundTool, HostedCall, HostedResult, SearchResult, Text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.dialects.interactions.content import ContentEncoder
    from xenoglot.model.content import HostedContent, HostedKind, Part
    from xenoglot.model.json import JSONObject

CALLS: Final[Mapping[str, HostedKind]] = {
    "google_search_call": "web_search",
    "url_context_call": "web_fetch",
    "code_execution_call": "code_execution",
    "mcp_server_tool_call": "mcp",
    "file_search_call": "file_search",
    "tool_search_call": "tool_search",
}
RESULTS: Final[Mapping[str, HostedKind]] = {
    "google_search_result": "web_search",
    "url_context_result": "web_fetch",
    "code_execution_result": "code_execution",
    "mcp_server_tool_result": "mcp",
    "file_search_result": "file_search",
    "tool_search_result": "tool_search",
}
_CALL_WORDS: Final = {kind: word for word, kind in CALLS.items()}
_RESULT_WORDS: Final = {kind: word for word, kind in RESULTS.items()}

FAILED: Final = "failed"
"""Why a tool failed, where the server only reports that it did."""

_LISTED: Final = ("web_search", "web_fetch", "file_search")
"""Kinds whose result is a list of what was found."""


def decode_hosted(reader: Reader, kind: str) -> HostedCall | HostedResult | None:
    """Return a call or a result; `None` for a step of a shape that is not known."""
    if kind in CALLS:
        return _decode_call(reader, CALLS[kind])
    return _decode_result(reader, RESULTS[kind])


def _decode_call(reader: Reader, kind: HostedKind) -> HostedCall | None:
    given = reader.peek("arguments")
    if not isinstance(given, dict | None) or not isinstance(reader.peek("id"), str):
        return None
    reader.take("type", str)
    form: JSONObject = {}
    arguments = reader.take("arguments", dict)
    if arguments is None:
        form["arguments"] = "absent"
    else:
        arguments = _common(arguments, kind, form)
    return HostedCall(
        id=reader.need("id", str),
        kind=kind,
        name=reader.take_if("name", str) if kind == "mcp" else None,
        arguments="" if arguments is None else text_of(arguments),
        server=reader.take_if("server_name", str) if kind == "mcp" else None,
        extra=extra_of(reader, form),
    )


def _common(arguments: JSONObject, kind: HostedKind, form: JSONObject) -> JSONObject:
    """Return arguments in the words that dialects share: the code or command that ran, the page that was fetched."""
    match arguments:
        case {"urls": [str(url)]} if kind == "web_fetch" and len(arguments) == 1:
            return {"url": url}
        case {"queries": [str(query)]} if kind == "web_search" and len(arguments) == 1:
            return {"query": query}
        case {"code": str(code), "language": "python" | "bash" as language} if kind == "code_execution":
            form["language"] = language
            rest = {key: value for key, value in arguments.items() if key not in ("code", "language")}
            return {"code" if language == "python" else "command": code, **rest}
        case _:
            return arguments


def _decode_result(reader: Reader, kind: HostedKind) -> HostedResult | None:
    value = reader.peek("result")
    listed = isinstance(value, list) and all(isinstance(item, dict) for item in value)
    if kind == "tool_search":
        listed = listed and all(isinstance(item.get("name"), str) for item in value)
    known = listed if kind in (*_LISTED, "tool_search") else isinstance(value, str | dict) or listed
    if not isinstance(reader.peek("call_id"), str) or not (known or value is None):
        return None
    reader.take("type", str)
    form: JSONObject = {}
    content = _take_found(reader, kind, form)
    failed = reader.take_if("is_error", bool)
    if failed is False:
        form["is_error"] = "false"
    return HostedResult(
        call_id=reader.need("call_id", str),
        kind=kind,
        name=reader.take_if("name", str) if kind == "mcp" else None,
        content=tuple(content),
        error=FAILED if failed else None,
        extra=extra_of(reader, form),
    )


def _take_found(reader: Reader, kind: HostedKind, form: JSONObject) -> Sequence[HostedContent]:
    value = reader.peek("result")
    if value is None:
        form["result"] = "absent"
        return ()
    if kind in _LISTED:
        return [_found(item) for item in reader.objects("result")]
    if kind == "tool_search":
        return [_tool_found(item) for item in reader.need("result", list)]
    if kind == "code_execution" and isinstance(value, str):
        done = 0 if reader.peek("is_error") is False else None
        return (CodeOutput(stdout=reader.need("result", str), exit_code=done),)
    if kind == "code_execution" and isinstance(value, list):
        form["result"] = "list"
        contents = decode_contents(reader.need("result", list), reader.at("result"))
        return [_as_printed(one) for one in contents]
    return take_outcome(reader, form)


def _tool_found(definition: JSONObject) -> FoundTool:
    """Return the function that was found; its definition is that of the request."""
    return FoundTool(name=definition["name"], extra=Extra(dialect=NAME, form={"definition": definition}))


def _as_printed(part: Part) -> Part | CodeOutput:
    """Return a plain text among the results of code as what it printed."""
    plain = isinstance(part, Text) and not part.citations and part.extra is None
    return CodeOutput(stdout=part.text) if isinstance(part, Text) and plain else part


def _found(reader: Reader) -> SearchResult:
    return SearchResult(
        url=reader.take_if("url", str),
        title=reader.take_if("title", str),
        text=reader.take_if("text", str),
        extra=extra_of(reader, {}),
    )


def encode_hosted_call(part: HostedCall, where: str, losses: Losses) -> JSONObject | None:
    """Return the step of a call; `None` (and a loss) for a tool that the dialect lacks."""
    form, own = form_of(part.extra, NAME), own_fields(part.extra, where, losses)
    word = _CALL_WORDS.get(part.kind)
    if word is None:
        losses.dropped(where, name_of(part), "the dialect has no such tool")
        return None
    if part.cache is not None:
        losses.dropped(where, "cache", NO_CACHE)
    written: JSONObject = {"type": word, "id": part.id}
    if part.kind == "mcp":
        with_said(written, name=part.name, server_name=part.server)
    else:
        for field in ("name", "server"):
            if getattr(part, field) is not None:
                losses.dropped(where, field, f"a `{word}` has none")
    if part.arguments or "arguments" not in form:
        arguments = _arguments(part, where, losses)
        written["arguments"] = arguments | ({"language": form["language"]} if "language" in form else {})
    return written | own


def _arguments(part: HostedCall, where: str, losses: Losses) -> JSONObject:
    arguments = input_of(part.arguments)
    if arguments is None:
        losses.approximated(where, "arguments", "no JSON object; written as `_raw`")
        return {RAW_ARGUMENTS: part.arguments}
    match arguments:
        case {"url": str(url)} if part.kind == "web_fetch":
            rest = {key: value for key, value in arguments.items() if key != "url"}
            return {"urls": [url], **rest}
        case {"query": str(query)} if part.kind == "web_search":
            rest = {key: value for key, value in arguments.items() if key not in ("query", "queries")}
            return {"queries": [query], **rest}
        case {"command": str(command)} if part.kind == "code_execution":
            rest = {key: value for key, value in arguments.items() if key != "command"}
            return {"code": command, "language": "bash", **rest}
        case _:
            return arguments


def encode_hosted_result(part: HostedResult, where: str, contents: ContentEncoder, losses: Losses) -> JSONObject | None:
    """Return the step of a result; `None` (and a loss) for a tool that the dialect lacks."""
    form, own = form_of(part.extra, NAME), own_fields(part.extra, where, losses)
    word = _RESULT_WORDS.get(part.kind)
    if word is None:
        losses.dropped(where, name_of(part), "the dialect has no such tool")
        return None
    if part.cache is not None:
        losses.dropped(where, "cache", NO_CACHE)
    written: JSONObject = {"type": word, "call_id": part.call_id}
    if part.kind == "mcp":
        with_said(written, name=part.name)
    elif part.name is not None:
        losses.dropped(where, "name", f"a `{word}` has none")
    written |= _outcome(part, form, where, contents, losses)
    if part.error is not None:
        written["is_error"] = True
        if part.error != FAILED:
            losses.approximated(where, "error", "written as `is_error`")
    elif "is_error" in form or any(isinstance(one, CodeOutput) and one.exit_code == 0 for one in part.content):
        written["is_error"] = False
    return written | own


def _outcome(part: HostedResult, form: JSONObject, where: str, contents: ContentEncoder, losses: Losses) -> JSONObject:
    if form.get("result") == "absent" and not part.content:
        return {}
    placed = [(one, f"{where}.content[{index}]") for index, one in enumerate(part.content)]
    if part.kind in _LISTED:
        found = [item for one, at in placed for item in _listed(one, at, contents, losses)]
        return {"result": found}
    if part.kind == "tool_search":
        return {"result": [item for one, at in placed for item in _tool(one, at, losses)]}
    if part.kind == "code_execution" and form.get("result") != "list":
        printed = [one for one, _ in placed if isinstance(one, CodeOutput)]
        if len(printed) == len(placed):
            return {"result": "\n".join(filter(None, (_printed(one, at, losses) for one, at in placed)))}
    items = [item for one, at in placed for item in _item(one, at, contents, losses)]
    return outcome(items, form)


def _tool(one: HostedContent, at: str, losses: Losses) -> Sequence[JSONObject]:
    if not isinstance(one, FoundTool):
        losses.dropped(at, "result", "a search for tools finds functions")
        return ()
    if one.namespace is not None:
        losses.emulated(at, "namespace", "written as the beginning of the name")
    written = {"type": "function", "name": qualified(one.name, one.namespace)}
    return [form_of(one.extra, NAME).get("definition", written) | own_fields(one.extra, at, losses)]


def _listed(one: HostedContent, at: str, contents: ContentEncoder, losses: Losses) -> Sequence[JSONObject]:
    if not isinstance(one, SearchResult):
        return _item(one, at, contents, losses)
    written = with_said({}, url=one.url, title=one.title, text=one.text)
    for field in ("age", "file_id", "score"):
        if getattr(one, field) is not None:
            losses.dropped(at, field, "a result of the dialect has none")
    return [written | own_fields(one.extra, at, losses)]


def _item(one: HostedContent, at: str, contents: ContentEncoder, losses: Losses) -> Sequence[JSONObject]:
    if isinstance(one, CodeOutput):
        return [{"type": "text", "text": _printed(one, at, losses)}]
    if isinstance(one, SearchResult):
        losses.approximated(at, "search_result", "written as text")
        own_fields(one.extra, at, losses)
        return [{"type": "text", "text": "\n".join(filter(None, (one.title, one.url, one.text)))}]
    if isinstance(one, FoundTool):
        losses.dropped(at, "result", "only a search for tools finds tools")
        return ()
    return contents.encode(one, at)


def _printed(one: HostedContent, at: str, losses: Losses) -> str:
    if not isinstance(one, CodeOutput):
        return ""
    own_fields(one.extra, at, losses)
    if one.exit_code:
        losses.dropped(at, "exit_code", "a result of the dialect has none")
    if one.file_ids:
        losses.dropped(at, "file_ids", "a result of the dialect has none")
    if one.stdout and one.stderr:
        losses.approximated(at, "stderr", "written after what was printed")
    return "\n".join(filter(None, (one.stdout, one.stderr)))


def is_hosted(kind: str) -> bool:
    """Whether a step is one of these."""
    return kind in CALLS or kind in RESULTS
