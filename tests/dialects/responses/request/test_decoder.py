"""Requests of clients: exact canonical values, and errors that name the field."""

import pytest
from msgspec.structs import replace

from xenoglot.dialects.responses import RESPONSES
from xenoglot.errors import WireError
from xenoglot.model.content import CacheMark, Extra, Text
from xenoglot.model.hosted import HostedTool
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Message, OutputFormat, Request, Sampling, Thinking, Tool

FUNCTION: JSONObject = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False}
EFFORT = {"type": "configuration_update", "reasoning": {"effort": "high"}}


def decode(**fields: JSON) -> Request:
    return RESPONSES.decode_request({"model": "m", "input": [], **fields})


def own(**form: JSON) -> Extra:
    return Extra(dialect="responses", form=form)


def test_a_plain_request() -> None:
    request = decode(
        instructions="s",
        input="u",
        max_output_tokens=5,
        temperature=0.5,
        stream=True,
        safety_identifier="id",
        reasoning={"effort": "high", "summary": "auto", "context": "all_turns"},
        store=False,
        previous_response_id="resp_1",
        prompt_cache_key="k",
        x_new=1,
    )
    assert request == Request(
        model="m",
        messages=(
            Message(role="system", content=(Text(text="s"),), extra=own(instructions=True)),
            Message(role="user", content=(Text(text="u"),)),
        ),
        sampling=Sampling(max_tokens=5, temperature=0.5),
        stream=True,
        user="id",
        thinking=Thinking(
            effort="high", summary="auto", extra=Extra(dialect="responses", fields={"context": "all_turns"})
        ),
        store=False,
        previous="resp_1",
        cache_key="k",
        extra=Extra(
            dialect="responses",
            fields={"x_new": 1},
            form={"input": "string", "previous": "previous_response_id"},
        ),
    )


@pytest.mark.parametrize(
    ("text", "verbosity", "output"),
    [
        ({"format": {"type": "text"}}, None, OutputFormat(kind="text")),
        ({"format": {"type": "json_object"}, "verbosity": "low"}, "low", OutputFormat(kind="json")),
        (
            {"format": {"type": "json_schema", "name": "n", "schema": {}, "strict": True, "description": "d"}},
            None,
            OutputFormat(kind="json_schema", name="n", schema={}, strict=True, description="d"),
        ),
        ({"format": {"type": "hologram"}}, None, None),
        ({}, None, None),
    ],
)
def test_the_form_of_the_answer(text: JSON, verbosity: str | None, output: OutputFormat | None) -> None:
    """pitfall-66: name, schema and strict lie beside the type."""
    request = decode(text=text)
    assert (request.verbosity, request.output) == (verbosity, output)


@pytest.mark.parametrize(
    ("fields", "sampling"),
    [
        ({"include": ["message.output_text.logprobs"]}, Sampling(logprobs=True)),
        ({"top_logprobs": 2}, Sampling(logprobs=True, top_logprobs=2)),
        ({"top_logprobs": 0}, Sampling(top_logprobs=0)),
        ({"include": ["reasoning.encrypted_content"]}, Sampling()),
        ({"top_k": 3, "seed": 4}, Sampling(top_k=3, seed=4)),
    ],
)
def test_sampling(fields: JSONObject, sampling: Sampling) -> None:
    assert decode(**fields).sampling == sampling


@pytest.mark.parametrize(
    ("fields", "lost"),
    [
        ({"truncation": "disabled", "background": False, "include": ["reasoning.encrypted_content"]}, {}),
        ({"stream_options": {"include_obfuscation": True}}, {}),
        ({"truncation": "auto"}, {"truncation": "auto"}),
        ({"background": True}, {"background": True}),
        ({"max_tool_calls": 3}, {"max_tool_calls": 3}),
        ({"include": ["file_search_call.results"]}, {"include": ["file_search_call.results"]}),
    ],
)
def test_only_what_says_something_is_a_loss_elsewhere(fields: JSONObject, lost: JSONObject) -> None:
    """pitfall-67: what the server would do by itself is form; `truncation: auto` and the like are not."""
    extra = decode(**fields).extra
    assert extra is not None
    assert extra.fields == lost


