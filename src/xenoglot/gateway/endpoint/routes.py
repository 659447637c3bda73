"""The route table: paths, their handlers and who may use them. A path is looked up, never interpreted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.codec.dialect import Dialect
from xenoglot.gateway.auth.keys import Policy
from xenoglot.gateway.endpoint.request_context import Handler

if TYPE_CHECKING:
    from collections.abc import Sequence

VERSION = "/v1"
"""Left out by some clients, whose base URL is meant to have it."""

MOST_SEGMENTS: Final = 8
"""Segments of a path that are looked at to guess whose it is."""

_VARIABLE = re.compile(r"\{(\w+)\}")
_WITH_SLASHES = "model"
"""The variable that may have slashes in it in any position: names of models do."""

USUAL_DIALECT: Final = "chat"
"""Whose errors and lists are written where the client's dialect is unknown."""


class EndpointRow(Struct, frozen=True, kw_only=True):
    """A row of the table. `dialect` is that of the route, where it has one; errors are written in it.

    `policy` is the access: all clients (`open`), clients with a key, where any is configured (`key`), or administrators
    (`admin`; where there are none, that is as `key`). `view` needs the role admin or viewer, `manage` the role admin;
    no key is needed for them where none of any kind is configured. `once`: an idempotency key has an effect,
    `form` that what is posted is a form with files and no JSON, `raw` that it is bytes of any type, `generates` that a
    model answers, `upgrade` that the connection may become a WebSocket. A `marked` row is for clients with a mark of
    its dialect; for others the path has a row of another.
    """

    method: str
    path: str
    policy: Policy
    handler: Handler
    dialect: Dialect | None = None
    once: bool = False
    form: bool = False
    generates: bool = False
    raw: bool = False
    marked: bool = False
    upgrade: bool = False


class EndpointMatch(Struct, frozen=True):
    """What is served at a path: the rows by their methods, and what stands in the place of the template's braces."""

    rows: Mapping[str, EndpointRow]
    variables: Mapping[str, str]
    marked: Mapping[str, Mapping[str, EndpointRow]] = {}
    """Rows for clients with a mark of a dialect, by its name."""


NOTHING = EndpointMatch({}, {})


class Routes:
    """Finds the rows of a path: the path as it stands there, with a slash at its end, or without the version.

    A path of a row may be a template: `{id}` stands for one segment, at the end for all that follows. Of several that
    fit, the one with the longest text of its own counts. Under the prefixes of `mirrors`, their rows are served too.
    """

    def __init__(
        self, endpoints: Sequence[EndpointRow], mirrors: Mapping[str, Sequence[EndpointRow]] | None = None
    ) -> None:
        self.endpoints = tuple(endpoints)
        self._exact: dict[str, EndpointMatch] = {}
        templates: dict[str, dict[str, EndpointRow]] = {}
        rows: dict[str, dict[str, EndpointRow]] = {}
        marked: dict[str, dict[str, dict[str, EndpointRow]]] = {}
        for endpoint in endpoints:
            table = templates if _VARIABLE.search(endpoint.path) else rows
            methods = table.setdefault(endpoint.path, {})
            if endpoint.marked and endpoint.dialect is not None:
                methods = marked.setdefault(endpoint.path, {}).setdefault(endpoint.dialect.name, {})
            methods[endpoint.method] = endpoint
        self._exact = {path: EndpointMatch(found, {}, marked.get(path, {})) for path, found in rows.items()}
        self._templates = [
            (_pattern(path), templates[path], marked.get(path, {}))
            for path in sorted(templates, key=lambda path: len(_VARIABLE.sub("", path)), reverse=True)
        ]
        self._beginnings = _beginnings(endpoints)
        self._mirrors = {f"{beginning}/": Routes(rows) for beginning, rows in (mirrors or {}).items()}

    def nearest(self, path: str) -> Dialect | None:
        """Return the dialect whose paths begin as `path` does, at which nothing is served; `None` for several, or none.

        The longest beginning counts, by whole segments: `/api/x` is Ollama's, `/v1/x` could be of any dialect.
        """
        segments = path.split("/", MOST_SEGMENTS)[:MOST_SEGMENTS]
        for end in range(len(segments), 1, -1):
            beginning = "/".join(segments[:end])
            if beginning in self._beginnings:
                return self._beginnings[beginning]
        return None

    def find(self, path: str) -> EndpointMatch:
        """Return what is served at `path`; no rows if there is no such path.

        `path` is as it came, escapes and all: `/v1//models` and `/v1/%2e%2e/health` are paths that are not served.
        """
        for candidate in (path, path.removesuffix("/")):
            for spelled in (candidate, VERSION + candidate):
                found = self._exact.get(spelled)
                if found is not None:
                    return found
        return self._mirrored(path) or self._find_template(path)

    def _mirrored(self, path: str) -> EndpointMatch | None:
        """Return what is served at a path that mirrors another."""
        for beginning, routes in self._mirrors.items():
            if path.startswith(beginning):
                return routes.find(f"{VERSION}/{path.removeprefix(beginning)}")
        return None

    def _find_template(self, path: str) -> EndpointMatch:
        for spelled in (path, VERSION + path):
            for pattern, rows, marked in self._templates:
                if fits := pattern.fullmatch(spelled):
                    return EndpointMatch(rows, fits.groupdict(), marked)
        return NOTHING


def _beginnings(endpoints: Sequence[EndpointRow]) -> dict[str, Dialect | None]:
    """Return whose paths begin how; `None` where dialects share a beginning that write errors differently."""
    found: dict[str, Dialect | None] = {}
    for endpoint in sorted(endpoints, key=lambda one: one.dialect is not None and one.dialect.shares_paths):
        if endpoint.dialect is None or endpoint.marked:
            continue
        segments = endpoint.path.partition("{")[0].rstrip("/").split("/")
        for end in range(2, min(len(segments), MOST_SEGMENTS) + 1):
            beginning = "/".join(segments[:end])
            known = found.setdefault(beginning, endpoint.dialect)
            if known is None or endpoint.dialect.shares_paths:
                continue
            if known.encode_error is not endpoint.dialect.encode_error:
                found[beginning] = None
    return found | {endpoint.path: None for endpoint in endpoints if endpoint.dialect is None}


def _pattern(template: str) -> re.Pattern[str]:
    """Return what fits a template. No two variables touch, so a search costs no more than the path is long."""
    pieces = _VARIABLE.split(template)
    pattern = re.escape(pieces[0])
    for name, text in zip(pieces[1::2], pieces[2::2], strict=True):
        pattern += f"(?P<{name}>{'.+' if not text or name == _WITH_SLASHES else '[^/]+'})" + re.escape(text)
    return re.compile(pattern)
