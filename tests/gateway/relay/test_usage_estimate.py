"""Token counts that the upstream does not report: estimated for clients that compute with them, reported, and logged.

Servers of every dialect report none. Every case is served without a task and by one, with shortcuts and without, whole
and streamed; the counts and the losses are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import anthropic
import pytest

from tests.gateway.upstream.test_reasoning_requests import DialectGateway, answer_and_losses
from tests.shortcuts import switched
from xenoglot import dialect_registry as dialects
from xenoglot.codec.loss import Losses
from xenoglot.gateway.api import fast_path
from xenoglot.gateway.relay.envelope import UsageEstimate
from xenoglot.model.content import Text
from xenoglot.model.events import BlockEnded, BlockStarted, Failed, Finished, Started, TextDelta, UsageReported
from xenoglot.model.failure import Failure
from xenoglot.model.response import Finish, Usage
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.events import Event
    from xenoglot.model.json import JSONObject

TURN = {"role": "user", "content": "What is the capital of France?"}
PROMPT, WORDS = 13, 9
"""What the prompt and the answer are estimated at."""
TEXT = ("Paris is the", " capital of", " France.")
LOSS = "$ usage approximated (the upstream does not report input_tokens and output_tokens: estimated)"
SERVERS = [name for name in dialects.names() if name not in ("completions", "llama_stack_completion")]


class Client(NamedTuple):
    """What a client asks, and whether it gets an estimate: whole, and streamed."""

    body: JSONObject
    whole: bool
    stream: bool


CLIENTS = {
    "messages": Client({"messages": [TURN], "max_tokens": 9}, whole=True, stream=True),
    "responses": Client({"input": TURN["content"], "store": False}, whole=True, stream=True),
    "gemini": Client({"contents": [{"role": "user", "parts": [{"text": TURN["content"]}]}]}, whole=True, stream=True),
    "chat": Client({"messages": [TURN]}, whole=False, stream=False),
    "chat-requested": Client({"messages": [TURN], "stream_options": {"include_usage": True}}, whole=False, stream=True),
    "ollama": Client({"messages": [TURN]}, whole=False, stream=False),
}


@pytest.fixture(scope="module", params=SERVERS)
def dialect_gateway(request: pytest.FixtureRequest) -> Iterator[tuple[str, DialectGateway]]:
    """Give a gateway in front of a server that reports no usage, and the server's dialect."""
    rules = answers(request.param, text=TEXT, usage=None).rules()
    with (
        Upstream(*rules) as server,
        DialectGateway(server, request.param, upstream={"preserve_reasoning": False}) as running,
    ):
        yield request.param, running


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("way", ["passage", "task", "no-shortcuts"])
@pytest.mark.parametrize("client", CLIENTS)
def test_counts_that_are_not_reported_are_estimated_findings_f2(
    dialect_gateway: tuple[str, DialectGateway], monkeypatch: pytest.MonkeyPatch, client: str, way: str, *, stream: bool
) -> None:
    upstream, running = dialect_gateway
    dialect, case = client.partition("-")[0], CLIENTS[client]
    if way == "task":
        monkeypatch.setattr(fast_path.FastPath, "passage", lambda *_: None)
    with switched(on=way != "no-shortcuts"):
        response, told = answer_and_losses(running, dialect, case.body, stream=stream)
    usage = response.usage or Usage()
    expected = (case.stream if stream else case.whole) and dialect != upstream
    if expected:
        assert (usage.input_tokens, usage.output_tokens) == (PROMPT, WORDS)
    elif dialect != upstream:
        unset, required = (None, None), upstream in ("converse", "messages")
        assert (usage.input_tokens, usage.output_tokens) in (unset, (0, 0) if required else unset)
    if not stream or dialects.get(dialect).comments:
        assert told.count(LOSS) == expected


