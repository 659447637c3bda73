"""google-genai's `interactions` through the gateway to a server of each dialect: tools, streams, state, background."""

from __future__ import annotations

import warnings
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import pytest
from google import genai
from google.genai import types

from drive.conftest import PATIENCE
from drive.script import Wanted, calls, text_turn
from xenoglot.model.content import ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drive.conftest import DriveSetup

TOOL = {
    "type": "function",
    "name": "weather",
    "description": "Return the weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@pytest.fixture
def client(drive_setup: DriveSetup) -> Iterator[Any]:
    """Give the SDK, asking the gateway."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it is experimental
        sdk = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=drive_setup.url))
        yield sdk.interactions


def test_a_tool_loop_goes_on_from_what_is_stored(drive_setup: DriveSetup, client: Any) -> None:  # noqa: ANN401
    """The model calls a tool, gets its result, and answers in a stream; only the result is sent again."""
    call_turn = calls(Wanted("weather", {"city": "Oslo"}))
    drive_setup.speaker.script(call_turn, text_turn("It rains."), text_turn("Yes."))
    first = client.create(model="m", input="Rain in Oslo?", tools=[TOOL])
    (call,) = [step for step in first.steps if step.type == "function_call"]
    assert (first.status, call.name, call.arguments) == ("requires_action", "weather", {"city": "Oslo"})
    result = [{"type": "function_result", "call_id": call.id, "name": call.name, "result": "rain"}]
    stream = client.create(model="m", input=result, tools=[TOOL], previous_interaction_id=first.id, stream=True)
    events = list(stream)
    said = [event.delta.text for event in events if event.event_type == "step.delta" and event.delta.type == "text"]
    assert ("".join(said), events[-1].interaction.status) == ("It rains.", "completed")
    name = events[-1].interaction.id
    third = client.create(model="m", input="Really?", tools=[TOOL], previous_interaction_id=name)
    assert third.output_text == "Yes."
    asked = drive_setup.speaker.requests[-1]
    assert any(isinstance(part, ToolResult) for message in asked.messages for part in message.content)


def test_one_in_the_background_is_polled_and_deleted(drive_setup: DriveSetup, client: Any) -> None:  # noqa: ANN401
    drive_setup.speaker.script(text_turn("Done."))
    made = client.create(model="m", input="Work.", background=True)
    until = monotonic() + PATIENCE
    while (found := client.get(made.id)).status in ("queued", "in_progress"):
        assert monotonic() < until, found
        sleep(0.05)
    assert (found.status, found.output_text) == ("completed", "Done.")
    client.delete(made.id)
    with pytest.raises(Exception, match="not found"):
        client.get(made.id)
