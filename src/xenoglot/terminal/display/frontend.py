"""Input and output of a conversation: a terminal with a line editor, or plain lines."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from xenoglot.errors import ConfigurationError
from xenoglot.terminal.display.renderer import PlainRenderer
from xenoglot.terminal.display.sanitize import harmless
from xenoglot.terminal.display.screen import renderer_of, supports_rich

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator, Sequence
    from typing import TextIO

    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.key_binding import KeyBindings

    from xenoglot.terminal.display.history import History
    from xenoglot.terminal.display.renderer import Renderer

PROMPT = "> "
_STDIN = 0
_READ_BYTES = 65536
_LONGEST_LINE = 10_000_000
"""Bytes of a line that is read: no model takes more."""
_INTERRUPTED_SECONDS = 5.0
"""How long a question that was interrupted waits to be cancelled, before it counts as not answered."""


class Frontend(Protocol):
    """Interface between a conversation and the user."""

    renderer: Renderer
    interactive: bool
    """Whether there is a user who can answer questions."""

    async def read(self) -> str | None:
        """Return what was typed; None where nothing more comes.

        Raises:
            KeyboardInterrupt: the person pressed Ctrl-C.
        """

    async def choose(self, question: str) -> str:
        """Return what a person answers to `question`, in one line; nothing where they leave."""


class PlainFrontend:
    """Lines from standard input, each a turn; answers go to `output`."""

    def __init__(self, output: TextIO | None = None, *, stdin: int = _STDIN) -> None:
        self.interactive = os.isatty(stdin)
        output = output or sys.stdout
        raw = not output.isatty()
        self.renderer: Renderer = PlainRenderer(output, raw=raw, problems=sys.stderr if raw else None)
        self._stdin = stdin
        self._unread = b""
        self._ended = False

    async def read(self) -> str | None:
        """Return the next line, without its end."""
        if self.interactive:
            self._show(PROMPT)
        return await self._line()

    async def choose(self, question: str) -> str:
        """Ask on a line of its own."""
        self._show(harmless(question))
        return (await self._line()) or ""

    def _show(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    async def _line(self) -> str | None:
        while b"\n" not in self._unread and not self._ended:
            data = await _in_thread(self._stdin)
            self._ended = not data
            self._unread += data
            if len(self._unread) > _LONGEST_LINE:
                raise ConfigurationError(f"standard input: a line is longer than {_LONGEST_LINE // 1_000_000} MB")
        if not self._unread:
            return None
        line, _, self._unread = self._unread.partition(b"\n")
        return line.removesuffix(b"\r").decode(errors="replace")


class RichFrontend:
    """A terminal with multi-line input, history and completion."""

    interactive = True

    def __init__(self, canvas: Renderer, history: History | None, completer: Completer | None = None) -> None:
        from prompt_toolkit import PromptSession  # noqa: PLC0415  an extra
        from prompt_toolkit.history import InMemoryHistory  # noqa: PLC0415

        self.renderer = canvas
        self._history = history
        self._session: PromptSession[str] = PromptSession(
            history=InMemoryHistory(history.lines() if history else ()),
            completer=completer,
            complete_while_typing=False,
            multiline=True,
            key_bindings=_keys(),
            prompt_continuation="  ",
            enable_open_in_editor=True,
            enable_suspend=True,
        )

    async def read(self) -> str | None:
        """Let something be typed."""
        self.renderer.space()
        try:
            text = await self._session.prompt_async([("bold", PROMPT)])
        except EOFError:
            return None
        text = text.encode(errors="replace").decode()
        if self._history:
            self._history.add(text)
        return text

    async def choose(self, question: str) -> str:
        """Ask in one line that is remembered nowhere.

        Ctrl-C is a key to the editor: it is passed on to the caller, which cancels it.
        """
        from prompt_toolkit import PromptSession  # noqa: PLC0415  an extra

        self.renderer.end_text()
        asking: PromptSession[str] = PromptSession()
        with suppress(EOFError):
            try:
                return str(await asking.prompt_async(harmless(question), handle_sigint=False))
            except KeyboardInterrupt:
                signal.raise_signal(signal.SIGINT)
                await asyncio.sleep(_INTERRUPTED_SECONDS)
        return ""


def frontend_of(
    history: History | None = None, *, names: Sequence[str] = (), models: Sequence[str] = (), plain: bool = False
) -> Frontend:
    """Return the best face that this terminal allows.

    `names` are completed at the beginning of the input, `models` after `/model`.

    Raises:
        ModuleNotFoundError: it is a terminal, and the extra `terminal` is not installed.
    """
    if plain or not sys.stdin.isatty() or not supports_rich(sys.stdout):
        return PlainFrontend()
    import rich  # noqa: F401, PLC0415  an extra: without it the one who is asked to install it is told so

    return RichFrontend(renderer_of(), history, _completer(names, models))


def _keys() -> KeyBindings:
    """Key bindings: Enter sends; Alt-Enter, or Escape and then Enter, starts another line."""
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent  # noqa: PLC0415  an extra

    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def _completer(names: Sequence[str], models: Sequence[str]) -> Completer:
    """Return the completer for commands and their arguments."""
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter  # noqa: PLC0415  an extra
    from prompt_toolkit.document import Document  # noqa: PLC0415

    paths = PathCompleter(expanduser=True)

    class CommandCompleter(Completer):
        """Completes slash commands, model names and file names."""

        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Generator[Completion]:
            """Yield what the text before the cursor may become."""
            text = document.text_before_cursor
            name, space, rest = text.partition(" ")
            if not text.startswith("/"):
                return
            if not space:
                yield from (Completion(one, -len(name)) for one in names if one.startswith(name))
            elif name == "/model":
                yield from (Completion(harmless(one), -len(rest)) for one in models if one.startswith(rest))
            elif name in ("/file", "/image", "/load", "/save"):
                yield from paths.get_completions(Document(rest, len(rest)), complete_event)

    return CommandCompleter()


async def interruptible(work: Coroutine[object, object, object]) -> bool:
    """Run `work` to its end; Ctrl-C cancels it. Returns whether it ended by itself.

    What is typed meanwhile is not shown: it would stand in the middle of the drawing.
    """
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    with _silent(), _on_interrupt(loop, task.cancel):
        try:
            await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():  # it is not the person who wants an end
                task.cancel()
                await asyncio.wait({task})
                raise
            return False
    return True


@contextmanager
def _on_interrupt(loop: asyncio.AbstractEventLoop, act: object) -> Generator[None]:
    try:
        loop.add_signal_handler(signal.SIGINT, act)  # type: ignore[arg-type]
    except (NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


@contextmanager
def _silent() -> Generator[None]:
    """Disable the terminal's echo."""
    try:
        import termios  # noqa: PLC0415  not everywhere
    except ModuleNotFoundError:
        yield
        return
    try:
        before = termios.tcgetattr(_STDIN)
    except (termios.error, OSError, ValueError):  # no terminal
        yield
        return
    mode = list(before)
    mode[3] = before[3] & ~termios.ECHO
    termios.tcsetattr(_STDIN, termios.TCSANOW, mode)
    try:
        yield
    finally:
        termios.tcsetattr(_STDIN, termios.TCSANOW, before)


async def _in_thread(descriptor: int) -> bytes:
    """Read the available input in a thread that is never waited for, because input may never arrive."""
    loop = asyncio.get_running_loop()
    came: asyncio.Future[bytes] = loop.create_future()

    def deliver(data: bytes) -> None:
        if not came.done():
            came.set_result(data)

    def read() -> None:
        try:
            data = os.read(descriptor, _READ_BYTES)
        except OSError:
            data = b""
        with suppress(RuntimeError):  # the loop is closed by now
            loop.call_soon_threadsafe(deliver, data)

    threading.Thread(target=read, daemon=True).start()
    return await came
