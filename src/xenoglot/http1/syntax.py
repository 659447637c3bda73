"""Grammar and fixed limits of HTTP/1.1 messages (RFC 9110 section 5, RFC 9112)."""

from __future__ import annotations

import re
from typing import Final

CRLF: Final = b"\r\n"
HEAD_END: Final = b"\r\n\r\n"
CHUNK: Final = b"%x\r\n%b\r\n"
"""A chunk of a body, given its size and its bytes; there is no empty one but the last."""
LAST_CHUNK: Final = b"0\r\n\r\n"

NAME_CHARACTER: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]"
VALUE_CHARACTER: Final = r"\t -~\x80-\xff"
"""What stands in values, as a part of a set; in latin-1."""

TOKEN: Final = re.compile(rf"{NAME_CHARACTER}+")
"""The name of a header field, or a method."""
NOT_IN_VALUES: Final = re.compile(rf"[^{VALUE_CHARACTER}]")
FIELDS: Final = re.compile(rf"(?:{NAME_CHARACTER}+:[{VALUE_CHARACTER}]*\r\n)*")
"""Lines of header fields: no space before the colon, no line folded, no control character."""
CHUNK_SIZE: Final = re.compile(rf"([0-9A-Fa-f]{{1,15}})(?:[ \t]*;[{VALUE_CHARACTER}]*)?".encode("latin-1"))
"""The size of a chunk. RFC 9112 section 7.1.1: extensions are ignored; a quoted one can contain anything."""

CONNECTION_FIELDS: Final = frozenset(
    ("connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade")
)
"""Header fields that frame a message or belong to one connection: each end writes its own."""


class FramingError(Exception):
    """The bytes are no HTTP/1.1 message, or one whose end is in doubt."""


def chunk(data: bytes) -> bytes:
    """Return `data` as one chunk; nothing stays nothing, because an empty chunk would be the last."""
    return CHUNK % (len(data), data) if data else b""


HEAD_BYTES: Final = 64 * 1024
"""The longest head of a request, its first line and all fields."""

HEAD_FIELDS: Final = 256
"""The most fields it may have. Real clients send about twenty."""

LENGTH_DIGITS: Final = 18
"""The most digits of a body's length."""

CHUNK_LINE: Final = 256
"""The longest line before a chunk: its size in hexadecimal, and extensions, which are ignored."""

CHUNK_EXCESS: Final = 16 * 1024
"""The most framing a chunked body may have beyond what chunks as small as 16 bytes would need."""

TRAILER_BYTES: Final = 8 * 1024
"""The longest trailer after a chunked body; it is read and discarded."""
