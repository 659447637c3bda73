"""Forms of log lines: JSON for programs, short lines for people; and the logs of a whole process in one of them.

A line of JSON has `time` (RFC 3339, UTC), `level` and `event`: `request` is the line of a request, which
`gateway.observability.request_log` writes, `message` one of any logger, with `logger`, `message` and, if there is one,
`traceback`.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from xenoglot.codec.json.json_io import encode_json

if TYPE_CHECKING:
    import types
    from collections.abc import Callable, Generator

LogFormat: TypeAlias = Literal["auto", "text", "json"]
"""`auto` is `text` on a terminal, else `json`."""

REQUESTS: Final = "xenoglot.access"
"""The logger of lines that are JSON already."""

_second: tuple[int, str] = (-1, "")
"""The last second that was formatted: most lines of a busy gateway have the same."""


def timestamp(now: float) -> str:
    """Return Unix seconds as a time of RFC 3339 in UTC, with milliseconds."""
    global _second  # noqa: PLW0603  a cache of one
    milliseconds = int(now * 1000)
    second = milliseconds // 1000
    if _second[0] != second:
        _second = (second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)))
    return f"{_second[1]}.{milliseconds % 1000:03}Z"


class RedactionFormatter(logging.Formatter):
    """Formats records as text: the message, and a traceback below it. Secrets are removed."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__("%(message)s")
        self.redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of one record."""
        return self.redact(super().format(record))


class JSONFormatter(RedactionFormatter):
    """Formats records as one line of JSON each. Secrets are removed."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of one record."""
        message = record.getMessage()
        if record.name == REQUESTS:
            return self.redact(message)
        line = {
            "time": timestamp(record.created),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", "message"),
            "logger": record.name,
            "message": self.redact(message),
            **getattr(record, "fields", {}),
        }
        if record.exc_info is not None and record.exc_info[0] is not None:
            line["traceback"] = self.redact(self.formatException(record.exc_info))
        return encode_json(line).decode()


def report_uncaught(logger: logging.Logger) -> Callable[[], None]:
    """Have errors that nothing catches logged, and warnings of Python; return what undoes that."""
    before, before_in_threads = sys.excepthook, threading.excepthook

    def uncaught(
        kind: type[BaseException], error: BaseException, traceback: types.TracebackType | None, where: str = ""
    ) -> None:
        if issubclass(kind, KeyboardInterrupt):
            before(kind, error, traceback)
        else:
            logger.critical("uncaught %s%s", kind.__qualname__, where, exc_info=(kind, error, traceback))

    def uncaught_in_thread(told: threading.ExceptHookArgs) -> None:
        if told.exc_value is not None and not issubclass(told.exc_type, SystemExit):
            name = "" if told.thread is None else f" in thread {told.thread.name}"
            uncaught(told.exc_type, told.exc_value, told.exc_traceback, name)

    sys.excepthook, threading.excepthook = uncaught, uncaught_in_thread
    logging.captureWarnings(capture=True)

    def undo() -> None:
        sys.excepthook, threading.excepthook = before, before_in_threads
        logging.captureWarnings(capture=False)

    return undo


@contextmanager
def owned_root(handler: logging.Handler, logger: logging.Logger) -> Generator[None]:
    """Have `handler` write what `logger` logs, and what any other logger logs from warnings on."""
    undo = report_uncaught(logger)
    propagate = logger.propagate
    logging.root.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logging.root.removeHandler(handler)
        logger.propagate = propagate
        undo()
