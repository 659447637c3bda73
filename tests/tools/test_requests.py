"""What a run asks of the model in each round, and what it adds up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from tests.tools.scripted_runs import USAGE, answer, call, results, timeless, unpaired
from xenoglot.backends.callable import Callable
from xenoglot.backends.scripted import Scripted
from xenoglot.client.async_ import AsyncClient
from xenoglot.model.content import Image, Inline, Opaque, Reasoning, Text, ToolResult
from xenoglot.model.events import BlockEnded, BlockStarted, Finished, Started, TextDelta, UsageReported
from xenoglot.model.failure import Failure
from xenoglot.model.request import Message, Request, ToolChoice
from xenoglot.model.response import Finish, Usage
from xenoglot.policy.token_estimate import estimate
from xenoglot.providers.costs import Price, Prices
from xenoglot.tools.budget import Budget
from xenoglot.tools.compaction import LEFT_OUT, Compaction
from xenoglot.tools.events import Compacted, RoundEnded
from xenoglot.tools.tool import tool
from xenoglot.tools.transcript import CONTINUE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.backends.scripted import Turn
    from xenoglot.model.events import Event
    from xenoglot.tools.events import RunEvent
    from xenoglot.tools.result import RunResult

OVERFLOW = Failure(kind="context_overflow", message="prompt is too long", tokens=9000, limit=600)


@tool
def read(path: str) -> str:
    """Read a file."""
    return f"{path}: " + "word " * 200


@tool
def picture() -> Image:
    """Draw."""
    return Image(source=Inline(data="aGk=", media_type="image/png"))


async def run_and_requests(
    turns: Sequence[Turn],
    messages: Any = "Go.",  # noqa: ANN401  whatever a client takes
    **options: Any,  # noqa: ANN401  as above
) -> tuple[RunResult, list[Request], list[RunEvent]]:
    """Return what came of a run, what the model was asked, and the events."""
    model = Scripted(*turns)
    events: list[RunEvent] = []
    async with AsyncClient(model, prices=options.pop("prices", None)) as client:
        result = await client.run(messages, options.pop("tools", [read, picture]), on_event=events.append, **options)
    return result, model.requests, events


def message_text(message: Message) -> str:
    return "".join(part.text for part in message.content if isinstance(part, Text))


READ = call("read", '{"path": "a"}')


async def test_a_tool_that_must_be_called_must_be_called_once() -> None:
    _, requests, _ = await run_and_requests([answer(READ), answer(".")], tool_choice="read")
    assert [request.tool_choice for request in requests] == [
        ToolChoice(mode="required", names=("read",)),
        ToolChoice(mode="auto"),
    ]


async def test_the_narrowed_choice_of_several_tools_stays() -> None:
    narrowed = ToolChoice(mode="required", names=("read", "picture"))
    _, requests, _ = await run_and_requests([answer(READ), answer(".")], tool_choice=narrowed)
    assert requests[1].tool_choice == ToolChoice(mode="auto", names=("read", "picture"))


async def test_a_last_answer_that_fails_changes_nothing() -> None:
    failure = Failure(kind="permission", message="no more")
    result, _, _ = await run_and_requests([answer(READ), failure], max_rounds=1, on_limit="answer")
    assert (result.outcome, result.failure, unpaired(result.messages)) == ("limit", failure, [])


async def test_the_last_answer_may_call_nothing() -> None:
    _, requests, _ = await run_and_requests([answer(READ)], max_rounds=1, on_limit="answer")
    assert [request.tool_choice for request in requests] == [None, ToolChoice(mode="none")]
    assert requests[1].tools == requests[0].tools


async def test_c_s3_a_cut_answer_is_gone_on_with_and_joined() -> None:
    first, second = "Once upon a time there was", "a time there was a king."
    result, requests, _ = await run_and_requests([answer(first, finish="length"), answer(second)])
    assert [message_text(message) for message in requests[1].messages] == ["Go.", first, CONTINUE]
    assert (result.text, result.rounds) == ("Once upon a time there was a king.", 2)
    assert [(message.role, message_text(message)) for message in result.messages] == [
        ("user", "Go."),
        ("assistant", result.text),
    ]


async def test_a_cut_answer_that_then_calls_is_one_turn() -> None:
    result, requests, _ = await run_and_requests(
        [answer("I will ", finish="length"), answer("read.", READ), answer("Done.")]
    )
    assert [(message.role, message_text(message)) for message in requests[2].messages[:2]] == [
        ("user", "Go."),
        ("assistant", "I will read."),
    ]
    assert unpaired(result.messages) == []


async def test_a_paused_turn_is_sent_back_as_it_is() -> None:
    thought = Reasoning(text="hm", signature="sealed")
    search = Opaque(dialect="messages", data={"type": "server_tool_use"})
    result, requests, _ = await run_and_requests([answer(thought, search, finish="pause"), answer("Found.")])
    assert requests[1].messages[-1] == Message(role="assistant", content=(thought, search))
    assert result.messages[-1].content == (thought, search, Text(text="Found."))


async def test_thoughts_and_their_seals_go_back_with_the_calls() -> None:
    thought = Reasoning(text="hm", signature="sealed")
    _, requests, _ = await run_and_requests([answer(thought, "I read.", READ), answer(".")])
    assert requests[1].messages[1].content == (thought, Text(text="I read."), READ)


async def test_pictures_are_content_of_a_result() -> None:
    _, requests, _ = await run_and_requests([answer(call("picture")), answer(".")])
    assert requests[1].messages[-1].content == (
        ToolResult(
            call_id="call_picture",
            name="picture",
            content=(Image(source=Inline(data="aGk=", media_type="image/png")),),
        ),
    )


async def test_tools_of_the_provider_are_passed_on() -> None:
    search = Opaque(dialect="messages", data={"type": "web_search_20250305", "name": "web_search"})
    _, requests, _ = await run_and_requests([answer(".")], tools=[read, search])
    assert requests[0].tools == (read.spec, search)


async def test_r10_each_answer_with_calls_goes_back_with_a_result_for_each_and_nothing_given_is_changed() -> None:
    given: list[dict[str, object]] = [{"role": "user", "content": "Go."}]
    second = call("read", '{"path": "b"}', "b")
    result, requests, _ = await run_and_requests(
        [answer("I read.", READ, second), answer("Done.")], given, max_rounds=3
    )
    assert given == [{"role": "user", "content": "Go."}]
    assert (result.outcome, result.rounds, result.calls) == ("answered", 2, 2)
    back = requests[1].messages
    assert [message.role for message in back] == ["user", "assistant", "tool", "tool"]
    assert back[1].content == (Text(text="I read."), READ, second)
    told = [part for message in back[2:] for part in message.content if isinstance(part, ToolResult)]
    assert [(part.call_id, part.name) for part in told] == [("call_read", "read"), ("b", "read")]
    at_once, requests, _ = await run_and_requests([answer("Hello.")], given, max_rounds=1)
    assert (at_once.outcome, len(requests)) == ("answered", 1)


async def test_calls_without_results_that_were_given_are_answered() -> None:
    given = [
        Message(role="user", content=(Text(text="Go."),)),
        Message(role="assistant", content=(READ,)),
        Message(role="user", content=(Text(text="Are you there?"),)),
    ]
    result, requests, _ = await run_and_requests([answer("Yes.", READ), answer(".")], given)
    assert unpaired(requests[0].messages) == unpaired(result.messages) == []
    assert results(requests[0].messages) == [("call_read", "not run: the run ended before it came to this")]


async def test_c_w5_snapshots_of_one_answer_are_not_added_up() -> None:
    growing: list[Event] = [
        Started(),
        BlockStarted(part=Text(text="")),
        UsageReported(usage=Usage(input_tokens=10, output_tokens=1)),
        TextDelta("a"),
        UsageReported(usage=Usage(input_tokens=10, output_tokens=2)),
        BlockEnded(),
        UsageReported(usage=Usage(output_tokens=3)),
        Finished(finish=Finish(reason="length")),
    ]
    result, _, _ = await run_and_requests([growing, answer(".", usage=USAGE)])
    assert result.usage == Usage(input_tokens=20, output_tokens=8)


async def test_what_nobody_told_is_not_zero() -> None:
    result, _, _ = await run_and_requests(
        [answer(READ, usage=None), answer(".", usage=Usage(output_tokens=2, cache_read=7))]
    )
    assert result.usage == Usage(output_tokens=2, cache_read=7)
    assert result.spent.input_tokens > 0
    nothing, _, _ = await run_and_requests([answer(".", usage=None)])
    assert nothing.usage == Usage()


@pytest.mark.parametrize(
    ("budget", "given", "expected"),
    [
        pytest.param(Budget(output_tokens=100), None, [100, 95], id="output"),
        pytest.param(Budget(output_tokens=100), 30, [30, 30], id="less-was-asked-for"),
        pytest.param(Budget(), None, [None, None], id="no-limit"),
    ],
)
async def test_c_s4_an_answer_has_no_more_tokens_than_are_left(
    budget: Budget, given: int | None, expected: list[int | None]
) -> None:
    _, requests, _ = await run_and_requests([answer(READ), answer(".")], budget=budget, max_tokens=given)
    assert [request.sampling.max_tokens for request in requests] == expected


async def test_a_budget_asks_for_no_answer_that_a_server_would_refuse() -> None:
    """Many refuse a request for more tokens than their model can write."""
    budget = Budget(output_tokens=4105, total_tokens=10**6)
    _, requests, _ = await run_and_requests([answer(READ), answer(READ), answer(".")], budget=budget)
    assert [request.sampling.max_tokens for request in requests] == [None, None, 4095]
    _, requests, _ = await run_and_requests([answer(".")], budget=budget, max_tokens=9000)
    assert requests[0].sampling.max_tokens == 4105


async def test_c_s4_the_whole_budget_of_tokens_is_not_passed_by_one() -> None:
    request = Request(model="", messages=(Message(role="user", content=(Text(text="Go."),)),), tools=(read.spec,))
    size = estimate(request)
    for more, outcome in ((0, "budget"), (1, "answered")):
        result, requests, _ = await run_and_requests(
            [answer(".")], tools=[read], budget=Budget(total_tokens=size + more)
        )
        assert (result.outcome, [one.sampling.max_tokens for one in requests]) == (outcome, [1] * more)


@pytest.mark.parametrize("usage", [None, Usage(input_tokens=1, output_tokens=1)], ids=["nothing", "no-thoughts"])
async def test_c_s4_thoughts_that_no_server_counts_are_estimated(usage: Usage | None) -> None:
    thought = Reasoning(text="word " * 100)
    result, _, _ = await run_and_requests([answer(thought, READ, usage=usage)], budget=Budget(reasoning_tokens=200))
    assert (result.outcome, result.rounds, result.usage.reasoning) == ("budget", 2, None)


@pytest.mark.parametrize(
    "budget",
    [Budget(output_tokens=500), Budget(total_tokens=2000), Budget(input_tokens=2000)],
    ids=["output", "total", "input"],
)
async def test_c_s4_a_server_that_tells_no_usage_comes_to_an_end(budget: Budget) -> None:
    turns = [answer("word " * 100, call("read", f'{{"path": "{name}"}}'), usage=None) for name in "abcdefghijklmnop"]
    result, _, _ = await run_and_requests(turns, budget=budget)
    assert (result.outcome, unpaired(result.messages)) == ("budget", [])


async def test_c_s4_a_prompt_that_is_too_long_for_the_budget_is_not_sent() -> None:
    result, requests, _ = await run_and_requests([answer(READ), answer(".")], budget=Budget(total_tokens=250))
    assert (result.outcome, len(requests)) == ("budget", 1)
    assert result.reason.startswith("the next prompt is about")
    assert unpaired(result.messages) == []


async def test_c_s4_a_cut_answer_is_kept_where_the_budget_ends() -> None:
    result, _, _ = await run_and_requests([answer("Once", finish="length")], budget=Budget(output_tokens=5))
    assert (result.outcome, message_text(result.messages[-1])) == ("budget", "Once")


@pytest.mark.parametrize(
    ("cost", "rounds", "outcome"),
    [pytest.param(0.0301, 3, "answered", id="enough"), pytest.param(0.02, 2, "budget", id="spent-by-two")],
)
async def test_c_s4_the_budget_of_cost(cost: float, rounds: int, outcome: str) -> None:
    prices = Prices({"scripted": Price(input=0, output=2000)}, packaged=False)
    result, _, _ = await run_and_requests(
        [answer(READ), answer(READ), answer(".")], budget=Budget(cost=cost), prices=prices
    )
    assert (result.outcome, result.rounds) == (outcome, rounds)
    assert result.cost == pytest.approx(0.01 * rounds)


async def test_c_s4_a_cost_that_nobody_can_tell_is_not_spent() -> None:
    result, requests, _ = await run_and_requests([answer(".")], budget=Budget(cost=1.0))
    assert (result.outcome, requests, result.cost) == ("budget", [], 0.0)
    assert result.reason == "there is a budget for the cost, and the price of the model `scripted` is not known"


async def test_c_s4_an_answer_costs_no_more_than_is_left() -> None:
    prices = Prices({"scripted": Price(input=0, output=2000)}, packaged=False)
    _, requests, _ = await run_and_requests([answer(READ), answer(".")], budget=Budget(cost=0.1), prices=prices)
    assert [request.sampling.max_tokens for request in requests] == [50, 45]


async def test_the_price_is_that_of_the_model_that_was_asked_for_where_that_of_the_answer_is_not_known() -> None:
    prices = Prices({"scripted": Price(input=0, output=2000)}, packaged=False)
    known, _, _ = await run_and_requests([replace(answer("."), model="scripted-2026-11-20")], prices=prices)
    assert known.cost == pytest.approx(0.01)


async def test_c_w13_an_overflow_is_answered_by_compaction_and_one_more_try() -> None:
    turns: list[Turn] = [answer(READ), answer(READ), answer(READ), OVERFLOW, answer(READ), answer("Done.")]
    result, requests, events = await run_and_requests(turns, compaction=Compaction(keep_turns=1))
    assert (result.outcome, result.text) == ("answered", "Done.")
    compacted, *_ = [event for event in events if isinstance(event, Compacted)]
    assert compacted.after < compacted.before
    assert [len(request.messages) for request in requests[3:5]] == [7, len(compacted.messages)]
    assert [unpaired(request.messages) for request in requests] == [[]] * 6
    assert all(message.content for message in result.messages)


async def test_an_overflow_twice_is_a_failure() -> None:
    result, requests, _ = await run_and_requests(
        [answer(READ), answer(READ), OVERFLOW, OVERFLOW], compaction=Compaction()
    )
    assert (result.outcome, result.failure, len(requests)) == ("failed", OVERFLOW, 4)


async def test_an_overflow_without_compaction_is_a_failure() -> None:
    result, requests, _ = await run_and_requests([answer(READ), OVERFLOW])
    assert (result.outcome, result.failure, len(requests)) == ("failed", OVERFLOW, 2)


async def test_c_s5_a_prompt_near_the_window_is_made_shorter_before_it_is_sent() -> None:
    turns = [answer(READ)] * 8 + [answer("Done.")]
    settings = Compaction(window=1000, keep_turns=2)
    result, requests, events = await run_and_requests(turns, compaction=settings, system="Be brief.", max_tokens=10)
    assert result.outcome == "answered"
    assert [event for event in events if isinstance(event, Compacted)]
    for request in requests:
        assert unpaired(request.messages) == []
        assert [message_text(message) for message in request.messages[:2]] == ["Be brief.", "Go."]


class Known(AsyncClient):
    """A client that knows its model's window."""

    def context_window(self, _: str | None = None) -> int:
        """Return it."""
        return 1000


