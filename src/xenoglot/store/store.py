"""What every store is: it keeps answers, their streams, conversations and a vault, each under its owner.

An owner is whoever asked, as a digest; every look-up names one, and what is another's is not there. Times are Unix
seconds and always arguments: a store has no clock. Every method raises `StoreError` where the store cannot do it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.store.batches import Batches
    from xenoglot.store.files import Files
    from xenoglot.store.records import Conversation, ReasoningKey, Retention, Stored, Window


class Store(Protocol):
    """Anything that keeps."""

    @property
    def files(self) -> Files:
        """The files that clients keep."""
        ...

    @property
    def batches(self) -> Batches:
        """The batches that clients keep."""
        ...

    def has_history(self) -> bool:
        """Whether something can be in it that was kept before this process began; it is not opened to see that."""
        ...

    async def ready(self) -> None:
        """Open it if it is not; afterwards it can probably be used."""
        ...

    async def put(self, answer: Stored) -> None:
        """Keep an answer, in place of one with its id."""
        ...

    async def get(self, owner: str, answer: str) -> Stored | None:
        """Return the answer with that id."""
        ...

    async def delete(self, owner: str, answer: str) -> bool:
        """Forget an answer and its frames; return whether it was there."""
        ...

    async def answers(self, owner: str, kind: str, window: Window) -> list[Stored]:
        """Return answers of one kind."""
        ...

    async def settle(self, answer: Stored, first: int = 0, frames: Sequence[bytes] = ()) -> bool:
        """Replace an answer that is not done by what became of it, and keep the last frames of its stream with it.

        Returns whether it was not done until now; if it was, nothing changes.
        """
        ...

    async def amend(self, answer: Stored) -> bool:
        """Replace an answer that is there; return whether it is. What was deleted meanwhile stays so."""
        ...

    async def renew(self, process: str, until: float) -> set[tuple[str, str]]:
        """Vouch for all undone answers of a process; return their owners and ids."""
        ...

    async def append(self, owner: str, answer: str, first: int, frames: Sequence[bytes]) -> None:
        """Keep frames of an answer's stream, numbered from `first` on."""
        ...

    async def frames(self, owner: str, answer: str, after: int, limit: int) -> list[tuple[int, bytes]]:
        """Return frames with their numbers, in order, behind the number `after`."""
        ...

    async def item(self, owner: str, item: str) -> JSON:
        """Return the item with that id, of an answer's output or of a conversation; `None` if there is none."""
        ...

    async def create_conversation(self, conversation: Conversation, items: Sequence[JSONObject]) -> None:
        """Keep a new conversation. The items have ids."""
        ...

    async def conversation(self, owner: str, conversation: str) -> Conversation | None:
        """Return the conversation with that id."""
        ...

    async def update_conversation(self, owner: str, conversation: str, metadata: JSON) -> Conversation | None:
        """Replace its metadata; return what it is now."""
        ...

    async def delete_conversation(self, owner: str, conversation: str) -> bool:
        """Forget a conversation and its items; return whether it was there."""
        ...

    async def add_items(self, owner: str, conversation: str, items: Sequence[JSONObject], now: float) -> bool:
        """Add items at its end; return whether there is such a conversation."""
        ...

    async def items(self, owner: str, conversation: str, window: Window) -> list[JSONObject]:
        """Return items of a conversation; one that is not there has none."""
        ...

    async def conversation_item(self, owner: str, conversation: str, item: str) -> JSON:
        """Return one item of a conversation; `None` if it is not there."""
        ...

    async def delete_item(self, owner: str, conversation: str, item: str) -> bool:
        """Take one item out of a conversation; return whether it was there."""
        ...

    async def lock(self, owner: str, conversation: str, holder: str, now: float, until: float) -> bool:
        """Take hold of a conversation until then; return whether nobody else has."""
        ...

    async def unlock(self, owner: str, conversation: str, holder: str) -> None:
        """Let go of a conversation."""
        ...

    async def put_cached(self, owner: str, key: str, backend: str, payload: bytes, now: float) -> None:
        """Put something into the vault."""
        ...

    async def get_cached(self, owner: str, key: str, backend: str) -> bytes | None:
        """Return what is in the vault under that key for that backend."""
        ...

    async def swap(self, place: ReasoningKey, before: bytes | None, after: bytes | None, now: float) -> bool:
        """Put `after` into the vault if `before` is there, `None` being nothing; return whether it was.

        Of several that try at once one succeeds.
        """
        ...

    async def protected_bytes(self, owner: str) -> int:
        """Return how many bytes of an owner's cannot be forgotten now: batches under way, and unfinished files."""
        ...

    async def sweep(self, now: float, limits: Retention, batch: int) -> int:
        """Forget at most `batch` things that are too old or too many; return how many. 0: there are none."""
        ...

    async def aclose(self) -> None:
        """Let go of everything."""
        ...
