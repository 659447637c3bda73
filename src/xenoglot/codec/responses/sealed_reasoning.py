"""Wraps the sealed reasoning of another dialect so that a client stores it and sends it back."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.errors import WireError
from xenoglot.model.content import Origin

if TYPE_CHECKING:
    from xenoglot.model.content import Reasoning

SEALED = "xenoglot:sealed:"
"""Begins a seal that holds another's (base64 of a JSON list), where the client's dialect has one field for seals."""


class Seal(Struct, frozen=True, kw_only=True):
    """Wrapped sealed reasoning: the dialect that sealed it, and the two forms of a seal."""

    origin: Origin
    signature: str | None = None
    encrypted: str | None = None


def pack(part: Reasoning) -> str:
    """Return the seal of `part` as text that comes back to us."""
    origin = part.origin or Origin(dialect="")
    packed = encode_json([origin.dialect, origin.provider, part.signature, part.encrypted])
    return SEALED + b64encode(packed).decode()


def unpack(text: str) -> Seal | None:
    """Return the seal that `pack` wrapped; `None` if `text` is anything else."""
    if not text.startswith(SEALED):
        return None
    try:
        value = decode_json(b64decode(text.removeprefix(SEALED), validate=True))
    except (WireError, binascii.Error, ValueError):
        return None
    match value:
        case [str() as dialect, str() | None as provider, str() | None as signature, str() | None as encrypted]:
            return Seal(origin=Origin(dialect=dialect, provider=provider), signature=signature, encrypted=encrypted)
        case _:
            return None
