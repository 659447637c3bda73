"""Attachments: converts a file to a message part, by the type found in its first bytes."""

from __future__ import annotations

import os
import stat
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING

from xenoglot.errors import ConfigurationError
from xenoglot.model.content import File, Image, Inline, Text
from xenoglot.terminal.display.sanitize import in_line

if TYPE_CHECKING:
    from xenoglot.model.content import Part

MEGABYTE = 1_000_000
LONGEST_TEXT = MEGABYTE
"""Bytes of a text: more of it fits into no model's window."""
LARGEST = 20 * MEGABYTE
"""Bytes of an image or a PDF: providers take no larger ones."""

_SHORTEST_FENCE = 3


def read_attachment(path: str, *, image: bool = False) -> Part:
    """Return the file at `path` as a part: text as text, a PDF as a document, an image as an image. Blocks.

    `image` accepts images only.

    Raises:
        ConfigurationError: the file does not exist, is not regular, is too large, or has an unsupported type.
    """
    shown = in_line(path)
    data = _read(Path(path).expanduser(), shown)
    media_type = image_type(data)
    if media_type is not None:
        return Image(source=Inline(data=b64encode(data).decode(), media_type=media_type))
    if image:
        raise ConfigurationError(f"`{shown}` is no image: expected PNG, JPEG, GIF or WebP")
    name = Path(path).name
    if data.startswith(b"%PDF-"):
        return File(source=Inline(data=b64encode(data).decode(), media_type="application/pdf"), name=name)
    return Text(text=_quoted(name, _text(data, shown)))


def image_type(data: bytes) -> str | None:
    """Return the media type of an image, from its first bytes.

    Source: https://mimesniff.spec.whatwg.org/#image-type-pattern-matching-algorithm
    """
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:14] == b"WEBPVP":
        return "image/webp"
    return None


def _read(path: Path, shown: str) -> bytes:
    """Read a regular file; others are rejected, since a pipe or a device may never end."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode):
                raise ConfigurationError(f"`{shown}` is no regular file")
            data = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "its name cannot be one"
        raise ConfigurationError(f"`{shown}` cannot be read: {reason}") from None
    if len(data) > LARGEST:
        raise ConfigurationError(f"`{shown}` is too large: it has more than {LARGEST // MEGABYTE} MB")
    return data


def _text(data: bytes, shown: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ConfigurationError(f"`{shown}` is neither text in UTF-8 nor PNG, JPEG, GIF, WebP or PDF")
    if len(data) > LONGEST_TEXT:
        raise ConfigurationError(f"`{shown}` is too large: a text may have {LONGEST_TEXT // MEGABYTE} MB")
    return text


def _quoted(name: str, text: str) -> str:
    """Return a text below its file name, in a fence that is longer than any fence in it."""
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    fence = "`" * max(_SHORTEST_FENCE, longest + 1)
    return f"{in_line(name)}:\n{fence}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"
