"""Outcomes of executed calls: parts for the client, a text for the model, and a reader of what executors return.

Search services agree on a list of objects with a URL, a title and a text, and on little else. The names that are read
are those of SearXNG (https://docs.searxng.org/dev/search_api.html), Brave
(https://api-dashboard.search.brave.com/api-reference/web/search/get) and Tavily
(https://docs.tavily.com/documentation/api-reference/endpoint/search), and the usual ones of others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from posixpath import normpath
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import unquote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.model.content import CodeOutput, HostedContent, Image, Inline, SearchResult, Text

if TYPE_CHECKING:
    from xenoglot.model.hosted import HostedTool
    from xenoglot.model.json import JSON

    Content: TypeAlias = HostedContent

_LISTS: Final = ("results", "items", "organic", "organic_results", "data", "value", "web")
_URLS: Final = ("url", "link", "href")
_TITLES: Final = ("title", "name")
_TEXTS: Final = ("content", "text", "description", "snippet", "body", "summary")
_AGES: Final = ("page_age", "publishedDate", "published_date", "age", "date", "published")
MOST_RESULTS: Final = 50
LONGEST_TITLE: Final = 500
LONGEST_URL: Final = 2048
LONGEST_AGE: Final = 100
MOST_PARTS: Final = 100
"""Parts of one result."""
MOST_IMAGE_BYTES: Final = 8 * 1024 * 1024
"""Base64 of all images of one result."""
LEFT_OUT: Final = "[image left out: the images of the result are too large]"


class ToolOutcome(Struct, frozen=True):
    """What came out of a call: its `content`, or an `error` (a word of the tool's dialects) and the `reason` for it.

    The reason is for the model and for people: it has no host, no path and no key.
    """

    content: tuple[Content, ...] = ()
    error: str | None = None
    reason: str = ""


def failed(error: str, reason: str) -> ToolOutcome:
    """Return the outcome of a call that failed."""
    return ToolOutcome(error=error, reason=reason)


def search_results(value: JSON, tool: HostedTool, most: int) -> tuple[SearchResult, ...]:
    """Return the results in the answer of a search, `most` of them, from the domains that `tool` allows."""
    found = (_result(row) for row in _rows(value)[: MOST_RESULTS * 2])
    allowed = [one for one in found if one is not None and (one.url is None or is_allowed(one.url, tool))]
    return tuple(allowed[:most])


def _rows(value: JSON) -> Sequence[JSON]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        for name in _LISTS:
            if isinstance(inner := value.get(name), list):
                return inner
            if isinstance(inner, dict) and (rows := _rows(inner)):
                return rows
    return ()


def _result(row: JSON) -> SearchResult | None:
    """Return one result; `None` for a row without a URL of a page."""
    if not isinstance(row, dict):
        return None
    url = _first(row, _URLS)
    if not url.startswith(("http://", "https://")) or len(url) > LONGEST_URL or not url.isprintable():
        return None
    return SearchResult(
        url=url,
        title=_first(row, _TITLES)[:LONGEST_TITLE] or url,
        text=_first(row, _TEXTS) or None,
        age=_first(row, _AGES)[:LONGEST_AGE] or None,
    )


def _first(row: Mapping[str, JSON], names: Sequence[str]) -> str:
    return next((value.strip() for name in names if isinstance(value := row.get(name), str) and value.strip()), "")


def is_allowed(url: str, tool: HostedTool) -> bool:
    """Return whether `tool` may use a URL: its host, or a domain above it, is allowed and not blocked."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
    except ValueError:
        return False
    path = normpath("/" + unquote(parts.path).lstrip("/"))  # as the server of the page resolves it
    if tool.allowed_domains is not None and not any(_within(host, path, one) for one in tool.allowed_domains):
        return False
    return not any(_within(host, path, one) for one in tool.blocked_domains or ())


def _within(host: str, path: str, domain: str) -> bool:
    """Return whether a host and a path are in a domain, which may have a path (`example.com/blog`)."""
    name, _, folder = domain.lower().removeprefix("https://").removeprefix("http://").partition("/")
    inside = host == name or host.endswith(f".{name}")
    prefix = "/" + folder.rstrip("/*")
    return inside and (not folder or path == prefix or path.startswith(f"{prefix}/"))


def outcome_of(kind: str, value: Any, tool: HostedTool, most: int) -> ToolOutcome:  # noqa: ANN401  of the operator's code
    """Return what a Python function or an MCP tool returned: objects, a text, or what a program printed."""
    if isinstance(value, ToolOutcome):
        return value
    if kind == "web_search":
        return _search_text(value, tool) if isinstance(value, str) else ToolOutcome(search_results(value, tool, most))
    if kind == "code_execution":
        return ToolOutcome((_code_output(value),))
    if isinstance(value, Mapping):
        url, title = _first(value, _URLS)[:LONGEST_URL] or None, _first(value, _TITLES)[:LONGEST_TITLE] or None
        return ToolOutcome((SearchResult(url=url, title=title, text=_first(value, _TEXTS)),))
    return ToolOutcome((SearchResult(text=str(value)),))


def _search_text(text: str, tool: HostedTool) -> ToolOutcome:
    """Return the outcome of a search whose results are one text."""
    if text and (tool.allowed_domains is not None or tool.blocked_domains):
        return failed("unavailable", "the search returned a text: its domains cannot be checked")
    return ToolOutcome((Text(text=text),)) if text else ToolOutcome()


def _code_output(value: Any) -> CodeOutput:  # noqa: ANN401  as above
    if not isinstance(value, Mapping):
        return CodeOutput(stdout=str(value), exit_code=0)
    code = value.get("exit_code", value.get("return_code"))
    return CodeOutput(
        stdout=str(value.get("stdout", "")),
        stderr=str(value.get("stderr", "")),
        exit_code=code if isinstance(code, int) else None,
    )


def shortened(outcome: ToolOutcome, most: int) -> ToolOutcome:
    """Return an outcome with `most` bytes of text at most, each part with its share of them, and few images.

    What is left out is replaced by a text about that.
    """
    content, over = outcome.content[:MOST_PARTS], len(outcome.content) - MOST_PARTS
    share, room = most // max(1, len(content)), MOST_IMAGE_BYTES
    parts: list[Content] = []
    for part in content:
        size = _image_bytes(part)
        fits = size <= room
        parts.append(_shortened(part, share) if fits else Text(text=LEFT_OUT))
        room -= size if fits else 0
    if over > 0:
        parts.append(Text(text=f"[{over} more parts are left out]"))
    return replace(outcome, content=tuple(parts), reason=cut(outcome.reason, most))


def _image_bytes(part: Content) -> int:
    return len(part.source.data) if isinstance(part, Image) and isinstance(part.source, Inline) else 0


def _shortened(part: Content, most: int) -> Content:
    match part:
        case Text(text=text) if len(text) > most // 4:
            return replace(part, text=cut(text, most))
        case SearchResult(text=str(text)) if len(text) > most // 4:
            return replace(part, text=cut(text, most))
        case CodeOutput():
            return replace(part, stdout=cut(part.stdout, most // 2), stderr=cut(part.stderr, most // 2))
        case _:
            return part


def cut(text: str, most: int) -> str:
    """Return the first `most` bytes of a text, without half a character."""
    data = text.encode("utf-8", "replace")
    return text if len(data) <= most else data[:most].decode("utf-8", "ignore") + " [...]"


def model_text(outcome: ToolOutcome, first: int) -> str:
    """Return what the model gets of an outcome; its results are numbered from `first` on."""
    if outcome.error is not None:
        return f"{outcome.error}: {outcome.reason}"
    pieces = [*_texts(outcome.content, first)]
    return "\n\n".join(pieces) or "No results."


def _texts(content: Sequence[Content], first: int) -> Iterator[str]:
    number = first
    for part in content:
        match part:
            case SearchResult():
                head = f"[{number}] {part.title or part.url or 'Page'}"
                lines = [head, part.url or "", part.age or "", part.text or ""]
                yield "\n".join(line for line in lines if line)
                number += 1
            case CodeOutput():
                yield _code_text(part)
            case Text(text=text):
                yield text
            case _:
                pass


def _code_text(output: CodeOutput) -> str:
    pieces = [f"exit code: {output.exit_code}"] if output.exit_code else []
    pieces += [output.stdout] if output.stdout else []
    pieces += [f"stderr:\n{output.stderr}"] if output.stderr else []
    return "\n".join(pieces) or "(no output)"
