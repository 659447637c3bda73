"""Routes of the console: a row of the table, one request for it, and what its handler returns.

A handler gets a `ConsoleRequest` and returns a `Page` made from a template, a `Redirect`, a `RawBody` or an
`EventStream`. What it shows it asks of the administration (`admin_calls`), as every other client of it does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct, field

from xenoglot.gateway.auth.keys import Principal
from xenoglot.gateway.endpoint.request_context import RequestContext

if TYPE_CHECKING:
    from xenoglot.gateway.admin.route import EventStream, RawBody

CONSOLE: Final = "/console"
"""The beginning of every path of the console."""


class Session(Struct, frozen=True, kw_only=True):
    """The client that uses the console. `csrf` is the token that every form of the session bears.

    A session that is not `signed_in` is of a gateway that needs no key, which only its own machine can reach:
    it changes nothing.
    """

    client: Principal
    csrf: str = ""
    signed_in: bool = False

    @property
    def administers(self) -> bool:
        """Whether it may change the gateway."""
        return self.client.admin


class Page(Struct, frozen=True, kw_only=True):
    """A page, or a piece of one, made from a template in `templates/`; `cookie` as of a `Redirect`."""

    template: str
    values: Mapping[str, object] = field(default_factory=dict)
    status: int = 200
    cookie: str | None = None


class Redirect(Struct, frozen=True, kw_only=True):
    """Another page of the console, by its path there; `cookie` is the value of a `set-cookie` header."""

    to: str
    cookie: str | None = None


ConsoleResult: TypeAlias = "Page | Redirect | RawBody | EventStream"
Handler: TypeAlias = "Callable[[ConsoleRequest], Awaitable[ConsoleResult]]"


class ConsoleRoute(Struct, frozen=True, kw_only=True):
    """A row of the table. `path` follows `CONSOLE` and may have variables of one segment: `/requests/{id}`.

    A route with the method POST needs the token of the session; one that `changes` the gateway, the role admin too.
    One that is `public` needs no session.
    """

    method: Literal["GET", "POST"]
    path: str
    handler: Handler
    changes: bool = False
    public: bool = False


class ConsoleRequest(Struct, frozen=True, kw_only=True):
    """A request of a browser. `variables` are those of the path, decoded; `form` is the body of a POST.

    `parameters` are the values of each name in the query; `body` is the whole body of a POST. `admitted` returns
    whether the session still holds; it raises `FailureError` if the store cannot be used.
    """

    ctx: RequestContext
    admitted: Callable[[], Awaitable[bool]]
    session: Session
    variables: Mapping[str, str]
    parameters: Mapping[str, Sequence[str]]
    form: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def parameter(self, name: str) -> str | None:
        """Return the last value of a parameter that is set and not empty."""
        values = self.parameters.get(name)
        return values[-1].strip() or None if values else None

    @property
    def is_fragment(self) -> bool:
        """Whether a script asks for a piece of the page in place of all of it (https://htmx.org/reference/#headers)."""
        return self.ctx.exchange.header("hx-request") == "true"
