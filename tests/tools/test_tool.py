"""Functions as tools: what the model is told of them, and what they are called with."""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable, Coroutine  # at run time: a tool reads its annotations when it is made
from typing import Annotated, Any, Literal, cast

import msgspec
import pydantic
import pytest

from tests.tools.scripted_runs import answer, call, results, run
from xenoglot.errors import ConfigurationError
from xenoglot.model.content import ToolCall
from xenoglot.model.json import JSONObject  # the same
from xenoglot.model.request import Tool
from xenoglot.tools.tool import FunctionTool, LocalTool, SchemaTool, ToolContext, ToolError, tool

CONTEXT = ToolContext(ToolCall(id="1", name="any"))


class Unit(enum.Enum):
    """An enumeration."""

    CELSIUS = "c"
    KELVIN = "k"


@dataclasses.dataclass
class Point:
    """A dataclass."""

    x: int
    tags: list[str] = dataclasses.field(default_factory=list)


class Box(msgspec.Struct):
    """A struct."""

    corner: Point
    name: str | None = None


class Leaf(pydantic.BaseModel):
    """A model of pydantic's."""

    word: str


class Tree(pydantic.BaseModel):
    """One with another in it."""

    height: int = pydantic.Field(gt=0)
    leaves: list[Leaf] = []


@tool
def weather(city: str, unit: Unit = Unit.CELSIUS, days: int = 1) -> str:
    """Tell the weather.

    Of today, and of days to come.

    Args:
        city: In English,
            without the country.
        unit (Unit, optional): Of the temperatures: see there.
        days: How many.

    Returns:
        Words.
    """
    return f"{city} {unit} {days}"


def test_what_the_model_is_told() -> None:
    assert weather.spec.name == "weather"
    assert weather.spec.description == "Tell the weather.\n\nOf today, and of days to come."
    assert weather.spec.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "In English, without the country."},
            "unit": {"$ref": "#/$defs/Unit", "description": "Of the temperatures: see there.", "default": "c"},
            "days": {"type": "integer", "description": "How many.", "default": 1},
        },
        "required": ["city"],
        "additionalProperties": False,
        "$defs": {"Unit": {"enum": ["c", "k"]}},
    }


def test_the_function_is_a_function_still() -> None:
    assert weather("Oslo") == "Oslo Unit.CELSIUS 1"
    assert (vars(weather)["__name__"], weather.__module__) == ("weather", __name__)


async def wait(seconds: float) -> float:
    """Wait."""
    return seconds


class Counter:
    """Counts."""

    def __init__(self) -> None:
        self.count = 0

    @tool(needs_approval=True, time_limit=3, exclusive=True)
    def add(self, by: int) -> int:
        """Count on."""
        self.count += by
        return self.count

    @classmethod
    @tool
    def kind(cls, word: str) -> str:
        """Say what it is."""
        return cls.__name__ + word

    def __call__(self, by: int = 1) -> int:
        """Count with a call."""
        return self.count + by


def context_and_more(first: int, /, second: int = 2, *, ctx: ToolContext, third: int = 3) -> object:
    return [first, second, third, ctx.call.id]


def late(first: int, second: int = 5, /) -> int:
    return first * second


def secret(word: str, key: str) -> str:
    return word + key


