"""Requests of `/api/chat`: what was understood, and what a stranger's becomes."""

import pytest

from tests.dialects.ollama.wire import decoded_request, encoded, message_of
from xenoglot.codec.target import Target
from xenoglot.dialects.ollama import OLLAMA, OLLAMA_GENERATE
from xenoglot.errors import WireError
from xenoglot.model.content import (
    Audio,
    File,
    Image,
    Inline,
    Opaque,
    Plain,
    Reasoning,
    Remote,
    Text,
    ToolCall,
    ToolResult,
)
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import OutputFormat, Prompt, Request, Sampling, Thinking, Tool, ToolChoice

WEATHER = Tool(name="weather", parameters={"type": "object", "properties": {}})
CLOCK = Tool(name="clock")


def decoded(**fields: JSON) -> Request:
    return OLLAMA.decode_request({"model": "m", "messages": [], **fields})


@pytest.mark.parametrize(
    ("said_of_it", "streams"),
    [({}, True), ({"stream": None}, True), ({"stream": True}, True), ({"stream": False}, False)],
    ids=["unsaid", "null", "true", "false"],
)
def test_a_stream_is_the_default(said_of_it: JSONObject, streams: bool) -> None:  # noqa: FBT001 (a case)
    assert decoded(**said_of_it).stream is streams


def test_a_turned_off_stream_is_said_although_the_client_left_it_out() -> None:
    request = decoded()
    body, _ = encoded(Request(model="m", stream=False, extra=request.extra))
    assert body == {"model": "m", "messages": [], "stream": False}


def test_options_are_sampling() -> None:
    options = {"num_predict": 5, "temperature": 0.5, "top_k": 3, "repeat_penalty": 1.1, "seed": 0, "stop": ["a"]}
    assert decoded(options=options).sampling == Sampling(
        max_tokens=5, temperature=0.5, top_k=3, repetition_penalty=1.1, seed=0, stop=("a",)
    )


def test_an_option_that_only_this_server_has_is_lost_by_its_own_name() -> None:
    request = decoded(messages=[{"role": "user", "content": "Hi"}], options={"num_ctx": 4096, "temperature": 0.5})
    assert request.extra is not None
    assert request.extra.fields == {"options.num_ctx": 4096}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"model": None}, "$.model: required, expected str"),
        ({"messages": {}}, "$.messages: expected list, got object"),
        ({"messages": [{"content": "Hi"}]}, "$.messages[0].role: required, expected str"),
        ({"messages": [{"role": "user", "content": []}]}, "$.messages[0].content: expected str, got list"),
        ({"messages": [{"role": "user", "images": [1]}]}, "$.messages[0].images[0]: expected str, got int"),
        ({"options": {"top_k": "x"}}, "$.options.top_k: expected int, got str"),
        ({"options": {"stop": 1}}, "$.options.stop: expected str or list, got int"),
        ({"format": "yaml"}, "$.format: expected 'json' or object, got str"),
        ({"think": 3}, "$.think: expected bool or str, got int"),
        ({"top_logprobs": 21}, "$.top_logprobs: must be between 0 and 20"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(fields: JSONObject, problem: str) -> None:
    with pytest.raises(WireError) as caught:
        decoded(**fields)
    assert str(caught.value) == problem


def test_results_belong_to_the_first_call_of_their_name_that_waits() -> None:
    call = {"function": {"name": "weather", "arguments": {}}}
    other = {"function": {"name": "clock", "arguments": {}}}
    request = decoded(
        messages=[
            {"role": "assistant", "tool_calls": [call, other, call]},
            {"role": "tool", "tool_name": "clock", "content": "1"},
            {"role": "tool", "tool_name": "weather", "content": "2"},
            {"role": "tool", "content": "3"},
            {"role": "tool", "tool_name": "nobody", "content": "4"},
        ]
    )
    first, second, third = (part.id for part in request.messages[0].content if isinstance(part, ToolCall))
    results = [part for message in request.messages[1:] for part in message.content]
    answered = [result.call_id for result in results if isinstance(result, ToolResult)]
    assert answered[:3] == [second, first, third]
    assert len({first, second, third, answered[3]}) == 4


def test_bytes_tell_what_they_are() -> None:
    request = decoded(messages=[{"role": "user", "content": "?", "images": ["iVBORw0KGgoAAAAN", "SUQzBAAAAAAA", "!"]}])
    assert request.messages[0].content == (
        Image(source=Inline(data="iVBORw0KGgoAAAAN", media_type="image/png")),
        Audio(source=Inline(data="SUQzBAAAAAAA"), format="mp3"),
        Image(source=Inline(data="!")),
        Text(text="?"),
    )


def test_a_strangers_conversation() -> None:
    body, losses = encoded(
        decoded_request(
            message_of("developer", "Be brief."),
            message_of("user", "Rain?", "Or sun?"),
            message_of(
                "assistant", Reasoning(text="Hm", signature="s"), ToolCall(id="c1", name="a.b", arguments='{"x": 1}')
            ),
            message_of("tool", ToolResult(call_id="c1", content=(Text(text="no city"),), is_error=True)),
        )
    )
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Rain?\n\nOr sun?"},
        {
            "role": "assistant",
            "content": "",
            "thinking": "Hm",
            "tool_calls": [{"id": "c1", "function": {"index": 0, "name": "a_b_2e7336dc", "arguments": {"x": 1}}}],
        },
        {"role": "tool", "content": "[tool error] no city", "tool_name": "a_b_2e7336dc", "tool_call_id": "c1"},
    ]
    assert losses == [
        "$.messages[0] role approximated (`developer` is written as `system`)",
        "$.messages[1] content approximated (its texts are joined)",
        "$.messages[2].content[1] name emulated (fitted to what the server takes)",
        "$.messages[2].content[0] signature dropped (the dialect has no such field)",
        "$.messages[3].content[0] is_error emulated (the text begins with `[tool error]`)",
    ]


