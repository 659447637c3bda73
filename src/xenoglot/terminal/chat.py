"""Interactive conversation loop: reads input, runs slash commands, displays answers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from xenoglot.errors import INTERRUPTED, MISUSE, UNREACHABLE, XenoglotError, exit_code, failure_code
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

EXIT_HINT = "Ctrl-C once more leaves; so does Ctrl-D"


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
        self.exit_code = UNREACHABLE
        """That of a program that gets no answer to its last question."""

    async def run(self) -> bool:
        """Run until the user quits; return whether the last question was answered."""
        answered, leaving = True, False
        while self.running:
            try:
                typed = await self.frontend.read()
            except KeyboardInterrupt:
                if leaving:
                    break
                leaving = True
                self.note(EXIT_HINT)
                continue
            if typed is None:
                break
            leaving = False
            answered = await self._process(typed, answered=answered)
        return answered

    async def _process(self, typed: str, *, answered: bool) -> bool:
        """Process one input; return whether the last question is answered."""
        if (typed.startswith("/") and not typed.startswith("//")) or typed.strip() in slash.EXITS:
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
        if self.frontend.interactive:
            return await interruptible(work)
        await work
        return True

    async def answer(self) -> bool:
        """Answer the last question; return whether that succeeded. A failure ends this answer alone."""
        self.frontend.renderer.status(self.waiting_for, waiting=True)
        self.view.begin()
        self._answered = False
        came: list[Part] = []
        work = self._run_tools() if self.tools else self._complete(came)
        try:
            ended = await self._to_its_end(work)
        except (XenoglotError, OSError) as error:
            self.view.stop()
            self._interrupt(came)
            self.problem(str(error))
            self.exit_code = exit_code(error) if isinstance(error, XenoglotError) else MISUSE
            ended = True
        finally:
            self.view.stop()
        if not ended:
            self._interrupt(came)
            self.note("stopped")
        elif not self._answered and self.conversation.unanswered and self.frontend.interactive:
            self.note("/retry asks again")
        return self._answered

    def _interrupt(self, came: Sequence[Part]) -> None:
        if self.tools:
            self.conversation.interrupted()
        else:
            self.conversation.stopped(came)

    async def _complete(self, came: list[Part]) -> None:
        began = self._clock()
        stream = self.client.stream(self.conversation.turns, **self.conversation.options)
        try:
            async with stream:
                async for event in stream:
                    self.view.feed(event)
                reply = await stream.reply()
        except BaseException:
            came += stream.response.candidates[0].content if stream.response.candidates else ()
            raise
        self.conversation.answered(reply.message)
        self._answered = True
        self._show_end(
            reply.losses,
            reply.model,
            reply.usage,
            None if reply.cost is None else reply.cost.total,
            self._clock() - began,
        )

    async def _run_tools(self) -> None:
        began = self._clock()
        run = self.client.run_stream(
            self.conversation.turns, self.tools, approve=self.view.approve, **self.conversation.options
        )
        try:
            async with run:
                async for event in run:
                    self.view.feed(event)
        finally:
            self.conversation.turns = _without_system(run.messages) or self.conversation.turns
        result = run.result
        if result is None:
            return
        self._answered = result.outcome not in ("failed", "cancelled")
        if not self._answered:
            self.conversation.interrupted()
            self.exit_code = INTERRUPTED if result.failure is None else failure_code(result.failure)
        if result.rounds:
            model = result.response.model if result.response else None
            self._show_end(result.losses, model, result.usage, result.cost, self._clock() - began)

    def _show_end(
        self, losses: Iterable[Loss], model: str | None, usage: Usage | None, cost: float | None, seconds: float
    ) -> None:
        self.view.stop()
        for loss in losses:
            if loss not in self._losses:  # once is enough: it is the same with every question
                self._losses.add(loss)
                self.note(f"loss: {loss}")
        self.spent.add(usage, cost)
        if self.frontend.interactive:
            self.note(
                " · ".join(
                    filter(None, (in_line(model or ""), format_tokens(usage), format_cost(cost), f"{seconds:.1f} s"))
                )
            )


def _without_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return a transcript without the instructions at its head, which are sent again with each question."""
    first = next((index for index, turn in enumerate(messages) if turn.role not in ("system", "developer")), 0)
    return tuple(messages[first:])
