"""Wraps local models so that tool calls and reasoning in their text become canonical parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.backends.callable import Callable
from xenoglot.backends.local_models.async_engine import Templated
from xenoglot.backends.local_models.prompt_function import Prompted
from xenoglot.backends.local_models.transformers import Transformers
from xenoglot.backends.wrappers.json_output import JSONBackend
from xenoglot.backends.wrappers.text_tools import TextBackend, TextPolicy
from xenoglot.text.registry import AUTO, OFF, get

if TYPE_CHECKING:
    from xenoglot.backends.backend import Backend
    from xenoglot.backends.wrappers.emulation_settings import Emulate


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
    """Return `backend` with its text read by `syntax` (the name of one, `auto` or `off`), and held as `emulate` says.

    Tools are told in the prompt of a model that hears of none else: a function of a request sees them there, and many
    templates tell of them.

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
