"""SQL store: the store's methods over a database that runs statements in a transaction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

from xenoglot.store import conversations, queries

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.store.batches import Batches
    from xenoglot.store.files import Files
    from xenoglot.store.queries import Steps
    from xenoglot.store.records import Conversation, ReasoningKey, Retention, Stored, Window

T = TypeVar("T")


class SQLStore(ABC):
    """A `Store`; subclasses implement `read` and `write`."""

    @abstractmethod
    async def read(self, steps: Steps[T]) -> T:
        """Run statements that change nothing, in one transaction."""

    @abstractmethod
    async def write(self, steps: Steps[T]) -> T:
        """Run statements in one transaction: committed when this returns, rolled back if it raises."""

    @abstractmethod
    def has_history(self) -> bool:
        """Whether it may contain data from before this process started."""

    @abstractmethod
    async def ready(self) -> None:
        """Open it if it is not; afterwards it can probably be used."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close all connections."""

    @property
    def files(self) -> Files:
        """The stored files."""
        from xenoglot.store.files import Files  # noqa: PLC0415  most gateways are never asked for one

        return Files(self)

    @property
    def batches(self) -> Batches:
        """The stored batches."""
        from xenoglot.store.batches import Batches  # noqa: PLC0415  as above

        return Batches(self)

    async def put(self, answer: Stored) -> None:
        """Store a response, replacing one with its id."""
        await self.write(queries.put(answer))

    async def get(self, owner: str, answer: str) -> Stored | None:
        """Return the answer with that id."""
        return await self.read(queries.get(owner, answer))

    async def delete(self, owner: str, answer: str) -> bool:
        """Delete an answer and its frames; return whether it existed."""
        return await self.write(queries.delete(owner, answer))

    async def answers(self, owner: str, kind: str, window: Window) -> list[Stored]:
        """Return answers of one kind."""
        return await self.read(queries.answers(owner, kind, window))

    async def settle(self, answer: Stored, first: int = 0, frames: Sequence[bytes] = ()) -> bool:
        """Replace a response in progress by its outcome; return whether it was in progress."""
        return await self.write(queries.settle(answer, first, frames))

    async def amend(self, answer: Stored) -> bool:
        """Replace an existing answer; return whether it exists."""
        return await self.write(queries.amend(answer))

    async def renew(self, process: str, until: float) -> set[tuple[str, str]]:
        """Vouch for all undone answers of a process; return their owners and ids."""
        return await self.write(queries.renew(process, until))

    async def append(self, owner: str, answer: str, first: int, frames: Sequence[bytes]) -> None:
        """Store frames of a response's stream, numbered from `first`."""
        await self.write(queries.append(owner, answer, first, frames))

    async def frames(self, owner: str, answer: str, after: int, limit: int) -> list[tuple[int, bytes]]:
        """Return frames with their numbers, in order, after the number `after`."""
        return await self.read(queries.frames(owner, answer, after, limit))

    async def item(self, owner: str, item: str) -> JSON:
        """Return the item with that id, of a response's output or a conversation; `None` if it does not exist."""
        return await self.read(queries.item(owner, item))

    async def create_conversation(self, conversation: Conversation, items: Sequence[JSONObject]) -> None:
        """Store a new conversation. The items have ids."""
        await self.write(conversations.create(conversation, items))

    async def conversation(self, owner: str, conversation: str) -> Conversation | None:
        """Return the conversation with that id."""
        return await self.read(conversations.get(owner, conversation))

    async def update_conversation(self, owner: str, conversation: str, metadata: JSON) -> Conversation | None:
        """Replace its metadata; return the conversation."""
        return await self.write(conversations.update(owner, conversation, metadata))

    async def delete_conversation(self, owner: str, conversation: str) -> bool:
        """Delete a conversation and its items; return whether it existed."""
        return await self.write(conversations.delete(owner, conversation))

    async def add_items(self, owner: str, conversation: str, items: Sequence[JSONObject], now: float) -> bool:
        """Append items; return whether the conversation exists."""
        return await self.write(conversations.add_items(owner, conversation, items, now))

    async def items(self, owner: str, conversation: str, window: Window) -> list[JSONObject]:
        """Return items of a conversation; none if it does not exist."""
        return await self.read(conversations.items(owner, conversation, window))

    async def conversation_item(self, owner: str, conversation: str, item: str) -> JSON:
        """Return one item of a conversation; `None` if it does not exist."""
        return await self.read(conversations.item(owner, conversation, item))

    async def delete_item(self, owner: str, conversation: str, item: str) -> bool:
        """Delete one item of a conversation; return whether it existed."""
        return await self.write(conversations.delete_item(owner, conversation, item))

    async def lock(self, owner: str, conversation: str, holder: str, now: float, until: float) -> bool:
        """Lock a conversation until then; return whether no other holder has it."""
        return await self.write(conversations.lock(owner, conversation, holder, now, until))

    async def unlock(self, owner: str, conversation: str, holder: str) -> None:
        """Unlock a conversation."""
        await self.write(conversations.unlock(owner, conversation, holder))

    async def put_cached(self, owner: str, key: str, backend: str, payload: bytes, now: float) -> None:
        """Store a cache entry."""
        await self.write(queries.put_cached(owner, key, backend, payload, now))

    async def get_cached(self, owner: str, key: str, backend: str) -> bytes | None:
        """Return the cache entry under that key for that backend."""
        return await self.read(queries.get_cached(owner, key, backend))

    async def get_cached_of(self, owner: str, keys: Sequence[str], backend: str) -> dict[str, bytes]:
        """Return the cache entries under any of those keys for that backend, by key."""
        return await self.read(queries.get_cached_of(owner, keys, backend))

    async def has_cached(self) -> bool:
        """Return whether there is any cache entry."""
        return await self.read(queries.has_cached())

    def version(self) -> Hashable | None:
        """Return what changes with every write of any process; `None`: that cannot be known without asking."""
        return None

    async def swap(self, place: ReasoningKey, before: bytes | None, after: bytes | None, now: float) -> bool:
        """Replace `before` in the vault by `after`, `None` being no value; return whether `before` was found."""
        return await self.write(queries.swap(place, before, after, now))

    async def protected_bytes(self, owner: str) -> int:
        """Return the bytes of an owner that retention never deletes: batches in progress, and incomplete files."""
        from xenoglot.store import retention  # noqa: PLC0415  as below

        return await self.read(retention.protected_bytes(owner))

    async def sweep(self, now: float, limits: Retention, batch: int) -> int:
        """Delete at most `batch` expired or excess entries; return how many, 0 if there are none."""
        from xenoglot.store import retention  # noqa: PLC0415  as above: it knows of everything that is kept

        return await self.write(retention.sweep(now, limits, batch))
