"""Any lawful stream through the stage: what leaves is lawful, and how the text was cut does not matter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.laws.streams import streams
from tests.text.test_laws import MARKERS, ROWS, TEXTS
from tests.text.vectors import declared
from xenoglot.codec.grammar import Grammar
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.model.content import Text, ToolCall
from xenoglot.model.events import BlockStarted, Event, TextDelta
from xenoglot.model.fold import Folder
from xenoglot.text import registry
from xenoglot.text.stage import TextStage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.model.content import Part

PIECES: Final = st.one_of(
    st.sampled_from(TEXTS),
    st.sampled_from(MARKERS),
    st.tuples(st.sampled_from(TEXTS), st.integers(0, 90)).map(lambda cut: cut[0][: cut[1]]),
    st.tuples(st.sampled_from(TEXTS), st.integers(0, 90)).map(lambda cut: cut[0][cut[1] :]),
    st.sampled_from(["", "Hi ", "\n", "`", "{", "<", "</think>"]),
)

Told: TypeAlias = "tuple[str, str | None]"
"""A part in short: its kind, and its text or the call's arguments."""


@st.composite
def texts(draw: st.DrawFn) -> list[Event]:
    """Return a lawful stream whose words are pieces of what models write, also in headers and ends of blocks."""
    return [_with_words(event, draw(PIECES)) for event in draw(streams(most=3))]


def _with_words(event: Event, text: str) -> Event:
    match event:
        case TextDelta():
            return replace(event, text=text)
        case BlockStarted(part=Text() as part) if len(text) % 5 == 0:
            return replace(event, part=replace(part, text=text))
        case _:
            return event


def joined(events: Iterable[Event]) -> list[Event]:
    """Return the events, with words that follow each other in one delta."""
    made: list[Event] = []
    for event in events:
        last = made[-1] if made else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta) and last.candidate == event.candidate:
            made[-1] = replace(last, text=last.text + event.text)
        else:
            made.append(event)
    return made


def read(name: str, events: Iterable[Event], *, thinking: bool | None) -> list[list[Told]]:
    """Return what the row `name` makes of a stream, which has to be lawful: candidates in short."""
    stage = TextStage(registry.get(name), declared(), lambda *place: f"call_{place}", Losses(), thinking=thinking)
    folder = Folder()
    for event in through(events, Pipeline(Grammar(), stage, Grammar())):
        folder.feed(event)
    return [_received_parts(candidate.content) for candidate in folder.response().candidates]


def _received_parts(content: Iterable[Part]) -> list[Told]:
    told: list[Told] = []
    for part in content:
        text = part.arguments if isinstance(part, ToolCall) else getattr(part, "text", None)
        kind = type(part).__name__
        if isinstance(part, Text) and told and told[-1][0] == kind:
            told[-1] = (kind, f"{told[-1][1]}{text}")
        elif text or not isinstance(part, Text):
            told.append((kind, text))
    return told


@settings(max_examples=400)
@given(st.sampled_from(ROWS), texts(), st.sampled_from([None, True, False]))
def test_any_stream_stays_lawful_and_cuts_do_not_matter(name: str, events: list[Event], thinking: bool | None) -> None:  # noqa: FBT001
    assert read(name, events, thinking=thinking) == read(name, joined(events), thinking=thinking)