KINDS: dict[str, tuple[LocalTool, str, JSONObject, object, bool]] = {
    "asynchronous": (tool(wait), "wait", {"seconds": 0.5}, None, True),
    "a-method": (Counter().add, "add", {"by": 2}, 2, False),
    "a-class-method": (Counter.kind, "kind", {"word": "!"}, "Counter!", False),
    "an-object": (tool(Counter()), "Counter", {"by": 2}, 2, False),
    "a-partial": (tool(functools.partial(secret, key="s3")), "secret", {"word": "w"}, "ws3", False),
    "a-partial-of-a-coroutine": (tool(functools.partial(wait)), "wait", {"seconds": 1}, None, True),
    "another-name": (tool(wait, name="sleep-well"), "sleep-well", {"seconds": 1}, None, True),
    "by-position-with-context": (tool(context_and_more), "context_and_more", {"first": 7}, [7, 2, 3, "1"], False),
    "a-default-by-position": (tool(late), "late", {"first": 2}, 10, False),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_can_be_a_tool(kind: str) -> None:
    made, name, arguments, expected, asynchronous = KINDS[kind]
    assert (made.spec.name, made.asynchronous) == (name, asynchronous)
    result = made.run(arguments, CONTEXT)
    if asynchronous:
        cast("Coroutine[Any, Any, object]", result).close()
    else:
        assert result == expected


def test_what_a_partial_was_given_the_model_does_not_see() -> None:
    made = tool(functools.partial(secret, key="s3cr3t"))
    assert made.spec.parameters["properties"] == {"word": {"type": "string"}}
    with pytest.raises(ToolError, match="there is no `key`"):
        made.check({"word": "w", "key": "x"})


def test_the_context_is_not_the_models() -> None:
    made = tool(context_and_more)
    assert list(made.spec.parameters["properties"]) == ["first", "second", "third"]
    assert (made.takes_context, weather.takes_context) == (True, False)


def test_a_bound_method_keeps_its_settings() -> None:
    bound = Counter().add
    assert (bound.needs_approval, bound.time_limit, bound.exclusive) == (True, 3, True)
    assert (bound(4), bound.spec.description) == (4, "Count on.")
    assert isinstance(Counter.add, FunctionTool)


GOOGLE = """Do it.

    Args:
        one (int): The first.
        two: The second: with a colon.
    """
NUMPY = """Do it.

    Parameters
    ----------
    one : int
        The first.
    two
        The second: with a colon.

    Returns
    -------
    str
        Words.
    """
SPHINX = """Do it.

    :param one: The first.
    :param str two: The second:
        with a colon.
    :returns: Words.
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_three_styles_of_docstrings(text: str) -> None:
    def do(one: int, two: str) -> None: ...

    do.__doc__ = text
    spec = tool(do).spec
    told = [schema["description"] for schema in spec.parameters["properties"].values()]
    assert (spec.description, told) == ("Do it.", ["The first.", "The second: with a colon."])


@pytest.mark.parametrize(
    ("text", "description"),
    [
        pytest.param(None, None, id="none"),
        pytest.param("", None, id="empty"),
        pytest.param("Note: this is no section.", "Note: this is no section.", id="no-section"),
        pytest.param(
            "Do it.\n\nExamples\n\nare words here.", "Do it.\n\nExamples\n\nare words here.", id="no-underline"
        ),
        pytest.param("Do it.\n\nArgs:", "Do it.", id="empty-section"),
        pytest.param("Do it.\n\nArgs:\n  one\n\n    :::\n:param:\n:param : x\n", "Do it.", id="garbage"),
    ],
)
def test_odd_docstrings(text: str | None, description: str | None) -> None:
    def do(one: int = 1) -> None: ...

    do.__doc__ = text
    assert tool(do).spec.description == description


def test_a_description_of_its_own_wins() -> None:
    def do(
        one: Annotated[int, msgspec.Meta(description="mine", ge=1)], two: Annotated[str, "yours"], three: int
    ) -> None:
        """Do it.

        Args:
            one: not this
            two: nor this
            three: but this
        """

    properties = tool(do, description="Said.").spec.parameters["properties"]
    assert properties == {
        "one": {"type": "integer", "minimum": 1, "description": "mine"},
        "two": {"type": "string", "description": "yours"},
        "three": {"type": "integer", "description": "but this"},
    }


TYPES: dict[str, tuple[Any, JSONObject]] = {
    "nothing-said": (Any, {}),
    "object": (object, {}),
    "literal": (Literal["a", "b"], {"enum": ["a", "b"]}),
    "optional": (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    "list": (list[Point], {"type": "array", "items": {"$ref": "#/$defs/Point"}}),
    "dict": (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    "struct": (Box, {"$ref": "#/$defs/Box"}),
    "pydantic": (
        Tree,
        {
            "type": "object",
            "properties": {
                "height": {"type": "integer", "exclusiveMinimum": 0},
                "leaves": {"type": "array", "items": {"$ref": "#/$defs/Leaf"}, "default": []},
            },
            "required": ["height"],
            "description": "One with another in it.",
        },
    ),
}


def test_a_tool_may_have_the_name_of_a_type() -> None:
    def point(it: Point) -> None: ...

    parameters = tool(point, name="Point").spec.parameters
    assert list(parameters["properties"]) == ["it"]
    (definition,) = parameters["$defs"].values()
    assert definition["required"] == ["x"]


@pytest.mark.parametrize("name", TYPES)
def test_annotations_are_schemas(name: str) -> None:
    kind, schema = TYPES[name]

    def do(it: object) -> None: ...

    do.__annotations__["it"] = kind
    parameters = tool(do).spec.parameters
    assert parameters["properties"]["it"] == schema
    assert set(parameters.get("$defs", {})) >= ({"Leaf"} if name == "pydantic" else set())


def takes(  # noqa: PLR0913, PLR0917  a parameter of each type
    number: int = 0,
    flag: bool = False,  # noqa: FBT001, FBT002  a case
    text: str = "",
    names: list[str] | None = None,
    point: Point | None = None,
    points: list[Point] | None = None,
    tree: Tree | None = None,
    either: int | str = 0,
) -> dict[str, object]:
    return {name: value for name, value in locals().items() if value not in (0, "", None)}


SLIPS: dict[str, tuple[JSONObject, dict[str, object] | str]] = {
    "as-asked": ({"number": 3, "flag": True}, {"number": 3, "flag": True}),
    "a-number-in-a-string": ({"number": "3"}, {"number": 3}),
    "a-whole-float": ({"number": 3.0}, {"number": 3}),
    "a-truth-in-a-string": ({"flag": "true"}, {"flag": True}),
    "a-string-that-is-a-number": ({"text": 3}, {"text": "3"}),
    "a-truth-for-a-string": ({"text": True}, {"text": "true"}),
    "one-for-a-list": ({"names": "a"}, {"names": ["a"]}),
    "a-list-in-a-string": ({"names": '["a", "b"]'}, {"names": ["a", "b"]}),
    "an-object-in-a-string": ({"point": '{"x": "1"}'}, {"point": Point(1)}),
    "one-object-for-a-list": ({"points": {"x": 1}}, {"points": [Point(1)]}),
    "deep-inside": ({"points": ['{"x": 1, "tags": "t"}']}, {"points": [Point(1, ["t"])]}),
    "null-for-nothing": ({"number": None}, {}),
    "null-that-is-a-value": ({"names": None}, {}),
    "a-string-where-both-fit": ({"either": "3"}, {"either": "3"}),
    "pydantic": (
        {"tree": {"height": "2", "leaves": [{"word": "w"}]}},
        {"tree": Tree(height=2, leaves=[Leaf(word="w")])},
    ),
    "no-number": ({"number": "three"}, "bad arguments: `number`: Expected `int`, got `str`"),
    "half-a-number": ({"number": 1.5}, "bad arguments: `number`: Expected `int`, got `float`"),
    "no-object": ({"point": "x"}, "bad arguments: `point`: Expected `object | null`, got `str`"),
    "deep-inside-wrong": (
        {"points": [{"x": 1}, {"x": "y"}]},
        "bad arguments: `points[1].x`: Expected `int`, got `str`",
    ),
    "not-there": ({"nomber": 1}, "bad arguments: there is no `nomber`; the tool takes `number`, `flag`, `text`"),
    "pydantic-wrong": (
        {"tree": {"height": 0, "leaves": [{}]}},
        "bad arguments: `tree`: height: Input should be greater than 0; leaves.0.word: Field required",
    ),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_arguments_are_converted_and_slips_put_right(slip: str) -> None:
    arguments, expected = SLIPS[slip]
    made = tool(takes)
    if isinstance(expected, str):
        with pytest.raises(ToolError) as caught:
            made.run(arguments, CONTEXT)
        assert str(caught.value).startswith(expected)
    else:
        assert made.run(arguments, CONTEXT) == expected


def any_number(*args: int) -> None: ...
def any_name(**kwargs: int) -> None: ...
def no_json(x: Callable[[int], int]) -> None: ...
def unknown(x: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821  that is the case


@pytest.mark.parametrize(
    ("function", "name", "expected"),
    [
        pytest.param(any_number, None, "the tool `any_number` takes `[*]args`", id="args"),
        pytest.param(any_name, None, "the tool `any_name` takes `[*][*]kwargs`", id="kwargs"),
        pytest.param(no_json, None, "of which no JSON Schema can be made", id="no-json"),
        pytest.param(unknown, None, "an annotation that cannot be read: name 'Nowhere'", id="unknown"),
        pytest.param(lambda: None, None, "found `<lambda>`", id="lambda"),
        pytest.param(takes, "a b", "found `a b`", id="blank"),
        pytest.param(takes, "a" * 257, "found `aaa", id="long"),
        pytest.param(takes, "a\nb", "found `a\nb`", id="control"),
        pytest.param(takes, "", "found ``", id="empty"),
    ],
)
def test_what_can_be_no_tool(function: Callable[..., object], name: str | None, expected: str) -> None:
    with pytest.raises(ConfigurationError, match=expected):
        tool(function, name=name)


@pytest.mark.parametrize("name", ["a b", "a" * 257, "a\nb", ""], ids=["blank", "long", "control", "empty"])
def test_the_same_rule_holds_for_a_given_tool(name: str) -> None:
    with pytest.raises(ConfigurationError, match="the name of a tool"):
        SchemaTool(Tool(name=name), lambda arguments, _: arguments)


@pytest.mark.parametrize("name", ["web.search", "mcp/files/read", "wetter_für", "a" * 65])
async def test_r_s3_a_tool_keeps_a_name_that_wires_do_not_take(name: str) -> None:
    """A model that only writes text is told the name; for a wire it is fitted, and restored in the answer."""
    made = tool(takes, name=name)
    turns = [answer(call(name, '{"number": 1}', "a")), answer(".")]
    result, _ = await run(turns, [made])
    assert (made.spec.name, results(result.messages)[0][0]) == (name, "a")
    assert result.text == "."


def test_a_given_tool_checks() -> None:
    def check(arguments: JSONObject) -> None:
        if "x" not in arguments:
            raise ToolError("no x")

    given = SchemaTool(weather.spec, lambda arguments, _: arguments["x"], check=check)
    assert given.run({"x": 1}, CONTEXT) == 1
    with pytest.raises(ToolError, match="no x"):
        given.check({})
    LocalTool.check(given, {})  # what has no check of its own takes all


def test_parameters_that_are_given_by_place_may_be_left_out() -> None:
    def place(a: int, b: int = 1, c: int = 2, /, *, d: int = 3) -> tuple[int, ...]:
        return a, b, c, d

    made = tool(place)
    assert made.run({"a": 0, "c": 9}, CONTEXT) == (0, 1, 9, 3)
    assert made.run({"a": 0, "d": 9}, CONTEXT) == (0, 1, 2, 9)


class Shop:
    """A class with a tool of its own."""

    name = "shop"

    @classmethod
    @tool
    def sell(cls, what: str) -> str:
        """Sell it."""
        return f"{cls.name} sells {what}"


def test_a_method_of_a_class_is_a_tool() -> None:
    made: FunctionTool[..., str] = Shop.sell
    assert made.spec.description == "Sell it."
    assert list(made.spec.parameters["properties"]) == ["what"]
    assert made.run({"what": "tea"}, CONTEXT) == "shop sells tea"


def test_a_name_that_no_field_can_have_is_told() -> None:
    def hidden(__a: int) -> int:  # noqa: PYI063  that is the case
        return __a

    with pytest.raises(ConfigurationError, match="`hidden` has a parameter of which no JSON Schema can be made"):
        tool(hidden)


def test_a_description_may_be_that_of_a_field_of_pydantics() -> None:
    def look(
        place: Annotated[str, pydantic.Field(description="Where.")], time: Annotated[str, "When."] = "", how: str = ""
    ) -> None:
        """Look.

        Args:
            place: Not this.
            time: Nor this.
            how: How.
        """

    told = tool(look).spec.parameters
    assert isinstance(told, dict)
    assert [one.get("description") for one in told["properties"].values()] == ["Where.", "When.", "How."]
