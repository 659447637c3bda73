"""One's own models, with the calls and thoughts in their text made into what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.backends.callable import Callable
from xenoglot.backends.own.prompted import Prompted
from xenoglot.backends.own.templated import Templated
from xenoglot.backends.own.transformers import Transformers
from xenoglot.backends.textual import TextPolicy, Textual
from xenoglot.text.syntax import AUTO, OFF, get

if TYPE_CHECKING:
    from xenoglot.backends.backend import Backend


class Read(Textual):
    """A model whose text is read, let go of with it."""

    async def aclose(self) -> None:
        """Let go of the model."""
        await self._backend.aclose()


def reading(backend: Backend, syntax: str) -> Backend:
    """Return `backend` with its text read by `syntax`: the name of one, `auto` or `off`.

    Tools are told in the prompt of a model that hears of none else: a function of a request sees them there, and many
    templates tell of them.

    Raises:
        ConfigurationError: there is no such syntax.
    """
    if syntax not in (AUTO, OFF):
        get(syntax)
    if syntax == OFF:
        return backend
    return Read(backend, TextPolicy(syntax=syntax, tools=not _hears_of_tools(backend)))


def _hears_of_tools(backend: Backend) -> bool:
    match backend:
        case Callable():
            return True
        case Templated() | Transformers():
            return backend.takes_tools
        case Prompted():
            return False
        case _:
            return True