async def test_c_s5_the_window_may_be_known_of_the_model() -> None:
    events: list[RunEvent] = []
    async with Known(Scripted(*[answer(READ)] * 8, answer("Done."))) as client:
        await client.run("Go.", [read], compaction=Compaction(), on_event=events.append, max_tokens=10)
    assert [event for event in events if isinstance(event, Compacted)]


async def test_c_s5_the_model_may_be_asked_for_a_summary() -> None:
    turns: list[Turn] = [
        answer(READ),
        answer(READ),
        answer(READ),
        OVERFLOW,
        answer("It read a file thrice."),
        answer("Done."),
    ]
    result, requests, events = await run_and_requests(
        turns, compaction=Compaction(keep_turns=1, summarise=True, target=0.3)
    )
    assert message_text(requests[5].messages[1]) == f"{LEFT_OUT}\nIt read a file thrice."
    assert requests[4].tools == ()
    assert (result.outcome, result.rounds, result.spent.model_calls) == ("answered", 4, 5)
    assert len([event for event in events if isinstance(event, RoundEnded)]) == 4


async def test_a_model_that_writes_its_calls_as_text_is_understood() -> None:
    def speak(request: Request) -> str:
        if request.messages[-1].role == "tool":
            return "It is long."
        return '<tool_call>{"name": "read", "arguments": {"path": "a"}}</tool_call>'

    async with AsyncClient(Callable(speak, "local"), text_syntax="auto") as client:
        result = await client.run("How long is a?", [read])
    assert (result.outcome, result.text, result.calls) == ("answered", "It is long.", 1)
    assert results(result.messages)[0][1].startswith("a: word word")


async def test_the_same_run_twice_is_the_same() -> None:
    turns = [answer(READ), answer(call("picture")), answer("Done.")]
    first, _, _ = await run_and_requests(turns)
    second, _, _ = await run_and_requests(turns)
    assert timeless(first) == timeless(second)
