"""Plain mutation: bytes changed a little, the same way on every run."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LONGEST = 4_096
"""Bytes of a mutant: what matters happens in the first."""

WORDS = (
    *(b"\r\n", b"\n", b"\r", b"\r\n\r\n", b"\n\n", b": ", b"data: ", b"event: ", b"[DONE]", b"\xef\xbb\xbf", b"\xff"),
    *(b"null", b"true", b"-1", b"1e400", b"NaN", b"18446744073709551616", b"0.5", b"{}", b"[]", b'""', b"[[[[[["),
    *(b'"\\ud800"', b"\xed\xa0\x80", b"\\u0000", b'"type":', b'"content":', b'"id":null,', b"<think>", b"```", b"\0"),
)


def mutants(corpus: Sequence[bytes], count: int, seed: int) -> Iterator[bytes]:
    """Yield `count` mutants of what is in `corpus`, each changed in one to four places."""
    chance = Random(seed)  # noqa: S311 - the same on every run
    for _ in range(count):
        data = bytearray(chance.choice(corpus)[:LONGEST])
        for _ in range(chance.randint(1, 4)):
            _change(data, corpus, chance)
        yield bytes(data)


def _change(data: bytearray, corpus: Sequence[bytes], chance: Random) -> None:
    start = chance.randint(0, len(data))
    end = min(start + chance.randint(1, 16), len(data))
    match chance.randrange(6):
        case 0:
            data[start:end] = b""
        case 1:
            data[start:start] = chance.choice(WORDS)
        case 2:
            data[start:end] = chance.choice(WORDS)
        case 3:
            data[start:start] = data[start:end] * chance.randint(1, 3)
        case 4:
            other = chance.choice(corpus)[:LONGEST]
            at = chance.randint(0, len(other))
            data[start:] = other[at:]
        case _:
            data[start : start + 1] = bytes([chance.randrange(256)])
