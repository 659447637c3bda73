"""Records and parameters of the store: responses, conversations, list windows, retention, and its error."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from xenoglot.errors import XenoglotError
from xenoglot.model.json import JSON, JSONObject

Order: TypeAlias = Literal["asc", "desc"]

ReasoningKey: TypeAlias = tuple[str, str, str]
"""Key of the reasoning cache: the owner, the key, and the backend that it is for."""

UNDONE = ("queued", "in_progress")
"""Statuses of a response in progress."""


IDEMPOTENCY = "(idempotency)"
"""The `backend` of cache entries for idempotency keys."""

IDEMPOTENCY_SECONDS = 86_400.0
"""How long these entries are kept, unless retention is shorter."""


class StoreError(XenoglotError):
    """The store is unreachable, broken or full, as the text describes without stored data."""


class Stored(Struct, frozen=True, kw_only=True):
    """A stored response, in JSON of the dialect `kind`.

    `items` are all input items, `output` those of the response, which are found by their ids. `streamed`: the frames of
    its stream are stored. A response in progress has a `process`, which holds a lease on it until `lease`. `losses` is
    the loss report for clients that retrieve it.
    """

    id: str
    owner: str
    kind: str
    created: float
    status: str
    items: list[JSON]
    response: JSONObject
    output: list[JSON] = []
    previous: str | None = None
    conversation: str | None = None
    background: bool = False
    streamed: bool = False
    process: str | None = None
    lease: float | None = None
    losses: str = ""


class Conversation(Struct, frozen=True, kw_only=True):
    """A list of items that responses append to; items are retrieved separately."""

    id: str
    owner: str
    created: float
    metadata: JSON = None


class Window(Struct, frozen=True, kw_only=True):
    """A page of a list: at most `limit` entries after the one called `after`, in the `order` of time."""

    limit: int
    after: str | None = None
    order: Order = "desc"


class Retention(Struct, frozen=True, kw_only=True):
    """How long data is kept: at most `max_age` seconds, and at most `max_bytes` in all, the newest."""

    max_age: float
    max_bytes: int
