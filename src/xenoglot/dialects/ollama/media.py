"""Encodes and decodes images and audio: base64 in a list of `images`, whose type only the bytes show."""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import TYPE_CHECKING

from xenoglot.codec.opaque import name_of
from xenoglot.dialects.ollama.extras import FAMILY, own_fields
from xenoglot.model.content import Audio, Image, Inline

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses

_HEAD = 16
"""Characters of base64 that hold the first twelve bytes."""

_PICTURES = ((b"\x89PNG", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF8", "gif"), (b"BM", "bmp"))
_MP3_FRAME = 0xE0


def decode_media(data: str) -> Image | Audio:
    """Return what is in `data`: sound by the marks that the server goes by (`AudioFormat` in `llm/media.go`)."""
    head = _bytes(data[:_HEAD])
    sound = _sound(head)
    if sound is not None:
        return Audio(source=Inline(data=data), format=sound)
    kind = next((kind for mark, kind in _PICTURES if head.startswith(mark)), None)
    if _is_riff(head, b"WEBP"):
        kind = "webp"
    return Image(source=Inline(data=data, media_type=None if kind is None else f"image/{kind}"))


def encode_media(part: Image | Audio, where: str, losses: Losses) -> str | None:
    """Return an image or audio as it stands among the `images`; `None` (and a loss) if its bytes are elsewhere."""
    kind = name_of(part)
    own_fields(part.extra, where, losses, FAMILY)
    if not isinstance(part.source, Inline):
        losses.dropped(where, kind, "the server fetches nothing; send the bytes")
        return None
    if part.cache is not None:
        losses.dropped(where, "cache", "the server decides what it caches")
    if isinstance(part, Image) and part.detail is not None:
        losses.dropped(where, "detail", "the dialect has no image detail")
    known = decode_media(part.source.data)
    if isinstance(part, Audio) and (not isinstance(known, Audio) or known.format != part.format):
        losses.approximated(where, "format", "the server goes by the bytes")
    elif isinstance(part, Image) and known.source != part.source:
        losses.approximated(where, "media_type", "the server goes by the bytes")
    return part.source.data


def _bytes(head: str) -> bytes:
    try:
        return b64decode(head[: len(head) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""


def _sound(head: bytes) -> str | None:
    if _is_riff(head, b"WAVE"):
        return "wav"
    is_frame = head[:1] == b"\xff" and head[1:2] != b"" and head[1] & _MP3_FRAME == _MP3_FRAME
    return "mp3" if head.startswith(b"ID3") or is_frame else None


def _is_riff(head: bytes, kind: bytes) -> bool:
    return head.startswith(b"RIFF") and head[8:12] == kind