@pytest.mark.parametrize(
    ("arguments", "wire"),
    [("", {}), ("{}", {}), ('{"b": 1, "a": 1.0}', {"b": 1, "a": 1.0}), ("[1]", {"_raw": "[1]"}), ("{", {"_raw": "{"})],
)
def test_arguments_are_an_object(arguments: str, wire: JSONObject) -> None:
    body, _ = encoded(
        decoded_request(
            message_of("assistant", ToolCall(id="c", name="f", arguments=arguments)), message_of("user", "Go on")
        )
    )
    (call,) = body["messages"][0]["tool_calls"]
    assert call["function"]["arguments"] == wire
    back = OLLAMA.decode_request(body).messages[0].content[0]
    assert isinstance(back, ToolCall)
    assert back.arguments in (arguments, "{}", '{"b":1,"a":1.0}')


def test_pictures_that_must_be_fetched_are_lost() -> None:
    body, losses = encoded(
        decoded_request(message_of("user", "?", Image(source=Remote(url="https://example.com/a.png"), detail="low")))
    )
    assert body["messages"] == [{"role": "user", "content": "?"}]
    assert losses == [
        "$.messages[0] order approximated (reasoning comes first, then images, then words, and calls last)",
        "$.messages[0].content[1] image dropped (the server fetches nothing; send the bytes)",
    ]


def test_files_and_foreign_parts_are_written_as_their_words() -> None:
    body, losses = encoded(
        decoded_request(
            message_of(
                "user", File(source=Plain("text"), name="a.txt"), Opaque(dialect="x", data={"type": "map"}, text="Oslo")
            ),
            message_of("user", File(source=Inline(data="eA==")), Opaque(dialect="x", data={"type": "map"})),
        )
    )
    assert body["messages"] == [{"role": "user", "content": "a.txt\ntext\n\nOslo"}, {"role": "user", "content": ""}]
    assert losses == [
        "$.messages[0] content approximated (its texts are joined)",
        "$.messages[0].content[0] file approximated (written as its text)",
        "$.messages[0].content[0] name emulated (stands in the line before its text)",
        "$.messages[0].content[1] map approximated (written as its text)",
        "$.messages[1] content approximated (its texts are joined)",
        "$.messages[1].content[0] file dropped (a message holds words, images and calls only)",
        "$.messages[1].content[1] map dropped (only x has it)",
    ]


@pytest.mark.parametrize(
    ("choice", "names", "losses"),
    [
        (ToolChoice(mode="auto"), ["weather", "clock"], []),
        (
            ToolChoice(mode="required"),
            ["weather", "clock"],
            ["$ tool_choice approximated (the server cannot be made to call a tool)"],
        ),
        (
            ToolChoice(mode="required", names=("clock",)),
            ["clock"],
            [
                "$.tools[0] tool emulated (left out, for it may not be chosen)",
                "$ tool_choice approximated (the server cannot be made to call a tool)",
            ],
        ),
        (
            ToolChoice(mode="none"),
            [],
            [
                "$.tools[0] tool emulated (left out, for it may not be chosen)",
                "$.tools[1] tool emulated (left out, for it may not be chosen)",
                "$ tool_choice emulated (only the tools allowed are sent)",
            ],
        ),
    ],
    ids=["auto", "required", "named", "none"],
)
def test_the_model_is_shown_only_what_it_may_call(choice: ToolChoice, names: list[str], losses: list[str]) -> None:
    """pitfall-14: there is no field for the choice."""
    body, told = encoded(decoded_request(message_of("user", "Hi"), tools=(WEATHER, CLOCK), tool_choice=choice))
    assert [tool["function"]["name"] for tool in body.get("tools", ())] == names
    assert told == losses


