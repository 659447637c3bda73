"""Tools and the choice among them: a flat list of parameters on the wire, a JSON Schema in the model."""

import pytest

from tests.dialects.llama_stack.wire import decoded_request, encoded, message_of
from xenoglot.codec.requests.names import fit
from xenoglot.codec.target import Target
from xenoglot.errors import WireError
from xenoglot.model.content import Opaque
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Request, Tool, ToolChoice

TOLD = "parameters emulated (what the list of parameters does not hold is written in descriptions)"


def schema(**parameters: JSONObject) -> JSON:
    (tool,) = decoded_request(tools=[{"tool_name": "t", "parameters": parameters}]).tools
    assert isinstance(tool, Tool)
    return tool.parameters


def parameters(given: JSON) -> tuple[JSON, list[str]]:
    body, losses = encoded(Request(model="m", tools=(Tool(name="t", parameters=given),)))
    return body["tools"][0].get("parameters"), losses


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("int", "integer"),
        ("float", "number"),
        ("bool", "boolean"),
        ("str", "string"),
        ("list", "array"),
        ("dict", "object"),
        ("string", "string"),
        ("Literal['a']", "Literal['a']"),
    ],
)
def test_l6_types(word: str, kind: str) -> None:
    assert schema(a={"param_type": word}) == {
        "type": "object",
        "properties": {"a": {"type": kind}},
        "required": ["a"],
    }


def test_l6_definitions() -> None:
    """L6, L-W11: a parameter is required unless it says otherwise; falsy defaults are kept."""
    assert schema(
        a={"param_type": "int", "description": "A", "required": False, "default": 0},
        b={"param_type": "bool", "required": False, "default": False},
        c={"param_type": "string", "default": None},
    ) == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "A", "default": 0},
            "b": {"type": "boolean", "default": False},
            "c": {"type": "string"},
        },
        "required": ["c"],
    }
    assert schema() == {"type": "object", "properties": {}}


def test_a_flat_schema_crosses_exactly() -> None:
    properties = {"a": {"type": "integer", "description": "A", "default": 0}, "b": {"type": "string"}}
    assert parameters({"type": "object", "properties": properties, "required": ["b"]}) == (
        {
            "a": {"param_type": "integer", "description": "A", "required": False, "default": 0},
            "b": {"param_type": "string", "required": True},
        },
        [],
    )
    assert parameters(None) == (None, [])


@pytest.mark.parametrize(
    ("given", "kind", "description"),
    [
        ({"type": "string", "enum": ["a", "b"]}, "string", 'JSON Schema: {"enum":["a","b"]}'),
        ({"enum": [1, 2]}, "integer", 'JSON Schema: {"enum":[1,2]}'),
        ({"type": ["null", "number"]}, "number", 'JSON Schema: {"type":["null","number"]}'),
        (
            {"anyOf": [{"type": "null"}, {"type": "array"}]},
            "array",
            'JSON Schema: {"anyOf":[{"type":"null"},{"type":"array"}]}',
        ),
        ({"$ref": "#/$defs/x", "description": "X"}, "object", 'X\n\nJSON Schema: {"$ref":"#/$defs/x"}'),
        ({"type": "array", "items": {"type": "object"}}, "array", 'JSON Schema: {"items":{"type":"object"}}'),
        ({"type": "string", "title": "A"}, "string", None),
    ],
)
def test_w11_what_is_not_flat_is_told(given: JSONObject, kind: str, description: str | None) -> None:
    """L-W11: enums, items, references and nullability reach the model, in words."""
    told = {} if description is None else {"description": description}
    assert parameters({"type": "object", "properties": {"a": given}, "required": []}) == (
        {"a": {"param_type": kind, **told, "required": False}},
        [f"$.tools[0] {TOLD}"],
    )


def test_what_a_schema_says_as_a_whole() -> None:
    tool = Tool(name="t", description="T", parameters={"type": "object", "properties": {}, "$defs": {"x": {}}})
    body, losses = encoded(Request(model="m", tools=(tool,)))
    assert body["tools"] == [
        {"tool_name": "t", "parameters": {}, "description": 'T\n\nJSON Schema: {"$defs":{"x":{}}}'}
    ]
    assert losses == [f"$.tools[0] {TOLD}"]


