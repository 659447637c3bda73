"""Helpers for the steps of the tool loop: ending the run, and reading the results of effects."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from xenoglot.model.failure import Failure
from xenoglot.tools.effects import Cancelled, Effect, ModelAnswer

if TYPE_CHECKING:
    from xenoglot.tools.result import Outcome

_T = TypeVar("_T")
Steps: TypeAlias = Generator[Effect, object, _T]

CANCELLED: Final = "the run was cancelled"


class EndError(Exception):
    """Ends the run. Never leaves the loop."""

    def __init__(self, outcome: Outcome, reason: str, failure: Failure | None = None) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason
        self.failure = failure


OVERFLOW: Final = Failure(kind="context_overflow", message="the context window is full")


def is_overflow(asked: ModelAnswer) -> bool:
    """Return whether the prompt, or the prompt with the answer, was too long for the model."""
    if asked.failure is not None:
        return asked.failure.kind == "context_overflow"
    candidates = () if asked.response is None else asked.response.candidates
    finish = candidates[0].finish if candidates else None
    return finish is not None and finish.reason == "context"


def expect(kind: type[_T], reaction: object) -> _T:
    """Return the result of an effect; a cancelled one ends the run."""
    if isinstance(reaction, Cancelled):
        raise EndError("cancelled", CANCELLED)
    if not isinstance(reaction, kind):
        raise TypeError(f"the driver of the tool loop sent a `{type(reaction).__name__}`")
    return reaction
