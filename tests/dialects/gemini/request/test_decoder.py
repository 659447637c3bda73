"""Reading a request: what a client may write in several ways, and the ids that it need not write."""

import pytest

from xenoglot.dialects.gemini import GEMINI
from xenoglot.errors import WireError
from xenoglot.model.content import (
    Audio,
    File,
    Image,
    Inline,
    Part,
    Remote,
    Stored,
    Text,
    ToolCall,
    ToolResult,
    Video,
)
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import OutputFormat, Request, Thinking, Tool, ToolChoice


def decode(*contents: JSONObject, **fields: JSON) -> Request:
    return GEMINI.decode_request({"model": "m", "contents": list(contents), **fields})


def parts(*wire: JSONObject) -> tuple[Part, ...]:
    return decode({"role": "user", "parts": list(wire)}).messages[0].content


def test_both_spellings_mean_the_same() -> None:
    """https://protobuf.dev/programming-guides/json/: names in either case, one thing for a list of one."""
    camel = decode(
        {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "eA=="}}]},
        systemInstruction={"parts": [{"text": "Be brief."}]},
        generationConfig={"maxOutputTokens": 5},
    )
    snake = GEMINI.decode_request(
        {
            "model": "m",
            "contents": {"role": "user", "parts": {"inline_data": {"mime_type": "image/png", "data": "eA=="}}},
            "system_instruction": {"parts": {"text": "Be brief."}},
            "generation_config": {"max_output_tokens": 5},
        }
    )
    assert snake.messages == camel.messages
    assert snake.sampling == camel.sampling


def test_what_is_the_clients_is_not_respelled() -> None:
    call = {"function_call": {"name": "f", "args": {"some_key": 1}}}
    (part,) = decode({"role": "model", "parts": [call]}).messages[0].content
    assert isinstance(part, ToolCall)
    assert part.arguments == '{"some_key":1}'


def test_media_by_their_types() -> None:
    inline: list[JSONObject] = [
        {"inlineData": {"mimeType": kind, "data": "eA=="}}
        for kind in ("image/png", "audio/mp3", "application/pdf", "video/mp4")
    ]
    assert parts(*inline) == (
        Image(source=Inline(data="eA==", media_type="image/png")),
        Audio(source=Inline(data="eA=="), format="mp3"),
        File(source=Inline(data="eA==", media_type="application/pdf")),
        Video(source=Inline(data="eA==", media_type="video/mp4")),  # findings-B3
    )


@pytest.mark.parametrize(
    ("uri", "source"),
    [
        ("https://example.com/a.png", Remote(url="https://example.com/a.png")),
        ("gs://bucket/a.png", Stored(id="gs://bucket/a.png")),
        (
            "https://generativelanguage.googleapis.com/v1beta/files/a",
            Stored(id="https://generativelanguage.googleapis.com/v1beta/files/a"),
        ),
    ],
)
def test_who_can_fetch_a_file(uri: str, source: Remote | Stored) -> None:
    (part,) = parts({"fileData": {"fileUri": uri, "mimeType": "image/png"}})
    assert isinstance(part, Image)
    assert part.source == source


def call(name: str, **fields: JSON) -> JSONObject:
    return {"functionCall": {"name": name, **fields}}


def result(name: str, **fields: JSON) -> JSONObject:
    return {"functionResponse": {"name": name, "response": {"output": "ok"}, **fields}}


def ids(*contents: JSONObject) -> list[tuple[str, ...]]:
    """Return the ids of each turn's calls and results, numbered as they first appear."""
    known: dict[str, str] = {}
    turns = []
    for message in decode(*contents).messages:
        found = [part for part in message.content if isinstance(part, ToolCall | ToolResult)]
        names = [part.id if isinstance(part, ToolCall) else part.call_id for part in found]
        turns.append(tuple(known.setdefault(name, str(len(known))) for name in names))
    return turns


def turn(role: str, *wire: JSONObject) -> JSONObject:
    return {"role": role, "parts": list(wire)}


@pytest.mark.parametrize(
    ("calls", "results", "expected"),
    [
        pytest.param([call("f"), call("f")], [result("f"), result("f")], ("0", "1"), id="by-order"),
        pytest.param([call("f"), call("g")], [result("g"), result("f")], ("1", "0"), id="by-name"),
        pytest.param([call("f", id="a"), call("f")], [result("f"), result("f")], ("0", "1"), id="answered-without-id"),
        pytest.param([call("f", id="a"), call("f", id="b")], [result("f", id="b")], ("1",), id="by-id"),
        pytest.param([call("f")], [result("other")], ("0",), id="of-another-name"),
        pytest.param([call("f")], [result("f"), result("f")], ("0", "1"), id="too-many"),
    ],
)
def test_results_find_their_calls(
    calls: list[JSONObject], results: list[JSONObject], expected: tuple[str, ...]
) -> None:
    assert ids(turn("model", *calls), turn("user", *results))[1] == expected


