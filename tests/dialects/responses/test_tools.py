"""The tools and the choice among them: exact canonical values."""

import pytest

from xenoglot.dialects.responses import RESPONSES
from xenoglot.model.content import Extra, Opaque
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Request, Tool, ToolChoice

CLOSED: JSONObject = {"type": "object", "properties": {}, "additionalProperties": False}
OPEN: JSONObject = {"type": "object", "properties": {"a": {}}}


def decode(**fields: JSON) -> Request:
    return RESPONSES.decode_request({"model": "m", "input": "u", **fields})


@pytest.mark.parametrize(
    ("said", "parameters", "strict"),
    [
        ({}, CLOSED, True),
        ({}, OPEN, None),
        ({"strict": None}, CLOSED, True),
        ({"strict": False}, CLOSED, False),
        ({"strict": True}, OPEN, True),
    ],
)
def test_a_function_is_strict_unless_it_says_otherwise(said: JSONObject, parameters: JSON, strict: bool | None) -> None:  # noqa: FBT001  the value is what is tested
    """pitfall-65: where nothing is said the server holds to the schema, if it can."""
    (tool,) = decode(tools=[{"type": "function", "name": "f", "parameters": parameters, **said}]).tools
    assert isinstance(tool, Tool)
    assert tool.strict is strict


def test_custom_tools() -> None:
    """pitfall-62: the grammar as the model holds it lies in an object of its own."""
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: /a/"}
    tools = decode(tools=[{"type": "custom", "name": "a", "format": grammar}, {"type": "custom", "name": "b"}]).tools
    nested = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /a/"}}
    assert tools == (Tool(name="a", kind="custom", format=nested), Tool(name="b", kind="custom"))


def test_namespaces() -> None:
    """pitfall-63: the tools lie flat; the first carries what is said of the namespace."""
    inner = [{"type": "function", "name": "f", "strict": False}, {"type": "custom", "name": "g"}]
    space = {"type": "namespace", "name": "n", "description": "d", "tools": inner}
    extra = Extra(dialect="responses", fields={"namespace.description": "d"}, form={"namespace": True})
    assert decode(tools=[space]).tools == (
        Tool(name="f", strict=False, namespace="n", extra=extra),
        Tool(name="g", kind="custom", namespace="n"),
    )


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "namespace", "name": "n", "tools": []},
        {"type": "namespace", "name": "n", "tools": [{"type": "x_new"}]},
    ],
)
def test_tools_of_the_server(tool: JSONObject) -> None:
    """pitfall-64: what we do not know is carried whole."""
    assert decode(tools=[tool]).tools == (Opaque(dialect="responses", data=tool),)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", ToolChoice(mode="auto")),
        ("none", ToolChoice(mode="none")),
        ("required", ToolChoice(mode="required")),
        ({"type": "function", "name": "f"}, ToolChoice(mode="required", names=("f",))),
        ({"type": "custom", "name": "f"}, ToolChoice(mode="required", names=("f",), kind="custom")),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
            ToolChoice(
                mode="auto",
                names=("f",),
                extra=Extra(dialect="responses", form={"tools": [{"type": "function", "name": "f"}]}),
            ),
        ),
        ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}]}, None),
        ({"type": "web_search_preview"}, None),
        ("x_new", None),
    ],
)
def test_choices(choice: JSON, expected: ToolChoice | None) -> None:
    """pitfall-14: one of a tool that only the server runs stays as it is."""
    request = decode(tool_choice=choice)
    kept = {} if expected is not None else {"tool_choice": choice}
    assert request.tool_choice == expected
    assert request.extra is not None
    assert request.extra.fields == kept
