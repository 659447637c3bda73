"""The next head on a connection, which mostly repeats the last but for the length of its body. Pure.

Theory of operation. A client sends one head again and again, and only the digits of `content-length` change. So the
last head is kept as the bytes before these digits and those after. A head that begins with the first, has only digits
then, and continues with the second, is that head with another length: it would be parsed so, and need not be parsed.
Two comparisons take the place of some hundred steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.http1.syntax import LENGTH_DIGITS
from xenoglot.shortcuts import shortcut

if TYPE_CHECKING:
    from xenoglot.gateway.http.application import HeadState
    from xenoglot.http1.request_head import RequestHead

LONGEST: Final = 4096
"""Bytes of a head that is kept for as long as its connection lasts."""

_LENGTH: Final = "content-length"


class HeadCache:
    """A head that was read from `data`, and what is `seen` of all that repeat it."""

    __slots__ = ("_after", "_before", "_digits", "_place", "head", "seen")

    def __init__(self, data: bytes, head: RequestHead, seen: HeadState) -> None:
        self.head = head
        """The head, with the length that it had last."""
        self.seen = seen
        self._place = next((index for index, (name, _) in enumerate(head.headers) if name == _LENGTH), None)
        begin = len(data) if self._place is None else _value_at(data, self._place)
        digits = "" if self._place is None else head.headers[self._place][1]
        self._digits = digits.encode()
        self._before = data[:begin]
        self._after = data[begin + len(digits) :]

    def end_in(self, data: bytes) -> int:
        """Return where the head ends that begins `data`, if it is this one but for its length; else 0."""
        before = self._before
        if not data.startswith(before):
            return 0
        begin = len(before)
        if self._place is None:
            return begin
        end = data.find(b"\r", begin, begin + LENGTH_DIGITS + 1)
        if end < 0 or not data.startswith(self._after, end):
            return 0
        digits = data[begin:end]
        if digits != self._digits:
            if not digits.isdigit():
                return 0
            self._change(digits)
        return end + len(self._after)

    def _change(self, digits: bytes) -> None:
        self._digits = digits
        headers = self.head.headers.copy()
        headers[self._place or 0] = (_LENGTH, digits.decode())
        self.head = replace(self.head, headers=headers, length=int(digits))


@shortcut("heads")
def is_cacheable(data: bytes, head: RequestHead) -> bool:
    """Whether the head in `data` is one to keep: it is not too long, and its length is nothing but a length."""
    return len(data) <= LONGEST and not head.waits


def _value_at(data: bytes, place: int) -> int:
    """Return where the value of the field number `place` begins."""
    begin = 0
    for _ in range(place + 1):
        begin = data.index(b"\n", begin) + 1
    begin = data.index(b":", begin) + 1
    return len(data) - len(data[begin:].lstrip(b" \t"))
