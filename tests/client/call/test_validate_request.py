"""Values that a program made and nobody has looked at: a call tells which of them is wrong, in every dialect."""

from typing import Any

import pytest

from xenoglot.backends.backend import Answer, Call
from xenoglot.backends.scripted import Scripted
from xenoglot.client.async_ import AsyncClient
from xenoglot.dialect_registry import names
from xenoglot.errors import InvalidRequestError
from xenoglot.model.content import Image, Inline, Text, ToolCall
from xenoglot.model.request import Message, Tool
from xenoglot.model.response import Response
from xenoglot.testing import Upstream, polyglot

WRONG = [
    pytest.param("\ud800", {}, "$.messages[0]", id="half-a-character"),
    pytest.param(
        [Image(source=Inline(data=b"PNG"))],  # type: ignore[arg-type]
        {},
        "$.messages[0].content[0].source.data",
        id="bytes",
    ),
    pytest.param(
        ["Hi", Message(role="assistant", content=(ToolCall(id=None, name=None, arguments={}),))],  # type: ignore[arg-type]
        {},
        "$.messages[1].content[0].id",
        id="call",
    ),
    pytest.param("Hi", {"tools": [Tool(name=3)]}, "$.tools[0].name", id="tool"),  # type: ignore[arg-type]
    pytest.param("Hi", {"tools": [Tool(name="a", parameters={"a": object()})]}, "$.tools[0]", id="schema"),
    pytest.param("Hi", {"extra": {"a": object()}}, "$", id="extra"),
]


@pytest.mark.parametrize(("said", "options", "path"), WRONG)
async def test_what_is_wrong_is_told(said: Any, options: dict[str, Any], path: str) -> None:  # noqa: ANN401  anything
    async with Upstream(*polyglot()) as server:
        for dialect in set(names()) - {"completions", "ollama_generate", "llama_stack_completion"}:
            async with AsyncClient(server.url, dialect=dialect, model="m", proxy=None) as client:
                with pytest.raises(InvalidRequestError) as caught:
                    await client.complete(said, **options)
                assert caught.value.failure.param == path
                with pytest.raises(InvalidRequestError):
                    await client.stream(said, **options).reply()
    assert server.requests == []


async def test_texts_that_are_none_are_not_embedded() -> None:
    async with AsyncClient("http://127.0.0.1:9", model="m", proxy=None) as client:
        with pytest.raises(InvalidRequestError) as caught:
            await client.embed(["a", "\udfff"])
    assert caught.value.failure.param == "$.inputs[1]"


async def test_an_error_of_a_function_stays_its_own() -> None:
    class Failing(Scripted):
        async def answer(self, _call: Call) -> Answer:
            raise KeyError("mine")

    async with AsyncClient(Failing(Response())) as client:
        with pytest.raises(KeyError, match="mine"):
            await client.complete([Text(text="Hi")])
