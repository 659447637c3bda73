"""The embedded models hold conversations with tools, through the official SDKs and a gateway that really runs.

Asserted is what is forced, or counted. What a model says in words nobody can know.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import anthropic
import openai
import pytest

from tests.engine.embedded_gateway import Serving

if TYPE_CHECKING:
    from collections.abc import Generator

    from anthropic.types import Message
    from openai.types.chat import ChatCompletion

    from xenoglot.engine.server.weights import Weights
    from xenoglot.model.json import JSON, JSONObject

USUAL = "smollm2-135m-instruct"
TAUGHT = "taught"
TEMPLATE = Path(__file__).parent / "prompting" / "calls.jinja"

CITIES = ["Paris", "Rome", "Oslo"]
PARAMETERS: JSONObject = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": CITIES}},
    "required": ["city"],
}
NAME, DESCRIPTION = "get_weather", "The current weather in a city"
RESULT = '{"temp_c": 21, "sky": "sunny"}'
FIRST, THIRD = "What is the weather in Paris?", "And what is the weather in Rome?"


@pytest.fixture(scope="module")
def serving(weights: Weights) -> Generator[Serving]:
    """Two embedded models: one whose template knows no tools, and the same weights with a template that does."""
    taught = {"gguf": str(weights.path), "chat_template": str(TEMPLATE), "text_syntax": "hermes", "context": 2048}
    embedded = {"context": 2048, "models": {TAUGHT: {**taught, "slots": 2}}}
    models = [{"name": "claude-*", "upstream": "embedded", "model": TAUGHT}]
    with Serving({"embedded": embedded, "models": models}) as running:
        yield running


@pytest.fixture(scope="module")
def chat(serving: Serving) -> Generator[openai.OpenAI]:
    """The openai SDK."""
    with openai.OpenAI(base_url=f"{serving.url}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def messages(serving: Serving) -> Generator[anthropic.Anthropic]:
    """The anthropic SDK."""
    with anthropic.Anthropic(base_url=serving.url, api_key="none", max_retries=0) as client:
        yield client


class Chat:
    """A conversation through the openai SDK: each turn gives its finish reason, and what it was made of."""

    def __init__(self, client: openai.OpenAI, model: str, history: tuple[JSONObject, ...] = ()) -> None:
        self._client = client
        self._model = model
        self.said: list[JSONObject] = list(history)
        self.usage: list[tuple[int, int]] = []

    def turn(self, *said: JSONObject, **fields: JSON) -> tuple[str, str, list[JSONObject]]:
        """Say something; return the finish reason, the words, and the calls."""
        self.said += said
        function = {"name": NAME, "description": DESCRIPTION, "parameters": PARAMETERS}
        tools = [{"type": "function", "function": function}]
        body: JSONObject = {"model": self._model, "messages": self.said, "tools": tools, "max_tokens": 120}
        answer: ChatCompletion = self._client.chat.completions.create(**body, tool_choice="auto", **fields)
        (choice,) = answer.choices
        self.said.append(choice.message.model_dump(exclude_none=True))
        assert answer.usage is not None
        assert answer.usage.prompt_tokens_details is not None
        self.usage.append((answer.usage.prompt_tokens, answer.usage.prompt_tokens_details.cached_tokens or 0))
        calls = [call.model_dump() for call in choice.message.tool_calls or ()]
        return choice.finish_reason, choice.message.content or "", calls

    @staticmethod
    def results(calls: list[JSONObject]) -> list[JSONObject]:
        """What the tools return to these calls."""
        return [{"role": "tool", "tool_call_id": call["id"], "content": RESULT} for call in calls]

    @staticmethod
    def called(calls: list[JSONObject]) -> list[tuple[str, JSONObject]]:
        """The names and arguments of calls."""
        return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]


class Messages:
    """A conversation through the anthropic SDK, as `Chat`."""

    def __init__(self, client: anthropic.Anthropic, model: str) -> None:
        self._client = client
        self._model = model
        self.said: list[JSONObject] = []
        self.usage: list[tuple[int, int]] = []

    def turn(self, *said: JSONObject) -> tuple[str, str, list[JSONObject]]:
        """Say something; return the stop reason, the words, and the calls."""
        self.said += [{"role": "user", "content": list(said)}]
        tools = [{"name": NAME, "description": DESCRIPTION, "input_schema": PARAMETERS}]
        body: JSONObject = {"model": self._model, "messages": self.said, "tools": tools, "max_tokens": 120}
        answer: Message = self._client.messages.create(**body, tool_choice={"type": "auto"})
        blocks = [block.model_dump(exclude_none=True) for block in answer.content]
        self.said.append({"role": "assistant", "content": blocks})
        cached = answer.usage.cache_read_input_tokens or 0
        self.usage.append((answer.usage.input_tokens + cached, cached))
        words = "".join(block["text"] for block in blocks if block["type"] == "text")
        return answer.stop_reason or "", words, [block for block in blocks if block["type"] == "tool_use"]

    @staticmethod
    def results(calls: list[JSONObject]) -> list[JSONObject]:
        """What the tools return to these calls."""
        return [{"type": "tool_result", "tool_use_id": call["id"], "content": RESULT} for call in calls]

    @staticmethod
    def called(calls: list[JSONObject]) -> list[tuple[str, JSONObject]]:
        """The names and arguments of calls."""
        return [(call["name"], call["input"]) for call in calls]


POSSIBLE = [(NAME, {"city": city}) for city in CITIES]


def test_three_turns_through_the_openai_sdk(chat: openai.OpenAI) -> None:
    talk = Chat(chat, USUAL)
    finish, words, calls = talk.turn({"role": "user", "content": FIRST})
    assert (finish, words, talk.called(calls)) == ("tool_calls", "", [(NAME, {"city": "Paris"})])
    finish, words, none = talk.turn(*talk.results(calls))
    assert (finish, none) == ("stop", [])
    assert "Paris" in words
    finish, words, again = talk.turn({"role": "user", "content": THIRD})
    assert (finish, words) == ("tool_calls", "")
    assert [call for call in talk.called(again) if call not in POSSIBLE] == []
    assert len({call["id"] for call in calls + again}) == len(calls + again)
    assert talk.usage[2][1] > talk.usage[0][0] // 2


def test_three_turns_through_the_anthropic_sdk(messages: anthropic.Anthropic) -> None:
    talk = Messages(messages, USUAL)
    finish, words, calls = talk.turn({"type": "text", "text": FIRST})
    assert (finish, words, talk.called(calls)) == ("tool_use", "", [(NAME, {"city": "Paris"})])
    finish, words, none = talk.turn(*talk.results(calls))
    assert (finish, none) == ("end_turn", [])
    assert "Paris" in words
    finish, words, again = talk.turn({"type": "text", "text": THIRD})
    assert (finish, words) == ("tool_use", "")
    assert [call for call in talk.called(again) if call not in POSSIBLE] == []
    assert len({call["id"] for call in calls + again}) == len(calls + again)
    assert talk.usage[2][1] > talk.usage[0][0] // 2


def past(number: int, city: str) -> list[JSONObject]:
    """A question of long ago, with its call and its result."""
    call = {
        "id": f"old_{number}",
        "type": "function",
        "function": {"name": NAME, "arguments": f'{{"place": "{city}"}}'},
    }
    return [
        {"role": "user", "content": f"Weather in {city}?"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"old_{number}", "content": "21 C"},
    ]


HISTORY = tuple(message for number, city in enumerate(("Paris", "Oslo", "Lima")) for message in past(number, city))


def test_a_model_that_knows_tools_calls_by_its_marker_and_is_held_to_the_schema(chat: openai.OpenAI) -> None:
    talk = Chat(chat, TAUGHT, HISTORY)  # shows it calls with `place`; the tool takes nothing but `city`
    finish, words, calls = talk.turn({"role": "user", "content": "Weather in Rome?"}, parallel_tool_calls=False)
    assert (finish, words, talk.called(calls)) == ("tool_calls", "", [(NAME, {"city": "Rome"})])
    finish, _, calls = talk.turn(*talk.results(calls), parallel_tool_calls=False)
    assert finish == ("tool_calls" if calls else "stop")
    before, (prompt, cached) = talk.usage
    assert before[0] - 16 < cached < prompt  # all of the turn before, but for how its end was tokenized


def test_a_model_that_knows_tools_is_free_to_use_words(chat: openai.OpenAI) -> None:
    finish, words, calls = Chat(chat, TAUGHT).turn({"role": "user", "content": "Why is the sky blue?"}, stop=["sky"])
    assert (finish, "sky" in words, calls) == ("stop", False, [])


def test_each_model_is_named_and_answers_to_its_name(chat: openai.OpenAI, messages: anthropic.Anthropic) -> None:
    assert {USUAL, TAUGHT} <= {model.id for model in chat.models.list()}
    body: JSONObject = {"messages": [{"role": "user", "content": "What is the capital of France?"}], "max_tokens": 8}
    answers = [chat.chat.completions.create(model=model, **body).model for model in (USUAL, TAUGHT)]
    assert answers == [USUAL, TAUGHT]
    assert messages.messages.create(model="claude-x", **body).model in {"claude-x", TAUGHT}


def test_conversations_side_by_side_keep_their_prefixes(chat: openai.OpenAI) -> None:
    talks = [Chat(chat, USUAL, ({"role": "system", "content": f"{topic} " * 10},)) for topic in ("One", "Two")]
    for question in (FIRST, THIRD):
        for talk in talks:
            _, _, calls = talk.turn({"role": "user", "content": question})
            talk.said += talk.results(calls)
    for talk in talks:
        (first, _), (_, cached) = talk.usage
        assert cached > first // 2
