"""Pairs the tool calls and results of a history: each call has one result, each result its call (pitfall-44)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.model.json import JSONObject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_BETWEEN = ("user", "system", "developer")
"""The roles of messages that may stand between a call and its result; an assistant's ends the wait for results."""


class Pairing(Struct, frozen=True, kw_only=True):
    """How a dialect's messages hold calls and results, and what is written for one without the other.

    `calls` gives the ids of a message's calls, `answers` that of the call it is the result of; `missing` makes up the
    result of a call, `told` puts the result of none in words. `late` is called for a result that is moved before other
    messages.
    """

    calls: Callable[[JSONObject], Iterable[str]]
    answers: Callable[[JSONObject], str | None]
    missing: Callable[[str], JSONObject]
    told: Callable[[JSONObject], JSONObject]
    late: Callable[[], None]


def paired(messages: Iterable[JSONObject], pairing: Pairing) -> Iterator[JSONObject]:
    """Yield the messages, after each with calls one result for each, and after these what was the result of no call.

    Messages of other roles than the assistant's that stand between a call and its result follow the results.
    """
    waiting: dict[str, int] = {}  # calls without a result yet, and how many there are of each id
    stray: list[JSONObject] = []
    held: list[JSONObject] = []
    for message in messages:
        call_id = pairing.answers(message)
        if call_id is not None and call_id in waiting:
            waiting[call_id] -= 1
            if not waiting[call_id]:
                del waiting[call_id]
            if held:
                pairing.late()
            yield message
        elif call_id is not None:
            stray.append(pairing.told(message))
        elif waiting and message.get("role") in _BETWEEN:
            held += stray
            held.append(message)
            stray = []
        else:
            yield from _closing(waiting, [*held, *stray], pairing)
            held, stray = [], []
            waiting = Counter(pairing.calls(message))
            yield message
    yield from _closing(waiting, [*held, *stray], pairing)


def _closing(waiting: Mapping[str, int], stray: Iterable[JSONObject], pairing: Pairing) -> Iterator[JSONObject]:
    for call_id, count in waiting.items():
        for _ in range(count):
            yield pairing.missing(call_id)
    yield from stray
