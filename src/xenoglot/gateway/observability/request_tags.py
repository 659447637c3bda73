"""Tags of a request: names and values that the client chooses, for the log, the ledger and spans.

They are in the header `x-xenoglot-tags: team=search,job=nightly`. With a ledger, the fields `metadata` and `user` of a
request are tags too, as far as they fit; the header takes precedence.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from xenoglot.errors import FailureError
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.model.request import Request

HEADER: Final = "x-xenoglot-tags"
USER: Final = "user"
MOST_TAGS: Final = 16
"""Tags of one request."""
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_VALUE: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f,]{1,128}")
_FORM: Final = (
    f"expected at most {MOST_TAGS} of name=value, separated by commas; a name has up to 64 letters, digits, `.`, `_` "
    "and `-`, a value up to 128 printable characters"
)


def read_tags(headers: Sequence[tuple[str, str]]) -> Mapping[str, str] | None:
    """Return the tags in `headers` (lower-case names); `None` if there are none.

    Raises:
        FailureError: they are malformed, or too many.
    """
    given = [value for name, value in headers if name == HEADER]
    if not given:
        return None
    tags: dict[str, str] = {}
    for pair in ",".join(given).split(","):
        if not pair.strip():
            continue
        name, _, value = (piece.strip() for piece in pair.partition("="))
        if not _fits(name, value) or (name not in tags and len(tags) >= MOST_TAGS):
            raise FailureError(Failure(kind="invalid_request", message=f"header {HEADER}: {_FORM}"))
        tags[name] = value
    return tags or None


def with_fields(tags: Mapping[str, str] | None, request: Request) -> Mapping[str, str] | None:
    """Return `tags` with those in the fields of a request; fields that are no tags are left out."""
    found: dict[str, str] = {}
    if request.user is not None and _fits(USER, request.user) and not request.user.startswith("{"):
        found[USER] = request.user
    for name, value in (request.metadata or {}).items():
        if isinstance(value, str) and _fits(name, value) and len(found) < MOST_TAGS:
            found[name] = value
    return {**found, **(tags or {})} or None


def encode_tags(tags: Mapping[str, str] | None) -> str | None:
    """Return tags as a column of the ledger: `,job=nightly,team=search,`, in order, percent-encoded."""
    if not tags:
        return None
    return "".join(f",{_quoted(name)}={_quoted(tags[name])}" for name in sorted(tags)) + ","


def decode_tags(text: str | None) -> dict[str, str]:
    """Return the tags of a column."""
    pairs = (pair.partition("=") for pair in (text or "").strip(",").split(",") if pair)
    return {unquote(name): unquote(value) for name, _, value in pairs}


def _quoted(text: str) -> str:
    return quote(text, safe=" :/@+", errors="replace")


def _fits(name: str, value: str) -> bool:
    return _NAME.fullmatch(name) is not None and _VALUE.fullmatch(value) is not None
