"""Types as forms of an answer: their schemas, how answers are read, and what is said of those that are none."""

import dataclasses
import datetime as dt
import enum
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec
import pydantic
import pytest
from msgspec import Meta, Struct

from xenoglot.client.results.parsed import AnswerRefusedError, AnswerTruncatedError, ParseError, parse
from xenoglot.client.results.schemas import MismatchError, Shape, read, schema_of, shape_of
from xenoglot.codec.loss import Losses
from xenoglot.codec.schemas import is_strict
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.model.content import Part, Refusal, Text, ToolCall
from xenoglot.model.json import JSON
from xenoglot.model.request import Message, Request
from xenoglot.model.response import Candidate, Finish, FinishReason, Response


class Color(enum.Enum):
    """Choices."""

    RED = "red"
    BLUE = "blue"


class Person(Struct):
    """Somebody."""

    name: str
    age: Annotated[int, Meta(ge=0, le=150, description="in years")]
    color: Color = Color.RED
    nick: str | None = None


class Cat(Struct, tag="cat"):
    """One of two."""

    lives: int


class Dog(Struct, tag="dog"):
    """The other."""

    tricks: set[str] = set()


@dataclasses.dataclass
class Node:
    """It holds itself."""

    name: str
    children: "list[Node]" = dataclasses.field(default_factory=list)


class Weather(TypedDict):
    """A dict."""

    place: str
    degrees: NotRequired[float]


class Invoice(pydantic.BaseModel):
    """What is owed."""

    number: int
    lines: "list[Line]" = []
    first: "Line | None" = pydantic.Field(default=None, description="the first line")
    paid: Annotated[bool, pydantic.Field(description="by now")] = False


class Line(pydantic.BaseModel):
    """A model of pydantic's."""

    text: Annotated[str, pydantic.Field(min_length=1)]
    price: Decimal = Decimal(0)


