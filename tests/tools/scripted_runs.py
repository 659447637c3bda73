"""What the tests of the tool loop are made of: answers of a model, and runs of them under both clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from xenoglot.backends.scripted import Scripted
from xenoglot.client.async_ import AsyncClient
from xenoglot.client.sync import Client
from xenoglot.model.content import Text, ToolCall, ToolResult
from xenoglot.model.response import Candidate, Finish, Response, Usage
from xenoglot.tools.events import CallEnded, ModelEvent, RunEnded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.backends.scripted import Turn
    from xenoglot.model.content import Part
    from xenoglot.model.request import Message
    from xenoglot.model.response import FinishReason
    from xenoglot.tools.events import RunEvent
    from xenoglot.tools.result import RunResult

USAGE = Usage(input_tokens=10, output_tokens=5)


def answer(*content: Part | str, finish: FinishReason | None = None, usage: Usage | None = USAGE) -> Response:
    """Return an answer; where it calls tools that is why it ends, if nothing else is said."""
    parts = tuple(Text(text=part) if isinstance(part, str) else part for part in content)
    calls = any(isinstance(part, ToolCall) for part in parts)
    reason = finish or ("tool_calls" if calls else "stop")
    return Response(candidates=(Candidate(content=parts, finish=Finish(reason=reason)),), usage=usage)


def call(name: str, arguments: str = "{}", id: str = "") -> ToolCall:  # noqa: A002  what it is called everywhere
    """Return a call; without an id it gets one in the run."""
    return ToolCall(id=id or f"call_{name}", name=name, arguments=arguments)


async def run(turns: Sequence[Turn], tools: Sequence[Any], **options: Any) -> tuple[RunResult, list[RunEvent]]:  # noqa: ANN401
    """Return what came of a run under the asynchronous client, and its events."""
    events: list[RunEvent] = []
    async with AsyncClient(Scripted(*turns)) as client:
        result = await client.run("Go.", tools, on_event=events.append, **options)
    return result, events


def run_blocking(turns: Sequence[Turn], tools: Sequence[Any], **options: Any) -> tuple[RunResult, list[RunEvent]]:  # noqa: ANN401
    """Return the same under the blocking client."""
    events: list[RunEvent] = []
    with Client(Scripted(*turns)) as client:
        result = client.run("Go.", tools, on_event=events.append, **options)
    return result, events


def trace(events: Iterable[RunEvent]) -> list[RunEvent]:
    """Return the events without what the clock says."""
    told: list[RunEvent] = []
    for event in events:
        match event:
            case CallEnded():
                told.append(replace(event, seconds=0.0))
            case RunEnded(result=result):
                told.append(RunEnded(result=timeless(result)))
            case _:
                told.append(event)
    return told


def timeless(result: RunResult) -> RunResult:
    """Return the result without what the clock says."""
    return replace(result, spent=replace(result.spent, seconds=0.0))


def steps(events: Iterable[RunEvent]) -> list[str]:
    """Return the names of the events in order, without the growth of answers."""
    return [type(event).__name__ for event in events if not isinstance(event, ModelEvent)]


def results(messages: Iterable[Message]) -> list[tuple[str, str]]:
    """Return the results in a transcript: of which call, and the words."""
    return [
        (part.call_id, "".join(inner.text for inner in part.content if isinstance(inner, Text)))
        for message in messages
        for part in message.content
        if isinstance(part, ToolResult)
    ]


def unpaired(messages: Iterable[Message]) -> list[str]:
    """Return what is wrong with a transcript: calls and results that are not each other's, in order."""
    wrong: list[str] = []
    waiting: list[str] = []
    seen: set[str] = set()
    for message in messages:
        answered = [part.call_id for part in message.content if isinstance(part, ToolResult)]
        for one in answered:
            if waiting[:1] != [one]:
                wrong.append(f"result of `{one}` where {waiting[:1]} waits")
            else:
                del waiting[0]
        if not answered:
            wrong += [f"`{one}` has no result" for one in waiting]
            waiting = [part.id for part in message.content if isinstance(part, ToolCall)]
            wrong += [f"`{one}` is there twice" for one in waiting if one in seen]
            seen.update(waiting)
    return [*wrong, *(f"`{one}` has no result" for one in waiting)]
