"""Renderer for terminals: draws Markdown as it grows, and redraws only the open block."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from xenoglot.terminal.display.incremental_markdown import IncrementalMarkdown, parsed
from xenoglot.terminal.display.live_region import LiveRegion
from xenoglot.terminal.display.renderer import RULE
from xenoglot.terminal.display.sanitize import harmless

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from markdown_it.token import Token
    from rich.console import Console, RenderableType
    from rich.segment import Segment

    from xenoglot.terminal.display.renderer import StyleName, TextKind

STYLES: dict[StyleName, str] = {
    "said": "none",
    "quiet": "dim",
    "call": "cyan",
    "problem": "red",
    "added": "green",
    "removed": "red",
    "place": "cyan",
}
BLINK = 0.06
"""Seconds between two drawings of the open block, at least."""
SHARE = 3.0
"""A drawing that took long is followed by a pause so many times as long."""
SPARE = 2
"""Lines of the terminal that the open block leaves free."""
PASSING = 8
"""Lines of what is shown for the moment."""
SECOND = 1.0
SHORT = 3
"""Seconds of waiting that are not shown."""
NARROWEST = 10
"""Columns below which a drawing would have to be all margins."""

DEEPEST = 16
"""Levels of quotes and lists beyond which text is shown as it is: what is much deeper, the parser leaves out."""

_LEVELS = {"h1": "h2"}
"""The renderer centres the first level of headings; ours all stand at the margin."""


class RichRenderer:
    """Draws on a `rich` console; the open block is at most as high as the terminal, so that no line is drawn twice."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self.console = console
        self._clock = clock
        self._growing = IncrementalMarkdown()
        self._region = LiveRegion(console)
        self._style: TextKind = "said"
        self._status = ""
        self._waiting: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._next = 0.0
        self._started = False
        """Whether these words have lines that stay."""
        self._space_below = False
        """Whether an answer stands above, from which what comes next is to be parted."""
        self._answered = False
        """Whether there was one since the person's turn."""

    def write(self, text: str, look: TextKind = "said") -> None:
        """Append text to the answer, or to its reasoning."""
        self._set_status("")
        self._style = look
        self._growing.feed(text)
        self._draw_soon()

    def status(self, text: str, *, waiting: bool = False) -> None:
        """Show what holds for the moment."""
        self._set_status(harmless(text), waiting=waiting)
        self._draw_soon()

    def end_text(self) -> None:
        """Draw what is open for good."""
        self._set_status("")
        self._drop_timer()
        self._region.clear(self._complete(self._growing.close()))
        self._started = False

    def line(self, text: str, look: StyleName = "said") -> None:
        """Draw lines that stay; an empty one parts them from an answer."""
        from rich.text import Text  # noqa: PLC0415  an extra

        self.end_text()
        if self._space_below:
            self.console.print()
            self._space_below = False
        self.console.print(Text(harmless(text), style=STYLES[look]))

    def space(self) -> None:
        """Leave an empty line below an answer, and what is noted of it."""
        self.end_text()
        if self._answered:
            self.console.print()
        self._answered = self._space_below = False

    def detach(self) -> None:
        """Draw the open part again, below other output."""
        self._region.detach()

    def _set_status(self, passing: str, *, waiting: bool = False) -> None:
        if self._waiting is not None:
            self._drop_timer()  # the next count of seconds is not what is drawn next
        self._waiting = self._clock() if waiting else None
        self._status = passing

    def _complete(self, blocks: Iterable[str]) -> list[list[Segment]]:
        """Return the lines of blocks that are complete, each below an empty one."""
        drawn: list[list[Segment]] = []
        for block in blocks:
            if block.strip():
                drawn += self._block(block)
                self._started = self._answered = True
                self._space_below = self._style == "said"
        return drawn

    def _block(self, text: str) -> list[list[Segment]]:
        """Return the lines of a block below an empty one; those of reasoning after a rule."""
        if self._style == "said":
            return [[], *self._lines(markdown(text))]
        lines = _ruled([[], *self._lines(markdown(text), margin=len(RULE))])
        return lines if self._started else [[], *lines[1:]]

    def _draw_soon(self) -> None:
        """Draw now, or when the last drawing is long enough ago."""
        wait = self._next - self._clock()
        if wait <= 0 or (self._timer is None and not self._draw_in(wait)):
            self._draw()

    def _draw_in(self, seconds: float) -> bool:
        """Draw later; returns whether there is an event loop for that."""
        try:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._draw)
        except RuntimeError:
            return False
        return True

    def _draw(self) -> None:
        self._drop_timer()
        begun = self._clock()
        above = self._complete(self._growing.complete_blocks())
        self._region.draw(self._open_lines(begun), above)
        now = self._clock()
        self._next = now + max(BLINK, SHARE * (now - begun))
        if self._waiting is not None:
            self._draw_in(SECOND)

    def _drop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _open_lines(self, now: float) -> list[list[Segment]]:
        """Return as much of the end of the open part as fits."""
        from rich.text import Text  # noqa: PLC0415  an extra

        room = max(self.console.size.height - SPARE, 1)
        if self._status:
            seconds = 0 if self._waiting is None else int(now - self._waiting)
            shown = f"{self._status} {seconds} s" if seconds >= SHORT else self._status
            lines = self._lines(Text("\n".join(shown.split("\n")[-PASSING:]), style="dim"))
            room = min(room, PASSING)
        elif self._growing.open.strip():
            lines = self._block(self._growing.open)
        else:
            lines = []
        return lines[-room:]

    def _lines(self, renderable: RenderableType, margin: int = 0) -> list[list[Segment]]:
        options = self.console.options.update(width=max(self.console.width - margin, NARROWEST))
        try:
            lines = self.console.render_lines(renderable, options, pad=False)
        except Exception:  # noqa: BLE001  whatever a model writes, the renderer's mistakes must not end the conversation
            from rich.text import Text  # noqa: PLC0415  an extra

            plain = getattr(renderable, "markup", "")
            lines = self.console.render_lines(Text(harmless(plain)), options, pad=False)
        return _without_margins([_trimmed(line) for line in lines])


