"""One run of `xenoglot ask`: streams an answer, or calls tools and validates the answer before it is printed."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from xenoglot.client.results.result import Reply
from xenoglot.errors import FailureError
from xenoglot.model.failure import Failure
from xenoglot.model.request import Message
from xenoglot.tools.events import CallStarted

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from xenoglot.agent.answer_schema import AnswerSchema
    from xenoglot.client.async_ import AsyncClient
    from xenoglot.model_selection import ModelSelection
    from xenoglot.tools.tool import LocalTool


class PromptOptions(NamedTuple):
    """What to send: the options of the request, tools that the model can call, and a schema of the answer.

    `silent` prints nothing of the answer.
    """

    options: dict[str, Any]
    tools: Sequence[LocalTool] = ()
    schema: AnswerSchema | None = None
    silent: bool = False


class PromptResult(NamedTuple):
    """The answer, and the conversation with it."""

    reply: Reply
    turns: tuple[Message, ...]


async def run_prompt(chosen: ModelSelection, turns: tuple[Message, ...], plan: PromptOptions) -> PromptResult:
    """Print the answer to the last of `turns` on standard output; return it.

    Raises:
        FailureError: no answer, or none that matches the schema.
    """
    from xenoglot.client.async_ import AsyncClient  # noqa: PLC0415  only where something is asked

    async with AsyncClient(chosen.open, on_loss="ignore") as client:
        if plan.schema is not None:
            return await _ask_for_schema(client, chosen, turns, plan)
        if plan.tools:
            answered = await _call_tools(client, chosen, turns, plan)
            if not plan.silent:
                _print(answered.reply.text)
            return answered
        return await _stream(client, chosen, turns, plan)


async def _stream(
    client: AsyncClient,
    chosen: ModelSelection,
    turns: tuple[Message, ...],
    plan: PromptOptions,
    *,
    silent: bool = False,
) -> PromptResult:
    from xenoglot.terminal.display.renderer import PlainRenderer  # noqa: PLC0415  as above

    canvas = PlainRenderer(sys.stdout, raw=not sys.stdout.isatty())
    silent = silent or plan.silent
    async with AsyncExitStack() as stack:
        stream = client.stream(turns, **plan.options)
        with _loading(chosen):
            await stack.enter_async_context(stream)
        if not silent:
            async for text in stream.texts():
                canvas.write(text)
        reply = await stream.reply()
    if not silent:
        sys.stdout.write("\n")
    return PromptResult(reply, (*turns, reply.message))


async def _call_tools(
    client: AsyncClient, chosen: ModelSelection, turns: tuple[Message, ...], plan: PromptOptions
) -> PromptResult:
    """Run the tool loop; each call is a line on standard error."""
    from xenoglot.terminal.display.run_view import call_line  # noqa: PLC0415  only where there are tools

    run = client.run_stream(turns, plan.tools, **plan.options)
    async with run:
        with _loading(chosen):
            async for event in run:
                if isinstance(event, CallStarted):
                    sys.stderr.write(f"{call_line(event.call)}\n")
    result = run.result
    if result is None or result.response is None or result.outcome != "answered":
        reason = "no answer" if result is None else f"{result.outcome}: {result.reason}"
        known = None if result is None else result.failure
        raise FailureError(known or Failure(kind="upstream", message=reason))
    head = sum(turn.role in ("system", "developer") for turn in result.messages)
    return PromptResult(Reply(response=result.response, losses=result.losses), result.messages[head:])


async def _ask_for_schema(
    client: AsyncClient, chosen: ModelSelection, turns: tuple[Message, ...], plan: PromptOptions
) -> PromptResult:
    """Ask until the answer matches the schema; print it without a code fence."""
    from xenoglot.agent.answer_schema import RETRIES, correction, unfenced  # noqa: PLC0415  an extra
    from xenoglot.model.content import Text  # noqa: PLC0415

    assert plan.schema is not None  # noqa: S101  the caller checks it
    asked, problem = turns, ""
    for _ in range(1 + RETRIES):
        if plan.tools:
            answered = await _call_tools(client, chosen, asked, plan)
        else:
            answered = await _stream(client, chosen, asked, plan, silent=True)
        problems = plan.schema.problems(answered.reply.text)
        if not problems:
            if not plan.silent:
                _print(unfenced(answered.reply.text))
            return PromptResult(answered.reply, (*turns, answered.turns[-1]))
        problem = str(problems[0])
        asked = (*answered.turns, Message(role="user", content=(Text(text=correction(problems)),)))
    raise FailureError(Failure(kind="upstream", message=f"the answer does not match the schema: {problem}"))


def _print(text: str) -> None:
    from xenoglot.terminal.display.renderer import PlainRenderer  # noqa: PLC0415  as above

    canvas = PlainRenderer(sys.stdout, raw=not sys.stdout.isatty())
    canvas.write(text)
    sys.stdout.write("\n")


@contextmanager
def _loading(chosen: ModelSelection) -> Generator[None]:
    """Show that the embedded model is being loaded; the loader reports no progress."""
    from xenoglot.terminal.display.screen import supports_rich  # noqa: PLC0415  only this command needs it

    if not chosen.embedded or not supports_rich(sys.stderr):
        yield
        return
    from xenoglot.terminal.display.progress import progress_bar  # noqa: PLC0415  an extra, where somebody looks on

    progress = progress_bar()
    progress.started("loading the model")
    try:
        yield
    finally:
        progress.done()
