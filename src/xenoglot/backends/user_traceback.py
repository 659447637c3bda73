"""Tracebacks of exceptions in the user's own code, for the user's terminal: own frames only, keys redacted, bounded."""

from __future__ import annotations

import logging
import os
import re
import sysconfig
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from xenoglot.backends.redaction import MASK, Redactor, for_log

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

USER_CODE = logging.getLogger("xenoglot.user_code")
"""Exceptions in the user's own code: model functions, backends, tools. The message ends in the traceback."""

MOST_FRAMES = 40
MOST_LINKS = 20
"""Exceptions in a chain of causes whose frames are trimmed."""
LONGEST_LINE = 1000
MOST_LINES = 300

_PACKAGE = str(Path(__file__).resolve().parents[1]) + os.sep
_INSTALLED = tuple({os.path.join(path, "") for path in sysconfig.get_paths().values()})  # noqa: PTH118  keeps a trailing separator
_CYTHON = (".pyx", ".pxd", ".pxi")
_SECRET_NAME = re.compile(r"key|token|secret|passw|credential", re.IGNORECASE)
_SECRET = re.compile(
    r"(?i:\bbearer +)\S+"
    r"|\b[a-z]{2,5}-(?=[\w-]*\d)[\w-]{16,}"
    r"|\b[a-z]{2,5}_(?=[A-Za-z]*\d)[A-Za-z0-9]{20,}"
    r"|\b(?=[A-Za-z]*\d)[\w-]{32,}"
)
"""What looks like a key: the value of an `authorization` header, a short prefix and many characters, or very many."""


def user_traceback(error: BaseException, environ: Mapping[str, str] = os.environ) -> str:
    """Return the traceback of `error` as Python prints it, without frames of this package, the user's frames last.

    Values of variables in `environ` whose names look like those of secrets, and texts that look like keys, are masked.
    """
    told = traceback.TracebackException.from_exception(error, limit=None)
    _trim(told)
    redact = Redactor(value for name, value in environ.items() if _SECRET_NAME.search(name))
    lines = redact("".join(told.format())).rstrip().split("\n")
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES // 2], "  ...", *lines[-MOST_LINES // 2 :]]
    return "\n".join(for_log(_SECRET.sub(MASK, line), LONGEST_LINE) for line in lines)


def has_user_frames(error: BaseException) -> bool:
    """Return whether code of the user's own took part: code outside of this package and of installed packages."""
    frame: TracebackType | None = error.__traceback__
    while frame is not None:
        if _is_user(frame.tb_frame.f_code.co_filename):
            return True
        frame = frame.tb_next
    return False


def _is_user(filename: str) -> bool:
    """Whether code is the user's; compiled modules of packages have the path of their source where they were built."""
    return not filename.startswith((_PACKAGE, "<frozen", *_INSTALLED)) and not filename.endswith(_CYTHON)


def _trim(told: traceback.TracebackException) -> None:
    """Remove what is before the first frame of the user's, and frames of this package, from `told` and its causes."""
    link: traceback.TracebackException | None = told
    for _ in range(MOST_LINKS):
        if link is None:
            return
        frames = [frame for frame in link.stack if not frame.filename.startswith(_PACKAGE)]
        first = next((index for index, frame in enumerate(frames) if _is_user(frame.filename)), 0)
        link.stack[:] = frames[first:][-MOST_FRAMES:]
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
