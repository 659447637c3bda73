"""The retry delay in the details of an error, which Google's servers send in every dialect they speak."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xenoglot.model.json import JSON

RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
"""The `@type` of the detail (https://cloud.google.com/apis/design/errors#error_details)."""

_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s", re.ASCII)


def retry_delay(details: JSON) -> float | None:
    """Return the seconds of the `RetryInfo` among `details`, which are written as a text: `22s`, `0.5s`."""
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict) and detail.get("@type") == RETRY_INFO:
            said = detail.get("retryDelay")
            found = _DURATION.fullmatch(said) if isinstance(said, str) else None
            if found:
                return float(found[1])
    return None
