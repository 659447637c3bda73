"""Encodes what tools of a provider did as items: `web_search_call`, `code_interpreter_call`, `mcp_call` and others.

An item is a call and what came out of it, in one. Sources are those of `hosted.decoder`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from xenoglot.codec.data_url import data_url
from xenoglot.codec.hosted_text import words_of_hosted
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import name_of
from xenoglot.dialects.responses.extras import NAME, own_fields
from xenoglot.dialects.responses.hosted.decoder import CODE, FAILED, FILES, IMAGE, KINDS, MCP, PAGES, WEB
from xenoglot.dialects.responses.tool_search import SEARCH_CALL, encode_search
from xenoglot.errors import WireError
from xenoglot.model.content import CodeOutput, HostedCall, HostedResult, Image, Inline, Remote, SearchResult, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import HostedContent, HostedKind, Part
    from xenoglot.model.json import JSON, JSONObject

_TYPES: Final[dict[HostedKind, str]] = {kind: name for name, kind in KINDS.items()} | {
    "web_fetch": WEB,
    "tool_search": SEARCH_CALL,
}


def item_type(call: HostedCall) -> str:
    """Return the type of the item of a call."""
    return _TYPES[call.kind]


def is_result_of(part: Part, before: Part) -> bool:
    """Return whether `part` is the result of the call `before`, and one item holds both."""
    if not isinstance(part, HostedResult) or not isinstance(before, HostedCall):
        return False
    return part.call_id == before.id and part.kind != "tool_search"


def has_result(call: Part) -> bool:
    """Return whether the result of a call may follow it; a server of this dialect sends it with the call."""
    if not isinstance(call, HostedCall) or call.kind == "tool_search":
        return False
    return not form_of(call.extra, NAME).get("alone", False)


def grouped(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Return the parts, with what came out of a call next to it; a stream lets calls run side by side."""
    if not any(isinstance(part, HostedResult) for part in parts):
        return tuple(parts)
    placed: list[Part] = []
    run: list[Part] = []
    for part in parts:
        if isinstance(part, HostedCall | HostedResult):
            run.append(part)
        else:
            placed += [*paired(run), part]
            run = []
    return (*placed, *paired(run))


def paired(run: Iterable[Part]) -> list[Part]:
    """Return calls and results, each result right after its call; one without a call stays last."""
    calls: list[Part] = []
    results: dict[str, deque[Part]] = {}
    for part in run:
        if isinstance(part, HostedResult):
            results.setdefault(part.call_id, deque()).append(part)
        else:
            calls.append(part)
    placed: list[Part] = []
    for call in calls:
        placed.append(call)
        if isinstance(call, HostedCall) and (found := results.get(call.id)):
            placed.append(found.popleft())
    return [*placed, *(part for left in results.values() for part in left)]


def encode_hosted(parts: Sequence[Part], wheres: Sequence[str], losses: Losses) -> JSONObject | None:
    """Return the item of a call and what came out of it, if that is known."""
    call, where = parts[0], wheres[0]
    if isinstance(call, HostedCall | HostedResult) and call.kind == "tool_search":
        return encode_search(call, where, losses)
    if not isinstance(call, HostedCall):
        losses.dropped(where, name_of(call), "the call that it belongs to is missing")
        return None
    result = parts[1] if len(parts) > 1 and isinstance(parts[1], HostedResult) else None
    encoder = _ItemEncoder(call, result, where, wheres[-1], losses)
    return encoder.item()


