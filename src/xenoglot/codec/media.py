"""Rejects values that cannot be an image, audio or a document, by their form; nothing is decoded (C20)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from xenoglot.errors import WireError
from xenoglot.model.content import Audio, File, Image, Inline, Nested, Remote, Stored, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.model.content import Part, Source
    from xenoglot.model.json import JSON
    from xenoglot.model.request import Request

SCHEMES: Final = ("https", "http", "gs", "s3")
"""Schemes of URLs that a server may fetch. `file` and similar schemes would reach the server's own data."""

_BASE64: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_= \t\r\n"
"""Both alphabets of RFC 4648, and what may stand between the lines."""

_MEDIA: Final = (Image, File, Audio)

_AUDIO_FORMATS: Final = {
    "mpeg": "mp3",
    "mpeg3": "mp3",
    "x-mp3": "mp3",
    "x-mpeg": "mp3",
    "wave": "wav",
    "x-wav": "wav",
    "vnd.wave": "wav",
}
"""Subtypes of `audio/*` with the format names of OpenAI's `input_audio`."""

_LOCATION = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")
"""Prefixes of an id that is really an address."""


def audio_format(part: Audio, *, home: bool) -> str:
    """Return the name of the format of inline audio as OpenAI's dialects write it; empty if it is not set.

    Where the part is at `home`, the name is kept as the client wrote it.
    """
    media_type = part.source.media_type if isinstance(part.source, Inline) else None
    name = part.format or (media_type or "").rpartition("/")[2]
    return name if home else _AUDIO_FORMATS.get(name.lower(), name)


class _MediaError(WireError):
    """A medium that cannot be used; `given` is its URL or data, by which it is found in the client's body."""

    def __init__(self, path: str, problem: str, given: str) -> None:
        super().__init__(path, problem)
        self.given = given


def check_media(request: Request, body: JSON = None) -> None:
    """Check how the media of a request are given; their content is not decoded.

    `body` is the request as the client sent it: the path of an error is the one in it.

    Raises:
        WireError: a URL with a scheme that no server fetches, data that is not base64, or empty data.
    """
    try:
        for index, message in enumerate(request.messages):
            if _holds(message.content):
                _check(message.content, f"$.messages[{index}].content")
    except _MediaError as error:
        raise WireError(_path_in(body, error.given) or error.path, error.problem) from None


def _path_in(body: JSON, given: str) -> str | None:
    """Return the path of the first string in `body` that is `given`, or a data URL of it."""
    left: list[tuple[str, str, JSON]] = [("$", "", body)]
    while left:
        path, key, value = left.pop()
        if isinstance(value, dict):
            left += [(f"{path}.{name}", name, inner) for name, inner in reversed(value.items())]
        elif isinstance(value, list):
            left += [(f"{path}[{index}]", key, value[index]) for index in reversed(range(len(value)))]
        elif isinstance(value, str) and (value.endswith(given) if given else value.endswith(",") or key == "data"):
            return path
    return None


def _holds(parts: Iterable[Part]) -> bool:
    """Whether there is a medium in `parts`: in most messages there is none, and no path to it is made."""
    for part in parts:
        kind = type(part)
        if kind in _MEDIA or (kind is ToolResult and _holds(part.content)):  # type: ignore[union-attr]
            return True
    return False


def _check(parts: Iterable[Part], path: str) -> None:
    for index, part in enumerate(parts):
        match part:
            case ToolResult(content=content):
                _check(content, f"{path}[{index}].content")
            case File(source=Nested(parts=inner)):
                _check(inner, f"{path}[{index}].source.content")  # as the dialect that has such files writes it
            case Image(source=source) | File(source=source) | Audio(source=source):
                _check_source(source, f"{path}[{index}]")
            case _:
                pass


def _check_source(source: Source | None, path: str) -> None:
    match source:
        case Remote(url=url):
            _check_url(url, path)
        case Stored(id=name) if _LOCATION.match(name):
            _check_url(name, path)
        case Inline(data=data):
            _check_data(data, path)
        case _:
            pass


def _check_url(url: str, path: str) -> None:
    scheme, colon, _ = url.partition("://")
    if not colon or scheme.lower() not in SCHEMES or not url.isprintable():
        message = "what is there is not opened here: expected a URL with `https` or `http`, or base64 as a data URL"
        raise _MediaError(path, message, url)


def _check_data(data: str, path: str) -> None:
    if not data:
        raise _MediaError(path, "there is no data", data)
    if data.encode("ascii", "replace").translate(None, _BASE64):
        raise _MediaError(path, "the data is not base64", data)
