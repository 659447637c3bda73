"""Checks of a decoded request: ranges of numbers, lengths of lists, form of media (R50, C20)."""

from __future__ import annotations

import re
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from xenoglot.errors import WireError
from xenoglot.model.content import Audio, File, Image, Inline, Nested, Remote, Stored, ToolResult, Video

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sized

    from xenoglot.codec.reader import Reader
    from xenoglot.model.content import Part, Source
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Message, Request


SCHEMES: Final = ("https", "http", "gs", "s3")
"""Schemes of URLs that a server may fetch. `file` and similar schemes would reach the server's own data."""

_BASE64: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_= \t\r\n"
"""Both alphabets of RFC 4648, and what may stand between the lines."""

_MEDIA: Final = frozenset({Image, File, Audio, Video})

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

_content = attrgetter("content")

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
    if not holds_media(request.messages):
        return
    try:
        for index, message in enumerate(request.messages):
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


def holds_media(messages: Iterable[Message]) -> bool:
    """Whether there is a medium in `messages`: in most requests there is none, and no path to it is made."""
    parts = [*chain.from_iterable(map(_content, messages))]
    kinds = {*map(type, parts)}
    if not _MEDIA.isdisjoint(kinds):
        return True
    if ToolResult not in kinds:
        return False
    results = [part for part in parts if type(part) is ToolResult]
    return not _MEDIA.isdisjoint(map(type, chain.from_iterable(map(_content, results))))


def _check(parts: Iterable[Part], path: str) -> None:
    for index, part in enumerate(parts):
        match part:
            case ToolResult(content=content):
                _check(content, f"{path}[{index}].content")
            case File(source=Nested(parts=inner)):
                _check(inner, f"{path}[{index}].source.content")  # as the dialect that has such files writes it
            case Image(source=source) | File(source=source) | Audio(source=source) | Video(source=source):
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


MOST_TOKENS: Final = 2**31
"""Largest limit or budget; it includes the numbers that clients send for "no limit"."""
LEAST_SEED, MOST_SEED = -(2**63), 2**64 - 1
MOST_CANDIDATES: Final = 128
MOST_LOGPROBS: Final = 20
MOST_PENALTY: Final = 100
"""Of penalties, temperatures and biases where a dialect takes whatever there is."""

MOST_STOPS: Final = 256
MOST_TOOLS: Final = 4096
MOST_BIASES: Final = 4096
MOST_MESSAGES: Final = 100_000
MOST_PARTS: Final = 20_000
"""Most parts of one message. The size of the body also bounds the lists of a request, but not the cost of each item."""

MOST_FIELDS: Final = 4096
"""Most fields of a request, unknown ones included."""

_WIDE: Final = 2**53
"""Beyond this integers are not shown: they may have as many digits as the body allows."""


def ranged(reader: Reader, key: str, kind: type[float], least: float, most: float | None = None) -> JSON:
    """Take a number between `least` and `most`, both allowed.

    Raises:
        WireError: it is another, or of a wrong type.
    """
    return taken(reader, key, kind, least, most, between)


def taken(  # noqa: PLR0913, PLR0917  a number, its range, and how a dialect says that it is out of it
    reader: Reader,
    key: str,
    kind: type[float],
    least: float,
    most: float | None,
    words: Callable[[float, float, float | None], str],
) -> JSON:
    """Take a number as `ranged` does, refused in the `words` of a dialect, made from it and its range.

    Raises:
        WireError: it is another, or of a wrong type.
    """
    value = reader.take(key, kind)
    if value is not None and (value < least or (most is not None and value > most)):
        raise WireError(reader.at(key), words(value, least, most))
    return value


def shown(value: float) -> str:
    """Return a number for a message."""
    return str(value) if -_WIDE < value < _WIDE else "a number beyond all bounds"


def bounded(request: Request, body: JSON = None) -> Request:
    """Return a request whose lists are within the limits and whose media can be used.

    `body` is the request as the client sent it, for the path of an error.

    Raises:
        WireError: one of them is not so.
    """
    sampling, messages = request.sampling, request.messages
    if len(messages) > MOST_MESSAGES:
        raise _too_many("$.messages", messages, MOST_MESSAGES)
    if len(request.tools) > MOST_TOOLS:
        raise _too_many("$.tools", request.tools, MOST_TOOLS)
    if sampling.stop is not None and len(sampling.stop) > MOST_STOPS:
        raise _too_many("$.stop", sampling.stop, MOST_STOPS)
    if sampling.logit_bias is not None and len(sampling.logit_bias) > MOST_BIASES:
        raise _too_many("$.logit_bias", sampling.logit_bias, MOST_BIASES)
    if messages and max(map(len, map(_content, messages))) > MOST_PARTS:
        index, parts = next((index, one.content) for index, one in enumerate(messages) if len(one.content) > MOST_PARTS)
        raise _too_many(f"$.messages[{index}]", parts, MOST_PARTS)
    check_media(request, body)
    return request


def check_lists(body: JSON) -> None:
    """Refuse a request with more turns, parts or fields than any client needs, before anything is made from it.

    The lists of objects among a request's fields are its turns, whatever the dialect calls them; the lists in these
    are their parts.

    Raises:
        WireError: there are too many.
    """
    if not isinstance(body, dict):
        return
    if len(body) > MOST_FIELDS:
        raise _too_many("$", body, MOST_FIELDS)
    for key, turns in body.items():
        if type(turns) is not list or not turns or type(turns[0]) is not dict:
            continue
        if len(turns) > MOST_MESSAGES:
            raise _too_many(f"$.{key}", turns, MOST_MESSAGES)
        for index, turn in enumerate(turns):
            if type(turn) is dict:
                _check_parts(turn, f"$.{key}[{index}]")


def _check_parts(turn: JSONObject, path: str) -> None:
    for key, parts in turn.items():
        if type(parts) is list and len(parts) > MOST_PARTS:
            raise _too_many(f"{path}.{key}", parts, MOST_PARTS)


def _too_many(path: str, items: Sized, most: int) -> WireError:
    return WireError(path, f"at most {most} are taken, not {len(items)}")


def between(_value: float, least: float, most: float | None) -> str:
    """Return the problem of a number that is out of its range."""
    return f"must be at least {least}" if most is None else f"must be between {least} and {most}"


def is_token(key: str) -> bool:
    """Return whether `key` is the number of a token."""
    return key.isascii() and key.isdigit()
