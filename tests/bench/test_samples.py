"""Samples: of the sizes they are said to have, and streams whose parts make a whole."""

from __future__ import annotations

import pytest

from bench.samples import agent, answer, frames, small, spoken, written
from xenoglot.codec.stage import Pipeline, through
from xenoglot.dialect_registry import get
from xenoglot.model.events import TextDelta

DIALECTS = ("chat", "gemini", "messages", "ollama", "responses")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_requests_are_of_a_kilobyte_and_of_115(dialect: str) -> None:
    assert 700 < len(written(dialect, small())) < 1100
    assert 110_000 < len(written(dialect, agent())) < 120_000


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_parts_of_a_stream_make_a_whole(dialect: str) -> None:
    parts = frames(dialect)
    reading = Pipeline(get(dialect).framing.decoder(), get(dialect).stream_decoder())
    events = list(through([*parts.first, *[parts.token] * 3, *parts.last], reading))
    assert [event.text for event in events if isinstance(event, TextDelta)] == [" token"] * 4
    assert type(events[-1]).__name__ in {"Finished", "UsageReported"}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_token_is_an_event_of_its_own(dialect: str) -> None:
    assert len(spoken(dialect, 60).frames) - len(spoken(dialect, 10).frames) == 50
    assert answer(dialect, 3).body.count(b" token token token") == 1
