"""The clients' keys: kept as digests, looked for in one way, compared in constant time."""

from __future__ import annotations

from hashlib import sha256
from hmac import compare_digest
from typing import TYPE_CHECKING

from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BLANKS = " \t"
"""What may surround a header's value (RFC 9110 section 5.6.3); other bytes, decoded, only look like white space."""

KEY_HEADERS = ("x-api-key", "api-key", "x-goog-api-key")
"""Headers whose value is a key; `authorization` has it behind the word `Bearer` (RFC 6750 section 2.1)."""

MISSING = Failure(
    kind="authentication",
    message="an API key is required: send it as `Authorization: Bearer KEY` or as `x-api-key: KEY`",
)
WRONG = Failure(kind="authentication", message="the API key is not one of this gateway's")
AMBIGUOUS = Failure(kind="invalid_request", message="the request shows two different API keys: send one")


class Keyring:
    """The keys that are let in; with none at all, everybody is."""

    __slots__ = ("_digests",)

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._digests = tuple(sha256(key.encode("utf-8", "surrogateescape")).digest() for key in keys)

    def __bool__(self) -> bool:
        """Whether a key is needed."""
        return bool(self._digests)

    def refusal(self, headers: Sequence[tuple[str, str]]) -> Failure | None:
        """Return why a request with these headers (lower-case names, latin-1 values) is not let in; `None` if it is.

        The work is the same for every key shown: one digest of the whole credential, compared with each of ours.
        """
        if not self._digests:
            return None
        shown = {sha256(credential.encode("latin-1")).digest() for credential in credentials(headers)}
        if len(shown) != 1:
            return AMBIGUOUS if shown else MISSING
        digest = shown.pop()
        return None if sum([compare_digest(digest, ours) for ours in self._digests]) else WRONG

    def owner(self, headers: Sequence[tuple[str, str]]) -> str:
        """Return whose the things are that a request which was let in has kept: the key's, or everybody's.

        It is a digest of another kind than that by which keys are known, so a store tells nobody a key's.
        """
        shown = credentials(headers) if self._digests else ()
        return sha256(b"owner\0" + shown[0].encode("latin-1")).hexdigest() if shown else ""


def credentials(headers: Sequence[tuple[str, str]]) -> list[str]:
    """Return what `headers` show as keys, in each of the three ways; what is empty was not shown."""
    found = []
    for name, value in headers:
        if name == "authorization":
            scheme, _, credential = value.strip(BLANKS).partition(" ")
            # Another scheme's credential is one too, though never a key of ours, which have no blanks in them.
            found.append(credential.strip(BLANKS) if scheme.lower() == "bearer" else f"{name}: {value.strip(BLANKS)}")
        elif name in KEY_HEADERS:
            found.append(value.strip(BLANKS))
    return [credential for credential in found if credential]
