"""The route table: what is served where, to whom. Looking a path up is looking it up: nothing in it is interpreted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from xenoglot.codec.dialect import Dialect

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from xenoglot.gateway.exchange import Exchange
    from xenoglot.gateway.gateway import Gateway
    from xenoglot.gateway.observe import Record

    Handler: TypeAlias = "Callable[[Exchange, Dialect, Gateway, Record], Awaitable[None]]"

VERSION = "/v1"
"""Left out by some clients, whose base URL is meant to have it."""

ANYTHING = "{id}"
"""What a path may end in, to stand for whatever follows."""

Policy: TypeAlias = "Literal['open', 'key']"


class Endpoint(Struct, frozen=True, kw_only=True):
    """A row of the table. `dialect` is that of the route, where it has one; errors are written in it.

    `policy` says who may: everybody (`open`), or whoever shows a key, where keys are configured (`key`).
    """

    method: str
    path: str
    policy: Policy
    handler: Handler
    dialect: Dialect | None = None

    @property
    def prefix(self) -> str:
        """The path, without the part that varies."""
        return self.path.removesuffix(ANYTHING)


class Routes:
    """Finds the rows of a path: the path as it stands there, with a slash at its end, or without the version."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self.endpoints = tuple(endpoints)
        self._exact: dict[str, dict[str, Endpoint]] = {}
        self._prefixes: dict[str, dict[str, Endpoint]] = {}
        for endpoint in endpoints:
            rows = self._prefixes if endpoint.path.endswith(ANYTHING) else self._exact
            rows.setdefault(endpoint.prefix, {})[endpoint.method] = endpoint

    def find(self, path: str) -> Mapping[str, Endpoint]:
        """Return the rows for `path` by their methods; none if there is no such path.

        `path` is as it came, escapes and all: `/v1//models` and `/v1/%2e%2e/health` are paths that nobody serves.
        """
        for candidate in (path, path.removesuffix("/")):
            for spelled in (candidate, VERSION + candidate):
                rows = self._exact.get(spelled)
                if rows is not None:
                    return rows
        return self._find_prefix(path)

    def _find_prefix(self, path: str) -> Mapping[str, Endpoint]:
        for spelled in (path, VERSION + path):
            for prefix, rows in self._prefixes.items():
                if spelled.startswith(prefix) and len(spelled) > len(prefix):
                    return rows
        return {}
