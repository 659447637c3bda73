"""Typed answers through the client: how they are asked for in each dialect, told what is wrong, and read."""

import dataclasses
import pickle
from typing import Any, Literal

import pydantic
import pytest
from msgspec import Struct

from tests.client.results.test_schemas import output_of
from xenoglot import testing
from xenoglot.backends.scripted import Scripted
from xenoglot.client.async_ import AsyncClient
from xenoglot.client.results.parsed import AnswerRefusedError, ParseError
from xenoglot.client.results.schemas import Mismatch, MismatchError
from xenoglot.client.sync import Client
from xenoglot.codec.json.json_io import decode_json
from xenoglot.model.content import Text
from xenoglot.providers.costs import sum_costs

ASKED: dict[str, tuple[str, ...]] = {
    "chat": ("response_format", "json_schema", "schema"),
    "responses": ("text", "format", "schema"),
    "messages": ("output_config", "format", "schema"),
    "gemini": ("generationConfig", "responseJsonSchema"),
    "ollama": ("format",),
}


class City(Struct):
    """A place."""

    name: str
    people: int


@dataclasses.dataclass
class Town:
    """The same."""

    name: str
    people: int


class Village(pydantic.BaseModel):
    """The same."""

    name: str
    people: int


TEXT = '{"name":"Paris","people":2000000}'


@pytest.mark.parametrize("dialect", ASKED)
@pytest.mark.parametrize("output", [City, Town, Village], ids=["struct", "dataclass", "pydantic"])
async def test_c6_every_dialect_is_asked_for_the_schema(
    dialect: str, output: type[City] | type[Town] | type[Village]
) -> None:
    async with (
        testing.Upstream(*testing.answers(dialect, text=(TEXT,)).rules()) as upstream,
        AsyncClient(upstream.url, dialect=dialect, key="k", model="m", on_loss="refuse", proxy=None) as client,
    ):
        parsed = await client.parse("Which?", output, max_tokens=50)
    assert parsed.value == output(name="Paris", people=2_000_000)
    assert parsed.reply.losses == ()
    schema = decode_json(upstream.requests[0].body)
    for step in ASKED[dialect]:
        schema = schema[step]
    assert (schema["required"], schema["additionalProperties"]) == (["name", "people"], False)


async def test_c_w12_a_wrong_answer_is_told_and_asked_for_again() -> None:
    model = Scripted(
        output_of("Paris!").response, output_of(TEXT.replace("2000000", '"many"')).response, output_of(TEXT).response
    )
    async with AsyncClient(model) as client:
        parsed = await client.parse("Which?", City, retries=2)
    assert parsed.value == City("Paris", 2_000_000)
    assert len(parsed.replies) == 3
    last = model.requests[-1]
    assert [message.role for message in last.messages] == ["user", "assistant", "user", "assistant", "user"]
    assert last.messages[-1].content != last.messages[2].content
    told = last.messages[-1].content[0]
    assert isinstance(told, Text)
    assert "$.people: Expected `int`, got `str`" in told.text
    assert sum_costs(reply.cost for reply in parsed.replies) is None


def test_the_blocking_client_parses_too() -> None:
    with Client(Scripted(output_of('{"value":["a","b"]}').response)) as client:
        assert client.parse("Which?", list[Literal["a", "b"]]).value == ["a", "b"]


def test_errors_are_pickled_whole() -> None:
    refused = AnswerRefusedError("no", (output_of("no"),), "I won't")
    for error in (refused, ParseError("no", (), (Mismatch("$.a", "no"),)), MismatchError((Mismatch("$.a", "no"),))):
        again = pickle.loads(pickle.dumps(error))  # noqa: S301  our own
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


async def test_an_answer_that_never_fits_is_an_error_with_all_tries() -> None:
    async with AsyncClient(Scripted(output_of("no").response)) as client:
        with pytest.raises(ParseError, match="asked 3 times") as caught:
            await client.parse("Which?", City, retries=2)
    assert [reply.response for reply in caught.value.replies] == [output_of("no").response] * 3


async def test_the_embedded_model_is_held_to_the_type() -> None:
    either: Any = Literal["yes", "no"]  # a form of types that is no class
    async with AsyncClient() as client:
        parsed = await client.parse("Is fire hot? Say yes or no.", either, max_tokens=20, temperature=0)
    assert parsed.value in {"yes", "no"}


async def test_what_is_no_type_is_refused_before_anything_is_sent() -> None:
    model = Scripted(output_of(TEXT).response)
    async with AsyncClient(model) as client:
        with pytest.raises(TypeError):
            await client.parse("Which?", object())  # type: ignore[arg-type]  # that is the mistake
    assert model.requests == []
