"""Protocol of a store: responses, their streams, conversations, files, batches and a reasoning cache, by owner.

An owner is the client's digest; every lookup names one, and data of other owners does not exist for it. Times are Unix
seconds and always arguments: a store has no clock. Every method raises `StoreError` if the store fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Sequence

    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.store.batches import Batches
    from xenoglot.store.files import Files
    from xenoglot.store.records import Conversation, ReasoningKey, Retention, Stored, Window

T = TypeVar("T")


class Store(Protocol):
    """The protocol of a store."""

    @property
    def files(self) -> Files:
        """The stored files."""
        ...

    @property
    def batches(self) -> Batches:
        """The stored batches."""
        ...

    def has_history(self) -> bool:
        """Whether it may contain data from before this process started; checked without opening it."""
        ...

    async def ready(self) -> None:
        """Open it if it is not; afterwards it can probably be used."""
        ...

    async def put(self, answer: Stored) -> None:
        """Store a response, replacing one with its id."""
        ...

    async def get(self, owner: str, answer: str) -> Stored | None:
        """Return the answer with that id."""
        ...

    async def delete(self, owner: str, answer: str) -> bool:
        """Delete an answer and its frames; return whether it existed."""
        ...

    async def answers(self, owner: str, kind: str, window: Window) -> list[Stored]:
        """Return answers of one kind."""
        ...

    async def settle(self, answer: Stored, first: int = 0, frames: Sequence[bytes] = ()) -> bool:
        """Replace a response in progress by its outcome, and store the last frames of its stream.

        Returns whether it was in progress; if not, nothing changes.
        """
        ...

    async def amend(self, answer: Stored) -> bool:
        """Replace a response; return whether it exists. A deleted one stays deleted."""
        ...

    async def renew(self, process: str, until: float) -> set[tuple[str, str]]:
        """Vouch for all undone answers of a process; return their owners and ids."""
        ...

    async def append(self, owner: str, answer: str, first: int, frames: Sequence[bytes]) -> None:
        """Store frames of a response's stream, numbered from `first`."""
        ...

    async def frames(self, owner: str, answer: str, after: int, limit: int) -> list[tuple[int, bytes]]:
        """Return frames with their numbers, in order, after the number `after`."""
        ...

    async def item(self, owner: str, item: str) -> JSON:
        """Return the item with that id, of a response's output or a conversation; `None` if it does not exist."""
        ...

    async def create_conversation(self, conversation: Conversation, items: Sequence[JSONObject]) -> None:
        """Store a new conversation. The items have ids."""
        ...

    async def conversation(self, owner: str, conversation: str) -> Conversation | None:
        """Return the conversation with that id."""
        ...

    async def update_conversation(self, owner: str, conversation: str, metadata: JSON) -> Conversation | None:
        """Replace its metadata; return the conversation."""
        ...

    async def delete_conversation(self, owner: str, conversation: str) -> bool:
        """Delete a conversation and its items; return whether it existed."""
        ...

    async def add_items(self, owner: str, conversation: str, items: Sequence[JSONObject], now: float) -> bool:
        """Append items; return whether the conversation exists."""
        ...

    async def items(self, owner: str, conversation: str, window: Window) -> list[JSONObject]:
        """Return items of a conversation; none if it does not exist."""
        ...

    async def conversation_item(self, owner: str, conversation: str, item: str) -> JSON:
        """Return one item of a conversation; `None` if it does not exist."""
        ...

    async def delete_item(self, owner: str, conversation: str, item: str) -> bool:
        """Delete one item of a conversation; return whether it existed."""
        ...

    async def lock(self, owner: str, conversation: str, holder: str, now: float, until: float) -> bool:
        """Lock a conversation until then; return whether no other holder has it."""
        ...

    async def unlock(self, owner: str, conversation: str, holder: str) -> None:
        """Unlock a conversation."""
        ...

    async def put_cached(self, owner: str, key: str, backend: str, payload: bytes, now: float) -> None:
        """Store a cache entry."""
        ...

    async def get_cached(self, owner: str, key: str, backend: str) -> bytes | None:
        """Return the cache entry under that key for that backend."""
        ...

    async def get_cached_of(self, owner: str, keys: Sequence[str], backend: str) -> dict[str, bytes]:
        """Return the cache entries under any of those keys for that backend, by key: one request to the database."""
        ...

    async def has_cached(self) -> bool:
        """Return whether there is any cache entry."""
        ...

    def version(self) -> Hashable | None:
        """Return what changes with every write of any process; `None`: that cannot be known without asking."""
        ...

    async def swap(self, place: ReasoningKey, before: bytes | None, after: bytes | None, now: float) -> bool:
        """Replace the cache entry `before` by `after`, `None` being no entry; return whether it was `before`.

        Of several concurrent calls one succeeds.
        """
        ...

    async def protected_bytes(self, owner: str) -> int:
        """Return the bytes of an owner that retention never deletes: batches in progress, and incomplete files."""
        ...

    async def sweep(self, now: float, limits: Retention, batch: int) -> int:
        """Delete at most `batch` expired or excess entries; return how many, 0 if there are none."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


class StoreHistory(Protocol):
    """A store that knows without a request whether it may contain anything."""

    def has_history(self) -> bool:
        """Return whether it may contain data from before this process started."""
        ...


class TimedStore(Protocol):
    """A store that has a clock, and a time limit for each request to it."""

    @property
    def store(self) -> StoreHistory:
        """The store itself, which is a database."""
        ...

    @property
    def now(self) -> Callable[[], float]:
        """Gives Unix seconds."""
        ...

    async def within(self, asked: Awaitable[T]) -> T:
        """Return the result of the store in time, or raise `StoreError`."""
        ...
