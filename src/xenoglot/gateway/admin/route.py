"""Routes of the administration: a row of the table, one request for it, and what its handler returns.

A handler gets an `AdminRequest` and returns a struct or a JSON object, a `Page`, a `RawBody` or an `EventStream`. It
reads parameters of the query with `request.query(kind)` and the body with `request.body(kind)`, both structs that
forbid unknown fields; the row names the same structs, from which the OpenAPI document is made.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Final, Literal, TypeAlias, TypeVar, get_origin

import msgspec
from msgspec import Meta, Struct

from xenoglot.codec.json.json_io import encode_json
from xenoglot.errors import FailureError, WireError
from xenoglot.gateway.endpoint.request_context import RequestContext
from xenoglot.model.failure import Failure
from xenoglot.model.json import JSON, JSONObject
from xenoglot.store.ledger.audit import Change

T = TypeVar("T", bound=Struct)

ADMIN: Final = "/admin/v1"
"""The beginning of every path of the administration."""

MOST_ROWS: Final = 1000
"""Rows of one page."""

LOCAL: Final = "local"
"""The actor at a gateway without keys, which only this machine can reach."""

_MISSING = re.compile(r"Object missing required field `(.*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")


class EmptyQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """The query of a route without parameters."""


class PageQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which page of a list: at most `limit` rows, `after` the cursor `next` of the page before."""

    limit: Annotated[int, Meta(ge=1, le=MOST_ROWS)] = 50
    after: str | None = None


class Page(Struct, frozen=True, kw_only=True):
    """A page of a list. `next` is the cursor for the following page, null on the last one."""

    object: Literal["list"] = "list"
    data: Sequence[Struct | JSONObject]
    has_more: bool
    next: str | None

    @classmethod
    def of(cls, rows: Sequence[T], limit: int, key: Callable[[T], tuple[float | str, ...]]) -> Page:
        """Return a page of at most `limit` of `rows`, of which one more was read to know whether there are more.

        `key` gives what rows are sorted by, which makes the cursor.
        """
        more = len(rows) > limit
        kept = rows[:limit]
        return cls(data=kept, has_more=more, next=encode_cursor(key(kept[-1])) if more else None)


class RawBody(Struct, frozen=True):
    """A body that is not JSON."""

    body: bytes
    media_type: str


class EventStream(Struct, frozen=True):
    """A body of server-sent events, sent as they come until the generator ends."""

    frames: AsyncGenerator[bytes]


AdminResult: TypeAlias = "Struct | JSONObject | RawBody | EventStream"
Handler: TypeAlias = "Callable[[AdminRequest], Awaitable[AdminResult]]"


class AdminRoute(Struct, frozen=True, kw_only=True):
    """A row of the table. `path` follows `base` and may have variables of one segment: `/keys/{id}`.

    Viewers may use routes with the method GET, all others need the role admin. The handler of a route that `changes`
    something writes an entry of the audit log, in the transaction of the change (`AdminRequest.change`). `returns` is
    the struct of the response, of a row where `paged`.
    """

    method: Literal["GET", "POST", "PATCH", "DELETE"]
    base: str = ADMIN
    path: str
    handler: Handler
    summary: str
    query: type[Struct] = EmptyQuery
    takes: type[Struct] | None = None
    """The struct of the body; without one, the body is not read."""
    returns: type[Struct] | None = None
    paged: bool = False
    media_types: tuple[str, ...] = ()
    """Further media types of the response, in addition to JSON."""
    status: int = 200
    changes: bool = False

    @property
    def full_path(self) -> str:
        """The path as the gateway serves it."""
        return self.base + self.path


class AdminRequest(Struct, kw_only=True):
    """A request of an administrator or viewer. `variables` are those of the path, decoded; `value` is the JSON body.

    `parameters` are the values of each name in the query. `admitted` returns whether its key or session may still read,
    for streams; it raises `FailureError` if that cannot be found out.
    """

    ctx: RequestContext
    admitted: Callable[[], Awaitable[bool]]
    route: AdminRoute
    variables: Mapping[str, str]
    parameters: Mapping[str, Sequence[str]]
    value: JSON = None

    @property
    def id(self) -> str:
        """The id of the request, for the audit log."""
        return self.ctx.record.request_id

    @property
    def actor(self) -> str:
        """The sender, for the audit log: the id of the key."""
        return self.ctx.client.key or LOCAL

    def change(self, now: float) -> Change:
        """Return the change that it makes at the Unix time `now`, for its entry in the audit log."""
        return Change(id=f"audit_{secrets.token_hex(12)}", at=now, actor=self.actor, request=self.id)

    def query(self, kind: type[T]) -> T:
        """Return the parameters of the query.

        Raises:
            WireError: one is unknown, missing, or not of its type.
        """
        lists = {one.encode_name for one in msgspec.structs.fields(kind) if get_origin(one.type) is tuple}
        given = {name: list(all_) if name in lists else all_[-1] for name, all_ in self.parameters.items()}
        return decoded(given, kind, strict=False)

    def body(self, kind: type[T]) -> T:
        """Return the body.

        Raises:
            WireError: a field is unknown, missing, or not of its type.
        """
        return decoded({} if self.value is None else self.value, kind)


def decoded(value: JSON, kind: type[T], *, strict: bool = True) -> T:
    """Return a JSON value as a struct; where not `strict`, numbers and flags may be text.

    Raises:
        WireError: it is not one; the error has the path.
    """
    try:
        return msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise _wire_error(str(error)) from None


def not_found(what: str, name: str) -> FailureError:
    """Return the error for an object that does not exist."""
    return FailureError(Failure(kind="not_found", message=f"no {what} `{name[:100]}` exists"))


def conflict(problem: str) -> FailureError:
    """Return the error for a change that does not fit what exists."""
    return FailureError(Failure(kind="conflict", message=problem))


def encode_cursor(key: Sequence[float | str]) -> str:
    """Return the cursor of the row with this sort key."""
    return base64.urlsafe_b64encode(encode_json(list(key))).rstrip(b"=").decode()


def decode_cursor(text: str | None, *kinds: type[float | str]) -> tuple[float | str, ...] | None:
    """Return the sort key of a cursor, whose parts are of these `kinds`; `None` without a cursor.

    Raises:
        WireError: it is not a cursor of such a list.
    """
    if text is None:
        return None
    try:
        data = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
        found = msgspec.json.decode(data, type=list[float | str])
    except (ValueError, UnicodeError):
        found = []
    if [type(part) for part in found] != list(kinds):
        raise WireError("$.after", "expected the value `next` of the page before")
    return tuple(found)


def _wire_error(text: str) -> WireError:
    """Return msgspec's error with the path of the field that is wrong."""
    problem, _, path = text.partition(" - at `")
    path = path.removeprefix("key` in `").removesuffix("`") or "$"
    if (found := _MISSING.fullmatch(problem)) is not None:
        return WireError(f"{path}.{found[1]}", "required")
    if (found := _UNKNOWN.fullmatch(problem)) is not None:
        return WireError(f"{path}.{found[1]}", "unknown field; remove it")
    return WireError(path, problem.replace(" | null", "").replace("Expected", "expected"))
