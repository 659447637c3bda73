"""The screen of `xenoglot agent`: displays runs like those of a conversation, with the same prompt editor."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from xenoglot.agent.slash import COMMANDS
from xenoglot.terminal.counts import format_cost, format_tokens
from xenoglot.terminal.display.frontend import frontend_of
from xenoglot.terminal.display.run_view import RunView
from xenoglot.terminal.display.terminal_restore import restore_on_exit

if TYPE_CHECKING:
    from xenoglot.terminal.display.frontend import Frontend
    from xenoglot.tools.result import RunResult


class AgentScreen(RunView):
    """Displays the events of an agent, and prompts the user."""

    def __init__(self, face: Frontend) -> None:
        super().__init__(face.renderer, ask=face.choose if face.interactive else None)
        self._frontend = face

    def _ended(self, result: RunResult) -> None:
        """Print the usage; the agent prints the outcome."""
        told = (
            f"{result.rounds} answer{'' if result.rounds == 1 else 's'}",
            f"{result.calls} call{'' if result.calls == 1 else 's'}",
            format_tokens(result.usage),
            format_cost(result.cost),
        )
        self.note(" · ".join(filter(None, told)))

    def read_prompt(self) -> str | None:
        """Return the next prompt; None if the user quits. Must not be called on a running event loop."""
        self.stop()
        self.begin()
        try:
            return asyncio.run(self._frontend.read())
        except KeyboardInterrupt:
            return None


def screen_of() -> AgentScreen:
    """Return the best screen for this terminal, one per process; plain lines without the extra `terminal`."""
    try:
        face = frontend_of(names=tuple(COMMANDS))
    except ModuleNotFoundError:
        face = frontend_of(plain=True)
    if face.interactive:
        restore_on_exit(face.renderer)
    return AgentScreen(face)