@pytest.mark.parametrize(
    ("thinking", "think", "losses"),
    [
        (Thinking(mode="enabled"), True, []),
        (Thinking(mode="disabled"), False, []),
        (Thinking(effort="none"), False, []),
        (Thinking(effort="medium"), "medium", []),
        (Thinking(effort="minimal"), "low", ["$.thinking effort approximated (`minimal` is written as `low`)"]),
        (Thinking(effort="xhigh"), "high", ["$.thinking effort approximated (`xhigh` is written as `high`)"]),
        (
            Thinking(mode="enabled", budget_tokens=9000),
            "medium",
            ["$.thinking budget_tokens approximated (written as the effort `medium`)"],
        ),
        (Thinking(mode="adaptive"), None, ["$.thinking mode dropped (the server decides by itself)"]),
    ],
)
def test_how_much_to_think(thinking: Thinking, think: JSON, losses: list[str]) -> None:
    """pitfall-25, pitfall-26, pitfall-27."""
    body, told = encoded(decoded_request(message_of("user", "Hi"), thinking=thinking))
    assert (body.get("think"), told) == (think, losses)


def test_a_server_may_be_said_not_to_think_or_to_know_fewer_words() -> None:
    request = decoded_request(message_of("user", "Hi"), thinking=Thinking(effort="max"))
    assert encoded(request, Target(thinking="none")) == (
        {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": False},
        ["$ thinking dropped (the server takes no settings for thinking)"],
    )
    assert encoded(request, Target(efforts=("low", "high")))[0]["think"] == "high"


@pytest.mark.parametrize(
    ("output", "wire", "losses"),
    [
        (OutputFormat(kind="text"), None, []),
        (OutputFormat(kind="json"), "json", []),
        (OutputFormat(kind="json_schema", schema={"type": "object"}), {"type": "object"}, []),
        (
            OutputFormat(kind="json_schema", schema=True, name="n", strict=True),
            "json",
            [
                "$.output name dropped (the dialect gives a schema none)",
                "$.output strict approximated (the server holds to every schema strictly)",
                "$.output schema approximated (no object; any JSON is requested)",
            ],
        ),
    ],
)
def test_the_form_of_the_answer(output: OutputFormat, wire: JSON, losses: list[str]) -> None:
    """pitfall-47."""
    body, told = encoded(decoded_request(message_of("user", "Hi"), output=output))
    assert (body.get("format"), told) == (wire, losses)


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        (decoded_request(sampling=Sampling(n=2)), "$.n"),
        (decoded_request(sampling=Sampling(max_tokens=0)), "$.max_tokens"),
        (decoded_request(previous="resp_1"), "$.previous"),
        (Request(model="m", prompt=Prompt(texts=("a", "b"))), "$.prompt"),
        (Request(model="m", prompt=Prompt(texts=("a",), suffix="b")), "$.suffix"),
    ],
)
def test_what_would_be_another_request_is_refused(request_: Request, path: str) -> None:
    """pitfall-46."""
    with pytest.raises(WireError) as caught:
        encoded(request_)
    assert caught.value.path == path


def test_the_most_of_the_server_is_a_fact() -> None:
    body, losses = encoded(decoded_request(sampling=Sampling(max_tokens=99, seed=-1)), Target(max_tokens_limit=10))
    assert body["options"] == {"num_predict": 10}
    assert losses == [
        "$.sampling max_tokens approximated (lowered to 10, the most of the server)",
        "$.sampling seed dropped (below zero the server draws one itself)",
    ]


def test_what_both_endpoints_know_crosses_between_them() -> None:
    request = OLLAMA.decode_request(
        {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "keep_alive": "5m", "options": {"num_ctx": 9}}
    )
    assert encoded(request, dialect=OLLAMA_GENERATE) == (
        {"model": "m", "prompt": "Hi", "keep_alive": "5m", "options": {"num_ctx": 9}, "stream": True},
        [],
    )
