"""Detects what kind of object a local model is, adapts it, and wraps it so that its text becomes canonical parts."""

from __future__ import annotations

import inspect
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeGuard, Unpack

from msgspec import Struct

from xenoglot.backends.callable import Callable
from xenoglot.backends.local_models.async_engine import Templated
from xenoglot.backends.local_models.prompt_function import Prompted, takes_prompt
from xenoglot.backends.local_models.sampling import NAMES, required_of
from xenoglot.backends.local_models.transformers import Transformers
from xenoglot.backends.wrappers.emulation_settings import Emulate
from xenoglot.backends.wrappers.json_output import JSONBackend
from xenoglot.backends.wrappers.text_tools import TextBackend, TextPolicy
from xenoglot.errors import ConfigurationError
from xenoglot.text.registry import AUTO, OFF, get

if TYPE_CHECKING:
    from xenoglot.backends.backend import Backend


class LocalTextBackend(TextBackend):
    """A model whose text is read, let go of with it."""

    async def aclose(self) -> None:
        """Let go of the model."""
        await self._backend.aclose()


class LocalJSONBackend(JSONBackend):
    """A model whose answers are brought to their schema, let go of with it."""

    async def aclose(self) -> None:
        """Let go of the model."""
        await self._backend.aclose()


def reading(backend: Backend, syntax: str, emulate: Emulate | None = None) -> Backend:
    """Return `backend` with its text read by `syntax` (the name of one, `auto` or `off`), and held by `emulate`.

    Tools are described in the prompt of a model that would not get them otherwise: a function of a request sees them
    there, and many templates have them.

    Raises:
        ConfigurationError: there is no such syntax, or what is to be checked needs an extra that is not installed.
    """
    if syntax not in (AUTO, OFF):
        get(syntax)
    read = backend
    if syntax != OFF:
        read = LocalTextBackend(backend, TextPolicy(syntax=syntax, tools=not _takes_tools(backend)))
    return read if emulate is None or not emulate.acts else LocalJSONBackend(read, emulate)


def _takes_tools(backend: Backend) -> bool:
    match backend:
        case Callable():
            return True
        case Templated() | Transformers():
            return backend.takes_tools
        case Prompted():
            return False
        case _:
            return True


_BACKEND: Final = ("answer", "count", "models", "aclose")
_PIPELINE: Final = ("task", "model", "tokenizer")
_WRITES: Final = ("text-generation", "")
"""The tasks of pipelines that write; one that was not made by name has none."""
_PAIR: Final = 2
_EXPECTED: Final = (
    "expected a function of a prompt or of a request, a pipeline or a pair (model, tokenizer) of the transformers "
    "library, an object with `tokenizer.apply_chat_template` and `generate_async`, or a backend"
)


class LocalModelOptions(TypedDict, total=False):
    """Keyword options of `backend_of`."""

    tokenizer: Any
    name: str | None
    prompts: bool | None
    text_syntax: str
    emulate: Emulate | None


class _LocalModelSettings(Struct, frozen=True, kw_only=True):
    tokenizer: Any = None
    name: str | None = None
    prompts: bool | None = None
    text_syntax: str = OFF
    emulate: Emulate | None = None


def backend_of(model: Any, **options: Unpack[LocalModelOptions]) -> Backend:  # noqa: ANN401  its type is detected here
    """Return the backend that `model` makes.

    A function gets a prompt if `prompts` is true, or if its first parameter is annotated as a `str`, or is called
    `prompt` and not annotated; any other gets the whole request. `text_syntax` is the syntax of calls and reasoning in
    its text, `emulate` makes its answers match the schemas of requests; both are ignored for a backend.

    Raises:
        ConfigurationError: it is nothing that can be served, there is no such syntax, or an extra is not installed.
    """
    settings = _LocalModelSettings(**options)
    if _is_backend(model):
        return model
    syntax = settings.text_syntax
    made = _made(model, settings.tokenizer, settings.name, settings.prompts, special_tokens=syntax != OFF)
    return reading(made, syntax, settings.emulate)