def _trimmed(line: Iterable[Segment]) -> list[Segment]:
    """Return a line without the spaces at its end: they would wrap when the terminal becomes narrower."""
    kept = list(line)
    while kept:
        text, style, control = kept[-1]
        if (
            control
            or text.strip()
            or (style is not None and style.bgcolor is not None and not style.bgcolor.is_default)
        ):
            kept[-1] = type(kept[-1])(text.rstrip(" ") if not control else text, style, control)
            break
        kept.pop()
    return kept


def _ruled(lines: Iterable[Iterable[Segment]]) -> list[list[Segment]]:
    """Return the lines of reasoning: after a rule, and paler than those of an answer."""
    from rich.segment import Segment  # noqa: PLC0415  an extra
    from rich.style import Style  # noqa: PLC0415

    rule, pale = Style(dim=True), Style(dim=True, italic=True)
    return [[Segment(RULE, rule), *Segment.apply_style(line, pale)] for line in lines]


def _without_margins(lines: list[list[Segment]]) -> list[list[Segment]]:
    """Return the lines of a block without the empty ones around it: the spacing of blocks is set here."""
    full = [index for index, line in enumerate(lines) if line]
    return lines[full[0] : full[-1] + 1] if full else []


def markdown(text: str) -> RenderableType:
    """Return what draws `text`. Addresses of links are shown, never replaced by their text."""
    from rich.markdown import Markdown  # noqa: PLC0415  an extra

    tokens = parsed(text)
    if any(token.level >= DEEPEST for token in tokens):
        from rich.text import Text  # noqa: PLC0415  as above

        return Text(harmless(text))
    match tokens[0].type if len(tokens) == 1 else "":
        case "fence" | "code_block":
            return _code(tokens[0])
        case "hr":
            from rich.rule import Rule  # noqa: PLC0415  as above

            return Rule(style="dim")
        case _:
            pass
    for token in tokens:
        token.tag = _LEVELS.get(token.tag, token.tag)
        for child in token.children or ():
            if child.type == "softbreak":
                child.type = "hardbreak"  # a model that begins a line means one: verses, addresses
    drawn = Markdown("", hyperlinks=False, code_theme="ansi_dark")
    drawn.markup, drawn.parsed = text, tokens
    return drawn


def _code(token: Token) -> RenderableType:
    from rich.padding import Padding  # noqa: PLC0415  an extra
    from rich.syntax import Syntax  # noqa: PLC0415

    language = token.info.partition(" ")[0] or "text"
    code = token.content.rstrip("\n")
    syntax = Syntax(code, language, theme="ansi_dark", background_color="default", word_wrap=True)
    return Padding(syntax, (0, 0, 0, 2))


CALM = {
    "markdown.h2": "bold underline",
    "markdown.h3": "bold",
    "markdown.h4": "bold",
    "markdown.h5": "bold",
    "markdown.h6": "bold",
    "markdown.code": "cyan",
    "markdown.code_block": "none",
    "markdown.block_quote": "italic",
    "markdown.item.bullet": "dim",
    "markdown.item.number": "dim",
    "markdown.table.header": "bold",
    "markdown.table.border": "dim",
    "markdown.link": "none",
    "markdown.link_url": "underline",
}
"""How Markdown looks: few colours, and each of them means one thing."""


def console_of(**settings: Any) -> Console:  # noqa: ANN401  those of the class
    """Return a console on which text is only text: no markup, no highlighting, no emoji by name."""
    from rich.console import Console  # noqa: PLC0415  an extra
    from rich.theme import Theme  # noqa: PLC0415

    return Console(markup=False, highlight=False, emoji=False, theme=Theme(CALM), **settings)