class _ItemEncoder:
    def __init__(self, call: HostedCall, result: HostedResult | None, where: str, at: str, losses: Losses) -> None:
        self._call = call
        self._result = result
        self._where = where
        self._at = at  # of the result
        self._losses = losses
        self._form = form_of(call.extra, NAME)
        self._own = "item" in self._form
        self._value = _object(call.arguments)

    def item(self) -> JSONObject:
        call, result = self._call, self._result
        kind = _TYPES[call.kind]
        own = own_fields(call.extra, self._where, self._losses)
        if result is not None:
            own_fields(result.extra, self._at, self._losses)
        for part in (call, result):
            if part is not None and part.cache is not None:
                self._losses.dropped(self._where, "cache", "a call takes no cache mark")
        item: JSONObject = {"type": kind}
        if self._own:
            mark = self._form["item"]
            item |= {key: mark[key] for key in ("id", "status") if key in mark}
        elif result is not None and result.error is not None:
            item["status"] = FAILED
        write = {WEB: self._web, FILES: self._files, CODE: self._code, MCP: self._mcp, IMAGE: self._image}[kind]
        return {**item, **write(), **own}

    def _spelled(self, key: str) -> JSONObject:
        """Return `key` without a value, as its own server spelled that; for another's item it is null."""
        return {} if self._own and self._form.get(key) != "null" else {key: None}

    def _content(self) -> tuple[HostedContent, ...]:
        return () if self._result is None else self._result.content

    def _told(self) -> bool:
        """Return whether there is a result to write; one that failed without a reason has a status only."""
        result = self._result
        return result is not None and not (result.error is not None and not result.content)

    def _drop(self, index: int, what: str) -> None:
        self._losses.dropped(f"{self._at}.content[{index}]", what, "the item has no place for it")

    def _web(self) -> JSONObject:
        spelled = self._form.get("action")
        if self._own and spelled in ("null", "absent"):
            return self._spelled("action")
        if self._own:
            action: JSONObject = {} if spelled == "untyped" else {"type": spelled}
        elif self._call.kind == "web_fetch":
            action = {"type": "find_in_page" if "pattern" in self._value else PAGES[0]}
        else:
            action = {"type": "search"} | ({} if "query" in self._value else {"query": _first(self._value)})
        action |= self._value
        if self._told() and (self._own or self._call.kind == "web_search"):
            action["sources"] = self._sources()
        elif self._told():
            self._losses.dropped(self._at, "content", "the item names the page that was opened, without its text")
        return {"action": action}

    def _sources(self) -> list[JSON]:
        sources: list[JSON] = []
        for index, one in enumerate(self._content()):
            if not isinstance(one, SearchResult):
                self._drop(index, "result")
                continue
            at = f"{self._at}.content[{index}]"
            for field in (
                ("text", "age", "file_id", "score") if self._own else ("title", "text", "age", "file_id", "score")
            ):
                if getattr(one, field) is not None:
                    self._losses.dropped(at, field, "a source is a URL")
            kind = form_of(one.extra, NAME).get("source")
            source: JSONObject = {} if kind == "untyped" else {"type": "url"}
            titled = {} if one.title is None or not self._own else {"title": one.title}
            sources.append({**source, "url": one.url or "", **titled, **own_fields(one.extra, at, self._losses)})
        return sources

    def _files(self) -> JSONObject:
        own: JSONObject = {}
        if self._form.get("queries") != "absent":
            own["queries"] = self._value.get("queries") or [text for text in [_first(self._value)] if text]
        if not self._told():
            return own | self._spelled("results")
        results: list[JSON] = []
        for index, one in enumerate(self._content()):
            if not isinstance(one, SearchResult):
                self._drop(index, "result")
                continue
            at = f"{self._at}.content[{index}]"
            said = {"file_id": one.file_id, "filename": one.title or one.url, "score": one.score, "text": one.text}
            known = {key: value for key, value in said.items() if value is not None}
            results.append({**known, **own_fields(one.extra, at, self._losses)})
        return {**own, "results": results}

    def _code(self) -> JSONObject:
        own: JSONObject = {} if self._own else {"container_id": ""}
        if self._form.get("code") == "empty" and not self._call.arguments:
            own["code"] = ""
        elif self._form.get("code") in ("null", "absent") and not self._call.arguments:
            own |= self._spelled("code")
        else:
            own["code"] = code_of(self._call.arguments)
        if not self._told():
            return own | self._spelled("outputs")
        outputs: list[JSON] = []
        for index, one in enumerate(self._content()):
            encoded = self._output(one, f"{self._at}.content[{index}]")
            if encoded is None:
                self._drop(index, "result")
            else:
                outputs.append(encoded)
        return {**own, "outputs": outputs}

    def _output(self, one: HostedContent, at: str) -> JSONObject | None:
        match one:
            case CodeOutput():
                if one.file_ids:
                    self._losses.dropped(at, "file_ids", "the id of a file means something to its own provider only")
                if one.exit_code is not None:
                    self._losses.dropped(at, "exit_code", "the item has only what was printed")
                logs = "\n".join(text for text in (one.stdout, one.stderr) if text)
                return {"type": "logs", "logs": logs, **own_fields(one.extra, at, self._losses)}
            case Text(text=text):
                return {"type": "logs", "logs": text}
            case Image(source=Inline() | Remote() as source):
                url = source.url if isinstance(source, Remote) else data_url(source)
                return {"type": "image", "url": url, **own_fields(one.extra, at, self._losses)}
            case _:
                return None

    def _mcp(self) -> JSONObject:
        call, result = self._call, self._result
        own: JSONObject = {"server_label": call.server, "name": call.name, "arguments": call.arguments}
        if not self._own:
            own = {"server_label": call.server or "", "name": call.name or "", "arguments": call.arguments or "{}"}
        if self._form.get("arguments") in ("null", "absent") and not call.arguments:
            del own["arguments"]
            own |= self._spelled("arguments")
        own = {key: value for key, value in own.items() if value is not None or key == "arguments"}
        words = None if result is None or not result.content else words_of_hosted(_without_error(result))
        own |= self._spelled("output") if words is None else {"output": words}
        if result is None or result.error is None:
            return own | self._spelled("error")
        kept = form_of(result.extra, NAME).get("error")
        told = [{"type": "text", "text": result.error}]
        return {**own, "error": kept[0] if kept else {"type": "mcp_tool_execution_error", "content": told}}

    def _image(self) -> JSONObject:
        own: JSONObject = {}
        prompt = self._value.get("prompt")
        if isinstance(prompt, str):
            own["revised_prompt"] = prompt
        data = None
        for index, one in enumerate(self._content()):
            if isinstance(one, Image) and isinstance(one.source, Inline) and data is None:
                data = one.source.data
            else:
                self._drop(index, "result")
        own |= self._spelled("result") if data is None else {"result": data}
        kept = None if self._result is None else form_of(self._result.extra, NAME).get("error")
        return {**own, "error": kept[0]} if kept else own


def _without_error(result: HostedResult) -> HostedResult:
    return HostedResult(call_id=result.call_id, kind=result.kind, content=result.content)


def code_of(arguments: str) -> str:
    """Return the code in the arguments of a call; others as they are."""
    value = _object(arguments)
    for key in ("code", "command"):
        if isinstance(value.get(key), str):
            return str(value[key])
    return arguments


def _object(arguments: str) -> JSONObject:
    try:
        value = decode_json(arguments or "{}")
    except WireError:
        return {}
    return value if isinstance(value, dict) else {}


def _first(value: JSONObject) -> str:
    """Return what was searched for, if that is known."""
    queries = value.get("queries")
    said = value.get("query", queries[0] if isinstance(queries, list) and queries else None)
    return said if isinstance(said, str) else ""
