"""Makes rows of captures: secrets and chosen fields redacted, compressed; and a row with losses, tries and times.

Redaction works on bytes, so that it is the same for JSON, for streams, and for bodies that are cut: the value of a
field is replaced everywhere its name is a key. A value that is cut is replaced to the end of the body.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final

from xenoglot.backends.redaction import MASK
from xenoglot.codec.json.json_io import encode_json
from xenoglot.gateway.ledger.capture import JSON
from xenoglot.gateway.observability.request_log import MOST_LOSSES
from xenoglot.hooks.redact import SECRETS
from xenoglot.store.ledger.bodies import DETAILS, TRUNCATED, CaptureDetails, CaptureRow, TryTimes, compressed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.gateway.ledger.capture import Capture
    from xenoglot.gateway.observability.request_log import RequestLog

ALWAYS: Final = ("authorization", "api_key", "apikey", "api-key", "access_token", "password", "client_secret")
"""Fields that are always redacted."""

_SCALAR: Final = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\Z)|[^\s,\]}"\[{]+', re.DOTALL)
_NESTED: Final = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\Z)|[\[\]{}]', re.DOTALL)
_QUOTED: Final = f'"{MASK}"'.encode()


class BodyRedactor:
    """Redacts bodies: values of `fields` by their names, the secrets that `redact` knows, and what looks like one."""

    def __init__(self, fields: Sequence[str], redact: Callable[[str], str]) -> None:
        names = "|".join(re.escape(name) for name in (*ALWAYS, *fields))
        self._key = re.compile(rf'"(?:{names})"\s*:\s*'.encode(), re.IGNORECASE)
        self._redact = redact
        self._patterns = [re.compile(pattern) for pattern in SECRETS.values()]

    def __call__(self, data: bytes) -> bytes:
        """Return a body without them."""
        text = self._redact(self._without_fields(data).decode("utf-8", "replace"))
        for pattern in self._patterns:
            text = pattern.sub(MASK, text)
        return text.encode()

    def _without_fields(self, data: bytes) -> bytes:
        pieces: list[bytes] = []
        at = 0
        while (key := self._key.search(data, at)) is not None:
            pieces += (data[at : key.end()], _QUOTED)
            at = _value_end(data, key.end())
        return b"".join((*pieces, data[at:])) if pieces else data


def _value_end(data: bytes, start: int) -> int:
    """Return where the JSON value ends that begins at `start`; the end of the data if it is cut."""
    if data[start : start + 1] not in (b"{", b"["):
        scalar = _SCALAR.match(data, start)
        return start if scalar is None else scalar.end()
    depth = 0
    for token in _NESTED.finditer(data, start):
        depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return len(data)


def capture_rows(
    record: RequestLog, capture: Capture, ended: float, redact: BodyRedactor, expires: float
) -> list[CaptureRow]:
    """Return the rows of what was captured of a request, which `ended` at this time of its clock."""
    details = encode_json(capture_details(record, capture, ended))
    rows = [
        CaptureRow(
            request=record.request_id,
            part=part,
            media=body.media + TRUNCATED if body.truncated else body.media,
            body=compressed(redact(b"".join(body.pieces))),
            expires=expires,
        )
        for part, body in capture.bodies.items()
    ]
    body = compressed(redact(details))
    return [*rows, CaptureRow(request=record.request_id, part=DETAILS, media=JSON, body=body, expires=expires)]


def capture_details(record: RequestLog, capture: Capture, ended: float) -> CaptureDetails:
    """Return the losses of a request, its tries and its times, in milliseconds after it came."""

    def after(moment: float | None) -> float | None:
        return None if moment is None else round((moment - record.started) * 1000.0, 3)

    return CaptureDetails(
        losses=tuple(islice(record.losses, MOST_LOSSES)),
        failed_tries=tuple(record.failed_tries or ()),
        tries=tuple(
            TryTimes(sent=after(one.sent) or 0.0, head=after(one.head), first=after(one.first), last=after(one.last))
            for one in capture.tries
        ),
        answered=after(record.answered),
        first_token=after(record.first_token) if record.stream else None,
        ended=after(ended) or 0.0,
    )
