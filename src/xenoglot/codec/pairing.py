"""Calls and results of a history as servers take it: each call has one result, each result its call (pitfall-44)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.model.json import JSONObject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


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
    waiting: dict[str, int] = {}  # calls without a result yet, and how many there are of each id
    stray: list[JSONObject] = []
    for message in messages:
        call_id = pairing.answers(message)
        if call_id is None:
            if waiting or stray:
                yield from _closing(waiting, stray, pairing)
                waiting, stray = {}, []
            for called in pairing.calls(message):
                waiting[called] = waiting.get(called, 0) + 1
            yield message
        elif call_id in waiting:
            waiting[call_id] -= 1
            if not waiting[call_id]:
                del waiting[call_id]
            yield message
        else:
            stray.append(pairing.told(message))
    yield from _closing(waiting, stray, pairing)


def _closing(waiting: Mapping[str, int], stray: Iterable[JSONObject], pairing: Pairing) -> Iterator[JSONObject]:
    for call_id, count in waiting.items():
        for _ in range(count):
            yield pairing.missing(call_id)
    yield from stray
