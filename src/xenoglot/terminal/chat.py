"""Interactive conversation loop: reads input, runs slash commands, displays answers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from xenoglot.errors import XenoglotError
from xenoglot.terminal import slash
from xenoglot.terminal.chat_state import ChatState
from xenoglot.terminal.counts import format_cost, format_tokens
from xenoglot.terminal.display.frontend import interruptible
from xenoglot.terminal.display.sanitize import in_line

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Sequence

    from xenoglot.client.async_ import AsyncClient
    from xenoglot.codec.loss import Loss
    from xenoglot.model.content import Part
    from xenoglot.model.request import Message
    from xenoglot.model.response import Usage
    from xenoglot.terminal.conversation import Conversation
    from xenoglot.terminal.display.frontend import Frontend
    from xenoglot.tools.tool import LocalTool

LEAVE = "Ctrl-C once more leaves; so does Ctrl-D"


class Chat(ChatState):
    """The loop of a conversation: reads input, runs commands, displays answers."""

    def __init__(
        self,
        client: AsyncClient,
        face: Frontend,
        conversation: Conversation,
        *,
        tools: Sequence[LocalTool] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(client, face, conversation, tools, clock)
        self._clock = clock
        self._losses: set[Loss] = set()
        self._answered = True

    async def run(self) -> bool:
        """Run until the user quits; return whether the last question was answered."""
        answered, leaving = True, False
        while self.going:
            try:
                typed = await self.face.read()
            except KeyboardInterrupt:
                if leaving:
                    break
                leaving = True
                self.note(LEAVE)
                continue
            if typed is None:
                break
            leaving = False
            answered = await self._take(typed, answered=answered)
        return answered

    async def _take(self, typed: str, *, answered: bool) -> bool:
        """Process one input; return whether the last question is answered."""
        if typed.startswith("/") and not typed.startswith("//"):
            if not await self._command(typed):
                return answered
        elif typed.strip() or self.conversation.waiting:
            self.conversation.ask(typed.removeprefix("/") if typed.startswith("//") else typed)
        else:
            return answered
        return await self.answer()

    async def _command(self, typed: str) -> bool:
        """Run a command; return whether the last question must be answered now. Ctrl-C stops the command too."""
        wanted = False

        async def work() -> None:
            nonlocal wanted
            wanted = await slash.run(self, typed)

        try:
            if not await self._to_its_end(work()):
                self.note("stopped")
        except (XenoglotError, OSError) as error:
            self.problem(str(error))
        return wanted

    async def _to_its_end(self, work: Coroutine[object, object, None]) -> bool:
        """Run `work`; returns whether it came to its end."""
        if self.face.interactive:
            return await interruptible(work)
        await work
        return True

    async def answer(self) -> bool:
        """Answer the last question; return whether that succeeded. A failure ends this answer alone."""
        self.face.canvas.passing(self.waiting_for, waiting=True)
        self.drawing.begin()
        self._answered = False
        came: list[Part] = []
        work = self._ask_with_tools() if self.tools else self._ask(came)
        try:
            ended = await self._to_its_end(work)
        except (XenoglotError, OSError) as error:
            self.drawing.stop()
            self._break_off(came)
            self.problem(str(error))
            ended = True
        finally:
            self.drawing.stop()
        if not ended:
            self._break_off(came)
            self.note("stopped")
        elif not self._answered and self.conversation.unanswered and self.face.interactive:
            self.note("/retry asks again")
        return self._answered

    def _break_off(self, came: Sequence[Part]) -> None:
        if self.tools:
            self.conversation.broken_off()
        else:
            self.conversation.stopped(came)

    async def _ask(self, came: list[Part]) -> None:
        began = self._clock()
        stream = self.client.stream(self.conversation.turns, **self.conversation.options)
        try:
            async with stream:
                async for event in stream:
                    self.drawing.feed(event)
                reply = await stream.reply()
        except BaseException:
            came += stream.response.candidates[0].content if stream.response.candidates else ()
            raise
        self.conversation.answered(reply.message)
        self._answered = True
        self._tell(
            reply.losses,
            reply.model,
            reply.usage,
            None if reply.cost is None else reply.cost.total,
            self._clock() - began,
        )

    async def _ask_with_tools(self) -> None:
        began = self._clock()
        run = self.client.run_stream(
            self.conversation.turns, self.tools, approve=self.drawing.approve, **self.conversation.options
        )
        try:
            async with run:
                async for event in run:
                    self.drawing.feed(event)
        finally:
            self.conversation.turns = _spoken(run.messages) or self.conversation.turns
        result = run.result
        if result is None:
            return
        self._answered = result.outcome not in ("failed", "cancelled")
        if not self._answered:
            self.conversation.broken_off()
        if result.rounds:
            model = result.response.model if result.response else None
            self._tell(result.losses, model, result.usage, result.cost, self._clock() - began)

    def _tell(
        self, losses: Iterable[Loss], model: str | None, usage: Usage | None, cost: float | None, seconds: float
    ) -> None:
        self.drawing.stop()
        for loss in losses:
            if loss not in self._losses:  # once is enough: it is the same with every question
                self._losses.add(loss)
                self.note(f"loss: {loss}")
        self.spent.add(usage, cost)
        if self.face.interactive:
            self.note(
                " · ".join(
                    filter(None, (in_line(model or ""), format_tokens(usage), format_cost(cost), f"{seconds:.1f} s"))
                )
            )


def _spoken(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return a transcript without the instructions at its head, which are said anew with each question."""
    first = next((index for index, turn in enumerate(messages) if turn.role not in ("system", "developer")), 0)
    return tuple(messages[first:])
