"""Encodes and decodes inline bytes as `data:` URLs (RFC 2397)."""

from __future__ import annotations

from xenoglot.model.content import Inline, Remote

_BASE64 = ";base64,"


def data_url(source: Inline) -> str:
    """Return inline bytes as a `data:` URL (RFC 2397)."""
    return f"data:{source.media_type or ''}{_BASE64}{source.data}"


def source_of(url: str) -> Inline | Remote:
    """Return where the bytes of `url` are: in it, or elsewhere."""
    if url.startswith("data:"):
        head, found, data = url.partition(_BASE64)
        media_type = head.removeprefix("data:")
        if found and ";" not in media_type and "," not in media_type:
            return Inline(data=data, media_type=media_type or None)
    return Remote(url=url)
