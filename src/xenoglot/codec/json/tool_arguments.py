"""Converts the arguments of a call: an object on the wire, text in the canonical model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.json.json_io import decode_json, to_text
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

RAW_ARGUMENTS: Final = "_raw"
"""The only key of an object that stands for arguments that were no JSON object: the text that the model wrote."""


def arguments_of(value: JSON) -> str:
    """Return the arguments in a field that no call lacks; `{}` is no text at all (pitfall-94)."""
    return "" if value == {} else text_of(value)


def text_of(value: JSON) -> str:
    """Return the arguments `value` as text."""
    raw = value.get(RAW_ARGUMENTS) if isinstance(value, dict) and len(value) == 1 else None
    return raw if isinstance(raw, str) and input_of(raw) is None else to_text(value)


def input_of(arguments: str) -> JSONObject | None:
    """Return arguments as the object they write, `{}` for none; `None` if they write something else."""
    if not arguments.strip():
        return {}
    try:
        value = decode_json(arguments)
    except WireError:
        return None
    return value if isinstance(value, dict) else None