def test_s1_builtin_tools() -> None:
    """L-S1: a tool that Llama models know by name takes what they know; it goes home as its name alone."""
    request = decoded_request(tools=[{"tool_name": "brave_search"}])
    (tool,) = request.tools
    assert isinstance(tool, Tool)
    assert tool.parameters == {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    assert encoded(request)[0]["tools"] == [{"tool_name": "brave_search"}]


def test_other_tools() -> None:
    tools = (
        Tool(name="grep", kind="custom", format={"type": "grammar"}, strict=True),
        Opaque(dialect="chat", data={"type": "web_search"}),
        Tool(name="x" * 70, namespace="n"),
    )
    body, losses = encoded(Request(model="m", tools=tools))
    fitted = body["tools"][1]["tool_name"]
    assert body["tools"][0] == {
        "tool_name": "grep",
        "parameters": {"input": {"param_type": "string", "required": True}},
    }
    assert len(fitted) == 64
    assert losses == [
        "$.tools[0] kind emulated (a custom tool is written as a function of one string)",
        "$.tools[0] format dropped (a function is restricted by no grammar)",
        "$.tools[0] strict dropped (a tool of the dialect has no such field)",
        "$.tools[1] web_search dropped (a tool that only a server of chat runs)",
        "$.tools[2] name emulated (fitted to what servers take; the answer's calls get it back)",
    ]


NOW, LATER = Tool(name="now"), Tool(name="later")


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        (ToolChoice(mode="auto"), "auto"),
        (ToolChoice(mode="required"), "required"),
        (ToolChoice(mode="none"), "none"),
        (ToolChoice(mode="required", names=("later",)), "later"),
    ],
)
def test_s3_choices(choice: ToolChoice, config: str) -> None:
    """L-S3: the choice is written where it is not deprecated, and read back."""
    request = Request(model="m", tools=(NOW, LATER), tool_choice=choice)
    body, losses = encoded(request)
    assert (body["tool_config"], losses) == ({"tool_choice": config}, [])
    assert decoded_request(**body).tool_choice == choice


def test_a_choice_of_some() -> None:
    choice = ToolChoice(mode="auto", names=("now",))
    body, losses = encoded(Request(model="m", tools=(NOW, LATER), tool_choice=choice))
    assert (body["tools"], body["tool_config"]) == ([{"tool_name": "now"}], {"tool_choice": "auto"})
    assert losses == [
        "$.tool_choice names emulated (only the tools allowed are sent)",
        "$ tools emulated (only those allowed by `tool_choice` are sent)",
    ]
    body, losses = encoded(Request(model="m", tool_choice=ToolChoice(mode="auto")))
    assert (body, losses) == (
        {"model_id": "m", "messages": []},
        ["$ tool_choice dropped (there are no tools to call)"],
    )


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"tool_choice": "auto", "tool_config": {"tool_choice": "none"}}, r"\$.tool_choice: must match"),
        ({"tool_config": {"tool_choice": "later"}}, r"\$.tool_config.tool_choice: is none of the tools"),
        ({"tool_config": {"tool_choice": ""}}, r"\$.tool_config.tool_choice: is none of the tools"),
        ({"tool_choice": "now"}, r"\$.tool_choice: expected one of auto, required, none"),
    ],
)
def test_s4_contradictions(fields: JSONObject, problem: str) -> None:
    """L-S4: what the router refuses is refused here."""
    with pytest.raises(WireError, match=problem):
        decoded_request(tools=[{"tool_name": "now"}], **fields)


def test_names_of_a_server_with_a_limit() -> None:
    tools = (Tool(name="a_long_name_of_a_tool"),)
    body, _ = encoded(Request(model="m", messages=(message_of("user", "Hi"),), tools=tools), Target(tool_name_limit=12))
    assert body["tools"] == [{"tool_name": fit("a_long_name_of_a_tool", 12)}]