def test_an_old_call_without_a_result_takes_no_later_one() -> None:
    contents = (turn("model", call("f")), turn("user", {"text": "Never mind."}), turn("model", call("f")))
    assert ids(*contents, turn("user", result("f"))) == [("0",), (), ("1",), ("1",)]


@pytest.mark.parametrize(
    ("response", "content", "is_error"),
    [
        ({"output": "ok"}, (Text(text="ok"),), None),
        ({"result": {"a": 1}}, (Text(text='{"a":1}'),), None),
        ({"error": "no"}, (Text(text="no"),), True),
        ({"a": 1, "b": 2}, (Text(text='{"a":1,"b":2}'),), None),
        ({}, (Text(text="{}"),), None),
    ],
)
def test_what_a_result_says(response: JSONObject, content: tuple[Part, ...], *, is_error: bool | None) -> None:
    (part,) = parts({"functionResponse": {"name": "f", "response": response}})
    assert isinstance(part, ToolResult)
    assert (part.content, part.is_error, part.name) == (content, is_error, "f")


@pytest.mark.parametrize(
    ("config", "thinking"),
    [
        ({"thinkingBudget": 0}, Thinking(mode="disabled")),
        ({"thinkingBudget": -1}, Thinking(mode="adaptive")),
        (
            {"thinkingBudget": 512, "includeThoughts": True},
            Thinking(mode="enabled", budget_tokens=512, display="summarized"),
        ),
        ({"thinkingLevel": "low", "includeThoughts": False}, Thinking(effort="low", display="omitted")),
        ({"thinkingLevel": "XHIGH"}, Thinking(effort="xhigh")),
    ],
)
def test_how_much_to_think(config: JSONObject, thinking: Thinking) -> None:
    """pitfall-25, pitfall-26, pitfall-27."""
    found = decode(turn("user", {"text": "Hi"}), generationConfig={"thinkingConfig": config}).thinking
    assert found is not None
    fields = ("mode", "budget_tokens", "effort", "display")
    assert [getattr(found, field) for field in fields] == [getattr(thinking, field) for field in fields]


def test_schemas_become_json_schema() -> None:
    """pitfall-29: capitals, counts as texts, `nullable`; a property of such a name is none of these."""
    schema = {
        "type": "OBJECT",
        "properties": {"type": {"type": "STRING", "nullable": True}, "list": {"type": "ARRAY", "min_items": "1"}},
    }
    (tool,) = decode(
        turn("user", {"text": "Hi"}), tools=[{"functionDeclarations": [{"name": "f", "parameters": schema}]}]
    ).tools
    assert isinstance(tool, Tool)
    assert tool.parameters == {
        "type": "object",
        "properties": {"type": {"type": ["string", "null"]}, "list": {"type": "array", "minItems": 1}},
    }


@pytest.mark.parametrize(
    ("config", "choice"),
    [
        ({"mode": "AUTO"}, ToolChoice(mode="auto")),
        ({"mode": "NONE"}, ToolChoice(mode="none")),
        ({"mode": "ANY", "allowedFunctionNames": ["f"]}, ToolChoice(mode="required", names=("f",))),
    ],
)
def test_choices(config: JSONObject, choice: ToolChoice) -> None:
    """pitfall-14."""
    assert decode(turn("user", {"text": "Hi"}), toolConfig={"functionCallingConfig": config}).tool_choice == choice


def test_the_form_of_the_answer() -> None:
    """pitfall-28."""
    schema = {"type": "object"}
    config = {"responseMimeType": "application/json", "responseJsonSchema": schema}
    output = decode(turn("user", {"text": "Hi"}), generationConfig=config).output
    assert output == OutputFormat(kind="json_schema", schema=schema)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"contents": []}, "$.model"),
        ({"model": "m"}, "$.contents"),
        ({"model": "m", "contents": []}, "$.contents"),
        ({"model": "m", "contents": [{"role": "system", "parts": []}]}, "$.contents[0].role"),
        ({"model": "m", "contents": [{"parts": [{"text": 5}]}]}, "$.contents[0].parts[0].text"),
        ({"model": "m", "contents": [{"parts": [{"functionCall": {}}]}]}, "$.contents[0].parts[0].functionCall.name"),
        ({"model": "m", "contents": [{}], "generationConfig": {"seed": "x"}}, "$.generationConfig.seed"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(body: JSONObject, path: str) -> None:
    with pytest.raises(WireError) as caught:
        GEMINI.decode_request(body)
    assert caught.value.path == path


def test_counting_takes_both_forms() -> None:
    """pitfall-124."""
    contents: list[JSON] = [turn("user", {"text": "Hi"})]
    assert GEMINI.decode_count is not None
    alone = GEMINI.decode_count({"model": "m", "contents": contents})
    inside = GEMINI.decode_count({"model": "m", "generateContentRequest": {"model": "models/m", "contents": contents}})
    assert alone == inside
    assert alone.messages[0].content == (Text(text="Hi"),)
