"""Rounds between a model and executed tools: what the model is sent, what the client gets, and where it ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from xenoglot.backends.backend import EventAnswer
from xenoglot.codec.grammar import Grammar
from xenoglot.codec.loss import Losses
from xenoglot.errors import FailureError, WireError
from xenoglot.gateway.config.tools.settings import HostedToolSettings, PageSettings, SearchSettings
from xenoglot.gateway.tool_execution.history import function_history
from xenoglot.gateway.tool_execution.outcome import ToolOutcome, failed
from xenoglot.gateway.tool_execution.request_tools import ExecutionServices, HostedFunction, RequestTools
from xenoglot.gateway.tool_execution.service import ToolExecution
from xenoglot.model.content import (
    Citation,
    HostedCall,
    HostedResult,
    SearchResult,
    Text,
    ToolCall,
    ToolResult,
)
from xenoglot.model.events import Failed, HostedProgress
from xenoglot.model.failure import Failure
from xenoglot.model.fold import fold, unfold
from xenoglot.model.hosted import HostedTool, Location, McpServer
from xenoglot.model.request import Message, Request, Sampling, Tool, ToolChoice
from xenoglot.model.response import Candidate, Finish, Response, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from xenoglot.gateway.tool_execution.executor import ToolUse
    from xenoglot.model.content import Part
    from xenoglot.model.events import Event

SEARCH = HostedTool(kind="web_search")
SETTINGS = HostedToolSettings(web_search=SearchSettings(executor="searxng", url="http://127.0.0.1:1/"))
ASKED = Request(model="m", messages=(Message(role="user", content=(Text(text="Which river?"),)),), tools=(SEARCH,))
USAGE = Usage(input_tokens=10, output_tokens=2)
FOUND = SearchResult(url="https://a.example/1", title="One", text="The Nile")
NILE = "[1] One\nhttps://a.example/1\nThe Nile"


def search_call(call_id: str = "c1", query: str = "river") -> ToolCall:
    """Return a call of the search as a model writes it."""
    return ToolCall(id=call_id, name="web_search", arguments=f'{{"query":"{query}"}}')


def answer(*parts: Part, reason: str = "stop") -> Response:
    """Return an answer of the model."""
    finish = Finish(reason=reason)  # type: ignore[arg-type]
    return Response(id="r", model="m", candidates=(Candidate(content=parts, finish=finish),), usage=USAGE)


class ScriptedExecutor:
    """An executor with scripted outcomes, by query; `started` are the queries so far."""

    def __init__(self, run: Callable[[str], ToolOutcome] | None = None, wait: asyncio.Event | None = None) -> None:
        self.started: list[str] = []
        self.running = asyncio.Event()
        self.cancelled = 0
        self.closed = False
        self._run = run or (lambda _: ToolOutcome((FOUND,)))
        self._wait = wait

    async def run(self, use: ToolUse) -> ToolOutcome:
        """Return the outcome."""
        query = use.text("query") or use.text("url")
        self.started.append(query)
        self.running.set()
        if self._wait is not None:
            try:
                await self._wait.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        return self._run(query)

    async def check(self) -> str:
        """Return nothing."""
        return ""

    async def aclose(self) -> None:
        """Note it."""
        self.closed = True


class ScriptedCall:
    """A call whose model gives `answers`, one in each round; `requests` are what it was sent."""

    def __init__(self, request: Request, *answers: Response | Sequence[Event]) -> None:
        self.request = request
        self.requests: list[Request] = []
        self.losses = Losses()
        self.closed = 0
        self.used: list[Usage] = []
        self.may_go_on = True
        self._answers = list(answers)

    def change(self, request: Request) -> None:
        """Send `request`."""
        self.request = request

    async def affords(self, _: Request, used: Usage) -> bool:
        """Note what was used."""
        self.used.append(used)
        return self.may_go_on

    async def follow_up(self, request: Request) -> EventAnswer:
        """Send `request`."""
        self.request = request
        return await self.ask()

    async def ask(self) -> EventAnswer:
        """Return the answer of the round."""
        self.requests.append(self.request)
        given = self._answers.pop(0)
        events = list(unfold(given)) if isinstance(given, Response) else given

        async def batches() -> AsyncGenerator[Sequence[Event]]:
            for event in events:
                yield (event,)

        async def aclose() -> None:
            self.closed += 1

        return EventAnswer(batches=batches(), aclose=aclose)


async def events_of(call: ScriptedCall, executor: ScriptedExecutor, settings: HostedToolSettings) -> list[Event]:
    """Return the events of the answer to a call; they obey the grammar."""
    execution = ToolExecution(settings, dict.fromkeys(settings.executors, executor))
    answered = await execution.answer(call, execution.kinds(call.request), call.ask)
    assert isinstance(answered, EventAnswer)
    events = [event async for batch in answered.batches for event in batch]
    await answered.aclose()
    grammar = Grammar()
    for event in events:
        grammar.feed(event)
    return events


async def answered_by(
    *answers: Response,
    request: Request = ASKED,
    settings: HostedToolSettings = SETTINGS,
    executor: ScriptedExecutor | None = None,
) -> tuple[Response, ScriptedCall]:
    """Return the folded answer of some rounds, and the call."""
    call = ScriptedCall(request, *answers)
    folded = fold(await events_of(call, executor or ScriptedExecutor(), settings))
    assert isinstance(folded, Response)
    return folded, call


async def test_a_search_is_one_answer_with_call_result_and_words() -> None:
    said = "The Nile [1]."
    response, call = await answered_by(answer(search_call(), reason="tool_calls"), answer(Text(text=said)))
    arguments = '{"query":"river"}'
    citation = Citation(kind="url_citation", url=FOUND.url, title="One", start=9, end=12)
    assert response == Response(
        id="r",
        model="m",
        candidates=(
            Candidate(
                content=(
                    HostedCall(id="c1", kind="web_search", arguments=arguments),
                    HostedResult(call_id="c1", kind="web_search", content=(FOUND,)),
                    Text(text=said, citations=(citation,)),
                ),
                finish=Finish(reason="stop"),
            ),
        ),
        usage=Usage(input_tokens=20, output_tokens=4),
    )
    first, second = call.requests
    assert [tool.name for tool in first.tools if isinstance(tool, Tool)] == ["web_search"]
    assert second.messages == (
        *ASKED.messages,
        Message(role="assistant", content=(search_call(),)),
        Message(role="tool", content=(ToolResult(call_id="c1", content=(Text(text=NILE),), name="web_search"),)),
    )
    assert call.closed == 2


async def test_progress_is_sent_before_the_result_is_there() -> None:
    waiting = asyncio.Event()
    call = ScriptedCall(ASKED, answer(search_call(), reason="tool_calls"), answer(Text(text="done")))
    execution = ToolExecution(SETTINGS, {"web_search": ScriptedExecutor(wait=waiting)})
    answered = await execution.answer(call, execution.kinds(ASKED), call.ask)
    assert isinstance(answered, EventAnswer)
    seen: list[Event] = []
    async for batch in answered.batches:
        seen += batch
        if isinstance(batch[-1], HostedProgress):
            waiting.set()
    assert [type(event).__name__ for event in seen[:7]] == [
        "Started",
        "BlockStarted",
        "ArgumentsDelta",
        "HostedProgress",
        "BlockEnded",
        "BlockStarted",
        "BlockEnded",
    ]


async def test_several_calls_run_at_once_and_their_results_follow_them() -> None:
    executor = ScriptedExecutor(lambda query: ToolOutcome((replace(FOUND, title=query),)))
    first = answer(search_call("c1", "a"), search_call("c2", "b"), reason="tool_calls")
    response, call = await answered_by(first, answer(Text(text="[2]")), executor=executor)
    content = response.candidates[0].content
    assert [(type(part).__name__, getattr(part, "id", getattr(part, "call_id", ""))) for part in content] == [
        ("HostedCall", "c1"),
        ("HostedResult", "c1"),
        ("HostedCall", "c2"),
        ("HostedResult", "c2"),
        ("Text", ""),
    ]
    assert isinstance(content[-1], Text)
    assert [citation.title for citation in content[-1].citations] == ["b"]
    results = call.requests[1].messages[-1].content
    assert [part.content for part in results if isinstance(part, ToolResult)] == [
        (Text(text=f"[{number}] {title}\nhttps://a.example/1\nThe Nile"),) for number, title in ((1, "a"), (2, "b"))
    ]


async def test_a_call_of_the_clients_own_function_ends_the_answer() -> None:
    own = ToolCall(id="c2", name="weather", arguments="{}")
    request = replace(ASKED, tools=(SEARCH, Tool(name="weather", parameters={"type": "object"})))
    response, call = await answered_by(answer(search_call(), own, reason="tool_calls"), request=request)
    assert len(call.requests) == 1
    content, finish = response.candidates[0].content, response.candidates[0].finish
    assert [type(part).__name__ for part in content] == ["HostedCall", "HostedResult", "ToolCall"]
    assert finish == Finish(reason="tool_calls")
    sunny = ToolResult(call_id="c2", content=(Text(text="sunny"),))
    history = (*ASKED.messages, Message(role="assistant", content=content), Message(role="tool", content=(sunny,)))
    _, again = await answered_by(answer(Text(text="ok")), request=replace(request, messages=history))
    nile = ToolResult(call_id="c1", content=(Text(text=NILE),), name="web_search")
    assert again.requests[0].messages[1:] == (
        Message(role="assistant", content=(search_call(), own)),
        Message(role="tool", content=(nile,)),
        Message(role="tool", content=(sunny,)),
    )


async def test_a_history_is_divided_after_each_round() -> None:
    turn = (
        Text(text="I look."),
        HostedCall(id="c1", kind="web_search", arguments='{"query":"river"}'),
        HostedResult(call_id="c1", kind="web_search", content=(FOUND,)),
        Text(text="And again."),
        HostedCall(id="c2", kind="web_search", arguments='{"query":"river"}'),
        Text(text="The Nile [1]."),
    )
    history = (*ASKED.messages, Message(role="assistant", content=turn), *ASKED.messages)
    response, call = await answered_by(answer(Text(text="Yes [1].")), request=replace(ASKED, messages=history))
    assert [
        (message.role, [type(part).__name__ for part in message.content]) for message in call.requests[0].messages
    ] == [
        ("user", ["Text"]),
        ("assistant", ["Text", "ToolCall"]),
        ("tool", ["ToolResult"]),
        ("assistant", ["Text", "ToolCall"]),
        ("tool", ["ToolResult"]),
        ("assistant", ["Text"]),
        ("user", ["Text"]),
    ]
    (said,) = response.candidates[0].content
    assert isinstance(said, Text)
    assert [citation.url for citation in said.citations] == [FOUND.url]


def test_a_history_costs_as_much_as_it_is_long() -> None:
    """The functions are looked through once, however many calls the client sends back."""

    class CountedFunctions(dict[str, HostedFunction]):
        """Functions that count how often they are looked through."""

        looks = 0

        def items(self) -> Any:  # noqa: ANN401  a view that has no public type
            """Count it."""
            self.looks += 1
            return super().items()

    async def run(_: ToolUse) -> ToolOutcome:
        return ToolOutcome()

    services = ExecutionServices(SETTINGS, {}, None, lambda _, __: None, float)
    tools = RequestTools(services, ASKED, frozenset())
    tool = HostedTool(kind="mcp", server=McpServer(label="docs"))
    tools.functions = functions = CountedFunctions(
        {f"docs__f{n}": HostedFunction(tool, Tool(name=f"docs__f{n}"), run, f"f{n}", "docs") for n in range(9)}
    )
    calls = tuple(HostedCall(id=f"c{n}", kind="mcp", server="docs", name=f"f{n % 9}") for n in range(100))
    turns = tuple(Message(role="assistant", content=(call,)) for call in calls)
    divided = function_history(turns, tools)
    named = [part.name for message in divided for part in message.content if isinstance(part, ToolCall)]
    assert named == [f"docs__f{n % 9}" for n in range(100)]
    assert functions.looks == 1


@pytest.mark.parametrize(
    ("settings", "calls"),
    [
        pytest.param(replace(SETTINGS, max_calls=2), 2, id="calls"),
        pytest.param(replace(SETTINGS, max_tokens=1), 1, id="tokens"),
    ],
)
async def test_limits_end_the_answer_as_a_paused_turn(settings: HostedToolSettings, calls: int) -> None:
    executor = ScriptedExecutor()
    rounds = [answer(search_call(f"c{number}"), reason="tool_calls") for number in range(9)]
    response, call = await answered_by(*rounds, settings=settings, executor=executor)
    assert response.candidates[0].finish == Finish(reason="pause")
    assert len(executor.started) == calls
    assert len(call.requests) == 2 * calls - 1
    if calls > 1:
        assert call.requests[calls].tool_choice == ToolChoice(mode="none")
        last = response.candidates[0].content[-1]
        assert isinstance(last, HostedResult)
        assert last.error == "max_uses_exceeded"


async def test_a_round_that_no_budget_affords_ends_the_answer_as_a_paused_turn() -> None:
    call = ScriptedCall(ASKED, answer(search_call(), reason="tool_calls"))
    call.may_go_on = False
    folded = fold(await events_of(call, ScriptedExecutor(), SETTINGS))
    assert isinstance(folded, Response)
    (candidate,) = folded.candidates
    assert [type(part).__name__ for part in candidate.content] == ["HostedCall", "HostedResult"]
    assert (candidate.finish, len(call.requests), call.used) == (Finish(reason="pause"), 1, [USAGE])


async def test_uses_of_the_tool_are_counted() -> None:
    request = replace(ASKED, tools=(replace(SEARCH, max_uses=1),))
    executor = ScriptedExecutor()
    first = answer(search_call("c1"), search_call("c2"), reason="tool_calls")
    response, _ = await answered_by(first, answer(Text(text="ok")), request=request, executor=executor)
    errors = [part.error for part in response.candidates[0].content if isinstance(part, HostedResult)]
    assert errors == [None, "max_uses_exceeded"]
    assert len(executor.started) == 1


async def test_an_error_is_told_to_the_model_and_the_client() -> None:
    executor = ScriptedExecutor(lambda _: failed("unavailable", "the search did not answer"))
    response, call = await answered_by(
        answer(search_call(), reason="tool_calls"), answer(Text(text="no")), executor=executor
    )
    result = response.candidates[0].content[1]
    assert isinstance(result, HostedResult)
    assert (result.content, result.error) == ((), "unavailable")
    (told,) = call.requests[1].messages[-1].content
    assert isinstance(told, ToolResult)
    assert told.content == (Text(text="unavailable: the search did not answer"),)
    assert told.is_error


async def test_arguments_that_are_no_object_are_not_executed() -> None:
    executor = ScriptedExecutor()
    broken = ToolCall(id="c1", name="web_search", arguments='{"query":')
    response, _ = await answered_by(answer(broken, reason="tool_calls"), answer(Text(text="no")), executor=executor)
    result = response.candidates[0].content[1]
    assert isinstance(result, HostedResult)
    assert (result.error, executor.started) == ("invalid_tool_input", [])


async def test_a_slow_call_is_given_up() -> None:
    executor = ScriptedExecutor(wait=asyncio.Event())
    settings = replace(SETTINGS, call_seconds=0.01)
    response, _ = await answered_by(
        answer(search_call(), reason="tool_calls"), answer(Text(text="no")), executor=executor, settings=settings
    )
    result = response.candidates[0].content[1]
    assert isinstance(result, HostedResult)
    assert (result.error, executor.cancelled) == ("unavailable", 1)


async def test_a_long_result_is_shortened() -> None:
    executor = ScriptedExecutor(lambda _: ToolOutcome((replace(FOUND, text="x" * 10_000),)))
    settings = replace(SETTINGS, max_bytes=1024)
    response, _ = await answered_by(
        answer(search_call(), reason="tool_calls"), answer(Text(text="ok")), executor=executor, settings=settings
    )
    result = response.candidates[0].content[1]
    assert isinstance(result, HostedResult)
    assert isinstance(result.content[0], SearchResult)
    assert result.content[0].text == "x" * 1024 + " [...]"


async def test_a_disconnect_cancels_the_call_and_closes_the_upstream() -> None:
    executor = ScriptedExecutor(wait=asyncio.Event())
    call = ScriptedCall(ASKED, answer(search_call(), reason="tool_calls"))
    execution = ToolExecution(SETTINGS, {"web_search": executor})
    answered = await execution.answer(call, execution.kinds(ASKED), call.ask)
    assert isinstance(answered, EventAnswer)

    async def read() -> None:
        async for _ in answered.batches:
            pass

    reading = asyncio.create_task(read())
    await executor.running.wait()
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    await answered.aclose()
    await asyncio.sleep(0)
    assert (executor.cancelled, call.closed >= 1) == (1, True)


async def test_a_failed_stream_stays_failed() -> None:
    broken = [*list(unfold(answer(Text(text="a"))))[:3], Failed(failure=Failure(kind="upstream", message="broken"))]
    events = await events_of(ScriptedCall(ASKED, broken), ScriptedExecutor(), SETTINGS)
    assert isinstance(events[-1], Failed)


async def test_a_failed_round_fails_the_answer() -> None:
    class RefusedCall(ScriptedCall):
        """A call whose second round is refused."""

        async def follow_up(self, request: Request) -> EventAnswer:  # noqa: ARG002  it is refused
            """Refuse it."""
            raise FailureError(Failure(kind="overloaded", message="busy"))

    call = RefusedCall(ASKED, answer(search_call(), reason="tool_calls"))
    with pytest.raises(FailureError):
        await events_of(call, ScriptedExecutor(), SETTINGS)


async def test_several_answers_at_once_are_refused() -> None:
    request = replace(ASKED, sampling=Sampling(n=2))
    with pytest.raises(WireError, match="one answer at a time"):
        await answered_by(answer(Text(text="x")), request=request)


@pytest.mark.parametrize(
    ("choice", "sent", "then"),
    [
        pytest.param(ToolChoice(mode="auto"), ToolChoice(mode="auto"), ToolChoice(mode="auto"), id="auto"),
        pytest.param(ToolChoice(mode="required"), ToolChoice(mode="required"), None, id="required"),
        pytest.param(
            ToolChoice(mode="required", names=("web_search",)),
            ToolChoice(mode="required", names=("web_search_2",)),
            None,
            id="this-tool",
        ),
    ],
)
async def test_a_forced_tool_is_forced_once(choice: ToolChoice, sent: ToolChoice, then: ToolChoice | None) -> None:
    request = replace(ASKED, tools=(SEARCH, Tool(name="web_search")), tool_choice=choice)
    forced = replace(search_call(), name="web_search_2")
    _, call = await answered_by(answer(forced, reason="tool_calls"), answer(Text(text="ok")), request=request)
    assert [one.tool_choice for one in call.requests] == [sent, then]


async def test_a_page_may_be_fetched_that_a_search_has_found() -> None:
    contexts: list[str] = []

    class PageReader(ScriptedExecutor):
        """An executor that notes the context."""

        async def run(self, use: ToolUse) -> ToolOutcome:
            """Note it."""
            contexts.append(use.context())
            return await super().run(use)

    settings = replace(SETTINGS, web_fetch=PageSettings())
    request = replace(ASKED, tools=(SEARCH, HostedTool(kind="web_fetch")))
    fetch = ToolCall(id="c2", name="web_fetch", arguments='{"url":"https://a.example/1"}')
    rounds = [answer(search_call(), reason="tool_calls"), answer(fetch, reason="tool_calls"), answer(Text(text="ok"))]
    await answered_by(*rounds, request=request, settings=settings, executor=PageReader())
    assert [str(FOUND.url) in context for context in contexts] == [False, True]


async def test_a_url_that_the_model_wrote_is_not_known() -> None:
    """Else a page could have it write one with what it knows, and fetch that in the next turn."""
    result = HostedResult(call_id="c0", kind="web_search", content=(replace(FOUND, url="https://a.example/found"),))
    turns = (
        Message(role="user", content=(Text(text="https://a.example/user"),)),
        Message(role="assistant", content=(result, Text(text="https://a.example/?secret"))),
        Message(role="tool", content=(ToolResult(call_id="c1", content=(Text(text="https://a.example/tool"),)),)),
    )
    settings = ExecutionServices(SETTINGS, {}, None, lambda _, __: None, float)
    context = RequestTools(settings, replace(ASKED, messages=turns), frozenset()).context()
    known = [name for name in ("user", "found", "tool", "?secret") if f"https://a.example/{name}" in context]
    assert known == ["user", "found", "tool"]


async def test_mcp_servers_that_are_not_allowed_are_refused_by_the_name_of_the_setting() -> None:
    server = McpServer(label="docs", url="https://mcp.example/mcp")
    request = replace(ASKED, tools=(HostedTool(kind="mcp", server=server),))
    call = ScriptedCall(request, answer(Text(text="x")))
    execution = ToolExecution(SETTINGS, {})
    with pytest.raises(WireError, match=r"\[tools.mcp.servers\]"):
        await execution.answer(call, frozenset({"mcp"}), call.ask)


async def test_what_is_executed_here_is_reported_with_the_settings_that_have_no_effect() -> None:
    tool = replace(SEARCH, location=Location(city="Oslo"), max_uses=2, allowed_domains=("a.example",))
    _, call = await answered_by(answer(Text(text="x")), request=replace(ASKED, tools=(tool,)))
    assert [(loss.where, loss.what, loss.how) for loss in call.losses] == [
        ("$.tools[0]", "web_search", "emulated"),
        ("$.tools[0]", "location", "dropped"),
    ]
