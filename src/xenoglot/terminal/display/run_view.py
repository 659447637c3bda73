"""Displays a run of the tool loop: calls, folded results, coloured diffs, and permission prompts."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from xenoglot.codec.json.json_io import decode_json
from xenoglot.errors import WireError
from xenoglot.model.content import Text
from xenoglot.terminal.display.sanitize import harmless, in_line
from xenoglot.terminal.display.screen import AnswerView, format_seconds
from xenoglot.tools.events import (
    AnswerAborted,
    ApprovalReceived,
    ApprovalRequested,
    CallEnded,
    CallProgress,
    CallStarted,
    Compacted,
    Continued,
    MessagesAdded,
    ModelEvent,
    RoundEnded,
    RoundStarted,
    RunEnded,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from xenoglot.model.content import ToolCall
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSON
    from xenoglot.terminal.display.renderer import Renderer, StyleName
    from xenoglot.tools.events import RunEvent
    from xenoglot.tools.result import RunResult
    from xenoglot.tools.tool_output import ToolOutput

LONGEST_CALL = 100
"""Characters of a call's arguments in its line."""
SHOWN = 3
"""Lines of a result that are shown; `/tools show` shows the rest."""
SHOWN_OF_DIFF = 40
TAIL = 8
"""Lines of a running command that are shown for the moment."""
KEPT_OUTPUT = 20_000
"""Characters of a running command that are kept for that."""

QUESTION = "allow it? [y]es, [n]o, [a]lways, or say why not: "
NOBODY = "there is nobody here who could allow it"
REFUSED = "the person said no"


class RunView(AnswerView):
    """Displays the events of answers and runs, and asks for permission.

    `results` maps each call to its whole result.
    """

    def __init__(
        self,
        canvas: Renderer,
        clock: Callable[[], float] = time.monotonic,
        *,
        ask: Callable[[str], Awaitable[str]] | None = None,
    ) -> None:
        """Draw on `canvas`; `ask` asks the user a question, `None` without a user."""
        super().__init__(canvas, clock)
        self.results: list[str] = []
        self._ask = ask
        self._one_at_a_time = asyncio.Lock()
        self._always: set[str] = set()
        self._output: dict[str, str] = {}
        self._announcements: dict[str, asyncio.Event] = {}
        self._pending: list[Event | RunEvent] | None = None

    def begin(self) -> None:
        """Begin with another question."""
        self.reasoning.clear()
        self.results.clear()
        self._output.clear()
        self._announcements.clear()
        self.calls_shown = False

    def feed(self, event: Event | RunEvent) -> None:
        """Draw one event, at once or when the person has answered."""
        if self._pending is not None:
            self._pending.append(event)
        else:
            self._draw(event)

    def _draw(self, event: Event | RunEvent) -> None:
        match event:
            case ModelEvent(event=inner):
                super().feed(inner)
            case RoundStarted():
                self.calls_shown = True
                self.renderer.status("…", waiting=True)
            case CallStarted(call=call):
                self.line(f"{call_line(call)}", "call")
            case CallProgress(call_id=call_id, text=text):
                self._progress(call_id, text)
            case CallEnded(call=call, output=output, seconds=seconds):
                self._result(call, output, seconds)
            case AnswerAborted() | Continued() | Compacted() | RunEnded() | ApprovalRequested():
                self._note(event)
            case RoundEnded() | MessagesAdded() | ApprovalReceived():  # nothing that is not seen already
                pass
            case _:
                super().feed(event)

    def _note(self, event: RunEvent) -> None:
        match event:
            case AnswerAborted():
                self.line("the answer broke off, and is asked for again", "quiet")
            case Continued(reason=reason):
                self.line(f"goes on ({reason})", "quiet")
            case Compacted(before=before, after=after):
                self.line(f"the conversation was shortened: {before} tokens to {after}", "quiet")
            case RunEnded(result=result):
                self._ended(result)
            case ApprovalRequested(call=call):
                self._announced(call.id).set()
            case _:
                pass

    def _ended(self, result: RunResult) -> None:
        """Draw the end of a run."""
        if result.outcome != "answered":
            self.problem(f"{result.outcome}: {result.reason}")

    def flush(self) -> None:
        """Draw what is open to its end."""
        self.stop()

    def note(self, text: str) -> None:
        """Draw a quiet line."""
        self.line(text, "quiet")

    def problem(self, text: str) -> None:
        """Print a problem in one line."""
        self.line(in_line(text, 500), "problem")

    async def approve(self, call: ToolCall) -> bool | str:
        """Ask whether a call may run; returns True, or why not.

        A run is ahead of its display: what led to the call is drawn first, what comes meanwhile afterwards.
        """
        async with self._one_at_a_time:  # several may come at once, and there is one person
            if call.name in self._always:
                return True
            if self.calls_shown:
                await self._announced(call.id).wait()
            self.show_call(call)
            if self._ask is None:
                return NOBODY
            self._pending = []
            try:
                return self.verdict(call, await self._ask(QUESTION))
            finally:
                held, self._pending = self._pending, None
                for event in held:
                    self.feed(event)

    def _announced(self, call_id: str) -> asyncio.Event:
        return self._announcements.setdefault(call_id, asyncio.Event())

    def show_call(self, call: ToolCall) -> None:
        """Draw all of a call: what is left out could be what matters."""
        self.renderer.end_text()
        self.line(f"{in_line(call.name)} wants to run:", "call")
        for text in argument_lines(call):
            self.line(text)

    def verdict(self, call: ToolCall, said: str) -> bool | str:
        """Return what an answer to `QUESTION` means: True, or the reason for a denial; an empty answer is a denial."""
        word = said.strip().lower()
        if word in ("a", "always"):
            self._always.add(call.name)
        if word in ("y", "yes", "a", "always"):
            return True
        return REFUSED if word in ("", "n", "no") else said.strip()

    def _progress(self, call_id: str, text: str) -> None:
        whole = (self._output.get(call_id, "") + text)[-KEPT_OUTPUT:]
        self._output[call_id] = whole
        self.renderer.status("\n".join(f"  │ {line}" for line in whole.rstrip("\n").split("\n")[-TAIL:]))

    def _result(self, call: ToolCall, output: ToolOutput, seconds: float) -> None:
        self._output.pop(call.id, None)
        others = (type(part).__name__.lower() for part in output.content if not isinstance(part, Text))
        text = "\n".join(filter(None, (output.text, *(f"[{other}]" for other in others))))
        self.results.append(f"{call_line(call)}\n{text}")
        diff, code = _data(output.data, "diff"), _data(output.data, "exit_code")
        if isinstance(diff, str) and diff:
            self._diff(diff)
            return
        lines = [line for line in harmless(text).split("\n") if line.strip()]
        shown = lines[:SHOWN] if code is None else lines[-SHOWN:]  # a command says last how it went
        more = len(lines) - SHOWN
        notes = [f"{more} more line{'' if more == 1 else 's'}"] if more > 0 else []
        notes += [f"exit code {code}"] if isinstance(code, int) and code else []
        notes += [format_seconds(seconds)] if seconds >= 1 else []
        look: StyleName = "problem" if output.is_error else "quiet"
        body = "\n".join(f"  {'└' if index == 0 else ' '} {line[:500]}" for index, line in enumerate(shown or ["done"]))
        self.line(body + (f"\n    … {', '.join(notes)}" if notes else ""), look)

    def _diff(self, diff: str) -> None:
        lines = harmless(diff).rstrip("\n").split("\n")
        for line in lines[:SHOWN_OF_DIFF]:
            self.line(f"  {line[:500]}", diff_style(line))
        if len(lines) > SHOWN_OF_DIFF:
            self.line(f"    … {len(lines) - SHOWN_OF_DIFF} more lines", "quiet")


