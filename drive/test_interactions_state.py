"""google-genai's `interactions` that are cancelled, left and resumed in the middle, in front of each dialect."""

from __future__ import annotations

import warnings
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import pytest
from google import genai
from google.genai import types

from drive.conftest import PATIENCE, TURNS
from drive.held_answers import WHOLE, HeldAnswers, held_answers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=TURNS)
def held(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HeldAnswers]:
    """Give a server of each dialect behind a gateway."""
    with held_answers(tmp_path, request.param) as setup:
        yield setup


@pytest.fixture
def client(held: HeldAnswers) -> Iterator[Any]:
    """Give the SDK, asking the gateway."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it is experimental
        sdk = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=held.served.url))
        yield sdk.interactions


def texts(events: list[Any]) -> str:
    """Return the words in events."""
    return "".join(one.delta.text for one in events if one.event_type == "step.delta" and one.delta.type == "text")


def ended(client: Any, name: str) -> Any:  # noqa: ANN401  the SDK's own types are not typed for this
    """Return an interaction when it has ended."""
    until = monotonic() + PATIENCE
    while (found := client.get(name)).status in ("queued", "in_progress"):
        assert monotonic() < until, found
        sleep(0.05)
    return found


def test_one_in_the_background_is_cancelled(held: HeldAnswers, client: Any) -> None:  # noqa: ANN401
    """The upstream is disconnected; the interaction stays, and cannot be continued as if it had ended."""
    held.hold()
    made = client.create(model="m", input="Work.", background=True)
    held.upstream.wait(lambda: bool(held.bodies()))
    assert client.cancel(made.id).status == "cancelled"
    held.wait_for_disconnect()
    assert ended(client, made.id).status == "cancelled"
    assert client.create(model="m", input="Again.").output_text == WHOLE


def test_a_stream_that_is_left_stops_the_upstream(held: HeldAnswers, client: Any) -> None:  # noqa: ANN401
    held.hold()
    stream = client.create(model="m", input="Work.", stream=True)
    assert next(iter(stream)).event_type == "interaction.created"
    stream.close()
    held.wait_for_disconnect()
    assert client.create(model="m", input="Again.").output_text == WHOLE


def test_a_stream_in_the_background_is_resumed_after_an_event(held: HeldAnswers, client: Any) -> None:  # noqa: ANN401
    """Each event comes once, whichever connection it comes on, and the words are whole."""
    held.hold()
    stream = iter(client.create(model="m", input="Work.", background=True, stream=True))
    first = [next(stream)]
    while not texts(first):
        first.append(next(stream))
    name = first[0].interaction.id
    resumed = client.get(name, stream=True, last_event_id=first[-1].event_id)
    stream.close()
    held.go_on()
    rest = list(resumed)
    assert texts([*first, *rest]) == WHOLE
    ids = [event.event_id for event in (*first, *rest) if event.event_id]
    assert ids == sorted(set(ids))
    assert rest[-1].event_type == "interaction.completed"
    assert ended(client, name).output_text == WHOLE
    assert len(held.bodies()) == 1
    again = list(client.get(name, stream=True))
    assert texts(again) == WHOLE


def test_one_in_the_background_is_continued(held: HeldAnswers, client: Any) -> None:  # noqa: ANN401
    held.hold()
    made = client.create(model="m", input="Work hard.", background=True)
    with pytest.raises(Exception, match="still in progress"):
        client.create(model="m", input="On.", previous_interaction_id=made.id)
    held.go_on()
    assert ended(client, made.id).output_text == WHOLE
    second = client.create(model="m", input="On.", previous_interaction_id=made.id)
    assert second.output_text == WHOLE
    asked = held.bodies()[-1]
    assert asked.index(b"Work hard.") < asked.index(WHOLE.encode()) < asked.index(b"On.")
