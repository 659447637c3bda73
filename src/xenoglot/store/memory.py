"""A store that ends with its process."""

from __future__ import annotations

from xenoglot.store.sqlite import MEMORY, SQLite


class Memory(SQLite):
    """A `Store` in memory: SQLite without a file, so that it does exactly what the others do."""

    def __init__(self) -> None:
        super().__init__(MEMORY)
