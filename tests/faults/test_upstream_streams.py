"""Streams that are odd and yet whole: cut anywhere, framed in any lawful way, with more in them than anybody asked for.

U16, U18 to U21, U28, U29, U34, U36, U48 and U49.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from msgspec import Struct

from tests.faults.cases import OPENAI, after, gone
from tests.faults.heard import heard, words_of
from tests.faults.house import House, broken, fine, stream, within_reason
from tests.faults.test_upstream_breaks import LINED
from tests.faults.wires import (
    CHAT_USAGE,
    DIALECTS,
    FIRST,
    HELLO,
    MESSAGE_STOP,
    SECOND,
    WIRES,
    Wire,
    block_delta,
    block_start,
    block_stop,
    chat_chunk,
    completions_chunk,
    data,
    gemini_chunk,
    generate_line,
    line,
    message_delta,
    message_start,
    named,
    ollama_line,
    response_object,
    stack_event,
    stack_piece,
    stack_text,
)
from tests.laws.vectors import decoded
from xenoglot.dialect_registry import get
from xenoglot.testing.script import Body, Hang, WaitEvent

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.model.json import JSON

FRAMED = tuple(name for name in DIALECTS if name not in LINED)
"""Dialects of server-sent events."""
OPEN = ("gemini", "llama_stack_completion")
"""Dialects whose streams have no end but that of the body: there, words may come behind the reason of the end."""
CHARACTERS = "é€😀"


class Odd(Struct, frozen=True, kw_only=True):
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
    return (*wire.begun, *more, *wire.more, *wire.ended, *wire.done)


def behind(*late: bytes, upstream: str) -> Sequence[bytes]:
    """Return a whole stream with these frames behind its end."""
    wire = HELLO[upstream]
    return (*wire.begun, *wire.more, *wire.ended, *wire.done, *late)


def ended(upstream: str, *end: bytes) -> Sequence[bytes]:
    """Return a stream that ends in these frames."""
    wire = HELLO[upstream]
    return (*wire.begun, *wire.more, *end)


def openai_chunk(**fields: JSON) -> bytes:
    """Return a chunk of these fields alone."""
    return data({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"} | fields)


def counted(usage: JSON) -> Sequence[bytes]:
    """Return a stream of the chat API with that usage at its end."""
    return ended("chat", chat_chunk({}, "stop"), openai_chunk(choices=[], usage=usage), *HELLO["chat"].done)


DELTA: JSON = {"index": 0, "delta": None, "finish_reason": None}
GARBAGE = {name: line("x") if name in LINED else b"data: {no json\n\n" for name in DIALECTS}
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
ESTIMATES = {"messages": (32, 1), "responses": (32, 1), "gemini": (32, 1), "completions": (28, 1)}
"""Usage where the upstream reports none, of clients that compute with it."""

NEGATIVE: JSON = {"prompt_tokens": -5, "completion_tokens": -2, "total_tokens": -7}
ODDITIES = (
    Odd(
        name="U16-words-behind-the-end",
        streams={name: behind(*HELLO[name].more, upstream=name) for name in DIALECTS if name not in OPEN},
        same=False,
    ),
    Odd(
        name="U16-garbage-behind-the-end",
        streams={name: behind(GARBAGE[name], upstream=name) for name in (*OPENAI, "messages", *LINED)},
        same=False,
    ),
    Odd(
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
                data({"candidates": []}),
                data({"candidates": [{"index": 0}]}),
                data({"candidates": [{"content": {"role": "model"}, "index": 0}]}),
                data(gemini_chunk([])),
                upstream="gemini",
            ),
            "llama_stack": with_more(stack_event("progress", stack_text("")), upstream="llama_stack"),
            "llama_stack_completion": with_more(stack_piece(""), upstream="llama_stack_completion"),
            "messages": with_more(
                named({"type": "ping"}), block_delta(0, {"type": "text_delta", "text": ""}), upstream="messages"
            ),
            "ollama": with_more(
                line(ollama_line("")), line(ollama_line("", message={"role": "assistant"})), b"\n", upstream="ollama"
            ),
            "ollama_generate": with_more(line(generate_line("")), b"\n", upstream="ollama_generate"),
            "responses": with_more(named({"type": "response.in_progress"}), upstream="responses"),
        },
        same=False,
    ),
    Odd(name="U29-negative", streams={"chat": counted(NEGATIVE)}, usage=None, same=False),
    Odd(name="U29-missing", streams={"chat": ended("chat", chat_chunk({}, "stop"), *HELLO["chat"].done)}, usage=None),
    Odd(
        name="U29-in-every-chunk",
        streams={
            "chat": [
                chat_chunk({"content": FIRST}, usage=CHAT_USAGE | {"completion_tokens": 1}),
                chat_chunk({"content": SECOND}, usage=CHAT_USAGE),
                chat_chunk({}, "stop", usage=CHAT_USAGE),
                *HELLO["chat"].done,
            ],
            "gemini": [*HELLO["gemini"].begun, *HELLO["gemini"].more, *HELLO["gemini"].ended],
        },
    ),
    Odd(
        name="U34-unknown-event",
        streams={
            "messages": with_more(named({"type": "a_word_to_come", "index": 7}), upstream="messages"),
            "responses": with_more(named({"type": "response.a_word.to_come", "x": 1}), upstream="responses"),
            "chat": with_more(openai_chunk(choices=[], a_word_to_come={"x": 1}), upstream="chat"),
            "llama_stack": with_more(stack_event("a_word_to_come", stack_text("")), upstream="llama_stack"),
            "ollama": with_more(line(ollama_line("", a_word_to_come=1)), upstream="ollama"),
        },
        same=False,
    ),
    Odd(
        name="U34-unknown-block",
        streams={
            "messages": [message_start(), block_start(0, {"type": "a_word_to_come", "x": 1}), block_stop(0), *TEXT]
        },
    ),
    Odd(
        name="U34-unknown-finish",
        streams={
            "chat": ended("chat", chat_chunk({}, "a_word_to_come"), *HELLO["chat"].ended[1:], *HELLO["chat"].done),
            "messages": ended("messages", block_stop(0), message_delta("a_word_to_come"), MESSAGE_STOP),
            "gemini": ended("gemini", data(gemini_chunk([{"text": ""}], "A_WORD_TO_COME", 2))),
            "ollama": ended("ollama", line(ollama_line("", done=True, done_reason="a_word_to_come"))),
        },
        finish="unknown",
    ),
    Odd(
        name="U48-filtered",
        streams={
            "chat": ended("chat", chat_chunk({}, "content_filter"), *HELLO["chat"].ended[1:], *HELLO["chat"].done),
            "gemini": ended("gemini", data(gemini_chunk([{"text": ""}], "SAFETY", 2))),
            "responses": [
                *HELLO["responses"].begun,
                *HELLO["responses"].more,
                *HELLO["responses"].ended,
                named(
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
    Odd(
        name="U48-refused",
        streams={"messages": ended("messages", block_stop(0), message_delta("refusal"), MESSAGE_STOP)},
        finish="refusal",
    ),
    Odd(
        name="U48-empty",
        streams={
            "chat": [chat_chunk({"role": "assistant", "content": ""}), *HELLO["chat"].ended, *HELLO["chat"].done],
            "completions": [*HELLO["completions"].ended, *HELLO["completions"].done],
            "gemini": HELLO["gemini"].ended,
            "llama_stack": [HELLO["llama_stack"].begun[0], *HELLO["llama_stack"].ended],
            "llama_stack_completion": HELLO["llama_stack_completion"].ended,
            "messages": [message_start(), message_delta(), MESSAGE_STOP],
            "ollama": HELLO["ollama"].ended,
            "ollama_generate": HELLO["ollama_generate"].ended,
            "responses": [
                HELLO["responses"].begun[0],
                named({"type": "response.completed", "response": response_object("completed", [])}),
            ],
        },
        text="",
    ),
    Odd(name="U49-signature-in-pieces", streams={"messages": [message_start(), *SEALED, *TEXT]}),
    Odd(name="U49-redacted", streams={"messages": [message_start(), *REDACTED, *TEXT]}),
    Odd(
        name="U49-unsigned",
        streams={
            "messages": [message_start(), *UNSIGNED, *TEXT],
            "chat": [
                chat_chunk({"role": "assistant", "reasoning_content": "I think"}),
                *HELLO["chat"].begun[1:],
                *HELLO["chat"].more,
                *HELLO["chat"].ended,
                *HELLO["chat"].done,
            ],
            "ollama": [
                line(ollama_line("", message={"role": "assistant", "content": "", "thinking": "I think"})),
                HELLO["ollama"].stream,
            ],
        },
    ),
)


def cases() -> list[object]:
    """Return every oddity at every upstream that has it, for every client."""
    return [
        pytest.param(odd, client, upstream, id=f"{odd.name}-{client}-to-{upstream}")
        for odd in ODDITIES
        for client in DIALECTS
        for upstream in odd.streams
    ]


@pytest.mark.parametrize(("odd", "client", "upstream"), cases())
def test_an_odd_stream(house: House, odd: Odd, client: str, upstream: str) -> None:
    async def scene() -> None:
        frames = odd.streams[upstream]
        house.upstream.script(stream(upstream, *frames))
        answer = await house.ask(client, f"{upstream}-small", streamed=True)
        if client == upstream and not odd.same:
            assert (answer.complete, answer.body) == (True, b"".join(frames))
        else:
            fine(client, answer, streamed=True, text=odd.text)
        said = house.line()
        assert (said["finish"], said["failure"]) == (odd.finish, None)
        usage = said["usage"]
        told = None if usage is None else (usage["input_tokens"], usage["output_tokens"])
        if odd.usage is None and client != upstream and get(client).usage_expected != "never":  # U29: marked as such
            assert (told, usage.get("estimated")) == (ESTIMATES[client], True)
        else:
            assert (None if told == (None, None) else told) == odd.usage
        await after(house, client, upstream)

    house.play(scene())


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS, ids=[f"U18-{client}" for client in DIALECTS])
def test_text_that_is_no_utf8(house: House, client: str, upstream: str) -> None:
    """U18: what is no character is U+FFFD; bytes that pass untouched are what they were."""

    async def scene() -> None:
        wire = HELLO[upstream]
        broken_word = wire.more[0].replace(b'"lo"', b'"\xff\x80lo"')
        assert broken_word != wire.more[0]
        closing = [frame for frame in wire.ended if upstream != "responses"]  # that one repeats the text
        house.upstream.script(stream(upstream, *wire.begun, broken_word, *closing, *wire.done))
        answer = await house.ask(client, f"{upstream}-small", streamed=True)
        if client == upstream:
            assert answer.body == b"".join((*wire.begun, broken_word, *closing, *wire.done))
        else:
            assert heard(client, answer.body).text.startswith(f"{FIRST}\ufffd\ufffd{SECOND}")
            assert answer.complete

    house.play(scene())


def cuts(data: bytes) -> list[int]:
    """Return the places inside of a character."""
    return [place for place, byte in enumerate(data) if byte & 0b1100_0000 == 0b1000_0000]


PAIRS = [(client, "chat") for client in DIALECTS] + [("messages", name) for name in DIALECTS if name != "chat"]


@pytest.mark.parametrize(("client", "upstream"), PAIRS, ids=[f"U19-{client}-to-{name}" for client, name in PAIRS])
def test_characters_cut_by_reads(house: House, client: str, upstream: str) -> None:
    """U19: wherever the reads part them."""

    async def scene() -> None:
        wire = WIRES[upstream](CHARACTERS, SECOND)
        for place in cuts(wire.stream)[:6]:
            house.lines.lines.clear()
            whole = stream(upstream)
            house.upstream.script((whole[0], Body(wire.stream, (place,)), whole[1]))
            answer = await house.ask(client, f"{upstream}-small", streamed=True)
            fine(client, answer, streamed=True, text=CHARACTERS + SECOND)

    house.play(scene())


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS, ids=[f"U19-every-byte-alone-{client}" for client in DIALECTS])
def test_every_byte_alone(house: House, client: str, upstream: str) -> None:
    """U19, U20: the smallest reads there are."""

    async def scene() -> None:
        whole = WIRES[upstream](CHARACTERS, SECOND).stream
        head, end = stream(upstream)
        house.upstream.script((head, Body(whole, 7 if upstream == "responses" else 3), end))
        answer = await house.ask(client, f"{upstream}-small", streamed=True)
        fine(client, answer, streamed=True, text=CHARACTERS + SECOND)

    house.play(scene())


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
    if upstream in LINED and ending in ("cr", "mixed"):
        ending = "crlf"  # there, a line ends in LF, and CR is a blank before it
    whole = ENDINGS[ending](WIRES[upstream](CHARACTERS, SECOND).stream)
    dialect = get(upstream)
    expected = decoded(dialect, [WIRES[upstream](CHARACTERS, SECOND).stream])
    step = 1 if ending in ("lf", "mixed") else 5
    for place in range(0, len(whole) + 1, step):
        assert decoded(dialect, [whole[:place], whole[place:]]) == expected, whole[:place]


def dressed(wire: Wire) -> list[bytes]:
    """Return a stream with everything in it that the standard allows."""
    frames = [*wire.begun, *wire.more, *wire.ended, *wire.done]
    lean = [frame.replace(b"data: ", b"data:", 1) for frame in frames]
    first = lean[0].replace(b'","', b'",\ndata: "', 1)
    extra = [b": a comment\n\n", b"data:\n\n", b"id: 7\nretry: 100\n\n", b"id: 8\nunknown: x\n" + lean[1], b":\n\n"]
    return [b"\xef\xbb\xbf: hi\n\n", first, *extra, *lean[2:]]


@pytest.mark.parametrize("ending", ["lf", "crlf", "cr"])
@pytest.mark.parametrize("upstream", FRAMED)
@pytest.mark.parametrize("client", DIALECTS, ids=[f"U21-{client}" for client in DIALECTS])
def test_events_in_every_lawful_dress(house: House, client: str, upstream: str, ending: str) -> None:
    """U20, U21: by the standard; what has no meaning has none."""

    async def scene() -> None:
        frames = [ENDINGS[ending](frame) for frame in dressed(HELLO[upstream])]
        house.upstream.script(stream(upstream, *frames))
        answer = await house.ask(client, f"{upstream}-small", streamed=True)
        if client == upstream:
            assert (answer.complete, answer.body) == (True, b"".join(frames))
        else:
            fine(client, answer, streamed=True)

    house.play(scene())


MEGABYTE = b"x" * 1_000_000
HUGE = [("messages", "chat"), ("chat", "chat"), ("chat", "messages"), ("messages", "ollama"), ("ollama", "ollama")]


@pytest.mark.parametrize(("client", "upstream"), HUGE, ids=[f"U36-huge-{client}-to-{name}" for client, name in HUGE])
def test_an_event_without_end(house: House, client: str, upstream: str) -> None:
    """U36: at thirty-two mebibytes it is enough."""

    async def scene() -> None:
        wire = HELLO[upstream]
        start = b'{"a":"' if upstream in LINED else b'data: {"a":"'
        late = (WaitEvent("heard"), Body(start), *(Body(MEGABYTE),) * 40, Hang())
        house.upstream.script(stream(upstream, *wire.begun, ending=late))
        caller = await house.call(client, f"{upstream}-small", streamed=True)
        await within_reason(lambda: FIRST.encode() in caller.reader.body, "the first word is heard")
        house.upstream.release("heard")
        answer = await house.finish(caller)
        if client == upstream:
            assert not answer.complete
        else:
            broken(client, answer, words_of(client, "upstream", streamed=True), FIRST)
        assert house.line()["failure"] == "upstream"
        await gone(house)
        await after(house, client, upstream)

    house.play(scene())


@pytest.mark.parametrize("client", DIALECTS, ids=[f"U36-many-{client}" for client in DIALECTS])
def test_a_flood_of_tiny_events(house: House, client: str) -> None:
    """U36: others are answered in the midst of it."""

    async def scene() -> None:
        wire = HELLO["chat"]
        flood = (Body(wire.more[0] * 100 + b": x\n\n" * 1_000),) * 20
        house.upstream.script(stream("chat", *wire.begun, *(), ending=(WaitEvent("heard"), *flood, Hang())))
        caller = await house.call(client, "chat-small", streamed=True)
        await within_reason(lambda: FIRST.encode() in caller.reader.body, "the first word is heard")
        house.upstream.script(stream("messages", HELLO["messages"].stream))
        house.upstream.release("heard")
        fine(client, await house.ask(client, "messages-small", streamed=True), streamed=True)
        said = FIRST + SECOND * 2_000
        await within_reason(lambda: len(caller.reader.body) > len(said), "words come")
        await within_reason(lambda: heard(client, caller.reader.body).text == said, "all words come")
        caller.transport.abort()
        await gone(house)

    house.play(scene())