def _made(model: Any, tokenizer: Any, name: str | None, prompts: bool | None, *, special_tokens: bool) -> Backend:  # noqa: ANN401, FBT001  see `backend_of`
    if isinstance(model, tuple) and len(model) == _PAIR:
        model, tokenizer = model
    if _is_engine(model):
        return Templated(model, name)
    if all(hasattr(model, name) for name in _PIPELINE):
        model, tokenizer = _parts(model)
    if hasattr(model, "generate") and hasattr(getattr(model, "config", None), "get_text_config"):
        return _of_library(model, tokenizer, name, special_tokens=special_tokens)
    if inspect.isclass(model) or not callable(model):
        raise ConfigurationError(f"found {_described(model)}; {_EXPECTED}")
    function = _function(model)
    prompted = takes_prompt(function) if prompts is None else prompts
    _check_parameters(function, _name(model), prompted=prompted)
    if prompted:
        return Prompted(function, name or _name(model), tokenizer=tokenizer)
    if tokenizer is not None:
        raise ConfigurationError("`tokenizer` counts prompts, and this function takes requests: set `prompts=True`")
    return Callable(function, name or _name(model))


def _is_backend(model: object) -> TypeGuard[Backend]:
    return not inspect.isclass(model) and all(callable(getattr(model, method, None)) for method in _BACKEND)


def _is_engine(model: Any) -> bool:  # noqa: ANN401  see `backend_of`
    template = getattr(getattr(model, "tokenizer", None), "apply_chat_template", None)
    return callable(template) and callable(getattr(model, "generate_async", None))


def _parts(pipeline: Any) -> tuple[Any, Any]:  # noqa: ANN401  see `backend_of`
    """Return the model and the tokenizer of a pipeline.

    Raises:
        ConfigurationError: it does not write text.
    """
    if pipeline.task not in _WRITES or pipeline.tokenizer is None:
        raise ConfigurationError(f"found a pipeline for `{pipeline.task}`; expected one for `text-generation`")
    return pipeline.model, pipeline.tokenizer


def _of_library(model: Any, tokenizer: Any, name: str | None, *, special_tokens: bool) -> Transformers:  # noqa: ANN401  see `backend_of`
    if tokenizer is None:
        raise ConfigurationError(f"found {_described(model)} without its tokenizer; pass `tokenizer=...`, or a pair")
    return Transformers(model, tokenizer, name, special_tokens=special_tokens)


def _function(model: Any) -> Any:  # noqa: ANN401  see `backend_of`
    """Return the function with its parameters: for a callable object, its method."""
    return model if inspect.isroutine(model) or isinstance(model, partial) else model.__call__


def _check_parameters(function: Any, name: str, *, prompted: bool) -> None:  # noqa: ANN401  see `backend_of`
    """Refuse a function that could never be called.

    Raises:
        ConfigurationError: it has no parameter, or an unknown parameter without a default.
    """
    if not _takes_one(function):
        raise ConfigurationError(
            f"the function `{name}` has no positional parameter; it is given {'a prompt' if prompted else 'a request'}"
        )
    known = chain.from_iterable(NAMES.values()) if prompted else ()
    if missing := sorted(required_of(function, given=1).difference(known)):
        wanted = ", ".join(f"`{one}`" for one in missing)
        given = "the prompt, and settings by their names" if prompted else "the request alone"
        raise ConfigurationError(f"the function `{name}` is given {given}; give {wanted} a default")


def _takes_one(function: Any) -> bool:  # noqa: ANN401  see `backend_of`
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some that are written in C do not tell
        return True
    named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    return any(one.kind not in named for one in parameters)


def _name(model: Any) -> str:  # noqa: ANN401  see `backend_of`
    function = model.func if isinstance(model, partial) else model
    return str(getattr(function, "__name__", type(function).__name__))


def _described(model: object) -> str:
    return f"the class `{model.__name__}`" if isinstance(model, type) else f"a `{type(model).__name__}`"
