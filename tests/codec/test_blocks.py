"""Blocks: deltas that come as they like, put in order; each case a script of what goes in and what comes out."""

from collections.abc import Callable
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.codec.blocks import Blocks
from xenoglot.codec.grammar import Grammar
from xenoglot.codec.json.json_io import decode_json
from xenoglot.errors import WireError
from xenoglot.model.content import Part, Reasoning, Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
    BlockEnded,
    BlockStarted,
    Event,
    Finished,
    ReasoningDelta,
    Started,
    TextDelta,
)
from xenoglot.model.fold import Folder
from xenoglot.model.json import JSON
from xenoglot.model.response import Finish

Step: TypeAlias = Callable[[Blocks], list[Event]]
Script: TypeAlias = list[tuple[Step, list[Event]]]

TEXT = Text(text="")
THOUGHT = Reasoning(text="")
END = BlockEnded()


def call(name: str, kind: str = "function") -> ToolCall:
    return ToolCall(id=f"call_{name}", name=name, kind="custom" if kind == "custom" else "function")


def block_started(part: Part) -> BlockStarted:
    return BlockStarted(part=part)


def arguments(text: str) -> ArgumentsDelta:
    return ArgumentsDelta(text=text)


def text_step(text: str) -> Step:
    return lambda blocks: blocks.grow("text", TextDelta(text=text), TEXT)


def think(text: str) -> Step:
    return lambda blocks: blocks.grow("thought", ReasoningDelta(text=text), THOUGHT)


def opened(key: int, part: Part) -> Step:
    return lambda blocks: blocks.open(key, part)


def argue(key: int, text: str) -> Step:
    return lambda blocks: blocks.grow(key, ArgumentsDelta(text=text))


def argue_anew(key: int, text: str, header: Part) -> Step:
    return lambda blocks: blocks.grow(key, ArgumentsDelta(text=text), header)


def close(blocks: Blocks) -> list[Event]:
    return blocks.close()