def test_tools_inside_of_the_input_are_tools() -> None:
    """pitfall-63: those known already are not there twice."""
    shell = {**FUNCTION, "name": "shell"}
    search: JSONObject = {"type": "web_search"}
    request = decode(
        tools=[FUNCTION],
        input=[{"type": "additional_tools", "role": "developer", "tools": [shell, FUNCTION, search]}],
    )
    known = Tool(name="f", parameters={"type": "object"}, strict=False)
    added = replace(known, name="shell", extra=own(placed=True))
    assert request.tools[:2] == (known, added)
    assert request.tools[2:] == (HostedTool(kind="web_search", extra=own(type="web_search")),)
    assert request.messages == ()


def test_an_update_changes_the_request_and_goes_home_where_it_stood() -> None:
    request = decode(reasoning={"effort": "low"}, input=[EFFORT, {"role": "user", "content": "u"}, EFFORT])
    assert request.thinking == Thinking(effort="high")
    (message,) = request.messages
    assert message.extra == own(type="absent", content="string", before=[EFFORT])
    assert request.extra == own(began=[{"reasoning": {"effort": "low"}}], behind=[EFFORT])


def test_the_wish_to_cache() -> None:
    options = {"mode": "implicit", "ttl": "30m"}
    assert decode(prompt_cache_options=options).cache == CacheMark(ttl="30m", extra=own(options=True))
    assert decode(prompt_cache_options={"mode": "explicit"}).cache == CacheMark(explicit=True, extra=own(options=True))
    assert decode(prompt_cache_options={"mode": "later"}).cache is None


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"model": None}, "$.model: required, expected str"),
        ({"input": 1}, "$.input: expected str or list, got int"),
        ({"input": [1]}, "$.input[0]: expected object, got int"),
        ({"input": [{"content": "a"}]}, "$.input[0].type: required, expected str"),
        (
            {"input": [{"role": "tool", "content": "a"}]},
            "$.input[0].role: expected one of assistant, user, system, developer",
        ),
        ({"input": [{"role": "user", "content": 1}]}, "$.input[0].content: expected list, got int"),
        (
            {"input": [{"role": "user", "content": [{"text": "a"}]}]},
            "$.input[0].content[0].type: required, expected str",
        ),
        ({"input": [{"type": "function_call", "call_id": "c"}]}, "$.input[0].name: required, expected str"),
        ({"input": [{"type": "function_call", "name": "f"}]}, "$.input[0].call_id: required, expected str"),
        ({"input": [{"type": "function_call_output", "output": ""}]}, "$.input[0].call_id: required, expected str"),
        (
            {"input": [{"type": "function_call_output", "call_id": "c", "output": 1}]},
            "$.input[0].output: expected str or list, got int",
        ),
        ({"instructions": []}, "$.instructions: expected str, got list"),
        ({"tools": [{"name": "f"}]}, "$.tools[0].type: required, expected str"),
        ({"tools": [{"type": "function"}]}, "$.tools[0].name: required, expected str"),
        ({"tool_choice": 1}, "$.tool_choice: expected object, got int"),
        ({"tool_choice": {"type": "function"}}, "$.tool_choice.name: required, expected str"),
        ({"temperature": 3}, "$.temperature: integer above maximum value. Expected a value <= 2, but got 3 instead."),
        (
            {"max_output_tokens": 0},
            "$.max_output_tokens: integer below minimum value. Expected a value >= 1, but got 0 instead.",
        ),
        (
            {"top_logprobs": 21},
            "$.top_logprobs: integer above maximum value. Expected a value <= 20, but got 21 instead.",
        ),
        ({"text": {"format": {}}}, "$.text.format.type: required, expected str"),
        ({"stream": 1}, "$.stream: expected bool, got int"),
    ],
)
def test_what_is_refused(fields: JSONObject, error: str) -> None:
    with pytest.raises(WireError) as raised:
        decode(**fields)
    assert str(raised.value) == error
