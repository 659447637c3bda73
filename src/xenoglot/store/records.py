"""What a store keeps, and how it is asked for it: answers, conversations, windows of lists, retention, its error."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from xenoglot.errors import XenoglotError
from xenoglot.model.json import JSON, JSONObject

Order: TypeAlias = Literal["asc", "desc"]

ReasoningKey: TypeAlias = tuple[str, str, str]
"""Where something is in the vault: its owner, its key, and the backend that it is for."""

UNDONE = ("queued", "in_progress")
"""The statuses of an answer that somebody is still at work on."""


IDEMPOTENCY = "(idempotency)"
"""The `backend` of what the vault holds for requests that must be answered once."""

IDEMPOTENCY_SECONDS = 86_400.0
"""How long that is held, unless everything is held for less."""


class StoreError(XenoglotError):
    """The store cannot be reached, is broken, or is full; the text says which, and quotes nothing that it keeps."""


class Stored(Struct, frozen=True, kw_only=True):
    """An answer that is kept, in the words of the dialect `kind`.

    `items` are all that the model was given, `output` are those that the answer adds, under whose ids they are found.
    `streamed` says that the frames of its stream are kept. An answer that is not done has a `process`, which vouches
    for it until `lease`. `losses` is what a client that asks for it is told of what the answer lost.
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
    """A list of items that answers add to; its items are asked for by themselves."""

    id: str
    owner: str
    created: float
    metadata: JSON = None


class Window(Struct, frozen=True, kw_only=True):
    """Which of a list: at most `limit`, behind the one called `after`, in the `order` of time."""

    limit: int
    after: str | None = None
    order: Order = "desc"


class Retention(Struct, frozen=True, kw_only=True):
    """How long things are kept: at most `max_age` seconds, and no more than `max_bytes` in all, the newest."""

    max_age: float
    max_bytes: int
