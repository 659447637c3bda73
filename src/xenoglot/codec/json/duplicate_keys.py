"""Detects duplicate keys in JSON: the last one counts, for us and for a server that reads the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.json import format as shaped

from xenoglot.codec.json.json_io import encode_json, encode_large
from xenoglot.codec.json.slices import SLICE_BYTES, decode

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject


class _DuplicateError(Exception):
    pass


def unambiguous(data: bytes, value: JSON) -> bytes:
    """Return `data`, JSON that was read as `value`; serialized again if readers could differ about its value.

    RFC 8259 section 4 leaves it to each reader which of several members of one name counts. What is checked by the one
    and obeyed by the other would be two things.
    """
    written = encode_json(value) if len(data) < SLICE_BYTES else encode_large(value)
    # What is the same, or the same but for the blanks, is the usual case, and seen in a tenth of the time.
    if written == data or written == shaped(data, indent=-1) or not _has_duplicates(data):
        return data
    return written


def _has_duplicates(data: bytes) -> bool:
    """Whether two members of an object have one name; also where that is too deep to be seen."""
    try:
        if len(data) < SLICE_BYTES:
            _load(data)
        else:
            decode(data, _load, _join)
    except (_DuplicateError, RecursionError, ValueError):
        return True
    return False


def _load(data: bytes) -> JSON:
    import json  # noqa: PLC0415  slow to load, and most gateways never get here

    value: JSON = json.loads(data, object_pairs_hook=_object, parse_int=str, parse_float=str)
    return value


def _object(members: list[tuple[str, JSON]]) -> JSONObject:
    found = dict(members)
    if len(found) < len(members):
        raise _DuplicateError
    return found


def _join(members: JSONObject, more: JSONObject) -> None:
    if not members.keys().isdisjoint(more):
        raise _DuplicateError
    members.update(more)
