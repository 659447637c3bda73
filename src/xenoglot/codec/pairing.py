"""Calls and results of a history as servers take it: each call has one result, each result its call (pitfall-44)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.model.json import JSONObject

if TYPE_CHECKING:
    from collections.abc import Iterator


class Pairing(Struct, frozen=True, kw_only=True):
    """How a dialect's messages call and answer, and what is written where they do not match.

    `calls` gives the ids of a message's calls, `answers` that of the call it is the result of; `missing` makes up the
    result of a call, `told` puts the result of none in words.
    """

    calls: Callable[[JSONObject], Iterable[str]]
    answers: Callable[[JSONObject], str | None]
    missing: Callable[[str], JSONObject]
    told: Callable[[JSONObject], JSONObject]


def paired(messages: Iterable[JSONObject], pairing: Pairing) -> Iterator[JSONObject]:
    """Yield the messages, behind each with calls one result for each, and behind these what was the result of none."""
    waiting: Counter[str] = Counter()
    stray: list[JSONObject] = []
    for message in messages:
        call_id = pairing.answers(message)
        if call_id is None:
            yield from (*map(pairing.missing, waiting.elements()), *stray)
            waiting, stray = Counter(pairing.calls(message)), []
            yield message
        elif waiting[call_id]:
            waiting[call_id] -= 1
            yield message
        else:
            stray.append(pairing.told(message))
    yield from (*map(pairing.missing, waiting.elements()), *stray)
