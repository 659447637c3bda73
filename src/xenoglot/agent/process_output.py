"""Writes input to a child process and captures the beginning of its output, in bounded memory."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from typing import IO, TYPE_CHECKING, Final, NamedTuple

from xenoglot.agent.sandbox.redact_stream import StreamRedactor

if TYPE_CHECKING:
    from xenoglot.backends.redaction import Redactor

_CHUNK: Final = 64 * 1024
"""Bytes that one read takes, and one write gives."""


class ProcessOutput(NamedTuple):
    """The beginning of standard output and of standard error, without surrounding white space."""

    output: str
    problem: str


def exchange(
    process: subprocess.Popen[bytes], data: bytes, *, seconds: float, most: int, redactor: Redactor
) -> ProcessOutput:
    """Write `data` to standard input and read until the process has ended; `most` characters of each pipe are kept.

    The pipes are unbuffered. What is printed beyond `most` is read and dropped, so that the process is not blocked.

    Raises:
        TimeoutExpired: it has not ended after `seconds`, or another process still holds its pipes.
    """
    assert process.stdin is not None  # noqa: S101  it was asked for
    assert process.stdout is not None  # noqa: S101  the same
    assert process.stderr is not None  # noqa: S101  the same
    until = time.monotonic() + seconds
    kept: dict[IO[bytes], _Beginning] = {pipe: _Beginning(most, redactor) for pipe in (process.stdout, process.stderr)}
    left = memoryview(data)
    with selectors.DefaultSelector() as selector:
        os.set_blocking(process.stdin.fileno(), False)
        selector.register(process.stdin, selectors.EVENT_WRITE)
        for pipe in kept:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            remaining = until - time.monotonic()
            if remaining <= 0:
                raise subprocess.TimeoutExpired(process.args, seconds)
            for key, _ in selector.select(remaining):
                if key.fileobj is process.stdin:
                    left = _write(process.stdin, left)
                    over = not left
                else:
                    over = kept[key.fileobj].feed(os.read(key.fd, _CHUNK))  # type: ignore[index]  # a pipe of these
                if over:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]  # the same
    process.wait(max(0.0, until - time.monotonic()))
    return ProcessOutput(*(beginning.text() for beginning in kept.values()))


def _write(pipe: IO[bytes], left: memoryview) -> memoryview:
    """Write some of what is left; return the rest, which is nothing where the process reads no more."""
    try:
        return left[os.write(pipe.fileno(), left[:_CHUNK]) :]
    except BlockingIOError:
        return left
    except BrokenPipeError:
        return left[:0]


class _Beginning:
    """The first `most` characters of a text that arrives in pieces, redacted and without surrounding white space."""

    def __init__(self, most: int, redactor: Redactor) -> None:
        self._most = most
        self._masking = StreamRedactor(redactor)
        self._text = ""
        self._truncated = False

    def feed(self, data: bytes) -> bool:
        """Take the next bytes; return whether they were the last, as none are."""
        text = self._masking.feed(data, last=not data)
        self._text += text if self._text else text.lstrip()
        beyond = self._text[self._most :]
        self._truncated = self._truncated or bool(beyond.strip())
        self._text = self._text[: self._most]
        return not data

    def text(self) -> str:
        """Return the text, with a mark where it was cut."""
        return f"{self._text} ..." if self._truncated else self._text.rstrip()