def test_anthropic_reads_the_estimate() -> None:
    turns: Any = [TURN]
    rules = answers("chat", text=TEXT, usage=None).rules()
    with (
        Upstream(*rules) as server,
        DialectGateway(server) as running,
        anthropic.Anthropic(api_key="none", base_url=running.url, max_retries=0) as client,
    ):
        whole: Any = client.messages.create(model="m", max_tokens=9, messages=turns)
        with client.messages.stream(model="m", max_tokens=9, messages=turns) as stream:
            streamed = stream.get_final_message()
    for message in (whole, streamed):
        assert (message.usage.input_tokens, message.usage.output_tokens) == (PROMPT, WORDS)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_call_and_a_thought_are_counted_though_the_client_sees_no_thought(*, stream: bool) -> None:
    rules = answers("chat", text=TEXT, reasoning="A plan. " * 20, tool=("search", '{"q": "x"}'), usage=None).rules()
    with Upstream(*rules) as server, DialectGateway(server) as running:
        response, _ = answer_and_losses(running, "messages", CLIENTS["messages"].body, stream=stream)
    assert response.usage is not None
    assert response.usage.output_tokens == 85


@pytest.fixture
def noted() -> list[Usage]:
    """Give the list of what the log is told."""
    return []


def ended(noted: list[Usage], losses: Losses, *reported: Usage, finish: Finish | None) -> list[Usage]:
    """Return what is added to a stream that reported these snapshots, and ended so."""
    stage = UsageEstimate("messages", lambda: PROMPT, losses, noted.append)
    grown: tuple[Event, ...] = (Started(), BlockStarted(part=Text(text="")), *map(TextDelta, TEXT), BlockEnded())
    snapshots: list[Event] = [UsageReported(usage=usage) for usage in reported]
    last: list[Event] = [] if finish is None else [Finished(finish=finish)]
    events = [*grown, *snapshots, *last]
    assert [made for event in events for made in stage.feed(event)] == events
    return [event.usage for event in stage.close() if isinstance(event, UsageReported)]


STOP = Finish(reason="stop", dialect="chat")


@pytest.mark.parametrize(
    ("reported", "added", "missing"),
    [
        ((), Usage(input_tokens=PROMPT, output_tokens=WORDS), "input_tokens and output_tokens"),
        ((Usage(input_tokens=3),), Usage(input_tokens=3, output_tokens=WORDS), "output_tokens"),
        ((Usage(output_tokens=0),), Usage(input_tokens=PROMPT, output_tokens=0), "input_tokens"),
        (
            (Usage(output_tokens=2, reasoning=1, cache_read=0),),
            Usage(input_tokens=PROMPT, output_tokens=2, reasoning=1, cache_read=0),
            "input_tokens",
        ),
        ((Usage(input_tokens=3), Usage(output_tokens=4)), None, ""),
        (
            (Usage(input_tokens=0, output_tokens=0),),
            Usage(input_tokens=PROMPT, output_tokens=WORDS),
            "input_tokens and output_tokens",
        ),
        ((Usage(input_tokens=3, output_tokens=0),), None, ""),
    ],
    ids=["nothing", "prompt", "answer", "details", "in-two-snapshots", "zeros-are-no-report", "a-zero-is-a-report"],
)
def test_only_what_is_missing_is_estimated(
    noted: list[Usage], reported: tuple[Usage, ...], added: Usage | None, missing: str
) -> None:
    losses = Losses()
    assert ended(noted, losses, *reported, finish=STOP) == ([] if added is None else [added])
    assert [usage.estimated for usage in noted] == [True] * (added is not None)
    why = f"$ usage approximated (the upstream does not report {missing}: estimated)"
    assert [str(loss) for loss in losses] == ([] if added is None else [why])


def test_an_answer_that_is_not_over_gets_no_estimate(noted: list[Usage]) -> None:
    losses = Losses()
    assert ended(noted, losses, finish=None) == []
    stage = UsageEstimate("messages", lambda: PROMPT, losses, noted.append)
    failed = Failed(failure=Failure(kind="upstream", message="broken"))
    assert [*stage.feed(failed), *stage.close()] == [failed]
    assert (noted, [*losses]) == ([], [])


def test_a_server_of_the_dialect_itself_decides_what_it_reports(noted: list[Usage]) -> None:
    assert ended(noted, Losses(), finish=Finish(reason="stop", dialect="messages")) == []
