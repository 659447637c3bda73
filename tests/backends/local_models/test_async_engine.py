"""Engines with a tokenizer of their own, in the way of AstrAI: what they are asked, how their answers are counted."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.backends.local_models.engines import ChatTokenizer, Engine
from tests.backends.local_models.requests import call, request_of, respond, response_of, turn
from xenoglot.backends.backend import EventAnswer
from xenoglot.backends.local_models.async_engine import Templated
from xenoglot.errors import ConfigurationError
from xenoglot.model.content import Image, Remote
from xenoglot.model.failure import Failure
from xenoglot.model.request import Prompt, Request, Sampling, Tool
from xenoglot.model.response import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

DEFAULTS = {"max_tokens": None, "temperature": 1.0, "top_p": 1.0, "top_k": 50, "penalty": 0.0, "window": 64}


async def test_its_own_template_and_its_own_counts() -> None:
    """A4, A7: the prompt's tokens are those that the engine reads; the answer's are those of its words (A-W6)."""
    engine = Engine()
    prompt = "<|system|>Brief!\n<|user|>abc\n<|assistant|>"
    request = request_of(turn("system", "Brief!"), turn("user", "abc"))
    usage = Usage(input_tokens=len(prompt) + 1, output_tokens=3)
    assert await respond(Templated(engine, "m"), request) == (response_of("cba", usage=usage), [])
    assert engine.asked == [{"prompt": prompt, **DEFAULTS}]
    assert await Templated(engine).count(call(request)) == len(prompt) + 1


async def test_settings_it_has_parameters_for_are_told() -> None:
    """A-W8: and the others are a loss rather than nothing."""
    engine = Engine()
    sampling = Sampling(max_tokens=9, temperature=0.0, top_k=3, frequency_penalty=0.5, seed=1, presence_penalty=1)
    _, losses = await respond(Templated(engine), request_of("abc", sampling=sampling))
    told = {"max_tokens": 9, "temperature": 0.0, "top_k": 3, "penalty": 0.5}
    assert engine.asked == [{"prompt": "<|user|>abc\n<|assistant|>", **DEFAULTS, **told}]
    assert losses == ["$.sampling seed dropped", "$.sampling presence_penalty dropped"]


async def test_as_many_tokens_as_were_allowed_is_the_length() -> None:
    """A-W6."""
    answer, _ = await respond(Templated(Engine()), request_of("abcdef", sampling=Sampling(max_tokens=2)))
    assert answer == response_of("fe", "length", usage=Usage(input_tokens=29, output_tokens=2))


async def test_a_stop_string_ends_the_engines_work() -> None:
    """A3, A-W4, A-W5: the earliest match, nothing of it given out, and the generator closed."""
    engine = Engine(endless=True)
    request = request_of("abcdef", sampling=Sampling(stop=("b", "dc")))
    answer, _ = await respond(Templated(engine), request)
    assert answer == response_of("fe", "stop_sequence", stop="dc", usage=Usage(input_tokens=29, output_tokens=2))
    await asyncio.wait_for(engine.closed.wait(), 120)


async def test_a_client_that_leaves_ends_the_engines_work() -> None:
    """A-W5."""
    engine = Engine(endless=True)
    answer = await Templated(engine).answer(call(request_of("abc")))
    assert isinstance(answer, EventAnswer)
    await anext(answer.batches)
    await anext(answer.batches)
    await answer.aclose()
    await asyncio.wait_for(engine.closed.wait(), 120)


async def test_what_is_no_text_is_a_loss() -> None:
    """A-W7: all blocks of a message count, and one that cannot be read is told of."""
    engine = Engine()
    request = request_of(turn("user", "ab", Image(source=Remote(url="http://x")), "c"))
    _, losses = await respond(Templated(engine), request)
    assert [one["prompt"] for one in engine.asked] == ["<|user|>ab\nc\n<|assistant|>"]
    assert losses == ["$.messages[0].content[1] image dropped"]


async def test_tools_are_the_templates_to_tell() -> None:
    engine = Engine()
    backend = Templated(engine)
    await respond(backend, replace(request_of("abc"), tools=(Tool(name="t"),)))
    assert (backend.takes_tools, engine.asked[0]["prompt"]) == (True, "<|user|>abc\n<|tools|>1\n<|assistant|>")


async def test_answers_are_made_one_by_one() -> None:
    engine = Engine()
    answer, losses = await respond(Templated(engine), request_of("ab", sampling=Sampling(n=2)))
    assert not isinstance(answer, Failure)
    assert [candidate.content for candidate in answer.candidates] == [response_of("ba").candidates[0].content] * 2
    assert (len(engine.asked), losses) == (2, ["$.sampling n emulated"])


async def test_a_failure_tells_clients_nothing_and_the_operator_where(caplog: pytest.LogCaptureFixture) -> None:
    """A-W9: an event of an error, and no text of whoever wrote it."""

    class Broken(Engine):
        def generate_async(self, prompt: str, **_settings: object) -> AsyncIterator[str]:  # type: ignore[override]
            raise RuntimeError(prompt)

    failure = Failure(kind="internal", message="internal error: the model function failed")
    assert await respond(Templated(Broken()), request_of("secret")) == (failure, [])
    assert ", in generate_async\n" in caplog.text


def test_a_tokenizer_without_a_template_is_refused_at_once() -> None:
    class Bare(ChatTokenizer):
        def apply_chat_template(self, *_given: object, **_settings: object) -> str:
            raise RuntimeError("Chat template not set.")

    with pytest.raises(ConfigurationError) as error:
        Templated(Engine(Bare()))
    assert str(error.value) == "the tokenizer of `Engine` has no chat template"


async def test_its_name() -> None:
    backends = [Templated(Engine()), Templated(Engine(), "mine")]
    assert [info.id for backend in backends for info in await backend.models()] == ["Engine", "mine"]
    assert [backend.name for backend in backends] == ["Engine", "mine"]


async def test_a_text_to_go_on_with_is_a_turn() -> None:
    engine = Engine()
    _, losses = await respond(Templated(engine), Request(model="m", prompt=Prompt(texts=("abc",))))
    assert ([one["prompt"] for one in engine.asked], losses) == (
        ["<|user|>abc\n<|assistant|>"],
        ["$.prompt prompt emulated"],
    )
