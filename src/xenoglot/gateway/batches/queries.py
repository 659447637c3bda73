"""Requests about files and batches: the client, the object, and the part of a list."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from urllib.parse import parse_qs, unquote

from xenoglot.errors import WireError
from xenoglot.gateway.store_service import is_id
from xenoglot.store.records import Window

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.gateway.config.settings import BatchSettings
    from xenoglot.gateway.endpoint.request_context import BodyReader, RequestContext
    from xenoglot.gateway.store_service import StoreService
    from xenoglot.store.records import Order

BatchAct: TypeAlias = Literal["create", "list", "retrieve", "cancel", "delete", "results"]
UploadAct: TypeAlias = Literal["create", "part", "complete", "cancel"]
ResumableAct: TypeAlias = Literal["start", "continue"]
FileAct: TypeAlias = Literal["upload", "list", "retrieve", "delete", "content"]

FILE: Final = "file"
"""What the field with the file is called."""

NAMELESS: Final = "file"
"""The name of a file that has none."""

LONGEST_NAME: Final = 255
"""Characters of a file's name that are kept."""

_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,127}/[a-z0-9!#$&^_.+-]{1,127}")
_FOLDERS = re.compile(r".*[/\\]", re.DOTALL)

ORDERS: Mapping[str, Order] = {"asc": "asc", "desc": "desc"}
_LONGEST_NUMBER = 9


class BatchQuery:
    """A request about files or batches, and its client."""

    def __init__(self, ctx: RequestContext, keeper: StoreService, bodies: BodyReader, settings: BatchSettings) -> None:
        self.ctx = ctx
        self.exchange = ctx.exchange
        self.dialect = ctx.dialect
        self.record = ctx.record
        self.keeper = keeper
        self.bodies = bodies
        self.settings = settings
        self.owner = ctx.client.owner

    @property
    def name(self) -> str:
        """The id in the path; one that nothing can have is nothing's."""
        name = unquote(self.exchange.variables["id"])
        return name if is_id(name) else "?"

    def query(self, name: str) -> str | None:
        """Return the last value of a query parameter."""
        values = parse_qs(self.exchange.query).get(name)
        return values[-1] if values else None

    async def pass_body(self) -> None:
        """Read the body, in which nothing is wanted: now the client's leaving is noticed."""
        await self.bodies.read(self.exchange)

    def limit(self, usual: int, most: int) -> int:
        """Return how many of a list are wanted.

        Raises:
            WireError: the query has no such number.
        """
        said = self.query("limit")
        if said is None:
            return usual
        number = int(said) if said.isascii() and said.isdecimal() and len(said) <= _LONGEST_NUMBER else 0
        if not 1 <= number <= most:
            raise WireError("$.limit", f"expected 1 to {most}")
        return number

    def place(self, field: str) -> str | None:
        """Return the id after which a list begins.

        Raises:
            WireError: the query's value is no id.
        """
        found = self.query(field)
        if found is not None and not is_id(found):
            raise WireError(f"$.{field}", "expected an id")
        return found


def wider(limit: int, after: str | None, order: Order) -> Window:
    """Return a window with one more item than requested, which shows whether more follow."""
    return Window(limit=limit + 1, after=after, order=order)


def size_of(items: Sequence[object], limit: int) -> bool:
    """Return whether there were more than wanted."""
    return len(items) > limit


def media_type(said: str) -> str | None:
    """Return a media type without its parameters; `None` if it is none."""
    plain = said.partition(";")[0].strip().lower()
    return plain if _MEDIA_TYPE.fullmatch(plain) else None


def bare(name: str) -> str:
    """Return a file's name without folders and characters that cannot be printed; it is shown, never opened."""
    plain = "".join(letter for letter in _FOLDERS.sub("", name) if letter.isprintable())
    return plain[:LONGEST_NAME] or NAMELESS
