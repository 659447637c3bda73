"""The record of a dialect's stored responses, background responses and conversations.

The gateway stores them; the wire format is the dialect's. Pure: stored data and times are arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.model.failure import Failure
from xenoglot.model.json import JSON, JSONObject


class StoreOptions(Struct, frozen=True, kw_only=True):
    """The fields of a request that need stored data or store the answer.

    `keep` asks for its answer to be kept; `previous` is the answer that it continues, `conversation` the conversation
    that it is a part of, `references` are ids of items that it does not repeat; in the `background` its answer is made
    whether the client stays or not.
    """

    keep: bool = False
    previous: str | None = None
    conversation: str | None = None
    references: tuple[str, ...] = ()
    background: bool = False

    @property
    def stateless(self) -> bool:
        """Whether nothing has to be known or kept for it."""
        return self == NO_STORE_OPTIONS


NO_STORE_OPTIONS = StoreOptions()
"""The options of most requests: nothing is stored or looked up."""


class StoredAnswer(Struct, frozen=True, kw_only=True):
    """A stored answer before it exists: the gateway's id for it, and the request that it answers.

    `created` is when one was begun that is made in the background (Unix seconds); any other has that itself.
    """

    id: str
    wish: StoreOptions
    request: JSONObject
    created: int | None = None


class StoredStream(Protocol):
    """A stage that rewrites the stream of an answer to that of a stored one, and collects the complete answer."""

    def feed(self, event: ServerSentEvent, /) -> Sequence[ServerSentEvent]:
        """Take one event; return what the client gets for it."""
        ...

    def close(self) -> Sequence[ServerSentEvent]:
        """End the stream; nothing is buffered."""
        ...

    @property
    def answer(self) -> JSONObject | None:
        """The whole answer as it is kept; `None` while it is not over."""
        ...


class Background(Struct, frozen=True, kw_only=True):
    """The stream events of an answer that is generated in the background.

    `opening` are the first events of its stream; the events of the model's own stream about its beginning are left out
    then. `ending` are the last events of one that was broken off.
    """

    opening: Callable[[JSONObject], Sequence[ServerSentEvent]]
    ending: Callable[[JSONObject, int], Sequence[ServerSentEvent]]


class Conversations(Struct, frozen=True, kw_only=True):
    """Conversations: lists of items that clients store on a server.

    `create` takes the body that makes one apart: its metadata and its items. `added` are the items of a body that adds
    some. Items get ids from `identify`, which gets a unique text, and the existing items.
    """

    path: str
    id_prefix: str
    create: Callable[[JSON], tuple[JSON, list[JSONObject]]]
    metadata: Callable[[JSON], JSON]
    added: Callable[[JSON], list[JSONObject]]
    identify: Callable[[Sequence[JSON], str, Sequence[JSON]], list[JSONObject]]
    show: Callable[[str, int, JSON], JSONObject]
    deleted: Callable[[str], JSONObject]
    unknown: Callable[[str], Failure]
    unknown_item: Callable[[str, str], Failure]
    locked: Callable[[], Failure]


class StoredResponseCodec(Struct, frozen=True, kw_only=True):
    """A dialect's stored responses. `path` is their endpoint, `items_path` that of their items (empty: there is none).

    `items` are those of a request; one that `refers` stands for an item that is kept, whose id it has. `prepare` writes
    a request again with all the items that it refers to, and without the option to store. `output` are the items that
    an answer adds to what follows. `show` makes an answer that of a kept request, `mark` changes its status (and the
    reason if it failed), `status` reads it. `listed` are items as they are listed, given a text that no other answer
    has.
    """

    path: str
    id_prefix: str
    items_path: str
    wish: Callable[[JSON], StoreOptions]
    items: Callable[[JSONObject], list[JSON]]
    refers: Callable[[JSON], bool]
    prepare: Callable[[JSONObject, Sequence[JSON]], JSONObject]
    ask_seals: Callable[[JSONObject], JSONObject]
    """Changes a prepared request for a server of the same dialect to return the encrypted reasoning needed later."""
    output: Callable[[JSONObject], list[JSON]]
    show: Callable[[JSONObject, StoredAnswer], JSONObject]
    showing: Callable[[StoredAnswer], StoredStream]
    mark: Callable[[JSONObject, str, Failure | None], JSONObject]
    status: Callable[[JSONObject], str]
    listed: Callable[[Sequence[JSON], str], list[JSONObject]]
    page: Callable[[Sequence[JSONObject], bool], JSONObject]
    deleted: Callable[[str], JSONObject]
    unknown: Callable[[str], Failure]
    unknown_previous: Callable[[str], Failure]
    unfinished_previous: Callable[[str], Failure]
    """The failure for an answer that is still in progress, so that nothing can continue it yet."""
    unknown_item: Callable[[str], Failure]
    not_followed: Callable[[str], Failure]
    """For an answer whose stream was not stored."""
    not_in_background: Callable[[], Failure]
    """For an answer that cannot be cancelled, because it is not generated in the background."""
    require: Callable[[JSON], None] | None = None
    """Raises `FailureError` if a request lacks a field that the dialect requires, in the dialect's own text."""
    oldest_first: bool = False
    """The default order of its lists."""
    update: Callable[[JSONObject, JSON], JSONObject] | None = None
    """An answer changed by a body that is posted to it, where that can be done; such answers are listed, too."""
    background: Background | None = None
    conversations: Conversations | None = None
    aliases: tuple[str, ...] = ()
    """Further paths of their endpoint."""
    with_input: Callable[[JSONObject, Sequence[JSON]], JSONObject] | None = None
    """An answer with its input items, for a query with `include_input`; without it they have an endpoint alone."""
    resumed_after: str = "starting_after"
    """The query parameter with the event after which a stream continues."""
    event_number: Callable[[str], int] | None = None
    """Returns the number of an event from its id; without it the number is the id."""
