"""Encodes what tools of a provider did: `server_tool_use`, `mcp_tool_use` and the result blocks of each.

An answer has them in the form of the server's own tools, whichever provider ran them. A history of another dialect has
them in words: the server takes back only results that it signed itself (`encrypted_content`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.hosted_text import hosted_words, words_of_hosted
from xenoglot.codec.json.tool_arguments import RAW_ARGUMENTS, input_of
from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import name_of
from xenoglot.codec.requests.names import qualified
from xenoglot.dialects.messages.extras import NAME, encode_cache, with_rest, with_said
from xenoglot.dialects.messages.hosted.decoder import (
    BM25,
    MCP_CALL,
    NAMES,
    RESULT,
    SEARCH_RESULT,
    SERVER_CALL,
    TOOLS_FOUND,
    sealed_text,
)
from xenoglot.model.content import CodeOutput, FoundTool, HostedCall, SearchResult, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Extra, HostedResult, Part
    from xenoglot.model.json import JSON, JSONObject

    EncodeParts = Callable[[Sequence[Part], str, str], list[JSONObject]]

_KINDS: Final = frozenset(NAMES.values())

_ERRORS: Final = {
    "web_search": (
        "invalid_tool_input",
        "unavailable",
        "max_uses_exceeded",
        "too_many_requests",
        "query_too_long",
        "request_too_large",
    ),
    "web_fetch": (
        "invalid_tool_input",
        "url_too_long",
        "url_not_allowed",
        "url_not_in_prior_context",
        "url_not_accessible",
        "unsupported_content_type",
        "too_many_requests",
        "max_uses_exceeded",
        "unavailable",
        "content_too_large",
    ),
    "tool_search": ("invalid_tool_input", "unavailable", "too_many_requests", "execution_time_exceeded"),
    "code_execution": ("invalid_tool_input", "unavailable", "too_many_requests", "execution_time_exceeded"),
}
"""The error codes of the SDK's types."""


