"""The access log: one line of JSON for each request, those of one turn of the event loop in one write.

Theory of operation. What `logging` does for a line (an object, a walk over frames, locks, a write of its own) costs as
much as all the rest of a small request here. So where only our own handler listens to the access log, lines are
put into that directly, and leave together when the turn of the loop is over, in the order of all that it writes. Where
another handler listens, or our logging was changed, each line goes through `logging` as every other does.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from xenoglot.gateway.observability.log_format import REQUESTS, JSONFormatter, RedactionFormatter, owned_root

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from xenoglot.gateway.observability.log_format import LogFormat

ACCESS = logging.getLogger(REQUESTS)
"""One line per request, at level INFO, the message being a JSON object."""

OURS = logging.getLogger("xenoglot")
"""Where our handler is, unless the process configures its logging itself."""


class LineHandler(logging.StreamHandler[TextIO]):
    """Writes lines to stderr, without any of our keys, as text or JSON. A `fixed` form is not changed any more."""

    def __init__(self, redact: Callable[[str], str], form: LogFormat = "auto", *, fixed: bool = False) -> None:
        super().__init__(sys.stderr)
        self.terminal = False
        """Whether a person reads the lines."""
        self.fixed = fixed
        self.write_as(form, redact)
        self._lines: deque[bytes] = deque()
        self._due: asyncio.AbstractEventLoop | None = None
        """The loop at the end of whose turn lines are written."""

    def write_as(self, form: LogFormat, redact: Callable[[str], str]) -> None:
        """Write in this form from now on."""
        self.form: LogFormat = form
        at_terminal = hasattr(sys.stderr, "isatty") and sys.stderr.isatty()
        self.terminal = at_terminal if form == "auto" else form == "text"
        self.setFormatter(RedactionFormatter(redact) if self.terminal else JSONFormatter(redact))

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
        """Write what was put here. A log that cannot be written fails no request."""
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
        """Write a record, after the lines that came before it."""
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
    """Return our handler, where no other handler listens to the access log and its settings are ours."""
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
        or not isinstance(handler.formatter, RedactionFormatter)
    ):
        return None
    return handler


def configure_logging(redact: Callable[[str], str], form: LogFormat = "auto") -> None:
    """Write our logs to stderr, one line each, without any of our keys; leave a logging that is configured alone."""
    if OURS.hasHandlers():
        for handler in OURS.handlers:
            if type(handler) is LineHandler and handler in logging.root.handlers:  # that of `process_logs`
                handler.write_as(handler.form if handler.fixed else form, redact)
        return
    OURS.addHandler(LineHandler(redact, form))
    OURS.setLevel(logging.INFO)


@contextmanager
def process_logs(form: LogFormat | None) -> Generator[None]:
    """Write all logs of this process as `configure_logging` will, those of other packages and uncaught errors too.

    Without a `form` the configuration decides. Logging that is configured already is left alone.
    """
    if OURS.hasHandlers():
        yield
        return
    handler = LineHandler(str, form or "auto", fixed=form is not None)
    level = OURS.level
    OURS.addHandler(handler)
    OURS.setLevel(logging.INFO)
    try:
        with owned_root(handler, OURS):
            yield
    finally:
        OURS.removeHandler(handler)
        OURS.setLevel(level)
        handler.close()
