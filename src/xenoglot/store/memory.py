"""In-memory store, which ends with its process."""

from __future__ import annotations

from xenoglot.store.sqlite import MEMORY, SQLite


class Memory(SQLite):
    """A `Store` in memory: SQLite without a file, so it behaves like the others."""

    def __init__(self) -> None:
        super().__init__(MEMORY)
