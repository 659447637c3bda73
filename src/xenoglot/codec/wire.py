"""JSON on the wire: strict where we are asked, lenient where a model's server answers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from xenoglot.errors import WireError

if TYPE_CHECKING:
    from xenoglot.model.json import JSON

encode_json = msgspec.json.Encoder().encode
"""Any JSON value to compact UTF-8 bytes; text is not escaped to ASCII, keys keep their order."""

_decode = msgspec.json.Decoder().decode

_ESCAPE = re.compile(
    r"""\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}  # a whole pair
    | (?P<half> \\u[dD][89a-fA-F][0-9a-fA-F]{2} | [\ud800-\udfff] )
    | \\.                                                           # any other escape: its backslash begins no half
    """,
    re.VERBOSE,
)


def decode_json(data: bytes | str, path: str = "$") -> JSON:
    """Return the JSON value in `data`. Of duplicate keys the last counts; integers of any size are exact.

    Raises:
        WireError: it is not JSON (RFC 8259): malformed, not UTF-8, too deep, `NaN`, a number beyond a double, or half
            of a surrogate pair.
    """
    try:
        return _decode(data)
    except RecursionError:
        raise WireError(path, "the JSON is nested too deeply") from None
    except UnicodeError:
        raise WireError(path, "not valid JSON: it is not UTF-8") from None
    except msgspec.DecodeError as error:
        raise WireError(path, f"not valid JSON: {str(error).removeprefix('JSON is malformed: ')}") from None


def decode_answer(data: bytes | str, path: str = "$") -> JSON:
    """Return the JSON value in `data` that a server sent: as `decode_json`, but broken characters become U+FFFD.

    Servers that cut text between two tokens send half of a surrogate pair, or of a UTF-8 sequence; the rest of the
    answer is worth having.

    Raises:
        WireError: it is not JSON all the same.
    """
    try:
        return decode_json(data, path)
    except WireError:
        return decode_json(_mend(data), path)


def to_text(value: JSON) -> str:
    """Return `value` as compact JSON text."""
    return encode_json(value).decode()


def _mend(data: bytes | str) -> str:
    """Return the text with U+FFFD for what is no character: RFC 8259 section 8.2 on lone surrogates."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    return _ESCAPE.sub(lambda found: "\ufffd" if found["half"] else found[0], text)
