"""Calls and thoughts in text, from a server of each dialect to real clients: told of its tools in words, or in fields.

The servers are real, and stream in small pieces.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import anthropic
import openai
import pytest

from tests.matrix.all_dialects_gateway import AllDialectsGateway
from xenoglot import dialect_registry as dialects
from xenoglot.model.content import Text, ToolCall, ToolResult
from xenoglot.model.response import Candidate, Finish, Response, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openai.types.chat import ChatCompletion

    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Request

CITY: Final[JSONObject] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL: Final[JSONObject] = {"type": "function", "function": {"name": "weather", "parameters": CITY}}
ADAPTIVE: Final[JSONObject] = {"type": "adaptive"}
ASKED: Final[JSONObject] = {"role": "user", "content": "Weather?"}
CALLED: Final = [("weather", {"city": "Paris"}), ("weather", {"city": "Rome"})]
CALLS: Final = "\n".join(
    f'<tool_call>\n{{"name": "weather", "arguments": {{"city": "{city}"}}}}\n</tool_call>' for city in ("Paris", "Rome")
)
WRITTEN: Final = f"<think>\nIt is <here>.\n</think>\n\nI look.\n{CALLS}"
RESULTS: Final = "<tool_response>\nwet\n</tool_response>\n<tool_response>\ndry\n</tool_response>"

ONE_PROMPT: Final = "ollama_generate"
"""The dialect that has neither tools nor conversations."""

CONTINUING: Final = ("completions", "llama_stack_completion")
"""Dialects that get the conversation as a transcript."""


@pytest.fixture(scope="module")
def without_tools() -> Iterator[AllDialectsGateway]:
    """Give servers that take no tools."""
    with AllDialectsGateway(piece=3, text_syntax="hermes", emulate={"tools": True}) as running:
        yield running


@pytest.fixture(scope="module")
def sent() -> Iterator[AllDialectsGateway]:
    """Give servers that take tools, and do not read what their models write."""
    with AllDialectsGateway(piece=3, text_syntax="hermes") as running:
        yield running


def text_response(text: str) -> Response:
    """An answer of words, as the model has it."""
    candidate = Candidate(content=(Text(text=text),), finish=Finish(reason="stop"))
    return Response(id="answer_1", candidates=(candidate,), usage=Usage(input_tokens=9, output_tokens=4))


def complete(url: str, model: str, messages: list[JSONObject], *, stream: bool) -> ChatCompletion:
    """What openai hears."""
    said = {"model": model, "messages": messages, "tools": [TOOL]}
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        if not stream:
            return client.chat.completions.create(**said)  # type: ignore[call-overload, no-any-return]
        with client.chat.completions.stream(**said) as events:  # type: ignore[arg-type]
            return events.get_final_completion()


def check_openai(running: AllDialectsGateway, name: str, *, stream: bool) -> list[JSONObject]:
    """Have openai hear calls of the server `name`; return the conversation with their results."""
    running.speakers[name].script(text_response(WRITTEN))
    (choice,) = complete(running.url, f"{name}-model", [ASKED], stream=stream).choices
    made = choice.message.tool_calls or []
    assert [(call.function.name, json.loads(call.function.arguments)) for call in made] == CALLED  # type: ignore[union-attr]
    thought = (choice.message.model_extra or {}).get("reasoning_content")
    assert (choice.message.content, thought, choice.finish_reason) == ("I look.\n", "It is <here>.", "tool_calls")
    calls = [call.model_dump(include={"id", "type", "function"}) for call in made]
    results = zip(made, ("wet", "dry"), strict=True)
    answer: JSONObject = {"role": "assistant", "content": "I look.\n", "tool_calls": calls}
    return [ASKED, answer, *({"role": "tool", "tool_call_id": call.id, "content": said} for call, said in results)]


def turns(request: Request) -> list[tuple[str, str]]:
    """The turns of a request in words."""
    return [
        (turn.role, "|".join(part.text for part in turn.content if isinstance(part, Text))) for turn in request.messages
    ]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", dialects.names())
def test_openai_of_tools_in_words(without_tools: AllDialectsGateway, name: str, stream: bool) -> None:  # noqa: FBT001  a case
    messages = check_openai(without_tools, name, stream=stream)
    if name == ONE_PROMPT:
        return
    speaker = without_tools.speakers[name]
    (first,) = speaker.requests
    speaker.script(text_response("Wet here, dry there."))
    (last,) = complete(without_tools.url, f"{name}-model", messages, stream=stream).choices
    assert (last.message.content, last.finish_reason) == ("Wet here, dry there.", "stop")
    (second,) = speaker.requests
    assert (first.tools, second.tools) == ((), ())
    if name in CONTINUING:
        assert first.prompt is not None
        assert second.prompt is not None
        (before,), (behind,) = first.prompt.texts, second.prompt.texts
        assert behind == f"{before} I look.\n{CALLS}\n\nUser: {RESULTS}\n\nAssistant:"
    else:
        assert turns(second) == [*turns(first), ("assistant", f"I look.\n{CALLS}"), ("user", RESULTS)]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", [name for name in dialects.names() if name not in (ONE_PROMPT, *CONTINUING)])
def test_openai_of_tools_in_fields(sent: AllDialectsGateway, name: str, stream: bool) -> None:  # noqa: FBT001  a case
    messages = check_openai(sent, name, stream=stream)
    speaker = sent.speakers[name]
    speaker.script(text_response("Wet here, dry there."))
    (last,) = complete(sent.url, f"{name}-model", messages, stream=stream).choices
    assert (last.message.content, last.finish_reason) == ("Wet here, dry there.", "stop")
    (second,) = speaker.requests
    parts = [part for turn in second.messages for part in turn.content]
    assert len(second.tools) == 1
    assert [(part.name, json.loads(part.arguments)) for part in parts if isinstance(part, ToolCall)] == CALLED
    results = [part.content for part in parts if isinstance(part, ToolResult)]
    assert results == [(Text(text="wet"),), (Text(text="dry"),)]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", dialects.names())
def test_anthropic_of_tools_in_words(without_tools: AllDialectsGateway, name: str, stream: bool) -> None:  # noqa: FBT001  a case
    without_tools.speakers[name].script(text_response(WRITTEN))
    tools = [{"name": "weather", "input_schema": CITY}]
    said = {"model": f"{name}-model", "max_tokens": 99, "messages": [ASKED], "tools": tools, "thinking": ADAPTIVE}
    with anthropic.Anthropic(base_url=without_tools.url, api_key="none", max_retries=0) as client:
        if stream:
            with client.messages.stream(**said) as events:  # type: ignore[arg-type]
                message = events.get_final_message()
        else:
            message = client.messages.create(**said)  # type: ignore[call-overload]
    kept = {"type", "thinking", "text", "name", "input"}
    assert [block.model_dump(include=kept) for block in message.content] == [
        {"type": "thinking", "thinking": "It is <here>."},
        {"type": "text", "text": "I look.\n"},
        *({"type": "tool_use", "name": name, "input": arguments} for name, arguments in CALLED),
    ]
    assert message.stop_reason == "tool_use"
