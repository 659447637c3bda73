"""The answers of one connection that its client may continue although they are not stored."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from xenoglot.model.json import JSON

MOST_ANSWERS: Final = 64
"""How many are kept; clients continue the last of each lane."""


class RecentAnswer(Struct, frozen=True):
    """An answer with all items that its continuation begins with, and about how many bytes these are."""

    items: Sequence[JSON]
    size: int


class RecentAnswers:
    """The last answers of a connection, of at most `limit` bytes together; the oldest are forgotten first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._answers: OrderedDict[str, RecentAnswer] = OrderedDict()

    def __contains__(self, answer_id: object) -> bool:
        return answer_id in self._answers

    def get(self, answer_id: str) -> Sequence[JSON] | None:
        """Return the items of an answer and of all before it; `None` if it is not here."""
        found = self._answers.get(answer_id)
        return None if found is None else found.items

    def add(self, answer_id: str, items: Sequence[JSON], size: int) -> None:
        """Keep an answer; what it shares with others counts for each."""
        self.forget(answer_id)
        self._answers[answer_id] = RecentAnswer(items, size)
        self._size += size
        while self._answers and (self._size > self._limit or len(self._answers) > MOST_ANSWERS):
            self.forget(next(iter(self._answers)))

    def forget(self, answer_id: str) -> None:
        """Forget an answer, if it is here."""
        if (found := self._answers.pop(answer_id, None)) is not None:
            self._size -= found.size
