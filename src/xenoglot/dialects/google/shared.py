"""The API key header, rate limits, places of files, and small helpers of Google's dialects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.model.content import Remote, Stored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.codec.dialect import Headers
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.limits import RateLimits

FAMILY: Final = "gemini"
"""The name in the `Extra` of what all dialects of the family write alike: the list of models."""

MARKS: Final = ("x-goog-api-client", "x-goog-api-key")
"""Headers that only clients of the family send."""

OWN_FILES: Final = "https://generativelanguage.googleapis.com/"
"""How the address of a file begins that only Google's servers can read."""


def authorize(key: str | None) -> Headers:
    """Return the header that carries the key, if there is one."""
    return () if key is None else (("x-goog-api-key", key),)


def decode_limits(headers: Mapping[str, str], now: float) -> RateLimits | None:  # noqa: ARG001  the record's form
    """Return nothing: servers of the family name their limits in errors alone."""
    return None


def encode_limits(limits: RateLimits, now: float) -> Headers:  # noqa: ARG001  the record's form
    """Return no headers: clients of the family know of none."""
    return ()


def place_of(uri: str) -> Remote | Stored:
    """Return where a file is: at an address that any server may open, or with Google's servers alone."""
    fetched = uri.startswith(("https://", "http://", "s3://", "data:")) and not uri.startswith(OWN_FILES)
    return Remote(url=uri) if fetched else Stored(id=uri)


def with_said(own: JSONObject, **optional: JSON) -> JSONObject:
    """Return `own` with those of the `optional` fields that are set."""
    own.update({key: value for key, value in optional.items() if value is not None})
    return own
