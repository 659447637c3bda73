"""Recomputes signatures of requests as AWS does, from the specification alone.

Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html.
"""

from __future__ import annotations

import hmac
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

SKEW = timedelta(minutes=5)


def refusal(  # noqa: PLR0911, PLR0913  one for each reason; what a server knows of a request, and what it expects
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    keys: Mapping[str, tuple[str, str | None]],
    scope: tuple[str, str],
    now: datetime | None = None,
) -> str | None:
    """Return why a server refuses a request, in the name of its exception; `None` if the signature is right.

    `keys` are the secret and the session token of each access key, `scope` is the region and the service.
    """
    algorithm, _, parameters = headers.get("authorization", "").partition(" ")
    if algorithm != "AWS4-HMAC-SHA256":
        return "MissingAuthenticationTokenException"
    said = dict(part.strip().split("=", 1) for part in parameters.split(","))
    access_key, date, *rest = said["Credential"].split("/")
    if access_key not in keys:
        return "UnrecognizedClientException"
    if rest != [*scope, "aws4_request"]:
        return "InvalidSignatureException"
    stamp = headers["x-amz-date"]
    moment = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    if abs((now or datetime.now(UTC)) - moment) > SKEW or not stamp.startswith(date):
        return "InvalidSignatureException"
    secret, token = keys[access_key]
    if headers.get("x-amz-security-token") != token:
        return "UnrecognizedClientException"
    names = said["SignedHeaders"].split(";")
    if "host" not in names or (token is not None and "x-amz-security-token" not in names):
        return "InvalidSignatureException"
    url = urlsplit(target)
    hashed = headers.get("x-amz-content-sha256") or sha256(body).hexdigest()
    canonical = "\n".join(
        (
            method,
            quote(url.path or "/", safe="/~"),  # each segment is encoded twice
            "&".join(sorted(url.query.split("&"))) if url.query else "",
            *(f"{name}:{' '.join(headers[name].split())}" for name in names),
            "",
            said["SignedHeaders"],
            hashed,
        )
    )
    text = "\n".join((algorithm, stamp, "/".join((date, *rest)), sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{secret}".encode()
    for part in (date, *rest):
        key = hmac.digest(key, part.encode(), "sha256")
    right = hmac.digest(key, text.encode(), "sha256").hex()
    return None if hmac.compare_digest(right, said["Signature"]) else "InvalidSignatureException"
