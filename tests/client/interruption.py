"""Ctrl-C at a chosen instruction of a module."""

from __future__ import annotations

import dis
import sys
import weakref
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Container
    from types import CodeType, FrameType, TracebackType

# Python runs signal handlers after calls, at the start of a function and at the end of an iteration.
CHECKED = ("CALL", "RESUME", "JUMP_BACKWARD")


class Interruption:
    """Raises KeyboardInterrupt in this thread, once, the `at`-th time that a signal could be handled in `files`.

    `reached` is whether it came to that.
    """

    def __init__(self, files: Container[str | None], at: int) -> None:
        self.reached = False
        self._files = files
        self._left = at
        self._last: dict[FrameType, str] = {}
        self._names: dict[CodeType, dict[int, str]] = {}

    def __enter__(self) -> Self:
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.settrace(self._before)
        self._last.clear()

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:  # noqa: ANN401  a trace function, or nothing
        if frame.f_code.co_filename not in self._files:
            return None
        if event == "call":
            frame.f_trace_opcodes = True
            frame.f_trace_lines = False
        elif event == "opcode":
            self._step(frame)
        elif event == "return":
            self._last.pop(frame, None)
        return self._trace

    def _step(self, frame: FrameType) -> None:
        checked = self._last.get(frame, "").startswith(CHECKED)
        self._last[frame] = self._name(frame)
        if not checked or self.reached or _is_finalizer(frame):
            return
        self._left -= 1
        if self._left == 0:
            self.reached = True
            raise KeyboardInterrupt

    def _name(self, frame: FrameType) -> str:
        """Return the name of the next instruction."""
        names = self._names.get(frame.f_code)
        if names is None:
            names = self._names[frame.f_code] = {one.offset: one.opname for one in dis.get_instructions(frame.f_code)}
        return names[frame.f_lasti]


def _is_finalizer(frame: FrameType | None) -> bool:
    """Return whether the garbage collector called this: Python prints what is raised there, and goes on."""
    while frame is not None:
        if frame.f_code.co_filename == weakref.__file__:
            return True
        frame = frame.f_back
    return False
