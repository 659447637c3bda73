"""Canaries (R30, S06): secrets that turn up nowhere but in what must not be told, and a look for them in what was."""

from __future__ import annotations

import base64
import logging
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

PIECE = 12
"""Characters of a canary that give it away: a key that is shown in part is shown."""


class Canaries:
    """The secrets of one run, each unlike anything else in it; `seed` makes other ones, the same for the same seed.

    The keys are what a client and the gateway show; `prompt` and `tool_output` are what a client says, to stand
    anywhere in its request. All are plain ASCII words that no encoding of a header, a URL or JSON changes.
    """

    def __init__(self, seed: str = "") -> None:
        self.client_key = _canary("client", seed)
        self.upstream_key = _canary("upstream", seed)
        self.prompt = _canary("prompt", seed)
        self.tool_output = _canary("tool", seed)

    @property
    def keys(self) -> tuple[str, ...]:
        """What no text at all may hold, whoever reads it."""
        return (self.client_key, self.upstream_key)

    @property
    def words(self) -> tuple[str, ...]:
        """What a client may hear again (an upstream may repeat it), and nobody else may."""
        return (self.prompt, self.tool_output)

    def check(self, texts: Iterable[str | bytes]) -> None:
        """Fail if any of the four is in what operators read: logs, metrics, traces, what a command prints."""
        _check(texts, (*self.keys, *self.words))

    def check_answers(self, texts: Iterable[str | bytes]) -> None:
        """Fail if a key is in what clients get: heads, bodies, streams. Their own words they may hear again."""
        _check(texts, self.keys)


class LogCapture(logging.Handler):
    """All that is written to any log, at every level, as it would be printed with its traceback."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the text, and what it was made of."""
        self.texts.append(f"{self.format(record)} {record.args!r}")


@contextmanager
def capture_logs() -> Generator[LogCapture]:
    """Give what is written to all logs meanwhile, DEBUG included: `canaries.check(overheard.texts)` at the end."""
    loggers = [logging.getLogger(name) for name in ("", "xenoglot", "xenoglot.access", "asyncio")]
    levels = [logger.level for logger in loggers]
    overheard = LogCapture()
    loggers[0].addHandler(overheard)
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
    try:
        yield overheard
    finally:
        loggers[0].removeHandler(overheard)
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@cache
def fragments(canary: str) -> frozenset[str]:
    """Return what of `canary` would give it away: its pieces, and its spellings in base64 and hexadecimal."""
    core = canary.rpartition("-")[2]
    pieces = {core[start : start + PIECE] for start in range(0, len(core) - PIECE + 1, PIECE // 2)}
    encoded = {core.encode().hex()}
    for shift in range(3):  # base64 writes a text in three ways, by its place
        written = base64.b64encode(b" " * shift + core.encode()).decode()
        encoded.add(written[4 : len(written) - 4])
    return frozenset(pieces | encoded)


def _canary(kind: str, seed: str) -> str:
    return f"canary-{kind}-{sha256(f'{kind} {seed}'.encode()).hexdigest()[:36]}"


def _check(texts: Iterable[str | bytes], canaries: Iterable[str]) -> None:
    looked_for = {trace: canary for canary in canaries for trace in fragments(canary)}
    for text in texts:
        shown = text.decode("latin-1") if isinstance(text, bytes) else text
        leaked = sorted({canary for trace, canary in looked_for.items() if trace in shown})
        assert not leaked, f"{leaked} can be read in {shown[:2000]!r}"
