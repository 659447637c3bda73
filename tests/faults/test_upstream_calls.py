"""Tool calls as servers really write them: ids missing, doubled or late, arguments that are none, indices in disorder.

U15, U30 to U33. Played at the upstreams that can do it, for every client that knows tools.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from msgspec import Struct

from tests.faults.assertions import assert_aborted
from tests.faults.client_view import error_codes, frames
from tests.faults.fault_cases import assert_next_request_completes
from tests.faults.upstream_steps import streamed_response
from tests.faults.wire_responses import (
    DONE,
    MESSAGE_STOP,
    WITH_TOOLS,
    block_delta,
    block_start,
    block_stop,
    chat_chunk,
    chat_end,
    json_line,
    message_delta,
    message_start,
    ollama_line,
)

if TYPE_CHECKING:
    from tests.faults.harness import GatewayHarness
    from xenoglot.model.json import JSON, JSONObject

ARGUMENTS: JSONObject = {"city": "Oslo"}
WRITTEN = '{"city":"Oslo"}'
HUGE = json.dumps({"city": "x" * 1_000_000})


class ReceivedCall(Struct, frozen=True):
    """A call as a client reads it."""

    id: str
    name: str
    arguments: str


class Calls(Struct, frozen=True, kw_only=True):
    """A stream with calls in it: what is called, and with what, as it was written."""

    name: str
    upstream: str
    stream: Sequence[bytes]
    calls: tuple[tuple[str, str], ...]
    repaired: str | None = None
    """What arguments that are no object become, for clients whose calls hold objects alone."""


def piece(index: int | None, arguments: str, name: str | None = None, call_id: str | None = None) -> bytes:
    """Return a chunk of the chat API with a piece of a call."""
    function: JSONObject = {"arguments": arguments} | ({} if name is None else {"name": name})
    call: JSONObject = {"type": "function", "function": function} | ({} if call_id is None else {"id": call_id})
    return chat_chunk({"tool_calls": [call if index is None else {"index": index} | call]})


def chat(*pieces: bytes) -> tuple[bytes, ...]:
    """Return a stream of the chat API with these pieces."""
    return (chat_chunk({"role": "assistant", "content": None}), *pieces, *chat_end("tool_calls"), DONE)


def block(index: int, name: str, *pieces: str, call_id: str = "toolu_1") -> tuple[bytes, ...]:
    """Return the events of a call of Anthropic's API."""
    opening: JSONObject = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    deltas = [block_delta(index, {"type": "input_json_delta", "partial_json": text}) for text in pieces]
    return (block_start(index, opening), *deltas, block_stop(index))


def messages(*events: bytes) -> tuple[bytes, ...]:
    """Return a stream of Anthropic's API with these events."""
    return (message_start(), *events, message_delta("tool_use"), MESSAGE_STOP)


def ollama(*calls: JSONObject) -> tuple[bytes, ...]:
    """Return a stream of Ollama's API with these calls."""
    message: JSONObject = {"role": "assistant", "content": "", "tool_calls": [{"function": call} for call in calls]}
    return (json_line(ollama_line("", message=message)), json_line(ollama_line("", done=True)))


ONE, TWO = block(0, "first", WRITTEN, call_id="toolu_1"), block(1, "second", WRITTEN, call_id="toolu_2")
PAIR = (("first", WRITTEN), ("second", WRITTEN))
CASES = (
    Calls(
        name="U30-no-ids",
        upstream="chat",
        stream=chat(piece(0, WRITTEN, "first"), piece(1, WRITTEN, "second")),
        calls=PAIR,
    ),
    Calls(
        name="U30-doubled-ids",
        upstream="chat",
        stream=chat(piece(0, WRITTEN, "first", "call_1"), piece(1, WRITTEN, "second", "call_1")),
        calls=PAIR,
    ),
    Calls(
        name="U30-late-id",
        upstream="chat",
        stream=chat(piece(0, "", "first"), piece(0, WRITTEN, None, "call_1")),
        calls=PAIR[:1],
    ),
    Calls(
        name="U30-name-repeated",
        upstream="chat",
        stream=chat(piece(0, "", "first", "call_1"), piece(0, WRITTEN, "first", "call_1")),
        calls=PAIR[:1],
    ),
    Calls(name="U30-doubled-ids", upstream="messages", stream=messages(*ONE, *block(1, "second", WRITTEN)), calls=PAIR),
    Calls(
        name="U30-no-ids",
        upstream="ollama",
        stream=ollama({"name": "first", "arguments": ARGUMENTS}, {"name": "second", "arguments": ARGUMENTS}),
        calls=PAIR,
    ),
    *(
        Calls(
            name=f"U31-{name}",
            upstream="chat",
            stream=chat(piece(0, text, "first", "call_1")),
            calls=(("first", text),),
            repaired=repaired,
        )
        for name, text, repaired in (
            ("empty", "", "{}"),
            ("cut", '{"city":"Os', None),
            ("two-objects", WRITTEN * 2, None),
            ("number", "7", None),
            ("text", "Oslo", None),
            ("huge", HUGE, HUGE),
        )
    ),
    Calls(
        name="U32-interleaved",
        upstream="chat",
        stream=chat(
            piece(0, '{"city"', "first", "call_1"),
            piece(1, '{"city"', "second", "call_2"),
            piece(0, ':"Oslo"}'),
            piece(1, ':"Oslo"}'),
        ),
        calls=PAIR,
    ),
    Calls(
        name="U32-out-of-order-with-a-gap",
        upstream="chat",
        stream=chat(piece(5, WRITTEN, "first", "call_1"), piece(2, WRITTEN, "second", "call_2")),
        calls=PAIR,
    ),
    Calls(
        name="U32-one-index-for-both",
        upstream="chat",
        stream=chat(piece(0, WRITTEN, "first", "call_1"), piece(0, WRITTEN, "second", "call_2")),
        calls=PAIR,
    ),
    Calls(
        name="U32-interleaved",
        upstream="messages",
        stream=messages(ONE[0], TWO[0], TWO[1], ONE[1], ONE[2], TWO[2]),
        calls=PAIR,
    ),
)


