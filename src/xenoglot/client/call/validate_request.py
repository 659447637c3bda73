"""Validation of a request that the caller built; done only after encoding failed, because it is slow."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from xenoglot.codec.json.json_io import encode_json
from xenoglot.errors import WireError
from xenoglot.model.request import Message, Tool

if TYPE_CHECKING:
    from collections.abc import Generator

    from xenoglot.model.request import Request

_FOREIGN = (TypeError, AttributeError, LookupError, ValueError, RecursionError)
"""Errors that values of wrong types cause; structs do not check the types of their fields."""


@contextmanager
def find_invalid_field(request: Request) -> Generator[None]:
    """Run the block; replace a type error in it by an error that names the invalid field of `request`.

    Other errors pass unchanged.
    """
    try:
        yield
    except _FOREIGN:
        flaw = _problem(request)
        if flaw is None:
            raise
        raise flaw from None


def encode_value(value: object, where: str) -> bytes:
    """Return a value as JSON. Raises `WireError` for a value that is not JSON."""
    try:
        return encode_json(value)
    except UnicodeEncodeError:
        raise WireError(where, "is no text: there is half of a surrogate pair in it") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise WireError(where, f"is no JSON: {error}") from None


def wire_error(error: msgspec.ValidationError) -> WireError:
    """Return msgspec's error in our form."""
    problem, _, path = str(error).partition(" - at `")
    path = path.removeprefix("key` in `").removesuffix("`")
    return WireError(path or "$", problem.replace(" | null", "").replace("Expected", "expected"))


def _problem(request: Request) -> WireError | None:
    try:
        for index, message in enumerate(request.messages):
            _check(message, Message, f"$.messages[{index}]")
        for index, tool in enumerate(request.tools):
            _check(tool, Tool if isinstance(tool, Tool) else object, f"$.tools[{index}]")
        encode_value(request, "$")
    except WireError as error:
        return error
    return None


def _check(value: object, kind: type, where: str) -> None:
    encode_value(value, where)
    try:
        msgspec.convert(msgspec.to_builtins(value, builtin_types=(bytes,)), kind)
    except msgspec.ValidationError as error:
        found = wire_error(error)
        raise WireError(where + found.path.removeprefix("$"), found.problem) from None
