"""Sessions of the console in the store, so that they hold on every gateway that shares it and survive a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.store.queries import Statement

if TYPE_CHECKING:
    from xenoglot.store.queries import Steps


def add(digest: str, key_digest: str, expires: float) -> Steps[None]:
    """Store a session by the digest of its cookie, until `expires` in Unix seconds, and delete those that are over.

    `key_digest` is the SHA-256 of the API key that signed in, in hexadecimal digits.
    """
    yield Statement(
        "INSERT INTO console_session (digest, key_digest, expires) VALUES ($1, $2, $3)", (digest, key_digest, expires)
    )


def find(digest: str, now: float) -> Steps[str | None]:
    """Return the digest of the API key of a session; `None` if there is none, or it is over."""
    rows = yield Statement("SELECT key_digest FROM console_session WHERE digest = $1 AND expires > $2", (digest, now))
    return str(rows[0][0]) if rows else None


def remove(digest: str) -> Steps[None]:
    """Delete a session."""
    yield Statement("DELETE FROM console_session WHERE digest = $1", (digest,))


def prune(now: float) -> Steps[None]:
    """Delete the sessions that are over."""
    yield Statement("DELETE FROM console_session WHERE expires <= $1", (now,))
