"""Context of a tool call, for the tool: progress reports and cancellation."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.model.content import ToolCall

MOST_PROGRESS: Final = 1_000_000
"""Characters of progress that are reported for one call; further reports are dropped."""


class ToolContext:
    """Context of a tool call, passed to a parameter of this type. All methods are thread-safe.

    `tell` receives reports of progress.

    Args:
        call: The call as the model wrote it.
        round: The number of the model's answer in the run, from 1.

    Example:
        >>> import xenoglot
        >>> @xenoglot.tool
        ... def copy(path: str, context: xenoglot.ToolContext) -> str:
        ...     context.progress("half")  # shown to observers of the run, not to the model
        ...     return "cancelled" if context.stopped else "copied"
        >>> list(copy.spec.parameters["properties"])
        ['path']
    """

    def __init__(self, call: ToolCall, round: int = 1, tell: Callable[[str], None] | None = None) -> None:  # noqa: A002  what it is called everywhere
        self.call = call
        self.round = round
        self._report = tell
        self._lock = threading.Lock()
        self._remaining = MOST_PROGRESS
        self._stopped = False
        self._callbacks: list[Callable[[], None]] = []

    def progress(self, text: str) -> None:
        """Report progress to the observer; the model does not see it."""
        with self._lock:
            text = text[: self._remaining]
            self._remaining -= len(text)
            heard = self._report is not None and not self._stopped
        if heard and text and self._report is not None:
            self._report(text)

    @property
    def stopped(self) -> bool:
        """Whether the result is no longer needed: the time limit has passed, or the run was cancelled."""
        return self._stopped

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the call is stopped, from another thread; at once if it already is."""
        with self._lock:
            if not self._stopped:
                self._callbacks.append(callback)
                return
        callback()

    def stop(self) -> None:
        """Mark the call as stopped. Exceptions of callbacks are ignored."""
        with self._lock:
            self._stopped = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            try:
                callback()
            except Exception:  # noqa: BLE001, S112  the others must be told all the same
                continue
