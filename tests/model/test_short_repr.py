"""`repr()` of every public value is one line of bounded length that shows what is set."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xenoglot
from tests.exact import differences, exact
from xenoglot.codec.loss import Losses
from xenoglot.model.content import Extra, Image, Inline, Text, ToolCall
from xenoglot.model.failure import Failure
from xenoglot.model.request import Message, Request
from xenoglot.model.response import Candidate, Finish, Response, Usage
from xenoglot.model.short_repr import LONGEST, described, set_fields, short_repr

LONG = "line\n" * 100_000
MESSAGE = Message(role="user", content=(Text(text=LONG), Image(source=Inline(data="A" * 100_000))) * 50)
RESPONSE = Response(candidates=(Candidate(content=MESSAGE.content, finish=Finish(reason="stop")),) * 20)
LOST = xenoglot.Loss("$.messages[0]", "cache", "dropped", LONG)
FAILURE = Failure(kind="rate_limit", message=LONG, status=429, retry_after=2.0)


def add(a: int, b: int) -> int:
    return a + b


def losses() -> Losses:
    made = Losses()
    for index in range(1_000):
        made.dropped(f"$.messages[{index}]", "cache", LONG)
    return made


VALUES: list[object] = [
    MESSAGE,
    *MESSAGE.content[:2],
    ToolCall(id="1", name="add", arguments=LONG),
    Request(model="m", messages=(MESSAGE,) * 100),
    RESPONSE,
    Usage(input_tokens=3, extra=Extra(dialect="chat", fields={str(n): LONG for n in range(100)})),
    LOST,
    losses(),
    xenoglot.Reply(response=RESPONSE, losses=(LOST,) * 100),
    xenoglot.Parsed(value=[LONG] * 100, replies=(xenoglot.Reply(response=RESPONSE),)),
    xenoglot.EmbeddingReply(vectors=((0.5,) * 1_000,) * 100),
    xenoglot.RunResult(outcome="failed", reason=LONG, response=RESPONSE, messages=(MESSAGE,)),
    xenoglot.ToolOutput(content=(Text(text=LONG),), data=[LONG] * 100),
    xenoglot.ToolError(LONG),
    xenoglot.ConfigurationError(LONG),
    xenoglot.WireError(f"$.{LONG}", LONG),
    xenoglot.LossError((LONG,) * 100),
    xenoglot.RateLimitError(FAILURE),
    xenoglot.tool(add, description=LONG),
    xenoglot.Cost(total=0.5),
    xenoglot.Budget(cost=1.0),
    xenoglot.Client("http://127.0.0.1:9/secret", model=LONG, key="secret"),
    xenoglot.AsyncClient(model=LONG),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_every_value_is_one_short_line(value: object) -> None:
    text = repr(value)
    assert text.startswith(f"{type(value).__name__}(")
    assert (len(text) <= LONGEST, text.isprintable(), "secret" in text) == (True, True, False)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(Text(text="Hi"), "Text(text='Hi')", id="defaults-are-left-out"),
        pytest.param(Usage(input_tokens=0), "Usage(input_tokens=0)", id="zero-is-shown"),
        pytest.param(
            xenoglot.RateLimitError(Failure(kind="rate_limit", message="slow down", status=429, retry_after=2.0)),
            "RateLimitError(message='slow down', kind='rate_limit', status=429, retry_after=2.0)",
            id="failure",
        ),
        pytest.param(xenoglot.tool(add), "FunctionTool(name='add')", id="tool"),
        pytest.param(xenoglot.ConfigurationError("no"), "ConfigurationError(message='no')", id="error"),
        pytest.param(Losses(strict=True), "Losses(strict=True)", id="losses"),
    ],
)
def test_what_is_set_is_shown(value: object, text: str) -> None:
    assert repr(value) == text


def test_a_method_that_is_not_bound_has_a_repr() -> None:
    class Adder:
        @xenoglot.tool
        def add(self, a: int) -> int:
            return a

    assert repr(Adder.add) == "FunctionTool(name='add')"


@given(value=st.recursive(st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.tuples(inner)))
def test_any_value_is_one_short_line(value: object) -> None:
    for text in (short_repr(value), described(value, value=value)):
        assert (len(text) <= LONGEST, text.isprintable()) == (True, True)


def test_fields_that_are_set() -> None:
    class Point(msgspec.Struct):
        x: int
        y: int = 0
        tags: list[str] = []

    assert set_fields(Point(1)) == [("x", 1)]
    assert set_fields(Point(1, 2, ["a"])) == [("x", 1), ("y", 2), ("tags", ["a"])]


def test_tests_show_the_whole_difference() -> None:
    other = msgspec.structs.replace(MESSAGE, content=(Text(text="x"), *MESSAGE.content[1:]))
    assert list(differences(MESSAGE, other)) == [f".content[0].text: {exact(LONG)} != 'x'"]
