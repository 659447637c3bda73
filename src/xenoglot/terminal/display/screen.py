"""Displays the events of an answer, or of a run of the tool loop, with a renderer.

Reasoning is folded into a line with its duration; its text is kept, and can be shown.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from xenoglot.model.content import Audio, File, Image, Opaque, Reasoning, Refusal, Text, ToolCall, Video
from xenoglot.model.events import (
    ArgumentsDelta,
    BlockEnded,
    BlockStarted,
    CitationDelta,
    Event,
    Finished,
    ReasoningDelta,
    TextDelta,
)
from xenoglot.terminal.display.renderer import PlainRenderer
from xenoglot.terminal.display.sanitize import in_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from xenoglot.model.content import Part
    from xenoglot.terminal.display.renderer import Renderer, StyleName

REASONING_TAIL = 2000
"""Characters of reasoning that are visible while it grows."""

ENDINGS = {
    "length": "cut off: the longest answer is reached",
    "context": "cut off: the model's window is full",
    "refusal": "the model declined",
    "pause": "paused by the provider",
    "unknown": "ended for a reason that is not known here",
}
"""Why an answer ended, where that is worth a line."""


class AnswerView:
    """Displays the events of successive answers."""

    def __init__(self, canvas: Renderer, clock: Callable[[], float] = time.monotonic) -> None:
        self.renderer = canvas
        self.reasoning: list[str] = []
        self.show_reasoning = False
        """Whether reasoning is shown as it arrives."""
        self.calls_shown = False
        """Whether calls are shown elsewhere."""
        self._clock = clock
        self._block: Part | None = None
        self._thinking: list[str] = []
        self._reasoning_tail = ""
        self._arguments = ""
        self._since = 0.0
        self._sources: list[str] = []

    def feed(self, event: Event) -> None:
        """Display one event; of several candidates only the first is displayed."""
        if getattr(event, "candidate", 0):
            return
        match event:
            case TextDelta(text=text):
                self.renderer.write(text)
            case ReasoningDelta(text=text):
                self._think(text)
            case ArgumentsDelta(text=text):
                self._arguments += text
            case BlockStarted(part=part):
                self._begin(part)
            case BlockEnded(part=part):
                self._end(part or self._block)
            case _:
                self._feed(event)

    def _feed(self, event: Event) -> None:
        match event:
            case CitationDelta(citation=citation):
                self._cited(citation.url or citation.title or citation.file_id)
            case Finished(finish=finish) if finish.reason in ENDINGS:
                told = finish.explanation or (finish.raw if finish.reason == "unknown" else None)
                self.line(ENDINGS[finish.reason] + (f" ({in_line(told)})" if told else ""), "quiet")
            case _:
                pass  # a failure is told by whoever asked

    def line(self, text: str, look: StyleName = "said") -> None:
        """Display a permanent line."""
        self.renderer.line(text, look)

    def stop(self) -> None:
        """Complete the open output: no more events follow."""
        if self._thinking:
            self._fold()
        self._block = None
        self.renderer.end_text()

    def _begin(self, part: Part) -> None:
        self._block = part
        match part:
            case Text(text=text) | Refusal(text=text):
                if text:
                    self.renderer.write(text)
            case Reasoning(text=text):
                self.renderer.end_text()
                self._think(text or "")
            case ToolCall(arguments=arguments):
                self._arguments = arguments
                self.renderer.end_text()
                self.renderer.status(f"calls {in_line(part.name)} …", waiting=True)
            case _:
                pass

    def _end(self, part: Part | None) -> None:
        self._block = None
        match part:
            case Text() | Refusal():
                self.renderer.end_text()
                self._list_sources()
            case Reasoning():
                self._fold(part.text or "\n\n".join(part.summary or ()))
            case ToolCall(name=name) if not self.calls_shown:
                self.line(f"calls {in_line(name)} {in_line(self._arguments)}", "call")
            case Image() | Audio() | Video() | File() | Opaque():
                self.line(f"[{type(part).__name__.lower()}: cannot be shown here]", "quiet")
            case _:
                pass

    def _think(self, text: str) -> None:
        if not self._thinking:
            self._since = self._clock()
            self._reasoning_tail = ""
        self._thinking.append(text)
        self._reasoning_tail = (self._reasoning_tail + text)[-REASONING_TAIL:]
        if self.show_reasoning:
            self.renderer.write(text, "thought")
        else:
            self.renderer.status(f"thinking …\n{self._reasoning_tail.strip()}".rstrip())

    def _fold(self, told: str = "") -> None:
        """End a block of reasoning; `told` is its summary if no text arrived."""
        thought = "".join(self._thinking).strip() or told.strip()
        self._thinking.clear()
        self.renderer.end_text()
        if thought:
            self.reasoning.append(thought)
            self.line(f"thought for {format_seconds(self._clock() - self._since)}", "quiet")
        else:
            self.line("thought, and keeps it to itself", "quiet")

    def _cited(self, source: str | None) -> None:
        if source and source not in self._sources:
            self._sources.append(source)

    def _list_sources(self) -> None:
        for number, source in enumerate(self._sources, 1):
            self.line(f"[{number}] {in_line(source)}", "quiet")
        self._sources.clear()


def format_seconds(seconds: float) -> str:
    """Return a duration for people: `3 s`, `2 min 5 s`."""
    whole = round(seconds)
    if whole < 1:
        return "under 1 s"
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"  # noqa: PLR2004  seconds of a minute


def supports_rich(output: TextIO) -> bool:
    """Whether `output` is a terminal that can do more than print lines."""
    return output.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")


def renderer_of(output: TextIO | None = None, *, plain: bool = False) -> Renderer:
    """Return what draws on `output` (standard output): a painted one where that can be, and `rich` is installed."""
    output = output or sys.stdout
    if not plain and supports_rich(output):
        try:
            from xenoglot.terminal.display.rich_renderer import RichRenderer, console_of  # noqa: PLC0415  an extra

            return RichRenderer(console_of(file=output))
        except ModuleNotFoundError:
            pass  # lines do as well
    return PlainRenderer(output, raw=not output.isatty())