A, B, C = call("a"), call("b"), call("c")
SCRIPTS: dict[str, Script] = {
    "nothing": [(close, [])],
    "words": [
        (text_step("Hel"), [block_started(TEXT), TextDelta(text="Hel")]),
        (text_step("lo"), [TextDelta(text="lo")]),
        (close, [END]),
        (close, []),
    ],
    "pitfall-87-88-the-delta-that-changes-the-block-is-said": [
        (think("hm"), [block_started(THOUGHT), ReasoningDelta(text="hm")]),
        (text_step("Hi"), [END, block_started(TEXT), TextDelta(text="Hi")]),
        (think("so"), [END, block_started(THOUGHT), ReasoningDelta(text="so")]),
        (text_step("!"), [END, block_started(TEXT), TextDelta(text="!")]),
        (close, [END]),
    ],
    "pitfall-86-one-call-after-the-other": [
        (opened(0, A), [block_started(A)]),
        (argue(0, '{"x":'), [arguments('{"x":')]),
        (argue(0, "1}"), [arguments("1}")]),
        (opened(1, B), [END, block_started(B)]),
        (argue(1, "{}"), [arguments("{}")]),
        (close, [END]),
    ],
    "pitfall-89-interleaved": [
        (opened(0, A), [block_started(A)]),
        (opened(1, B), []),
        (argue(1, '{"b"'), []),
        (argue(0, '{"a"'), [arguments('{"a"')]),
        (argue(1, ":2}"), []),
        (argue(0, ":1}"), [arguments(":1}")]),
        (close, [END, block_started(B), arguments('{"b"'), arguments(":2}"), END]),
    ],
    "U32-the-second-index-comes-first": [
        (opened(1, B), [block_started(B)]),
        (opened(0, A), []),
        (argue(0, "{}"), []),
        (argue(1, "{}"), [arguments("{}")]),
        (close, [END, block_started(A), arguments("{}"), END]),
    ],
    "U32-three-calls-one-of-them-late": [
        (opened(0, A), [block_started(A)]),
        (argue(0, "{"), [arguments("{")]),
        (opened(7, B), []),
        (argue(7, "{}"), []),
        (argue(0, "}"), [arguments("}")]),
        (opened(9, C), [END, block_started(B), arguments("{}"), END, block_started(C)]),
        (argue(9, "{}"), [arguments("{}")]),
        (close, [END]),
    ],
    "pitfall-90-several-calls-in-one-chunk": [
        (opened(0, A), [block_started(A)]),
        (argue(0, "{}"), [arguments("{}")]),
        (opened(1, B), [END, block_started(B)]),
        (argue(1, "{}"), [arguments("{}")]),
        (opened(2, C), [END, block_started(C)]),
        (argue(2, "{}"), [arguments("{}")]),
        (close, [END]),
    ],
    "pitfall-93-one-index-two-ids-two-keys": [
        (lambda blocks: blocks.open((0, "call_a"), A), [block_started(A)]),
        (lambda blocks: blocks.grow((0, "call_a"), arguments("{}")), [arguments("{}")]),
        (lambda blocks: blocks.open((0, "call_b"), B), [END, block_started(B)]),
        (lambda blocks: blocks.grow((0, "call_b"), arguments("{}")), [arguments("{}")]),
        (close, [END]),
    ],
    "pitfall-92-an-id-in-every-delta-opens-nothing-new": [
        (opened(0, A), [block_started(A)]),
        (opened(0, A), []),
        (argue(0, '{"x"'), [arguments('{"x"')]),
        (opened(0, A), []),
        (argue(0, ":1}"), [arguments(":1}")]),
        (opened(0, A), []),
        (close, [END]),
        (opened(0, A), []),
    ],
    "pitfall-94-no-arguments": [
        (opened(0, A), [block_started(A)]),
        (opened(1, B), []),
        (close, [END, block_started(B), END]),
    ],
    "pitfall-95-cut-inside-an-escape": [
        (opened(0, A), [block_started(A)]),
        (argue(0, '{"x":"\\ud83d\\u'), [arguments('{"x":"\\ud83d\\u')]),
        (argue(0, 'de00"}'), [arguments('de00"}')]),
        (text_step("!"), [END, block_started(TEXT), TextDelta(text="!")]),
        (close, [END]),
    ],
    "pitfall-96-words-while-a-call-is-open-wait": [
        (opened(0, A), [block_started(A)]),
        (argue(0, '{"x":'), [arguments('{"x":')]),
        (text_step("Now"), []),
        (text_step(" I call"), []),
        (argue(0, "1}"), [arguments("1}")]),
        (close, [END, block_started(TEXT), TextDelta(text="Now"), TextDelta(text=" I call"), END]),
    ],
    "pitfall-96-words-after-a-whole-call": [
        (opened(0, A), [block_started(A)]),
        (argue(0, "{} \n"), [arguments("{} \n")]),
        (text_step("Done"), [END, block_started(TEXT), TextDelta(text="Done")]),
        (argue(0, " \n"), []),
        (close, [END]),
    ],
    "pitfall-96-words-between-two-waiting-calls-stay-between": [
        (opened(0, A), [block_started(A)]),
        (text_step("one"), []),
        (opened(1, B), []),
        (text_step("two"), []),
        (argue(1, "{}"), []),
        (argue(0, "{}"), [arguments("{}")]),
        (
            close,
            [
                *(END, block_started(TEXT), TextDelta(text="one")),
                *(END, block_started(B), arguments("{}")),
                *(END, block_started(TEXT), TextDelta(text="two"), END),
            ],
        ),
    ],
    "U31-arguments-that-are-no-object-keep-the-block-open": [
        (opened(0, A), [block_started(A)]),
        (argue(0, '{"a":1}{"b":2}'), [arguments('{"a":1}{"b":2}')]),
        (opened(1, B), []),
        (close, [END, block_started(B), END]),
    ],
    "U31-a-brace-inside-a-string-ends-nothing": [
        (opened(0, A), [block_started(A)]),
        (argue(0, '{"a":"}'), [arguments('{"a":"}')]),
        (opened(1, B), []),
        (argue(0, '"}'), [arguments('"}')]),
        (opened(2, C), [END, block_started(B)]),
        (close, [END, block_started(C), END]),
    ],
    "C12-half-a-pair-in-arguments": [
        (opened(0, A), [block_started(A)]),
        (argue(0, '{"a":"\ud800"}'), [arguments('{"a":"\ud800"}')]),
        (opened(1, B), []),
        (close, [END, block_started(B), END]),
    ],
    "a-custom-call-is-free-text-and-ends-at-the-end": [
        (opened(0, call("x", "custom")), [block_started(call("x", "custom"))]),
        (argue(0, "{}"), [arguments("{}")]),
        (opened(1, B), []),
        (argue(0, "more"), [arguments("more")]),
        (close, [END, block_started(B), END]),
    ],
    "arguments-that-came-with-the-header-count": [
        (
            opened(0, ToolCall(id="1", name="a", arguments="{}")),
            [block_started(ToolCall(id="1", name="a", arguments="{}"))],
        ),
        (opened(1, B), [END, block_started(B)]),
        (close, [END]),
    ],
}