class HostedEncoder:
    """Encodes calls and results for one request or answer; `blocks` encodes the parts of a page or of a server."""

    def __init__(self, losses: Losses, blocks: EncodeParts, *, home: bool) -> None:
        self._losses = losses
        self._blocks = blocks
        self._home = home

    def words(self, part: HostedCall | HostedResult, where: str) -> Text | None:
        """Return a part of a history as text, where it cannot be sent as it is."""
        return hosted_words(part, where, self._losses)

    def block(self, part: HostedCall | HostedResult, call_id: str, where: str) -> JSONObject | None:
        """Return the block of a part; `call_id` is the id of the call as it is written."""
        if part.kind not in _KINDS:
            self._losses.dropped(where, name_of(part), "the dialect has no such tool")
            return None
        own = self._call(part, call_id, where) if isinstance(part, HostedCall) else self._result(part, call_id, where)
        if part.cache is not None:
            own["cache_control"] = encode_cache(part.cache, where, self._losses, home=self._home)
        return with_rest(own, part.extra, where, self._losses)

    def _call(self, part: HostedCall, call_id: str, where: str) -> JSONObject:
        value = input_of(part.arguments)
        if value is None:
            value = {RAW_ARGUMENTS: part.arguments}
        if part.kind == "mcp":
            server = part.server or ""
            return {"type": MCP_CALL, "id": call_id, "name": part.name or "", "server_name": server, "input": value}
        if part.server is not None:
            self._losses.dropped(where, "server", "only a tool of an MCP server has one")
        return {"type": SERVER_CALL, "id": call_id, "name": _name(part), "input": value}

    def _result(self, part: HostedResult, call_id: str, where: str) -> JSONObject:
        kind = SEARCH_RESULT if part.kind == "tool_search" else f"{_name(part)}{RESULT}"
        own: JSONObject = {"type": kind, "tool_use_id": call_id}
        if part.kind == "mcp":
            del own["tool_use_id"]
            return {"type": f"mcp{RESULT}", "tool_use_id": call_id, **self._of_server(part, where)}
        form = form_of(part.extra, NAME)
        if part.error is not None and not (part.kind == "code_execution" and part.content):
            own["content"] = {"type": f"{own['type']}_error", "error_code": self._error(part, where)}
        elif part.kind == "web_search":
            own["content"] = self._found(part, where)
        elif part.kind == "tool_search":
            own["content"] = {"type": TOOLS_FOUND, "tool_references": self._tools(part, where)}
        elif part.kind == "web_fetch":
            own["content"] = {"type": "web_fetch_result", **self._page(part, where)}
        elif own["type"].startswith("text_editor"):
            own["content"] = {"type": form.get("content", "text_editor_code_execution_view_result"), **_viewed(part)}
        else:
            own["content"] = {
                "type": form.get("content", f"{_name(part)}_result"),
                **self._printed(part, f"{_name(part)}_output", where),
            }
        return own

    def _error(self, part: HostedResult, where: str) -> str:
        code = part.error or ""
        if self._own(part.extra) or code in _ERRORS.get(part.kind, ()):
            return code
        self._losses.approximated(where, "error", f"`{code}` is written as `unavailable`")
        return "unavailable"

    def _own(self, extra: Extra | None) -> bool:
        return self._home or (extra is not None and extra.dialect == NAME)

    def _found(self, part: HostedResult, where: str) -> list[JSON]:
        found: list[JSON] = []
        for index, one in enumerate(part.content):
            at = f"{where}.content[{index}]"
            if not isinstance(one, SearchResult):
                self._losses.dropped(at, "result", "the result of a search is a list of pages")
                continue
            self._beside(one, at)
            own: JSONObject = {"type": "web_search_result"}
            with_said(own, url=one.url, title=one.title, page_age=one.age)
            if not self._own(part.extra):
                if one.title is None:
                    self._losses.approximated(at, "title", "the dialect requires one: the URL is written")
                own = {"url": "", "title": one.url or "", "encrypted_content": "", "page_age": None} | own
            if one.text is not None:
                own["encrypted_content"] = sealed_text(one.text)
            found.append(with_rest(own, one.extra, at, self._losses))
        return found

    def _tools(self, part: HostedResult, where: str) -> list[JSON]:
        found: list[JSON] = []
        for index, one in enumerate(part.content):
            at = f"{where}.content[{index}]"
            if isinstance(one, FoundTool):
                if one.namespace is not None:
                    self._losses.emulated(at, "namespace", "written as the beginning of the name")
                own: JSONObject = {"type": "tool_reference", "tool_name": qualified(one.name, one.namespace)}
                found.append(with_rest(own, one.extra, at, self._losses))
            else:
                self._losses.dropped(at, "result", "a search for tools finds tools")
        return found

    def _beside(self, one: SearchResult, at: str, *more: str) -> None:
        for field in (*more, "file_id", "score"):
            if getattr(one, field) is not None:
                self._losses.dropped(at, field, "a result of the dialect has no such field")

    def _page(self, part: HostedResult, where: str) -> JSONObject:
        own: JSONObject = {}
        documents: list[JSONObject] = []
        for index, one in enumerate(part.content):
            at = f"{where}.content[{index}]"
            if isinstance(one, SearchResult):
                self._beside(one, at)
                with_said(own, url=one.url)
                documents += [] if one.text is None else [_document(one.text, one.title)]
                self._losses.carry(one.extra, at, NAME)
            elif isinstance(one, CodeOutput | FoundTool):
                self._losses.dropped(at, "result", "a page that was fetched is a document")
            else:
                documents += [_document(one.text, None)] if isinstance(one, Text) else self._blocks((one,), at, "user")
        for _ in documents[1:]:
            self._losses.dropped(where, "content", "a page that was fetched is one document")
        if documents or not self._own(part.extra):
            own["content"] = (documents or [_document("", None)])[0]
        return own if self._own(part.extra) else {"url": "", "retrieved_at": None} | own

    def _printed(self, part: HostedResult, item: str, where: str) -> JSONObject:
        stdout, stderr, files = [], [], []
        code: int | None = None
        absent: tuple[str, ...] = ()
        for index, one in enumerate(part.content):
            match one:
                case CodeOutput():
                    stdout.append(one.stdout)
                    stderr.append(one.stderr)
                    files += [{"type": item, "file_id": file_id} for file_id in one.file_ids]
                    code = one.exit_code
                    if code is None and not self._own(part.extra):
                        at = f"{where}.content[{index}]"
                        self._losses.approximated(at, "exit_code", "not reported, and the dialect requires a number")
                    absent = tuple(form_of(one.extra, NAME).get("absent", ()))
                    self._losses.carry(one.extra, f"{where}.content[{index}]", NAME)
                case Text(text=text):
                    stdout.append(text)
                case _:
                    self._losses.dropped(f"{where}.content[{index}]", "result", "code prints text and writes files")
        if code is None and not self._own(part.extra):
            code = 0 if part.error is None else 1
        said = {"stdout": "".join(stdout), "stderr": "".join(stderr)}
        own: JSONObject = {key: text for key, text in said.items() if key not in absent}
        return with_said(own, return_code=code) | {"content": files}

    def _of_server(self, part: HostedResult, where: str) -> JSONObject:
        form = form_of(part.extra, NAME)
        if self._own(part.extra):
            failed = {} if form.get("is_error") is None and part.error is None else {"is_error": part.error is not None}
        else:
            failed = {"is_error": part.error is not None}
        parts = [one for one in part.content if not isinstance(one, SearchResult | CodeOutput | FoundTool)]
        if len(parts) < len(part.content) or (part.error not in (None, "error") and not parts):
            said = words_of_hosted(part) or ""
            return {**failed, "content": [{"type": "text", "text": said}]}
        content: JSON = self._blocks(parts, f"{where}.content", "user")
        if form.get("content") == "string" and len(content) == 1:
            content = content[0]["text"]
        bare = not content and self._own(part.extra) and form.get("content") != "empty"
        return failed if bare else {**failed, "content": content}


def _name(part: HostedCall | HostedResult) -> str:
    if part.name in NAMES and NAMES[part.name] == part.kind:
        return part.name
    return BM25 if part.kind == "tool_search" else part.kind


def _document(text: str, title: str | None) -> JSONObject:
    own: JSONObject = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": text}}
    return with_said(own, title=title)


def _viewed(part: HostedResult) -> JSONObject:
    texts = [one.text for one in part.content if isinstance(one, Text)]
    return {"content": "\n".join(texts)} if texts else {}
