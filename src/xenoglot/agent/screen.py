"""Output of an agent at work: lines of text, or one JSON event per line."""

from __future__ import annotations

import re
import signal
import sys
import threading
from typing import TYPE_CHECKING, Protocol

import msgspec

from xenoglot.backends.redaction import for_log
from xenoglot.model.events import BlockEnded, TextDelta
from xenoglot.tools.events import ApprovalReceived, CallEnded, CallStarted, Compacted, ModelEvent, RoundStarted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator
    from typing import TextIO

    from xenoglot.backends.redaction import Redactor
    from xenoglot.model.content import ToolCall
    from xenoglot.model.json import JSONObject
    from xenoglot.tools.events import RunEvent
    from xenoglot.tools.tool_output import ToolOutput

LONGEST_LINE = 400
"""Characters of a line that a tool or a model wrote."""

MOST_LINES = 40
"""Lines of a result that are shown."""

_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Screen(Protocol):
    """Interface to the user. Arguments were written by a model, and are untrusted."""

    def feed(self, event: RunEvent) -> None:
        """Show an event of a run."""

    def flush(self) -> None:
        """Draw what is open to its end."""

    def note(self, text: str) -> None:
        """Show a note outside the conversation."""

    def problem(self, text: str) -> None:
        """Show an error."""

    def approve(self, call: ToolCall) -> bool | str | Awaitable[bool | str]:
        """Return whether a call may run; a text is the reason for a denial."""

    def read_prompt(self) -> str | None:
        """Return what a person wants next, outside of any event loop; `None` where they leave."""


class PlainScreen:
    """Lines: answers on `output`, everything else on `notes`, input from `source`."""

    def __init__(self, output: TextIO | None = None, notes: TextIO | None = None, source: TextIO | None = None) -> None:
        self._output = output or sys.stdout
        self._notes = notes or sys.stderr
        self._source = source or sys.stdin
        self._always: set[str] = set()
        self._open = False
        self._interrupted = False
        """Whether Ctrl-C was pressed at a question; the loop gets it after the questions about all calls."""

    def feed(self, event: RunEvent) -> None:
        """Show an event."""
        match event:
            case RoundStarted():
                self._interrupted = False
                self.flush()  # of an answer that broke off
            case ModelEvent(event=TextDelta(text=text)):
                self._output.write(_harmless(text))
                self._output.flush()
                self._open = True
            case ModelEvent(event=BlockEnded()):
                self.flush()
            case CallStarted(call=call):
                self.note(f"> {call.name} {call.arguments}")
            case CallEnded(call=call, output=output):
                for line in result_lines(output):
                    self.note(f"  {line}")
            case ApprovalReceived(call=call, approval=approval) if not approval.allowed:
                self.note(f"> {call.name} was not allowed")
            case Compacted(before=before, after=after):
                self.note(f"[the conversation was shortened: about {before} tokens, now {after}]")
            case _:
                pass

    def flush(self) -> None:
        """End the line that is open."""
        if self._open:
            self._output.write("\n")
            self._output.flush()
            self._open = False

    def note(self, text: str) -> None:
        """Write a line."""
        self.flush()
        self._notes.write(_line(text, LONGEST_LINE) + "\n")
        self._notes.flush()

    def problem(self, text: str) -> None:
        """Write a line."""
        self.note(f"xenoglot: {text}")

    def approve(self, call: ToolCall) -> bool | str:
        """Ask the user; the whole call is shown, a long one over many lines."""
        self.flush()
        if self._interrupted:
            return False
        if call.name in self._always:
            return True
        for line in call_lines(call):
            self._notes.write(line + "\n")
        answer = (self._prompt("allow? [y]es, [n]o, [a]lways, or why not: ") or "").strip()
        if answer.casefold() in {"a", "always"}:
            self._always.add(call.name)
        if answer.casefold() in {"y", "yes", "a", "always"}:
            return True
        return False if answer.casefold() in {"", "n", "no"} else answer

    def read_prompt(self) -> str | None:
        """Ask for a line."""
        try:
            return self._prompt("> ")
        except KeyboardInterrupt:
            return None

    def _prompt(self, question: str) -> str | None:
        """Return what a person answers, `None` where nothing more comes.

        An event loop takes Ctrl-C for itself and waits for this to return, so it is handled here, and passed on to it.
        """
        self._interrupted = False
        self._notes.write(question)
        self._notes.flush()
        if threading.current_thread() is not threading.main_thread():
            return self._source.readline() or None
        taken = signal.signal(signal.SIGINT, signal.default_int_handler)
        line = ""
        try:
            line = self._source.readline()
        except KeyboardInterrupt:
            self._interrupted = True
        finally:
            signal.signal(signal.SIGINT, taken)
        if not line:
            self._notes.write("\n")
        if self._interrupted:
            signal.raise_signal(signal.SIGINT)
        return line or None


