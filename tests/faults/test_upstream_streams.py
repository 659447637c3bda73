"""Streams that are odd and yet whole: cut anywhere, framed in any lawful way, with more in them than anybody asked for.

U16, U18 to U21, U28, U29, U34, U36, U48 and U49.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from msgspec import Struct

from tests.faults.assertions import assert_aborted, assert_completed
from tests.faults.client_view import error_codes, read_stream
from tests.faults.fault_cases import OPENAI, assert_next_request_completes, wait_until_disconnected
from tests.faults.manual_clock import wait_until
from tests.faults.test_upstream_breaks import LINE_FRAMED
from tests.faults.upstream_steps import streamed_response
from tests.faults.wire_responses import (
    CHAT_USAGE,
    DIALECTS,
    FIRST,
    HELLO,
    MESSAGE_STOP,
    SECOND,
    WIRE_RESPONSES,
    WireResponse,
    block_delta,
    block_start,
    block_stop,
    chat_chunk,
    completions_chunk,
    gemini_chunk,
    generate_line,
    json_line,
    message_delta,
    message_start,
    ollama_line,
    response_object,
    sse_event,
    stack_event,
    stack_piece,
    stack_text,
    typed_event,
)
from tests.laws.vectors import decoded
from xenoglot.dialect_registry import get
from xenoglot.testing.script import Body, Hang, WaitEvent

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.harness import GatewayHarness
    from xenoglot.model.json import JSON

FRAMED = tuple(name for name in DIALECTS if name not in LINE_FRAMED)
"""Dialects of server-sent events."""
OPEN = ("gemini", "llama_stack_completion")
"""Dialects whose streams have no end but that of the body: there, words may come behind the reason of the end."""
CHARACTERS = "é€😀"


class OddStream(Struct, frozen=True, kw_only=True):
    """A stream that is odd, by the dialect of the upstream, and what is heard of it.

    `finish` and `usage` are what the log says. With `same` the bytes are not looked at where they pass untouched.
    """

    name: str
    streams: dict[str, Sequence[bytes]]
    text: str = FIRST + SECOND
    finish: str | None = "stop"
    usage: tuple[int | None, int | None] | None = (5, 2)
    same: bool = True


def with_more(*more: bytes, upstream: str) -> Sequence[bytes]:
    """Return a whole stream with these frames in its middle."""
    wire = HELLO[upstream]
    return (*wire.first_frames, *more, *wire.middle_frames, *wire.last_frames, *wire.end_mark)


def after_end(*late: bytes, upstream: str) -> Sequence[bytes]:
    """Return a whole stream with these frames behind its end."""
    wire = HELLO[upstream]
    return (*wire.first_frames, *wire.middle_frames, *wire.last_frames, *wire.end_mark, *late)


def ended(upstream: str, *end: bytes) -> Sequence[bytes]:
    """Return a stream that ends in these frames."""
    wire = HELLO[upstream]
    return (*wire.first_frames, *wire.middle_frames, *end)


def openai_chunk(**fields: JSON) -> bytes:
    """Return a chunk of these fields alone."""
    return sse_event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"} | fields)


def with_usage(usage: JSON) -> Sequence[bytes]:
    """Return a stream of the chat API with that usage at its end."""
    return ended("chat", chat_chunk({}, "stop"), openai_chunk(choices=[], usage=usage), *HELLO["chat"].end_mark)


DELTA: JSON = {"index": 0, "delta": None, "finish_reason": None}
GARBAGE = {name: json_line("x") if name in LINE_FRAMED else b"data: {no json\n\n" for name in DIALECTS}
SEALED: tuple[bytes, ...] = (
    block_start(0, {"type": "thinking", "thinking": "", "signature": ""}),
    block_delta(0, {"type": "thinking_delta", "thinking": "I think"}),
    block_delta(0, {"type": "signature_delta", "signature": "c2Vh"}),
    block_delta(0, {"type": "signature_delta", "signature": "bA=="}),
    block_stop(0),
)
REDACTED = (block_start(0, {"type": "redacted_thinking", "data": "c2VhbA=="}), block_stop(0))
UNSIGNED = SEALED[:2] + SEALED[4:]
TEXT = (
    block_start(1, {"type": "text", "text": ""}),
    block_delta(1, {"type": "text_delta", "text": FIRST + SECOND}),
    block_stop(1),
    message_delta(),
    MESSAGE_STOP,
)
ESTIMATES = {
    "messages": (32, 1),
    "responses": (32, 1),
    "gemini": (32, 1),
    "interactions": (32, 1),
    "completions": (28, 1),
    "llama_stack_completion": (28, 2),
}
"""Usage where the upstream reports none; for clients that compute with it by their text, for others by its pieces."""

NEGATIVE: JSON = {"prompt_tokens": -5, "completion_tokens": -2, "total_tokens": -7}
ODD_STREAMS = (
    OddStream(
        name="U16-words-behind-the-end",
        streams={name: after_end(*HELLO[name].middle_frames, upstream=name) for name in DIALECTS if name not in OPEN},
        same=False,
    ),
    OddStream(
        name="U16-garbage-behind-the-end",
        streams={name: after_end(GARBAGE[name], upstream=name) for name in (*OPENAI, "messages", *LINE_FRAMED)},
        same=False,
    ),
    OddStream(
        name="U28-nothing-in-a-chunk",
        streams={
            "chat": with_more(
                openai_chunk(choices=[]),
                openai_chunk(),
                openai_chunk(choices=None),
                openai_chunk(choices=[DELTA]),
                chat_chunk({}),
                chat_chunk({"content": None, "tool_calls": None, "refusal": None}),
                upstream="chat",
            ),
            "completions": with_more(
                openai_chunk(choices=[]), openai_chunk(), completions_chunk(""), upstream="completions"
            ),
            "gemini": with_more(
                sse_event({"candidates": []}),
                sse_event({"candidates": [{"index": 0}]}),
                sse_event({"candidates": [{"content": {"role": "model"}, "index": 0}]}),
                sse_event(gemini_chunk([])),
                upstream="gemini",
            ),
            "llama_stack": with_more(stack_event("progress", stack_text("")), upstream="llama_stack"),
            "llama_stack_completion": with_more(stack_piece(""), upstream="llama_stack_completion"),
            "messages": with_more(
                typed_event({"type": "ping"}), block_delta(0, {"type": "text_delta", "text": ""}), upstream="messages"
            ),
            "ollama": with_more(
                json_line(ollama_line("")),
                json_line(ollama_line("", message={"role": "assistant"})),
                b"\n",
                upstream="ollama",
            ),
            "ollama_generate": with_more(json_line(generate_line("")), b"\n", upstream="ollama_generate"),
            "responses": with_more(typed_event({"type": "response.in_progress"}), upstream="responses"),
        },
        same=False,
    ),
    OddStream(name="U29-negative", streams={"chat": with_usage(NEGATIVE)}, usage=None, same=False),
    OddStream(
        name="U29-missing", streams={"chat": ended("chat", chat_chunk({}, "stop"), *HELLO["chat"].end_mark)}, usage=None
    ),
    OddStream(
        name="U29-in-every-chunk",
        streams={
            "chat": [
                chat_chunk({"content": FIRST}, usage=CHAT_USAGE | {"completion_tokens": 1}),
                chat_chunk({"content": SECOND}, usage=CHAT_USAGE),
                chat_chunk({}, "stop", usage=CHAT_USAGE),
                *HELLO["chat"].end_mark,
            ],
            "gemini": [*HELLO["gemini"].first_frames, *HELLO["gemini"].middle_frames, *HELLO["gemini"].last_frames],
        },
    ),
    OddStream(
        name="U34-unknown-event",
        streams={
            "messages": with_more(typed_event({"type": "a_word_to_come", "index": 7}), upstream="messages"),
            "responses": with_more(typed_event({"type": "response.a_word.to_come", "x": 1}), upstream="responses"),
            "chat": with_more(openai_chunk(choices=[], a_word_to_come={"x": 1}), upstream="chat"),
            "llama_stack": with_more(stack_event("a_word_to_come", stack_text("")), upstream="llama_stack"),
            "ollama": with_more(json_line(ollama_line("", a_word_to_come=1)), upstream="ollama"),
        },
        same=False,
    ),
    OddStream(
        name="U34-unknown-block",
        streams={
            "messages": [message_start(), block_start(0, {"type": "a_word_to_come", "x": 1}), block_stop(0), *TEXT]
        },
    ),
    OddStream(
        name="U34-unknown-finish",
        streams={
            "chat": ended(
                "chat", chat_chunk({}, "a_word_to_come"), *HELLO["chat"].last_frames[1:], *HELLO["chat"].end_mark
            ),
            "messages": ended("messages", block_stop(0), message_delta("a_word_to_come"), MESSAGE_STOP),
            "gemini": ended("gemini", sse_event(gemini_chunk([{"text": ""}], "A_WORD_TO_COME", 2))),
            "ollama": ended("ollama", json_line(ollama_line("", done=True, done_reason="a_word_to_come"))),
        },
        finish="unknown",
    ),
    OddStream(
        name="U48-filtered",
        streams={
            "chat": ended(
                "chat", chat_chunk({}, "content_filter"), *HELLO["chat"].last_frames[1:], *HELLO["chat"].end_mark
            ),
            "gemini": ended("gemini", sse_event(gemini_chunk([{"text": ""}], "SAFETY", 2))),
            "responses": [
                *HELLO["responses"].first_frames,
                *HELLO["responses"].middle_frames,
                *HELLO["responses"].last_frames,
                typed_event(
                    {
                        "type": "response.incomplete",
                        "response": response_object("incomplete", [])
                        | {"incomplete_details": {"reason": "content_filter"}},
                    }
                ),
            ],
        },
        finish="refusal",
    ),
    OddStream(
        name="U48-refused",
        streams={"messages": ended("messages", block_stop(0), message_delta("refusal"), MESSAGE_STOP)},
        finish="refusal",
    ),
    OddStream(
        name="U48-empty",
        streams={
            "chat": [
                chat_chunk({"role": "assistant", "content": ""}),
                *HELLO["chat"].last_frames,
                *HELLO["chat"].end_mark,
            ],
            "completions": [*HELLO["completions"].last_frames, *HELLO["completions"].end_mark],
            "gemini": HELLO["gemini"].last_frames,
            "llama_stack": [HELLO["llama_stack"].first_frames[0], *HELLO["llama_stack"].last_frames],
            "llama_stack_completion": HELLO["llama_stack_completion"].last_frames,
            "messages": [message_start(), message_delta(), MESSAGE_STOP],
            "ollama": HELLO["ollama"].last_frames,
            "ollama_generate": HELLO["ollama_generate"].last_frames,
            "responses": [
                HELLO["responses"].first_frames[0],
                typed_event({"type": "response.completed", "response": response_object("completed", [])}),
            ],
        },
        text="",
    ),
    OddStream(name="U49-signature-in-pieces", streams={"messages": [message_start(), *SEALED, *TEXT]}),
    OddStream(name="U49-redacted", streams={"messages": [message_start(), *REDACTED, *TEXT]}),
    OddStream(
        name="U49-unsigned",
        streams={
            "messages": [message_start(), *UNSIGNED, *TEXT],
            "chat": [
                chat_chunk({"role": "assistant", "reasoning_content": "I think"}),
                *HELLO["chat"].first_frames[1:],
                *HELLO["chat"].middle_frames,
                *HELLO["chat"].last_frames,
                *HELLO["chat"].end_mark,
            ],
            "ollama": [
                json_line(ollama_line("", message={"role": "assistant", "content": "", "thinking": "I think"})),
                HELLO["ollama"].stream,
            ],
        },
    ),
)


def cases() -> list[object]:
    """Return every oddity at every upstream that has it, for every client."""
    return [
        pytest.param(odd, client, upstream, id=f"{odd.name}-{client}-to-{upstream}")
        for odd in ODD_STREAMS
        for client in DIALECTS
        for upstream in odd.streams
    ]


@pytest.mark.parametrize(("odd", "client", "upstream"), cases())
def test_an_odd_stream(harness: GatewayHarness, odd: OddStream, client: str, upstream: str) -> None:
    async def scenario() -> None:
        frames = odd.streams[upstream]
        harness.upstream.script(streamed_response(upstream, *frames))
        answer = await harness.request(client, f"{upstream}-small", streamed=True)
        if client == upstream and not odd.same:
            assert (answer.complete, answer.body) == (True, b"".join(frames))
        else:
            assert_completed(client, answer, streamed=True, text=odd.text)
        said = harness.access_log_line()
        assert (said["finish"], said["failure"]) == (odd.finish, None)
        usage = said["usage"]
        told = None if usage is None else (usage["input_tokens"], usage["output_tokens"])
        if odd.usage is None:  # U29: marked as such
            assert (told, usage.get("estimated")) == (ESTIMATES.get(client, (32, 2)), True)
        else:
            assert (None if told == (None, None) else told) == odd.usage
        await assert_next_request_completes(harness, client, upstream)

    harness.run(scenario())


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS, ids=[f"U18-{client}" for client in DIALECTS])
def test_text_that_is_no_utf8(harness: GatewayHarness, client: str, upstream: str) -> None:
    """U18: what is no character is U+FFFD; bytes that pass untouched are what they were."""

    async def scenario() -> None:
        wire = HELLO[upstream]
        broken_word = wire.middle_frames[0].replace(b'"lo"', b'"\xff\x80lo"')
        assert broken_word != wire.middle_frames[0]
        closing = [frame for frame in wire.last_frames if upstream != "responses"]  # that one repeats the text
        harness.upstream.script(streamed_response(upstream, *wire.first_frames, broken_word, *closing, *wire.end_mark))
        answer = await harness.request(client, f"{upstream}-small", streamed=True)
        if client == upstream:
            assert answer.body == b"".join((*wire.first_frames, broken_word, *closing, *wire.end_mark))
        else:
            assert read_stream(client, answer.body).text.startswith(f"{FIRST}\ufffd\ufffd{SECOND}")
            assert answer.complete

    harness.run(scenario())


def cuts(data: bytes) -> list[int]:
    """Return the places inside of a character."""
    return [place for place, byte in enumerate(data) if byte & 0b1100_0000 == 0b1000_0000]


PAIRS = [(client, "chat") for client in DIALECTS] + [("messages", name) for name in DIALECTS if name != "chat"]


@pytest.mark.parametrize(("client", "upstream"), PAIRS, ids=[f"U19-{client}-to-{name}" for client, name in PAIRS])
def test_characters_cut_by_reads(harness: GatewayHarness, client: str, upstream: str) -> None:
    """U19: wherever the reads part them."""

    async def scenario() -> None:
        wire = WIRE_RESPONSES[upstream](CHARACTERS, SECOND)
        for place in cuts(wire.stream)[:6]:
            harness.access_log.lines.clear()
            whole = streamed_response(upstream)
            harness.upstream.script((whole[0], Body(wire.stream, (place,)), whole[1]))
            answer = await harness.request(client, f"{upstream}-small", streamed=True)
            assert_completed(client, answer, streamed=True, text=CHARACTERS + SECOND)

    harness.run(scenario())


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS, ids=[f"U19-every-byte-alone-{client}" for client in DIALECTS])
def test_every_byte_alone(harness: GatewayHarness, client: str, upstream: str) -> None:
    """U19, U20: the smallest reads there are."""

    async def scenario() -> None:
        whole = WIRE_RESPONSES[upstream](CHARACTERS, SECOND).stream
        head, end = streamed_response(upstream)
        harness.upstream.script((head, Body(whole, 7 if upstream == "responses" else 3), end))
        answer = await harness.request(client, f"{upstream}-small", streamed=True)
        assert_completed(client, answer, streamed=True, text=CHARACTERS + SECOND)

    harness.run(scenario())


def mixed(data: bytes) -> bytes:
    """Return a stream with line ends of all three kinds."""
    lines = data.split(b"\n")
    ends = (b"\r\n", b"\n", b"\r")
    return b"".join(text + ends[place % 3] for place, text in enumerate(lines[:-1])) + lines[-1]


ENDINGS: dict[str, Callable[[bytes], bytes]] = {
    "lf": lambda data: data,
    "crlf": lambda data: data.replace(b"\n", b"\r\n"),
    "cr": lambda data: data.replace(b"\n", b"\r"),
    "mixed": mixed,
}


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("ending", ENDINGS, ids=[f"U20-{ending}" for ending in ENDINGS])
def test_every_split_point(ending: str, upstream: str) -> None:
    """U19, U20: two reads, parted anywhere, say what one says."""
    if upstream in LINE_FRAMED and ending in ("cr", "mixed"):
        ending = "crlf"  # there, a line ends in LF, and CR is a blank before it
    whole = ENDINGS[ending](WIRE_RESPONSES[upstream](CHARACTERS, SECOND).stream)
    dialect = get(upstream)
    expected = decoded(dialect, [WIRE_RESPONSES[upstream](CHARACTERS, SECOND).stream])
    step = 1 if ending in ("lf", "mixed") else 5
    for place in range(0, len(whole) + 1, step):
        assert decoded(dialect, [whole[:place], whole[place:]]) == expected, whole[:place]


def with_sse_extras(wire: WireResponse) -> list[bytes]:
    """Return a stream with everything in it that the standard allows."""
    frames = [*wire.first_frames, *wire.middle_frames, *wire.last_frames, *wire.end_mark]
    lean = [frame.replace(b"data: ", b"data:", 1) for frame in frames]
    first = lean[0].replace(b'","', b'",\ndata: "', 1)
    extra = [b": a comment\n\n", b"data:\n\n", b"id: 7\nretry: 100\n\n", b"id: 8\nunknown: x\n" + lean[1], b":\n\n"]
    return [b"\xef\xbb\xbf: hi\n\n", first, *extra, *lean[2:]]


@pytest.mark.parametrize("ending", ["lf", "crlf", "cr"])
@pytest.mark.parametrize("upstream", FRAMED)
@pytest.mark.parametrize("client", DIALECTS, ids=[f"U21-{client}" for client in DIALECTS])
def test_events_in_every_lawful_dress(harness: GatewayHarness, client: str, upstream: str, ending: str) -> None:
    """U20, U21: by the standard; what has no meaning has none."""

    async def scenario() -> None:
        frames = [ENDINGS[ending](frame) for frame in with_sse_extras(HELLO[upstream])]
        harness.upstream.script(streamed_response(upstream, *frames))
        answer = await harness.request(client, f"{upstream}-small", streamed=True)
        if client == upstream:
            assert (answer.complete, answer.body) == (True, b"".join(frames))
        else:
            assert_completed(client, answer, streamed=True)

    harness.run(scenario())


MEGABYTE = b"x" * 1_000_000
HUGE = [("messages", "chat"), ("chat", "chat"), ("chat", "messages"), ("messages", "ollama"), ("ollama", "ollama")]


@pytest.mark.parametrize(("client", "upstream"), HUGE, ids=[f"U36-huge-{client}-to-{name}" for client, name in HUGE])
def test_an_event_without_end(harness: GatewayHarness, client: str, upstream: str) -> None:
    """U36: at thirty-two mebibytes it is enough."""

    async def scenario() -> None:
        wire = HELLO[upstream]
        start = b'{"a":"' if upstream in LINE_FRAMED else b'data: {"a":"'
        late = (WaitEvent("heard"), Body(start), *(Body(MEGABYTE),) * 40, Hang())
        harness.upstream.script(streamed_response(upstream, *wire.first_frames, ending=late))
        raw_client = await harness.start_request(client, f"{upstream}-small", streamed=True)
        await wait_until(lambda: FIRST.encode() in raw_client.reader.body, "the first word is heard")
        harness.upstream.release("heard")
        answer = await harness.read_response(raw_client)
        if client == upstream:
            assert not answer.complete
        else:
            assert_aborted(client, answer, error_codes(client, "upstream", streamed=True), FIRST)
        assert harness.access_log_line()["failure"] == "upstream"
        await wait_until_disconnected(harness)
        await assert_next_request_completes(harness, client, upstream)

    harness.run(scenario())


@pytest.mark.parametrize("client", DIALECTS, ids=[f"U36-many-{client}" for client in DIALECTS])
def test_a_flood_of_tiny_events(harness: GatewayHarness, client: str) -> None:
    """U36: others are answered in the midst of it."""

    async def scenario() -> None:
        wire = HELLO["chat"]
        flood = (Body(wire.middle_frames[0] * 100 + b": x\n\n" * 1_000),) * 20
        harness.upstream.script(
            streamed_response("chat", *wire.first_frames, *(), ending=(WaitEvent("heard"), *flood, Hang()))
        )
        raw_client = await harness.start_request(client, "chat-small", streamed=True)
        await wait_until(lambda: FIRST.encode() in raw_client.reader.body, "the first word is heard")
        harness.upstream.script(streamed_response("messages", HELLO["messages"].stream))
        harness.upstream.release("heard")
        assert_completed(client, await harness.request(client, "messages-small", streamed=True), streamed=True)
        said = FIRST + SECOND * 2_000
        await wait_until(lambda: len(raw_client.reader.body) > len(said), "words come")
        await wait_until(lambda: read_stream(client, raw_client.reader.body).text == said, "all words come")
        raw_client.transport.abort()
        await wait_until_disconnected(harness)

    harness.run(scenario())