def cases(*, same: bool) -> list[object]:
    """Return every case for every client that speaks another dialect, or the same."""
    return [
        pytest.param(case, client, id=f"{case.name}-{client}-to-{case.upstream}")
        for case in CASES
        for client in WITH_TOOLS
        if (client == case.upstream) == same
    ]


@pytest.mark.parametrize(("case", "client"), cases(same=False))
def test_calls_of_another_dialect(harness: GatewayHarness, case: Calls, client: str) -> None:
    async def scenario() -> None:
        harness.upstream.script(streamed_response(case.upstream, *case.stream))
        answer = await harness.request(client, f"{case.upstream}-small", streamed=True)
        assert (answer.status, answer.complete) == (200, True), answer.raw[:3000]
        found = received_calls(client, answer.body)
        assert [call.name for call in found] == [name for name, _ in case.calls]
        assert all(call.id for call in found)
        assert len({call.id for call in found}) == len(found)
        for call, (_, written) in zip(found, case.calls, strict=True):
            assert call.arguments in expected_arguments(client, written, case.repaired), call.arguments[:200]
        assert harness.access_log_line()["failure"] is None
        await assert_next_request_completes(harness, client, case.upstream)

    harness.run(scenario())


@pytest.mark.parametrize(("case", "client"), cases(same=True))
def test_calls_of_the_same_dialect(harness: GatewayHarness, case: Calls, client: str) -> None:
    """The bytes are the upstream's."""

    async def scenario() -> None:
        harness.upstream.script(streamed_response(case.upstream, *case.stream))
        answer = await harness.request(client, f"{case.upstream}-small", streamed=True)
        assert (answer.complete, answer.body) == (True, b"".join(case.stream))

    harness.run(scenario())


def expected_arguments(client: str, written: str, repaired: str | None) -> tuple[str, ...]:
    """Return what arguments may have become: the text itself, or where a wire holds objects, one that shows it."""
    if client in ("chat", "messages", "responses"):
        return (written, repaired or written)
    return (canonical(repaired or written), written, canonical(written))


def canonical(text: str) -> str:
    """Return an object's text as all wires write it; what is no object as the gateway shows it."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    return json.dumps(value if isinstance(value, dict) else {"_raw": text}, separators=(",", ":"))


def received_calls(client: str, body: bytes) -> list[ReceivedCall]:
    """Return the calls in a stream, in the order of the client's dialect."""
    values = [json.loads(said) for _, said in frames(client, body) if said != b"[DONE]"]
    return READERS[client](values)


def _chat(values: list[JSON]) -> list[ReceivedCall]:
    found: dict[int, list[str]] = {}
    for value in values:
        for choice in value["choices"]:
            for call in choice["delta"].get("tool_calls") or ():
                one = found.setdefault(call["index"], ["", "", ""])
                one[0] = call.get("id") or one[0]
                one[1] = call["function"].get("name") or one[1]
                one[2] += call["function"].get("arguments") or ""
    return [ReceivedCall(*one) for _, one in sorted(found.items())]


def _messages(values: list[JSON]) -> list[ReceivedCall]:
    found: list[list[str]] = []
    opened: int | None = None
    for value in values:
        match value["type"]:
            case "content_block_start":
                assert opened is None, "one block at a time"
                opened = value["index"]
                if value["content_block"]["type"] == "tool_use":
                    found.append([value["content_block"]["id"], value["content_block"]["name"], ""])
            case "content_block_delta" if value["delta"]["type"] == "input_json_delta":
                assert value["index"] == opened
                found[-1][2] += value["delta"]["partial_json"]
            case "content_block_stop":
                assert value["index"] == opened
                opened = None
            case _:
                pass
    return [ReceivedCall(*one) for one in found]


def _responses(values: list[JSON]) -> list[ReceivedCall]:
    items = [value["item"] for value in values if value["type"] == "response.output_item.done"]
    return [
        ReceivedCall(item["call_id"], item["name"], item["arguments"])
        for item in items
        if item["type"] == "function_call"
    ]


