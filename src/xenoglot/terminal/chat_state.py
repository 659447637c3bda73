"""State of a conversation on a terminal, which the commands of `terminal.slash` read and change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.model.content import Text
from xenoglot.terminal.counts import ConversationUsage
from xenoglot.terminal.display.run_view import RunView
from xenoglot.terminal.display.sanitize import in_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.client.async_ import AsyncClient
    from xenoglot.terminal.conversation import Conversation
    from xenoglot.terminal.display.frontend import Frontend
    from xenoglot.tools.tool import LocalTool


class ChatState:
    """One conversation on one frontend, and what is displayed of it except answers."""

    def __init__(
        self,
        client: AsyncClient,
        face: Frontend,
        conversation: Conversation,
        tools: Sequence[LocalTool],
        clock: Callable[[], float],
    ) -> None:
        self.client = client
        self.frontend = face
        self.conversation = conversation
        self.tools = tuple(tools)
        self.view = RunView(face.renderer, clock, ask=face.choose if face.interactive else None)
        self.spent = ConversationUsage()
        self.models: list[str] = []
        """Known names, for completion."""
        self.saved: set[str] = set()
        """The files that this conversation came from or went to: they may be written again."""
        self.waiting_for = "…"
        """What is shown while an answer is waited for."""
        self.running = True
        """Whether more is read."""

    def exit(self) -> None:
        """End the loop: no more input is read."""
        self.running = False

    def note(self, text: str) -> None:
        """Display a dimmed line."""
        self.frontend.renderer.line(text, "quiet")

    def problem(self, text: str) -> None:
        """Display an error in one line."""
        self.frontend.renderer.line(in_line(text, 500), "problem")

    def show_end(self) -> None:
        """Display the last question and its answer when a conversation is resumed."""
        asked = [index for index, turn in enumerate(self.conversation.turns) if turn.role == "user"]
        if not asked or not self.frontend.interactive:
            return
        for turn in self.conversation.turns[asked[-1] :]:
            words = "\n".join(part.text for part in turn.content if isinstance(part, Text))
            if turn.role == "user":
                self.note(f"> {in_line(words)}")
            elif turn.role == "assistant":
                self.frontend.renderer.write(words)
                self.frontend.renderer.end_text()
