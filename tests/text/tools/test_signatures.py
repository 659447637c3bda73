"""Tools as Python functions."""

import json
from pathlib import Path

import pytest

from xenoglot.model.json import JSON
from xenoglot.model.request import Tool
from xenoglot.text.tools.render import signature

TOOLS = {tool["name"]: tool for tool in json.loads(Path("tests/vectors/text/tools.json").read_text(encoding="utf-8"))}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "get_weather",
            (
                'def get_weather(city: str, unit: str = None):\n    """\n    Tell the weather of a city.\n    Args:\n'
                '        city: Its name\n        unit: One of ["celsius","fahrenheit"].\n    """'
            ),
        ),
        ("add", 'def add(a: float, b: int):\n    """\n    Add two numbers.\n    """'),
        ("now", 'def now():\n    """\n    Tell the time.\n    """'),
        (
            "search",
            (
                "def search(query: str, limit: int = None, exact: bool = None, tags: list = None, "
                "options: dict = None, "
                'since: object = None):\n    """\n    Search for documents.\n    """'
            ),
        ),
    ],
)
def test_signature(name: str, expected: str) -> None:
    tool = TOOLS[name]
    assert signature(Tool(name=name, description=tool["description"], parameters=tool["parameters"]), name) == expected


@pytest.mark.parametrize("schema", [None, True, {}, {"properties": []}, {"required": "x", "properties": {}}])
def test_a_schema_that_says_nothing(schema: JSON) -> None:
    assert signature(Tool(name="f", parameters=schema), "g") == 'def g():\n    """\n    """'


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        ({"type": ["string", "null"]}, "str | None"),
        ({"type": "thing"}, "object"),
        (True, "object"),
        ({"type": 3}, "object"),
    ],
)
def test_types(schema: JSON, word: str) -> None:
    tool = Tool(name="f", parameters={"properties": {"x": schema}, "required": ["x"]})
    assert signature(tool, "f").splitlines()[0] == f"def f(x: {word}):"