class JSONScreen:
    """Each event as one line of JSON, with secrets redacted by `redactor`. It prompts for nothing."""

    def __init__(self, redactor: Redactor, output: TextIO | None = None) -> None:
        self._redactor = redactor
        self._output = output or sys.stdout

    def feed(self, event: RunEvent) -> None:
        """Write an event."""
        self._write(event_json(event))

    def flush(self) -> None:
        """Do nothing: no line stays open."""

    def note(self, text: str) -> None:
        """Write a note as an event."""
        self._write({"event": "note", "text": text})

    def problem(self, text: str) -> None:
        """Write a problem as an event."""
        self._write({"event": "problem", "text": text})

    def approve(self, call: ToolCall) -> str:
        """Deny the call, because there is no user to ask."""
        return f"`{call.name}` needs the user's approval, and there is no terminal"

    def read_prompt(self) -> str | None:
        """Return `None`, because there is no terminal."""
        return None

    def _write(self, value: JSONObject) -> None:
        self._output.write(msgspec.json.encode(self._redactor.json(value)).decode() + "\n")
        self._output.flush()


def event_json(event: RunEvent) -> JSONObject:
    """Return an event as JSON: `event` is its kind (`call_started`), its other fields are those of the value."""
    kind = _kind(event)
    if isinstance(event, ModelEvent):  # the events of a model are told apart by their kind, too
        return {"event": kind, "kind": _kind(event.event), **_fields(event.event)}
    return {"event": kind, **_fields(event)}


def result_lines(output: ToolOutput) -> Iterator[str]:
    """Yield what is shown of a result: the change it made, or the first lines of the text for the model."""
    data = output.data
    text = data["diff"] if isinstance(data, dict) and data.get("diff") else output.text
    lines = str(text).splitlines()
    if output.is_error:
        yield "failed:"
    yield from lines[:MOST_LINES]
    if len(lines) > MOST_LINES:
        yield f"[{len(lines) - MOST_LINES} more lines]"


def call_lines(call: ToolCall) -> Iterator[str]:
    """Yield the whole call, safe for a terminal; the user has to see its end, too."""
    yield f"{for_log(call.name)} wants to be called:"
    try:
        arguments = msgspec.json.decode(call.arguments)
    except (msgspec.DecodeError, RecursionError):
        arguments = call.arguments
    fields = arguments.items() if isinstance(arguments, dict) else [("", arguments)]
    for name, value in fields:
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        yield f"  {for_log(str(name))}:"
        for line in text.split("\n"):
            yield f"  | {_line(line)}"


def _harmless(text: str) -> str:
    return "\n".join(_line(line) for line in text.split("\n"))


def _line(text: str, limit: int | None = None) -> str:
    """Return a line that a terminal shows and does not obey."""
    text = text.expandtabs(4)
    return for_log(text, max(1, len(text)) if limit is None else limit)


def _kind(value: object) -> str:
    return _WORD.sub("_", type(value).__name__).lower()


def _fields(value: object) -> JSONObject:
    fields: JSONObject = msgspec.json.decode(msgspec.json.encode(value))
    fields.pop("type", None)
    return fields
