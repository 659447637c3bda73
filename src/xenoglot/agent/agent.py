"""The agent: one conversation with a model that has tools, stored in a session file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from xenoglot.agent.hooks import MOST_FOLLOW_UPS
from xenoglot.agent.sandbox.file_names import valid_text
from xenoglot.agent.session.session_records import SessionSpend
from xenoglot.model.content import Text
from xenoglot.model.request import Message
from xenoglot.moved_modules import renamed
from xenoglot.tools.budget import Budget, RunSpend, add_spend
from xenoglot.tools.compaction import Compaction
from xenoglot.tools.events import Compacted, MessagesAdded, RoundEnded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from xenoglot.agent.hooks import Hooks
    from xenoglot.agent.session.session_files import SessionFile
    from xenoglot.client.async_ import AsyncClient
    from xenoglot.client.tool_loop.run import AsyncRunStream
    from xenoglot.model.content import ToolCall
    from xenoglot.tools.events import RunEvent
    from xenoglot.tools.result import Outcome, RunResult
    from xenoglot.tools.tool import Approval, LocalTool


class AgentSettings(Struct, frozen=True, kw_only=True):
    """Settings of an agent: instructions, limits over the whole session, and request options.

    `max_rounds` limits the answers to one prompt. `options` are those of `AsyncClient.complete`.
    """

    system: str
    max_rounds: int = 50
    budget: Budget | None = None
    compaction: Compaction | None = Compaction()
    options: dict[str, Any] = {}


class Agent:
    """Works on prompts in order. `session` stores the conversation; without a session nothing is stored.

    `messages` is the conversation, `spent` its usage so far, including that of a resumed session. `settings` and
    `tools` apply from the next prompt on.
    """

    def __init__(
        self,
        client: AsyncClient,
        tools: Sequence[LocalTool],
        manner: AgentSettings,
        session: SessionFile | None = None,
        hooks: Hooks | None = None,
    ) -> None:
        self._client = client
        self.hooks = hooks
        self.tools = tools
        self.settings = manner
        self._session = session
        self._run: AsyncRunStream | None = None
        self.messages: tuple[Message, ...] = () if session is None else session.session.messages
        self.spent = RunSpend() if session is None else session.session.spent

    async def work(
        self,
        prompt: str,
        feed: Callable[[RunEvent], object],
        approve: Callable[[ToolCall], bool | str | Approval | Awaitable[bool | str | Approval]] | None = None,
    ) -> RunResult:
        """Work on a prompt until the model is done or may do no more; `feed` is given each event.

        Cancelled, it leaves a conversation that can be continued.

        Raises:
            ConfigurationError: something of the options is wrong, or a hook stops the prompt.
        """
        if self.hooks is None:
            return await self._work(prompt, feed, approve)
        prompt = await self.hooks.before_prompt(prompt)
        follow_ups = 0
        while True:
            result = await self._work(prompt, feed, approve)
            problem = await self.hooks.after_prompt(result.outcome, result.text)
            if problem is None or result.outcome != "answered" or follow_ups == MOST_FOLLOW_UPS:
                return result
            prompt = problem
            follow_ups += 1

    @property
    def hooked_tools(self) -> Sequence[LocalTool]:
        """The tools, wrapped with their hooks."""
        return self.tools if self.hooks is None else self.hooks.around(self.tools)

    async def _work(
        self,
        prompt: str,
        feed: Callable[[RunEvent], object],
        approve: Callable[[ToolCall], bool | str | Approval | Awaitable[bool | str | Approval]] | None,
    ) -> RunResult:
        said = Message(role="user", content=(Text(text=valid_text(prompt)),))
        self._add(said)
        run = self._client.run_stream(
            self.messages,
            self.hooked_tools,
            system=self.settings.system,
            max_rounds=self.settings.max_rounds,
            budget=self.settings.budget,
            spent=self.spent,
            compaction=self.settings.compaction,
            approve=approve,
            **self.settings.options,
        )
        self._run = run
        try:
            async with run:
                async for event in run:
                    self._record(event, run)
                    feed(event)
        finally:
            self._run = None
            self._end(run)
        if run.result is None:
            raise RuntimeError("a run that has ended has a result")
        return run.result

    def spend(self, more: RunSpend) -> None:
        """Add the usage of one of its tools to its own."""
        if self._run is not None:
            self._run.spend(more)
            self._account(self._run.spent, None)
        else:
            self._account(add_spend(self.spent, more), None)

    @property
    def last_text(self) -> str:
        """The text of the last answer; empty before the first."""
        content = next((message.content for message in reversed(self.messages) if message.role == "assistant"), ())
        return "".join(part.text for part in content if isinstance(part, Text))

    @property
    def spent_now(self) -> RunSpend:
        """The usage up to now, including the prompt in progress."""
        return self.spent if self._run is None else self._run.spent

    def _record(self, event: RunEvent, run: AsyncRunStream) -> None:
        match event:
            case MessagesAdded(messages=messages):
                self._add(*messages)
            case Compacted(messages=messages):
                self.rewrite(_without_system(messages))
            case RoundEnded():
                self._account(run.spent, None)
            case _:
                pass

    def _end(self, run: AsyncRunStream) -> None:
        """Take over what the run made of the conversation, however it ended."""
        result = run.result
        if result is None:
            return
        messages = _without_system(result.messages)
        if messages != self.messages:
            self.rewrite(messages)
        self._account(result.spent, result.outcome)

    def _add(self, *messages: Message) -> None:
        self.messages = (*self.messages, *messages)
        if self._session is not None:
            self._session.add(*messages)

    def rewrite(self, messages: tuple[Message, ...]) -> None:
        """Replace the conversation; must not be called during a prompt."""
        self.messages = messages
        if self._session is not None:
            self._session.rewrite(messages)

    def _account(self, spent: RunSpend, outcome: Outcome | None) -> None:
        self.spent = spent
        if self._session is not None:
            self._session.account(SessionSpend(spent=spent, outcome=outcome))


def _without_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the conversation without the instructions before it, which are set again with each prompt."""
    first = next((index for index, message in enumerate(messages) if message.role != "system"), len(messages))
    return tuple(messages[first:])


if not TYPE_CHECKING:  # type checkers report the old names

    def __getattr__(name: str) -> object:
        """Return what an old name is today."""
        return renamed(__name__, name)
