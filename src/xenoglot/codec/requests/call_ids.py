"""Ids of tool calls in a history: unique, and each call paired with its result."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from hashlib import sha256
from string import ascii_letters, digits
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.model.content import ToolCall, ToolResult
from xenoglot.model.json import JSONObject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Part
    from xenoglot.model.request import Message


LENGTH = 9

_NINE = re.compile(r"[a-zA-Z0-9]{9}")
_ALPHABET = digits + ascii_letters


class PendingCalls:
    """Calls of a history without a result, found by id, by name or in order, each in constant time."""

    __slots__ = ("_by_id", "_by_name", "_in_order")

    def __init__(self) -> None:
        self._in_order: deque[_Call] = deque()
        self._by_id: dict[str, deque[_Call]] = {}
        self._by_name: dict[str, deque[_Call]] = {}

    def add(self, call_id: str, name: str) -> None:
        """Note a call."""
        call = _Call(call_id)
        self._in_order.append(call)
        self._by_id.setdefault(call_id, deque()).append(call)
        self._by_name.setdefault(name, deque()).append(call)

    def answer(self, call_id: str) -> bool:
        """Note a result of the call `call_id`; false if no such call waits."""
        return _next(self._by_id.get(call_id)) is not None

    def first(self, name: str | None = None) -> str | None:
        """Note a result without an id; return that of the first call that waits for one (of the tool `name`)."""
        return _next(self._in_order if name is None else self._by_name.get(name))

    def clear(self) -> None:
        """Forget all calls."""
        self._in_order.clear()
        self._by_id.clear()
        self._by_name.clear()


class _Call:
    __slots__ = ("answered", "id")

    def __init__(self, call_id: str) -> None:
        self.id = call_id
        self.answered = False


def _next(calls: deque[_Call] | None) -> str | None:
    """Return the id of the first call without a result, which it has from now on; other queues skip it later."""
    while calls:
        call = calls.popleft()
        if not call.answered:
            call.answered = True
            return call.id
    return None


class MessageHistory:
    """The messages decoded so far, in order, and the tool calls in them."""

    __slots__ = ("_ids", "_looked", "messages")

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._ids: dict[str | None, str] = {}
        self._looked = 0

    def last_call(self, name: str | None) -> str | None:
        """Return the id of the last call of the tool `name`, or of any tool. Every message is looked at once."""
        for index in range(self._looked, len(self.messages)):
            for part in self.messages[index].content:
                if isinstance(part, ToolCall):
                    self._ids[part.name] = self._ids[None] = part.id
        self._looked = len(self.messages)
        return self._ids.get(name)


def nine_character_ids(messages: Sequence[Message], losses: Losses) -> tuple[Message, ...]:
    """Return the messages, each id of a call one of nine letters and digits (pitfall-42).

    What has the form stays. Two ids stay two, and the same id stays the same everywhere, in this request and in the
    next one of the conversation, unless two digests meet.
    """
    names = _names([part_id for message in messages for part_id in _ids(message)])
    return tuple(
        replace(
            message,
            content=tuple(
                _renamed(part, names, f"$.messages[{place}].content[{index}]", losses)
                for index, part in enumerate(message.content)
            ),
        )
        for place, message in enumerate(messages)
    )


def _ids(message: Message) -> Iterator[str]:
    for part in message.content:
        if isinstance(part, ToolCall):
            yield part.id
        elif isinstance(part, ToolResult):
            yield part.call_id


def _names(ids: Sequence[str]) -> dict[str, str]:
    names = {name: name for name in ids if _NINE.fullmatch(name)}
    taken = set(names)
    for name in ids:
        if name not in names:
            names[name] = _stand_in(name, taken)
            taken.add(names[name])
    return names


def _stand_in(name: str, taken: set[str]) -> str:
    number = int.from_bytes(sha256(name.encode("utf-8", "surrogatepass")).digest())
    while (made := _spelled(number)) in taken:
        number += 1
    return made


def _spelled(number: int) -> str:
    base = len(_ALPHABET)
    return "".join(_ALPHABET[number // base**place % base] for place in range(LENGTH))


def _renamed(part: Part, names: dict[str, str], where: str, losses: Losses) -> Part:
    match part:
        case ToolCall(id=call_id) if names[call_id] != call_id:
            made: Part = replace(part, id=names[call_id])
        case ToolResult(call_id=call_id) if names[call_id] != call_id:
            made = replace(part, call_id=names[call_id])
        case _:
            return part
    losses.emulated(where, "id", "fitted to what the server takes, alike on call and result")
    return made


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
            if waiting or held or stray:
                yield from _closing(waiting, [*held, *stray], pairing)
                held, stray, waiting = [], [], {}
            for called in pairing.calls(message):
                waiting[called] = waiting.get(called, 0) + 1
            yield message
    yield from _closing(waiting, [*held, *stray], pairing)


def _closing(waiting: Mapping[str, int], stray: Iterable[JSONObject], pairing: Pairing) -> Iterator[JSONObject]:
    for call_id, count in waiting.items():
        for _ in range(count):
            yield pairing.missing(call_id)
    yield from stray
