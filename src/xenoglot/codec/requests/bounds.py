"""Upper bounds for numbers in a request for which the dialect defines no narrower one (R50)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.media import check_media
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Callable, Sized

    from xenoglot.codec.reader import Reader
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request

MOST_TOKENS: Final = 2**31
"""Of a limit or budget: what clients send that mean none at all fits in."""
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
"""Of one message. The lists of a request are bounded by the size of its body too; what each item costs is not."""

MOST_FIELDS: Final = 4096
"""Of a request, those that nobody knows included."""

_WIDE: Final = 2**53
"""Beyond this integers are not shown: they may have as many digits as the body has room for."""


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
    for index, message in enumerate(messages):
        if len(message.content) > MOST_PARTS:
            raise _too_many(f"$.messages[{index}]", message.content, MOST_PARTS)
    check_media(request, body)
    return request


def check_lists(body: JSON) -> None:
    """Refuse a request with more turns, parts or fields than anybody needs, before anything is made from it.

    The lists of objects beside a request's fields are its turns, whatever the dialect calls them; the lists in these
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
    """Return what is said of a number that is out of its range."""
    return f"must be at least {least}" if most is None else f"must be between {least} and {most}"
