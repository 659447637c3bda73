"""OpenAI's SDK steers over a WebSocket (`response.steer`), which Codex does not do itself, in front of each dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from openai import OpenAI

from drive.conftest import TURNS
from drive.held_answers import WHOLE, HeldAnswers, held_answers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=TURNS)
def held(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HeldAnswers]:
    """Give a server of each dialect behind a gateway."""
    with held_answers(tmp_path, request.param) as setup:
        yield setup


@pytest.mark.filterwarnings(
    "ignore:connect.. must be used as a context manager:DeprecationWarning"
)  # the SDK's own way
def test_input_for_an_answer_in_progress_is_answered_next(held: HeldAnswers) -> None:
    held.hold()
    client = OpenAI(base_url=f"{held.served.url}/v1", api_key="none", max_retries=0)
    with client.responses.connect() as connection:
        connection.response.create(model="m", input="tell me much", store=False)
        first = next(event.response.id for event in connection if event.type == "response.created")
        next(event for event in connection if event.type == "response.output_text.delta")
        connection.response.steer(input="no, tell me little", previous_response_id=first)
        accepted = next(event for event in connection if event.type == "response.steer.accepted")
        held.go_on()
        ends = (event.response for event in connection if event.type == "response.completed")
        ended, follows = next(ends), next(ends)
    assert accepted.steer.previous_response_id == ended.id == first
    assert (follows.previous_response_id, follows.output_text) == (first, WHOLE)
    _, second = held.bodies()
    assert second.index(b"tell me much") < second.index(WHOLE.encode()) < second.index(b"no, tell me little")
