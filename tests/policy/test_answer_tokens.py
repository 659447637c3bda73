"""The tokens of an answer by its text: the same whole and in pieces, and near what the text alone is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.model.content import Audio, Image, Opaque, Part, Reasoning, Refusal, Text, ToolCall
from xenoglot.model.events import (
    ArgumentsDelta,
    BlockEnded,
    BlockStarted,
    Event,
    Finished,
    ReasoningDelta,
    TextDelta,
)
from xenoglot.model.fold import unfold, unfold_part
from xenoglot.model.response import Candidate, Finish, Response
from xenoglot.policy.token_estimate import (
    IMAGE_TOKENS,
    MOST_KEPT,
    TOOL_TOKENS,
    AnswerTokens,
    estimate_part,
    text_tokens,
)

WORDS = "The quick brown fox jumps over the lazy dog; it costs 12.50 euros.\n"
ARGUMENTS = '{"city": "Paris", "days": [1, 2, 3]}'
PARTS: dict[str, tuple[Part, int]] = {
    "text": (Text(text=WORDS), text_tokens(WORDS)),
    "refusal": (Refusal(text=WORDS), text_tokens(WORDS)),
    "call": (
        ToolCall(id="c", name="get_weather", arguments=ARGUMENTS),
        TOOL_TOKENS + text_tokens("get_weather") + text_tokens(ARGUMENTS),
    ),
    "reasoning": (Reasoning(text=WORDS), text_tokens(WORDS)),
    "summary": (Reasoning(summary=(WORDS, WORDS)), text_tokens(WORDS + WORDS)),
    "seal-is-not-read": (Reasoning(text=WORDS, encrypted="x" * 4000, signature="y" * 4000), text_tokens(WORDS)),
    "transcript": (Audio(source=None, transcript=WORDS), text_tokens(WORDS)),
    "image": (Image(source=None), IMAGE_TOKENS),  # type: ignore[arg-type]  # its source is not looked at
    "opaque": (Opaque(dialect="chat", data={"a": WORDS}), estimate_part(Opaque(dialect="chat", data={"a": WORDS}))),
}


def tokens(*events: Event) -> int:
    """Return the tokens of `events`."""
    counted = AnswerTokens()
    for event in events:
        counted.feed(event)
    return counted.count()


@pytest.mark.parametrize("kind", PARTS)
def test_a_part_is_its_words(kind: str) -> None:
    part, expected = PARTS[kind]
    assert tokens(*unfold_part(part)) == expected


@pytest.mark.parametrize("kind", PARTS)
def test_a_part_that_is_whole_at_its_end_alone_is_the_same(kind: str) -> None:
    part, expected = PARTS[kind]
    header = next(event.part for event in unfold_part(part) if isinstance(event, BlockStarted))
    assert tokens(BlockStarted(part=header), BlockEnded(part=part)) == expected


@pytest.mark.parametrize("kind", PARTS)
def test_a_part_that_is_whole_at_its_start_is_the_same(kind: str) -> None:
    part, expected = PARTS[kind]
    assert tokens(BlockStarted(part=part), BlockEnded(part=part)) == expected


def test_words_that_grew_are_not_counted_again_at_the_end() -> None:
    events = tuple(unfold_part(Text(text=WORDS)))
    assert tokens(*events[:-1], BlockEnded(part=Text(text=WORDS))) == text_tokens(WORDS)
    long = WORDS * (MOST_KEPT // len(WORDS) + 1)  # as much as is counted at once, and nothing after it
    grown = (BlockStarted(part=Text(text="")), TextDelta(text=long), BlockEnded(part=Text(text=long)))
    assert tokens(*grown) == text_tokens(long)


def test_each_block_begins_anew() -> None:
    part = Text(text=WORDS)
    grown, whole = tuple(unfold_part(part)), (BlockStarted(part=Text(text="")), BlockEnded(part=part))
    assert tokens(*grown, *whole, *grown) == 3 * text_tokens(WORDS)


def test_an_answer_without_a_word_is_one_token() -> None:
    assert tokens() == 1
    assert tokens(*unfold(Response(candidates=(Candidate(finish=Finish(reason="stop")),)))) == 1


def test_what_says_nothing_counts_nothing() -> None:
    assert tokens(*unfold_part(Text(text=WORDS)), Finished(finish=Finish(reason="stop"))) == text_tokens(WORDS)


def test_memory_is_bounded_and_the_estimate_stays_near() -> None:
    counted, pieces = AnswerTokens(), 0
    counted.feed(BlockStarted(part=Text(text="")))
    for _ in range(2000):
        for word in WORDS.split(" "):
            counted.feed(TextDelta(text=word + " "))
            pieces = max(pieces, sum(map(len, counted._pending)))
    assert pieces < MOST_KEPT
    assert counted.count() == pytest.approx(text_tokens((WORDS + " ") * 2000), rel=0.02)


@given(st.lists(st.text(min_size=1, max_size=9), max_size=30), st.sampled_from(["text", "reasoning", "arguments"]))
def test_pieces_of_any_size_are_the_whole(pieces: list[str], kind: str) -> None:
    made = {"text": TextDelta, "reasoning": ReasoningDelta, "arguments": ArgumentsDelta}[kind]
    cut = [made(text=piece) for piece in pieces]
    assert tokens(*cut) == tokens(made(text="".join(pieces)))
