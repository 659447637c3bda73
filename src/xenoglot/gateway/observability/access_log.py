"""The access log: one line of JSON for each request, those of one turn of the event loop in one write.

Theory of operation. What `logging` does for a line (an object, a walk over frames, locks, a write of its own) costs as
much as all the rest of a small request here. So where nobody but our own handler listens to the access log, lines are
put into that directly, and leave together when the turn of the loop is over, in the order of all that it writes. Where
anybody else listens, or anything of ours was changed, each line goes through `logging` as every other does.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import deque
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable

ACCESS = logging.getLogger("xenoglot.access")
"""One line per request, at level INFO, the message being a JSON object."""

OURS = logging.getLogger("xenoglot")
"""Where our handler is, unless the logging of the process is configured by somebody else."""


class RedactionFormatter(logging.Formatter):
    """Formats records as usual, and takes secrets out of what is made of them."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__("%(message)s")
        self.redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of one record."""
        return self.redact(super().format(record))


class LineHandler(logging.StreamHandler[TextIO]):
    """Writes lines to stderr, without any of our keys."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__(sys.stderr)
        self.terminal = hasattr(sys.stderr, "isatty") and sys.stderr.isatty()
        """Whether a person reads the lines."""
        self.setFormatter(RedactionFormatter(redact))
        self._lines: deque[bytes] = deque()
        self._due: asyncio.AbstractEventLoop | None = None
        """The loop at the end of whose turn lines are written."""

    def put(self, line: bytes) -> None:
        """Have a line written soon; where no loop runs, now."""
        self._lines.append(line)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.flush()
            return
        if self._due is not loop:
            self._due = loop
            loop.call_soon(self.flush)

    def flush(self) -> None:
        """Write what was put here. A log that cannot be written costs nobody an answer."""
        self._due = None  # first: what another thread puts here from now on has itself written
        lines: list[bytes] = []
        try:
            while self._lines:
                lines.append(self._lines.popleft())
        except IndexError:  # another thread took the last
            pass
        try:  # for each request: `suppress` would cost as much as all the rest
            if lines:
                self._write(lines)
            else:
                super().flush()
        except (OSError, ValueError):  # ValueError: stderr is closed
            pass

    def close(self) -> None:
        """Write what is left, and no more."""
        self.flush()
        super().close()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, behind the lines that came before it."""
        self.flush()
        super().emit(record)

    def _write(self, lines: list[bytes]) -> None:
        lines.append(b"")
        text = b"\n".join(lines).decode()
        if isinstance(self.formatter, RedactionFormatter):
            text = self.formatter.redact(text)
        self.stream.write(text)
        self.stream.flush()


def listener() -> LineHandler | None:
    """Return our handler, where nobody else listens to the access log and it does so in no other way than ours."""
    handlers = OURS.handlers
    handler = handlers[0] if len(handlers) == 1 else None
    if (
        type(handler) is not LineHandler
        or ACCESS.handlers
        or (OURS.propagate and logging.root.handlers)
        or not ACCESS.propagate
        or ACCESS.filters
        or handler.filters
        or handler.level > logging.INFO
        or type(handler.formatter) is not RedactionFormatter
    ):
        return None
    return handler


def configure_logging(redact: Callable[[str], str]) -> None:
    """Write our logs to stderr, one line each, without any of our keys; leave a logging that is configured alone."""
    if OURS.hasHandlers():
        return
    OURS.addHandler(LineHandler(redact))
    OURS.setLevel(logging.INFO)