class Shifted(Struct):
    """It checks itself."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if self.end < self.start:
            raise ValueError("`end` is before `start`")


class Open(Struct):
    """Not all of it is known."""

    counts: dict[str, int]
    anything: Any = None


@pydantic.dataclasses.dataclass
class Checked:
    """A dataclass that pydantic checks."""

    port: Annotated[int, pydantic.Field(gt=0)]


PET: Any = Cat | Dog
MAYBE: Any = Person | None

VALUES: list[tuple[str, Any, str, Any]] = [
    ("struct", Person, '{"name":"A","age":3}', Person("A", 3)),
    ("struct-whole", Person, '{"name":"A","age":3,"color":"blue","nick":"B"}', Person("A", 3, Color.BLUE, "B")),
    ("unknown-field-is-passed-over", Person, '{"name":"A","age":3,"x":1}', Person("A", 3)),
    ("dataclass", Node, '{"name":"a","children":[{"name":"b","children":[]}]}', Node("a", [Node("b")])),
    ("typed-dict", Weather, '{"place":"Rome"}', {"place": "Rome"}),
    ("pydantic", Invoice, '{"number":1,"lines":[{"text":"x"}]}', Invoice(number=1, lines=[Line(text="x")])),
    ("pydantic-dataclass", Checked, '{"port":1}', Checked(1)),
    ("pydantic-within", list[Line], '{"value":[{"text":"x"}]}', [Line(text="x")]),
    ("pydantic-adapter", pydantic.TypeAdapter(list[int]), '{"value":[1]}', [1]),
    ("list", list[int], '{"value":[1,2]}', [1, 2]),
    ("number", float, '{"value":1}', 1.0),
    ("enum", Color, '{"value":"blue"}', Color.BLUE),
    ("union", PET, '{"value":{"type":"dog","tricks":["sit","sit"]}}', Dog({"sit"})),
    ("optional", MAYBE, '{"value":null}', None),
    ("date", dt.date, '{"value":"2026-01-02"}', dt.date(2026, 1, 2)),
    ("tuple", tuple[int, str], '{"value":[1,"a"]}', (1, "a")),
    ("any", Any, '{"value":{"a":[1]}}', {"a": [1]}),
    ("open", Open, '{"counts":{"a":1},"anything":[]}', Open({"a": 1}, [])),
    ("fenced", list[int], '```json\n{"value":[1]}\n```', [1]),
    ("white-space", Weather, ' \n{"place":"Rome"}\n', {"place": "Rome"}),
]
FAULTS: list[tuple[str, Any, str, list[str]]] = [
    ("nothing", Person, " ", ["$: expected JSON, found nothing"]),
    ("prose", Person, "Sure! Here it is", ["$: JSON is malformed: invalid character (byte 0)"]),
    ("cut", Person, '{"name":"A', ["$: Input data was truncated"]),
    ("kind", Person, '{"name":"A","age":"3"}', ["$.age: Expected `int`, got `str`"]),
    ("bound", Person, '{"name":"A","age":151}', ["$.age: Expected `int` <= 150"]),
    ("missing", Person, '{"name":"A"}', ["$: Object missing required field `age`"]),
    (
        "enum-quotes-nothing",
        Person,
        '{"name":"A","age":1,"color":"s3cret - at `$.x`"}',
        ["$.color: Invalid enum value"],
    ),
    ("tag-quotes-nothing", PET, '{"value":{"type":"s3cret"}}', ["$.value.type: Invalid value"]),
    ("deep-path", Node, '{"name":"a","children":[{"name":1}]}', ["$.children[0].name: Expected `str`, got `int`"]),
    ("own-check", Shifted, '{"start":2,"end":1}', ["$: `end` is before `start`"]),
    ("unwrapped", list[int], "[1]", ["$: expected an object with the property `value`"]),
    ("wrapped-path", list[int], '{"value":[1,"a"]}', ["$.value[1]: Expected `int`, got `str`"]),
    ("wrapped-prose", list[int], "words", ["$: not valid JSON: invalid character (byte 0)"]),
    (
        "pydantic-tells-several",
        Invoice,
        '{"number":"s3cret","lines":[{"text":""}]}',
        [
            "$.number: Input should be a valid integer, unable to parse string as an integer",
            "$.lines[0].text: String should have at least 1 character",
        ],
    ),
    ("pydantic-prose", Invoice, "{", ["$: Invalid JSON: EOF while parsing an object at line 1 column 1"]),
    ("pydantic-wrapped", list[Line], '{"value":[{}]}', ["$.value[0].text: Field required"]),
    ("half-a-surrogate", str, '{"value":"\ud800"}', ["$: expected JSON, found half a surrogate pair"]),
    ("deep", Any, '{"value":' + "[" * 100_000, ["$: the JSON is nested too deeply"]),
    ("deep-struct", Node, '{"name":"a","children":[' * 100_000, ["$: it is nested too deeply"]),
]


@pytest.mark.parametrize(("output", "text", "value"), [pytest.param(*rest, id=name) for name, *rest in VALUES])
def test_an_answer_is_read(output: JSON, text: str, value: JSON) -> None:
    assert read(output, text) == value


@pytest.mark.parametrize(("output", "text", "expected"), [pytest.param(*rest, id=name) for name, *rest in FAULTS])
def test_an_answer_that_is_none_is_told_by_path(output: JSON, text: str, expected: list[str]) -> None:
    with pytest.raises(MismatchError) as caught:
        read(output, text)
    assert [str(one) for one in caught.value.mismatches] == expected
    assert caught.value.__cause__ is None


def test_the_schema_of_a_struct_is_closed_and_flat_at_the_top() -> None:
    assert schema_of(Person).schema == {
        "title": "Person",
        "description": "Somebody.",
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "age": {"type": "integer", "minimum": 0, "maximum": 150, "description": "in years"},
            "color": {"$ref": "#/$defs/Color"},
            "nick": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["name", "age", "color", "nick"],
        "additionalProperties": False,
        "$defs": {"Color": {"title": "Color", "description": "Choices.", "enum": ["blue", "red"], "type": "string"}},
    }


def test_the_schema_of_a_pydantic_model_is_closed_too() -> None:
    schema = schema_of(Invoice).schema
    assert schema["required"] == ["number", "lines", "first", "paid"]
    assert schema["properties"]["first"]["anyOf"] == [{"$ref": "#/$defs/Line"}, {"type": "null"}]
    assert schema["$defs"]["Line"]["properties"]["text"]["minLength"] == 1
    assert "default" not in repr(schema)


def test_a_reference_stands_alone() -> None:
    class Holder(pydantic.BaseModel):
        line: Annotated[Line, pydantic.Field(description="the line")]

    line = schema_of(Holder).schema["properties"]["line"]
    assert line == {"anyOf": [{"$ref": "#/$defs/Line"}], "description": "the line"}


def test_one_of_becomes_any_of() -> None:
    class Left(pydantic.BaseModel):
        kind: Literal["left"]

    class Right(pydantic.BaseModel):
        kind: Literal["right"]

    class Side(pydantic.BaseModel):
        side: Annotated[Left | Right, pydantic.Field(discriminator="kind")]

    assert schema_of(Side).schema["properties"]["side"] == {
        "title": "Side",
        "anyOf": [{"$ref": "#/$defs/Left"}, {"$ref": "#/$defs/Right"}],
    }


def test_a_type_that_holds_itself_keeps_its_definition() -> None:
    schema = schema_of(Node).schema
    assert schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    assert schema["$defs"]["Node"]["additionalProperties"] is False


@pytest.mark.parametrize(
    ("output", "strict"),
    [
        pytest.param(Person, True, id="struct"),
        pytest.param(Node, True, id="recursive"),
        pytest.param(Invoice, True, id="pydantic"),
        pytest.param(list[int], True, id="wrapped"),
        pytest.param(PET, True, id="tagged-union"),
        pytest.param(Open, False, id="open-object"),
        pytest.param(Any, False, id="any"),
        pytest.param(tuple[int, str], False, id="tuple"),
        pytest.param(dict[str, int], False, id="map"),
    ],
)
@pytest.mark.parametrize("dialect", ["chat", "responses"])
def test_strictness_is_asked_for_where_it_can_be(output: JSON, strict: bool, dialect: str) -> None:  # noqa: FBT001  a case
    form = schema_of(output)
    messages = (Message(role="user", content=(Text(text="?"),)),)
    losses = Losses()
    body = get(dialect).encode_request(Request(model="m", messages=messages, output=form), losses, Target())
    asked = body["response_format"]["json_schema"] if dialect == "chat" else body["text"]["format"]
    assert asked["strict"] is strict
    assert not strict or (is_strict(asked["schema"]) and not losses)


@pytest.mark.parametrize("output", [Person, Node, Invoice, PET, list[int], Weather], ids=repr)
def test_the_messages_dialect_loses_only_bounds(output: JSON) -> None:
    messages = (Message(role="user", content=(Text(text="?"),)),)
    losses = Losses()
    request = Request(model="m", messages=messages, output=schema_of(output))
    get("messages").encode_request(request, losses, Target())
    assert {loss.what for loss in losses if loss.where == "$.output"} <= {"schema"}


class Calls(pydantic.BaseModel):
    """A model of which there is no schema."""

    back: Callable[[], None]


@pytest.mark.parametrize("output", [Shape, object(), 3, Calls, type], ids=["class", "object", "number", "call", "type"])
def test_what_is_no_type_of_json_is_refused(output: JSON) -> None:
    with pytest.raises(TypeError):
        shape_of(output)


def test_other_errors_of_a_validator_are_its_makers() -> None:
    class Broken(pydantic.BaseModel):
        x: int

        @pydantic.model_validator(mode="after")
        def _broken(self) -> "Broken":
            raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        read(Broken, '{"x":1}')


class ClientOutput(Struct):
    """What a client gives back, as far as it is looked at."""

    response: Response


def output_of(*parts: Part | str, reason: FinishReason = "stop") -> ClientOutput:
    content = tuple(Text(text=part) if isinstance(part, str) else part for part in parts)
    return ClientOutput(Response(candidates=(Candidate(content=content, finish=Finish(reason=reason)),)))


def model(
    *answers: ClientOutput,
) -> tuple[list[tuple[Message, ...]], Callable[[tuple[Message, ...]], Awaitable[ClientOutput]]]:
    left = list(answers)
    heard: list[tuple[Message, ...]] = []

    async def ask(turns: tuple[Message, ...]) -> ClientOutput:
        heard.append(turns)
        return left.pop(0)

    return heard, ask


async def test_a_first_answer_that_is_right_is_the_only_one() -> None:
    heard, ask = model(output_of('{"name":"A",', '"age":3}'))
    parsed = await parse(ask, shape_of(Person), retries=3)
    assert (parsed.value, heard, len(parsed.replies)) == (Person("A", 3), [()], 1)


async def test_a_model_is_told_what_is_wrong_until_it_is_right() -> None:
    heard, ask = model(output_of("no"), output_of('{"name":"A","age":"x"}'), right := output_of('{"name":"A","age":3}'))
    parsed = await parse(ask, shape_of(Person), retries=2)
    assert parsed.value == Person("A", 3)
    assert parsed.reply is right
    assert [turn.role for turn in heard[2]] == ["assistant", "user", "assistant", "user"]
    assert heard[2][:2] == heard[1]
    last = heard[2][-1].content[0]
    assert isinstance(last, Text)
    assert "- $.age: Expected `int`, got `str`" in last.text


async def test_an_empty_answer_is_not_sent_back() -> None:
    heard, ask = model(output_of(" "), output_of('{"value":1}'))
    assert (await parse(ask, shape_of(int), retries=1)).value == 1
    assert [turn.role for turn in heard[1]] == ["user"]


async def test_after_the_last_try_the_error_holds_all_of_them() -> None:
    _, ask = model(output_of("no"), last := output_of('{"value":"s3cret"}'))
    with pytest.raises(ParseError, match=r"\$\.value: Expected `int`, got `str` \(asked 2 times\)") as caught:
        await parse(ask, shape_of(int), retries=1)
    assert caught.value.reply is last
    assert len(caught.value.replies) == 2
    assert "s3cret" not in str(caught.value)


FINAL: Sequence[tuple[str, ClientOutput, type[ParseError], str]] = [
    ("refusal", output_of(Refusal(text="I won't")), AnswerRefusedError, "declined"),
    ("filtered", output_of(reason="refusal"), AnswerRefusedError, "declined"),
    ("cut", output_of('{"val', reason="length"), AnswerTruncatedError, "max_tokens"),
    ("context", output_of('{"val', reason="context"), AnswerTruncatedError, "context window"),
    ("calls", output_of(ToolCall(id="1", name="f"), reason="tool_calls"), ParseError, "calls tools"),
]


@pytest.mark.parametrize(("answer", "kind", "words"), [pytest.param(*rest, id=name) for name, *rest in FINAL])
async def test_what_another_try_does_not_mend_is_not_tried_again(
    answer: ClientOutput, kind: type[ParseError], words: str
) -> None:
    heard, ask = model(answer)
    with pytest.raises(kind, match=words) as caught:
        await parse(ask, shape_of(int), retries=5)
    assert len(heard) == 1
    assert caught.value.reply is answer


async def test_a_refusal_keeps_its_words() -> None:
    _, ask = model(output_of(Refusal(text="I won't")))
    with pytest.raises(AnswerRefusedError) as caught:
        await parse(ask, shape_of(int))
    assert caught.value.explanation == "I won't"


async def test_a_whole_answer_that_ended_at_the_limit_counts() -> None:
    _, ask = model(output_of('{"value":1}', reason="length"))
    assert (await parse(ask, shape_of(int))).value == 1


def test_a_shape_needs_no_pydantic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(__import__("sys").modules, "pydantic")
    with pytest.raises(TypeError, match="Line"):
        shape_of(list[Line])
    assert msgspec.json.encode(schema_of(list[int]).schema).startswith(b"{")
