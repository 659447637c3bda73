"""What an object is found to be, and what is said of one that is nothing that can be served."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import pytest

from tests.backends.local_models import tiny
from tests.backends.local_models.engines import ChatTokenizer, Engine
from xenoglot.backends.callable import Callable
from xenoglot.backends.local_models.adapt import backend_of
from xenoglot.backends.local_models.async_engine import Templated
from xenoglot.backends.local_models.prompt_function import Prompted
from xenoglot.backends.scripted import Scripted
from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    from xenoglot.model.request import Request


def of_prompt(prompt: str) -> str:
    return prompt


def of_request(request: Request) -> str:
    return request.model


def of_more(said: str, style: str, *others: str, top_p: float, size: int = 1, **rest: str) -> str:
    return f"{said} {style} {others} {top_p} {size} {rest}"


def of_nothing() -> str:
    return "x"


def of_keywords(*, prompt: str = "") -> str:
    return prompt


class Model:
    """A model that is an object with a method of its own choosing."""

    def __call__(self, prompt: str) -> str:
        return prompt

    def speak(self, text: str) -> str:
        return text


class Pipeline:
    """A pipeline for something else."""

    task = "image-to-text"
    model = tokenizer = object()


@pytest.mark.parametrize(
    ("model", "settings", "kind", "name"),
    [
        pytest.param(of_prompt, {}, Prompted, "of_prompt", id="prompt"),
        pytest.param(of_request, {}, Callable, "of_request", id="request"),
        pytest.param(of_request, {"prompts": True, "name": "mine"}, Prompted, "mine", id="said-to-take-prompts"),
        pytest.param(of_prompt, {"prompts": False}, Callable, "of_prompt", id="said-to-take-requests"),
        pytest.param(of_prompt, {"tokenizer": ChatTokenizer()}, Prompted, "of_prompt", id="counted"),
        pytest.param(Model(), {}, Prompted, "Model", id="object"),
        pytest.param(Model().speak, {}, Prompted, "speak", id="method"),
        pytest.param(functools.partial(of_prompt), {}, Prompted, "of_prompt", id="partial"),
        pytest.param(Engine(), {}, Templated, "Engine", id="A-engine"),
        pytest.param(Scripted([], name="script"), {}, Scripted, "script", id="backend"),
        pytest.param(Callable(of_request), {}, Callable, "of_request", id="backend-of-a-function"),
    ],
)
def test_what_is_recognised(model: object, settings: dict[str, object], kind: type, name: str) -> None:
    backend = backend_of(model, **settings)  # type: ignore[arg-type]
    assert (type(backend), backend.name) == (kind, name)


@pytest.mark.parametrize(
    ("model", "settings", "problem"),
    [
        pytest.param(
            of_more,
            {"prompts": False},
            "the function `of_more` is given the request alone; give `style`, `top_p` a default",
            id="more",
        ),
        pytest.param(
            of_more,
            {"prompts": True},
            "the function `of_more` is given the prompt, and settings by their names; give `style` a default",
            id="more-than-settings",
        ),
        pytest.param(Model, {}, "found the class `Model`; expected a function of a prompt", id="class"),
        pytest.param(Scripted, {}, "found the class `Scripted`; expected a function", id="class-of-backends"),
        pytest.param(
            "gpt2", {}, "found a `str`; expected a function of a prompt or of a request, a pipeline", id="name"
        ),
        pytest.param(Pipeline(), {}, "found a pipeline for `image-to-text`; expected one for `text-gen", id="pipeline"),
        pytest.param(
            of_nothing, {}, "the function `of_nothing` has no positional parameter; it is given a re", id="nothing"
        ),
        pytest.param(
            of_keywords, {"prompts": True}, "the function `of_keywords` has no positional parameter; it", id="keywords"
        ),
        pytest.param(
            of_request, {"tokenizer": ChatTokenizer()}, "`tokenizer` counts prompts, and this function", id="uncounted"
        ),
        pytest.param(tiny.model(), {}, "found a `LlamaForCausalLM` without its tokenizer; pass", id="no-tokenizer"),
    ],
)
def test_what_cannot_be_served(model: object, settings: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        backend_of(model, **settings)  # type: ignore[arg-type]
    assert str(error.value)[: len(problem)] == problem