def _gemini(values: list[JSON]) -> list[ReceivedCall]:
    parts = [
        part for value in values for one in value["candidates"] for part in one.get("content", {}).get("parts", ())
    ]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    return [
        ReceivedCall(call.get("id") or f"place-{place}", call["name"], compact(call.get("args", {})))
        for place, call in enumerate(calls)
    ]


def _ollama(values: list[JSON]) -> list[ReceivedCall]:
    calls = [call for value in values for call in value["message"].get("tool_calls") or ()]
    return [
        ReceivedCall(
            call.get("id") or f"place-{place}", call["function"]["name"], compact(call["function"]["arguments"])
        )
        for place, call in enumerate(calls)
    ]


def _llama_stack(values: list[JSON]) -> list[ReceivedCall]:
    deltas = [value["event"]["delta"] for value in values]
    calls = [
        delta["tool_call"] for delta in deltas if delta["type"] == "tool_call" and isinstance(delta["tool_call"], dict)
    ]
    return [ReceivedCall(call["call_id"], call["tool_name"], compact(call["arguments"])) for call in calls]


def _interactions(values: list[JSON]) -> list[ReceivedCall]:
    calls: dict[int, ReceivedCall] = {}
    for value in values:
        step, delta = value.get("step", {}), value.get("delta", {})
        if step.get("type") == "function_call":
            calls[value["index"]] = ReceivedCall(step["id"], step["name"], "")
        elif delta.get("type") == "arguments_delta":
            call = calls[value["index"]]
            calls[value["index"]] = ReceivedCall(call.id, call.name, call.arguments + delta["arguments"])
    return list(calls.values())


def compact(value: JSON) -> str:
    """Return JSON as text; a text that stands where an object should is what it says."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


READERS = {
    "chat": _chat,
    "gemini": _gemini,
    "interactions": _interactions,
    "llama_stack": _llama_stack,
    "messages": _messages,
    "ollama": _ollama,
    "responses": _responses,
}

HALF = {
    "chat": (chat_chunk({"role": "assistant", "content": None}), piece(0, '{"city":"Os', "first", "call_1"), DONE),
    "messages": (message_start(), *block(0, "first", '{"city":"Os')[:2], MESSAGE_STOP),
}


@pytest.mark.parametrize("upstream", HALF)
@pytest.mark.parametrize("client", WITH_TOOLS, ids=[f"U15-half-a-call-{client}" for client in WITH_TOOLS])
def test_half_a_call_is_no_call(harness: GatewayHarness, client: str, upstream: str) -> None:
    """U15: a stream that stops politely amid a call has failed all the same."""

    async def scenario() -> None:
        harness.upstream.script(streamed_response(upstream, *HALF[upstream]))
        answer = await harness.request(client, f"{upstream}-small", streamed=True)
        if answer.status == 200:
            assert_aborted(client, answer, error_codes(client, "upstream", streamed=True), "")
        else:
            assert answer.status == 502
        assert harness.access_log_line()["failure"] == "upstream"

    harness.run(scenario())


TWO_CHOICES = tuple(
    chat_chunk({}, choices=[{"index": index, "delta": {"content": text}, "finish_reason": finish}])
    for index, text, finish in ((0, "a", None), (1, "x", None), (0, "b", None), (1, "y", "stop"), (0, "c", "stop"))
)


@pytest.mark.parametrize("client", ["chat", "completions", "gemini"], ids=["U33-chat", "U33-completions", "U33-gemini"])
def test_several_choices(harness: GatewayHarness, client: str) -> None:
    """U33: they are kept apart."""

    async def scenario() -> None:
        harness.upstream.script(streamed_response("chat", *TWO_CHOICES, DONE))
        several = {"generationConfig": {"candidateCount": 2}} if client == "gemini" else {"n": 2}
        answer = await harness.request(client, "chat-small", streamed=True, **several)
        texts: dict[int, str] = {}
        for _, said in frames(client, answer.body):
            value = {} if said == b"[DONE]" else json.loads(said)
            for one in value.get("choices") or value.get("candidates") or ():
                parts = one.get("content", {}).get("parts", ()) if client == "gemini" else ()
                text = "".join(part.get("text", "") for part in parts) or one.get("text") or ""
                texts[one["index"]] = texts.get(one["index"], "") + (text or one.get("delta", {}).get("content") or "")
        assert texts == {0: "abc", 1: "xy"}

    harness.run(scenario())


@pytest.mark.parametrize(
    "client", ["messages", "responses", "ollama"], ids=["U33-messages", "U33-responses", "U33-ollama"]
)
def test_several_choices_where_there_is_one(harness: GatewayHarness, client: str) -> None:
    """U33: nobody asked for more than one; the first is the answer."""

    async def scenario() -> None:
        harness.upstream.script(streamed_response("chat", *TWO_CHOICES, DONE))
        answer = await harness.request(client, "chat-small", streamed=True)
        assert (answer.status, answer.complete) == (200, True)
        assert b"xy" not in answer.body
        assert harness.access_log_line()["losses"]

    harness.run(scenario())
