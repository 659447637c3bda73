"""Forms: their fields as JSON for the administration, and errors at the field that they are about."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from xenoglot.errors import FailureError, WireError
from xenoglot.model.failure import STATUS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from xenoglot.model.json import JSON, JSONObject

_PART: Final = re.compile(r"\w+")


class FormProblem:
    """Why a form was refused: the `field` that it is about, empty for all of it, and what was `entered`."""

    def __init__(self, error: FailureError | WireError, entered: Mapping[str, str], fields: Iterable[str]) -> None:
        if isinstance(error, WireError):
            parts = _PART.findall(error.path)
            self.field = next((name for name in fields if name in parts), "")
            self.message = error.problem if self.field else str(error)
            self.status = 400
        else:
            failure = error.failure
            self.field, self.message = "", failure.message
            self.status = failure.status or STATUS[failure.kind]
        self.entered = dict(entered)

    def at(self, field: str) -> str:
        """Return the problem of a field; empty if it has none."""
        return self.message if field == self.field else ""


def texts(form: Mapping[str, str], *names: str) -> JSONObject:
    """Return the fields of a form that are not empty."""
    return {name: value for name in names if (value := form.get(name, "").strip())}


def lists(form: Mapping[str, str], *names: str) -> JSONObject:
    """Return the fields of a form with lists, separated by commas, that are not empty."""
    found: dict[str, JSON] = {}
    for name in names:
        if parts := [part.strip() for part in form.get(name, "").split(",") if part.strip()]:
            found[name] = [*parts]
    return found


def number(path: str, text: str) -> int:
    """Return a whole number.

    Raises:
        WireError: it is none.
    """
    try:
        return int(text)
    except ValueError:
        raise WireError(path, "expected a whole number") from None