@pytest.mark.parametrize("script", [pytest.param(script, id=name) for name, script in SCRIPTS.items()])
def test_script(script: Script) -> None:
    blocks = Blocks()
    assert [step(blocks) for step, _ in script] == [events for _, events in script]


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(argue(0, "}"), id="U31-without-a-header"),
        pytest.param(argue_anew(0, "}", A), id="U31-with-a-header"),
    ],
)
def test_a_call_that_goes_on_after_its_end_is_an_error(step: Step) -> None:
    blocks = Blocks()
    assert blocks.open(0, A) == [block_started(A)]
    assert blocks.grow(0, arguments("{}")) == [arguments("{}")]
    assert blocks.open(1, B) == [END, block_started(B)]
    with pytest.raises(WireError, match=r"^\$: a tool call continued after its arguments were complete$"):
        step(blocks)


def test_the_candidate_is_on_every_event() -> None:
    blocks = Blocks(3)
    delta = TextDelta(text="x", candidate=3)
    assert blocks.grow("text", delta, TEXT) == [BlockStarted(part=TEXT, candidate=3), delta]
    assert blocks.open(0, A) == [BlockEnded(candidate=3), BlockStarted(part=A, candidate=3)]
    assert blocks.close() == [BlockEnded(candidate=3)]


def words(part: Part) -> str:
    assert isinstance(part, Text)
    return part.text


SOURCES = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["{", "}", '"a":1', "x", " "])), max_size=30)


@given(SOURCES)
def test_any_order_gives_a_lawful_stream_that_loses_nothing(deltas: list[tuple[int, str]]) -> None:
    """Sources 0 to 2 are calls, 3 is words; all that is said ends up in its block, in its order."""
    blocks, grammar, folder = Blocks(), Grammar(), Folder()
    events: list[Event] = [Started()]
    said: dict[str, str] = {}
    for source, text in deltas:
        try:
            if source == 3:
                events += text_step(text)(blocks)
                said["text"] = said.get("text", "") + text
            else:
                events += argue_anew(source, text, call(str(source)))(blocks)
                said[str(source)] = said.get(str(source), "") + text
        except WireError:  # a call that went on after its end
            continue
    events += [*blocks.close(), Finished(finish=Finish(reason="stop"))]
    for event in events:
        grammar.feed(event)
        folder.feed(event)
    grammar.close()
    found: dict[str, str] = {}
    for part in folder.response().candidates[0].content:
        key, text = (part.name, part.arguments) if isinstance(part, ToolCall) else ("text", words(part))
        found[key] = found.get(key, "") + text
    assert {key: text.strip() for key, text in found.items()} == {key: text.strip() for key, text in said.items()}


def test_arguments_are_read_again_only_when_they_grew(monkeypatch: pytest.MonkeyPatch) -> None:
    """U36: a call whose arguments never end costs each later one the same, however many wait."""
    read: list[str] = []

    def counted(data: str) -> JSON:
        read.append(data)
        return decode_json(data)

    monkeypatch.setattr("xenoglot.codec.json.json_io.decode_json", counted)
    blocks = Blocks()
    blocks.open("first", A)
    blocks.grow("first", arguments("{}}"))
    for key in range(20_000):
        assert blocks.open(key, B) == []
        assert blocks.grow(key, arguments("{}")) == []
    assert read == ["{}}"]
    assert blocks.close() == [END, *[block_started(B), arguments("{}"), END] * 20_000]
