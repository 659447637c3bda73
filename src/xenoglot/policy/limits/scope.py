"""The limits of one scope: requests and tokens per window, concurrent requests, and how many may queue how long."""

from __future__ import annotations

from msgspec import Struct

from xenoglot.policy.limits.sliding_window import Window


class Scope(Struct, frozen=True):
    """The limits of one thing: a client's key, an upstream, a model.

    `name` says what it is and which (`key:OWNER`, `upstream:main`, `model:large`); who names the same shares the
    limits. `queue` may wait for a place, each at most `queue_seconds`.
    """

    name: str
    requests: tuple[Window, ...] = ()
    tokens: tuple[Window, ...] = ()
    concurrency: int | None = None
    queue: int = 64
    queue_seconds: float = 30.0

    @property
    def kind(self) -> str:
        """What kind of thing it is: the word before the colon."""
        return self.name.partition(":")[0]
