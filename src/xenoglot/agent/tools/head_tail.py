"""Keeps the beginning and the end of a long output, in bounded memory."""

from __future__ import annotations


class HeadTail:
    """Buffer of bytes; `text` returns half of `limit` from the beginning, and half from the end."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def feed(self, data: bytes) -> None:
        """Add bytes."""
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        over = len(self._tail) - self._half
        if over > 0:
            self._left_out += over
            del self._tail[:over]

    def text(self) -> str:
        """Return the kept output, with a note where output is missing."""
        if not self._left_out:
            return (self._head + self._tail).decode(errors="replace")
        head, tail = self._head.decode(errors="replace"), self._tail.decode(errors="replace")
        return f"{head}\n[... {self._left_out} bytes left out ...]\n{tail}"