def diff_style(line: str) -> StyleName:
    """Return how a line of a unified diff looks."""
    if line.startswith(("+++", "---", "@@")):
        return "place"
    return "added" if line.startswith("+") else "removed" if line.startswith("-") else "quiet"


def call_line(call: ToolCall) -> str:
    """Return a call in one line: `read_file path="x.py"`."""
    arguments = _arguments(call)
    if arguments is None:
        told = call.arguments
    else:
        told = ", ".join(f"{name}={_worded(value)}" for name, value in arguments.items())
    return f"● {in_line(call.name, 60)}({in_line(told, LONGEST_CALL)})"


def argument_lines(call: ToolCall) -> list[str]:
    """Return all of a call's arguments, those of several lines as they are."""
    arguments = _arguments(call)
    if arguments is None:
        return [f"  {harmless(call.arguments)}"]
    told = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else _worded(value)
        inset = "\n".join(f"    {line}" for line in harmless(text).split("\n")) if "\n" in text else harmless(text)
        told.append(f"  {in_line(name)}:{chr(10) if chr(10) in text else ' '}{inset}")
    return told


def _arguments(call: ToolCall) -> dict[str, JSON] | None:
    if call.kind == "custom":
        return None
    try:
        found = decode_json(call.arguments.encode(errors="replace") or b"{}")
    except WireError:
        return None
    return found if isinstance(found, dict) else None


def _worded(value: JSON) -> str:
    import json  # noqa: PLC0415  msgspec writes no JSON that is for people

    return json.dumps(value, ensure_ascii=False)


def _data(data: JSON, name: str) -> JSON:
    return data.get(name) if isinstance(data, dict) else None
