"""Cost: what a gateway, a tool loop and a client do beside the codecs is linear in each thing that can be repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.laws.costs import FEW, MANY, MOST, SLACK
from tests.laws.steps import Counted, steep

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

Modules = Any
"""Gives a module that counts, by its name."""


@pytest.fixture(scope="module")
def counted() -> Counted:
    return Counted()


def many(count: int, word: str = "word") -> list[str]:
    return [f"{word}{place}" for place in range(count)]


def head(*fields: str) -> Callable[[Modules, int], Callable[[], object]]:
    """Read the head of a request with these fields, each as often as one likes; `#` is a number."""

    def work(module: Modules, count: int) -> Callable[[], object]:
        lines = [field.replace("#", str(place)) for place in range(count) for field in fields]
        data = "\r\n".join(["POST / HTTP/1.1", "host: a", *lines, "", ""]).encode()
        return lambda: module("http1.request_head").decode_head(data)

    return work


def one_field(module: Modules, count: int) -> Callable[[], object]:
    return head("connection: " + ", ".join(many(count)))(module, 1)


def passed_on(module: Modules, count: int) -> Callable[[], object]:
    headers = [("anthropic-beta", word) for word in many(count)] + [(word, "x") for word in many(count, "x-")]
    return lambda: module("gateway.upstream.call").passed_on(headers, module("dialect_registry").get("messages"))


def scoped(module: Modules, count: int) -> Callable[[], object]:
    limits = module("gateway.config.limits").LimitSettings(requests=tuple(f"{place + 1}/m" for place in range(count)))
    return lambda: module("gateway.limits.limiter").scoped("model:m", limits)


def events_of(module: Modules, words: list[str]) -> list[object]:
    model, events = module("model.content"), module("model.events")
    begun = [events.Started(id="a", model="m"), events.BlockStarted(part=model.Text(text=""))]
    return [*begun, *(events.TextDelta(text=word) for word in words), events.BlockEnded()]


def identified(module: Modules, count: int) -> Callable[[], object]:
    stage = module("gateway.relay.envelope").ResponseIds("a", "m", "r", kept=True, early=None)
    events = events_of(module, many(count))
    return lambda: [stage.feed(event) for event in events]


def continued(module: Modules, count: int) -> Callable[[], object]:
    """Words come, break off, and another target goes on: it repeats some of them, then says as many."""
    continuation = module("gateway.upstream.midstream_failover")
    words = events_of(module, many(count))[:-1]
    more = events_of(module, [*many(count)[-4:], *many(count, "more")])

    def work() -> None:
        said = continuation.SentAnswer()
        for event in words:
            said.feed(event)
        splice = continuation.ResumeStage(said)
        for event in more:
            for made in splice.feed(event):
                said.feed(made)
        continuation.begun_request(module("model.request").Request(model="m"), said)

    return work


def turns_of(module: Modules, count: int) -> list[Any]:
    content, request = module("model.content"), module("model.request")
    turns: list[Any] = []
    for place in range(count):
        call = content.ToolCall(id=f"c{place}", name="f", arguments="{}")
        result = content.ToolResult(call_id=f"c{place}", content=(content.Text(text="done"),))
        turns += [
            request.Message(role="user", content=(content.Text(text="Go."),)),
            request.Message(role="assistant", content=(content.Text(text="I go."), call)),
            request.Message(role="tool", content=(result,)),
        ]
    return turns


def transcribed(module: Modules, count: int) -> Callable[[], object]:
    turns = turns_of(module, count)
    return lambda: module("codec.requests.transcript").transcribe(turns, "completions", module("codec.loss").Losses())


def transcribed_turn(module: Modules, count: int) -> Callable[[], object]:
    parts = tuple(part for turn in turns_of(module, count) if turn.role == "assistant" for part in turn.content)
    turn = module("model.request").Message(role="assistant", content=parts)
    return lambda: module("codec.requests.transcript").transcribe([turn], "completions", module("codec.loss").Losses())


def said(*kinds: object) -> Callable[[Modules, int], Callable[[], object]]:
    """Read a conversation as people write it: turns of these kinds, one after the other, again and again."""

    def work(module: Modules, count: int) -> Callable[[], object]:
        turns = [*kinds] * count
        return lambda: module("client.call.messages").messages_of(turns)

    return work


def said_in_our_words(module: Modules, count: int) -> Callable[[], object]:
    turns = turns_of(module, count)
    saying = module("client.call.messages")
    return lambda: saying.messages_of(saying.append_turns(turns, tuple(turns)))


def looped(module: Modules, count: int) -> Callable[[], object]:
    """Run a tool loop over one answer with many calls; every third is of a tool that is not there."""
    content, response = module("model.content"), module("model.response")
    effects, output = module("tools.effects"), module("tools.tool_output")
    names = ("f", "f", "g")
    calls = tuple(
        content.ToolCall(id="", name=names[place % 3], arguments=f'{{"a":{place}}}') for place in range(count)
    )
    answers = [
        response.Response(candidates=(response.Candidate(content=parts, finish=response.Finish(reason=reason)),))
        for parts, reason in ((calls, "tool_calls"), ((content.Text(text="Done."),), "stop"))
    ]
    request = module("model.request").Request(model="m", messages=turns_of(module, count))
    spec = module("model.request").Tool(name="f", parameters={"type": "object"})
    tool = type("Given", (module("tools.tool").LocalTool,), {"spec": spec, "check": lambda *_: None})()

    def work() -> None:
        flow = module("tools.loop").ToolLoop(request, [tool], module("tools.run_options").RunOptions()).steps()
        coming, told = iter(answers), cast("Any", None)
        while True:
            try:
                effect = flow.send(told)
            except StopIteration:
                return
            match type(effect).__name__:
                case "ReadClock":
                    told = 0.0
                case "CallModel":
                    told = effects.ModelAnswer(response=next(coming))
                case "Execute":
                    told = tuple(output.failed("no") for _ in effect.calls)
                case _:
                    told = None

    return work


CHAT = {"role": "user", "content": "Hi"}
GEMINI = {"role": "user", "parts": [{"text": "Hi"}]}
BLOCKS = {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}]}

WORK: dict[str, Callable[[Modules, int], Callable[[], object]]] = {
    "head-fields": head("x-field-#: value"),
    "head-one-name": head("accept: a, b"),
    "head-connection": head("connection: keep-alive"),
    "head-one-field": one_field,
    "headers-passed-on": passed_on,
    "limits-of-a-model": scoped,
    "identify": identified,
    "continuation": continued,
    "transcript": transcribed,
    "transcript-of-one-turn": transcribed_turn,
    "saying-strings": said("Hi"),
    "saying-one-dialect": said(CHAT),
    "saying-two-dialects": said(CHAT, GEMINI),
    "saying-blocks": said(CHAT, BLOCKS, "Go on."),
    "saying-in-our-words": said_in_our_words,
    "tool-loop": looped,
}


@pytest.mark.parametrize("what", WORK)
def test_what_is_done_beside_the_codecs(counted: Counted, what: str) -> None:
    with counted:
        modules: dict[str, ModuleType] = {}

        def module(name: str) -> ModuleType:
            return modules.setdefault(name, counted.module(name))

        WORK[what](module, 4)()  # caches and imports
        few, more = (counted.cost(WORK[what](module, count)) for count in (4 * FEW, 4 * MANY))
    assert steep(few, more, MOST, SLACK) == {}
