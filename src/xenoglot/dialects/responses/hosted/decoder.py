"""Decodes items of tools that the server runs: a call, and after it the result, where the item has one.

Sources: `openai/types/responses/response_function_web_search.py`, `response_file_search_tool_call.py`,
`response_code_interpreter_tool_call.py` and `response_output_item.py` (`McpCall`, `ImageGenerationCall`) of the
official SDK. An item of another shape stays as it came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.data_url import source_of
from xenoglot.codec.json.json_io import to_text
from xenoglot.codec.reader import Reader
from xenoglot.dialects.responses.extras import extra_of
from xenoglot.model.content import CodeOutput, HostedCall, HostedResult, Image, Inline, SearchResult, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xenoglot.model.content import HostedContent, HostedKind, Part
    from xenoglot.model.json import JSON, JSONObject

    Found = tuple[HostedContent, ...]
    Outcome = tuple[Found, str | None]

WEB: Final = "web_search_call"
FILES: Final = "file_search_call"
CODE: Final = "code_interpreter_call"
MCP: Final = "mcp_call"
IMAGE: Final = "image_generation_call"
LISTING: Final = "mcp_list_tools"

KINDS: Final[Mapping[str, HostedKind]] = {
    WEB: "web_search",
    FILES: "file_search",
    CODE: "code_execution",
    MCP: "mcp",
    IMAGE: "image_generation",
}

FAILED: Final = "failed"

PAGES: Final = ("open_page", "find_in_page")
"""The actions of a `web_search_call` that fetch a page."""

_OUTCOMES: Final = {FILES: "results", CODE: "outputs", IMAGE: "result", MCP: "output"}
"""Where each item keeps what came out; a search keeps its sources in its `action`."""


def unfinished(item: JSONObject) -> JSONObject:
    """Return an item at its start, without its arguments and its result."""
    kind = str(item["type"])
    bare = {key: value for key, value in item.items() if key not in (_OUTCOMES.get(kind), "error", "revised_prompt")}
    action = bare.get("action")
    if kind == WEB and isinstance(action, dict):
        bare["action"] = {"type": action["type"]} if "type" in action else {}
    for key, empty in (("code", ""), ("arguments", ""), ("queries", [])):
        if key in bare:
            bare[key] = empty
    return bare


def decode_hosted(reader: Reader, mark: JSONObject, call_id: str) -> tuple[Part, ...] | None:
    """Return the call in an item, and the result if the item has one; `None` for an item that we do not know.

    `mark` identifies the item and its progress; its type, id and status are taken.
    """
    kind = str(mark["kind"])
    form: JSONObject = {"item": mark}
    item = _Item(reader, form)
    read = _READERS[kind]
    arguments, outcome = read(item)
    if arguments is None:
        return None
    if outcome is None and mark.get("status") == FAILED:
        outcome = (), FAILED
    form["alone"] = outcome is None
    name = item.name
    call = HostedCall(
        id=call_id,
        kind="web_fetch" if name in PAGES and kind == WEB else KINDS[kind],
        name=name,
        arguments=arguments,
        server=item.server,
        extra=extra_of(reader, form),
    )
    if outcome is None:
        return (call,)
    found, error = outcome
    own = extra_of(Reader({}), item.result_form)
    return call, HostedResult(call_id=call_id, kind=call.kind, name=name, content=found, error=error, extra=own)


class _Item:
    """An item that is read: its rest, its spelling, and what is known of the tool."""

    def __init__(self, reader: Reader, form: JSONObject) -> None:
        self.reader = reader
        self.form = form
        self.result_form: JSONObject = {"ours": True}
        self.name: str | None = None
        self.server: str | None = None

    def spelled(self, key: str) -> bool:
        """Return whether `key` has a value; note where it is missing or null."""
        if self.reader.peek(key) is not None:
            return True
        nulls = "null" if key in self.reader.rest() else "absent"
        self.reader.rest().pop(key, None)
        self.form[key] = nulls
        return False


def _web(item: _Item) -> tuple[str | None, Outcome | None]:
    if not item.spelled("action"):
        return "", None
    if not isinstance(item.reader.peek("action"), dict):
        return None, None
    sources = item.reader.peek("action").get("sources")
    if sources is not None and not _has(sources, "url"):
        return None, None
    action = Reader(item.reader.need("action", dict), item.reader.at("action"))
    kind = action.take_if("type", str)
    item.form["action"] = kind or "untyped"
    item.name = kind if kind in PAGES else None
    found = None if sources is None else (tuple(map(_source, action.objects("sources"))), None)
    return _text(action.rest()), found


def _source(reader: Reader) -> SearchResult:
    url, title = reader.take("url", str), reader.take_if("title", str)
    kind = reader.take_word("type", ("url",))
    return SearchResult(url=url, title=title, extra=extra_of(reader, {"source": kind or "untyped"}))


def _files(item: _Item) -> tuple[str | None, Outcome | None]:
    results = item.reader.peek("results")
    if results is not None and not _has(results):
        return None, None
    told = item.spelled("results")
    queries = item.reader.take_any("queries")
    arguments = _text({} if queries in (None, []) else {"queries": queries})
    if queries in (None, []):
        item.form["queries"] = "absent" if queries is None else "empty"
    return arguments, (tuple(map(_retrieved, item.reader.objects("results"))), None) if told else None


def _retrieved(reader: Reader) -> SearchResult:
    return SearchResult(
        title=reader.take("filename", str),
        file_id=reader.take("file_id", str),
        score=reader.take("score", float),
        text=reader.take("text", str),
        extra=extra_of(reader, {}),
    )


def _code(item: _Item) -> tuple[str | None, Outcome | None]:
    outputs = item.reader.peek("outputs")
    if outputs is not None and not (_has(outputs, "logs") or _has(outputs, "url") or _are_known(outputs)):
        return None, None
    code = item.reader.take("code", str) if item.spelled("code") else None
    if code == "":
        item.form["code"] = "empty"
    told = item.spelled("outputs")
    found = tuple(map(_printed, item.reader.objects("outputs"))) if told else ()
    return (_text({"code": code}) if code else ""), (found, None) if told else None


def _are_known(outputs: JSON) -> bool:
    return isinstance(outputs, list) and all(_has([one], "logs") or _has([one], "url") for one in outputs)


def _printed(reader: Reader) -> CodeOutput | Image:
    reader.take_word("type", ("logs", "image"))
    logs = reader.take("logs", str)
    if logs is not None:
        return CodeOutput(stdout=logs, extra=extra_of(reader, {}))
    url: str = reader.need("url", str)
    return Image(source=source_of(url), extra=extra_of(reader, {}))


def _mcp(item: _Item) -> tuple[str | None, Outcome | None]:
    reader = item.reader
    output = reader.peek("output")
    if output is not None and not isinstance(output, str):
        return None, None
    told = item.spelled("output")
    text = reader.take("output", str) if told else None
    failure = reader.take_any("error") if item.spelled("error") else None
    if failure is not None:
        item.result_form["error"] = [failure]
    item.name, item.server = reader.take("name", str), reader.take("server_label", str)
    arguments = reader.take("arguments", str) if item.spelled("arguments") else ""
    found: Found = () if text is None else (Text(text=text),)
    error = None if failure is None else _reason(failure)
    return arguments, None if text is None and error is None else (found, error)


def _reason(failure: JSON) -> str:
    match failure:
        case str():
            return failure
        case {"message": str(message)}:
            return message
        case {"content": [{"text": str(text)}, *_]}:
            return text
        case {"type": str(kind)}:
            return kind
        case _:
            return FAILED


def _image(item: _Item) -> tuple[str | None, Outcome | None]:
    result = item.reader.peek("result")
    if result is not None and not isinstance(result, str):
        return None, None
    told = item.spelled("result")
    data = item.reader.take("result", str) if told else None
    prompt = item.reader.take_if("revised_prompt", str)
    shape = item.reader.peek("output_format")
    failure = item.reader.take_any("error")
    if failure is not None:
        item.result_form["error"] = [failure]
    media_type = f"image/{shape if isinstance(shape, str) and shape else 'png'}"
    found: Found = () if data is None else (Image(source=Inline(data=data, media_type=media_type)),)
    error = None if failure is None else _reason(failure)
    return _text({} if prompt is None else {"prompt": prompt}), (found, error) if found or error else None


_READERS: Final[Mapping[str, Callable[[_Item], tuple[str | None, Outcome | None]]]] = {
    WEB: _web,
    FILES: _files,
    CODE: _code,
    MCP: _mcp,
    IMAGE: _image,
}


def _has(items: JSON, *keys: str) -> bool:
    """Return whether `items` is a list of objects, each with a text under each of `keys`."""
    if not isinstance(items, list):
        return False
    return all(isinstance(one, dict) and all(isinstance(one.get(key), str) for key in keys) for one in items)


def _text(value: JSONObject) -> str:
    """Return arguments as text; none at all are no text."""
    return to_text(value) if value else ""
