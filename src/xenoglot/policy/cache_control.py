"""What a client's `cache-control` header demands of cached answers (RFC 9111 section 5.2.1)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

_DIRECTIVE: Final = re.compile(r'([!#$%&\'*+.^_`|~0-9A-Za-z-]+)(?:=(?:"([^"]*)"|([^\s,"]*)))?')


class CacheControl(Struct, frozen=True, kw_only=True):
    """The demands of a request.

    `reads` is whether the answer may be a cached one, not older than `max_age` seconds; `writes` is whether the answer
    may be cached; `only` is whether nothing but a cached answer is wanted.
    """

    reads: bool = True
    writes: bool = True
    max_age: float | None = None
    only: bool = False

    def accepts(self, age: float) -> bool:
        """Return whether an answer of this age in seconds may be returned."""
        return self.reads and (self.max_age is None or age <= self.max_age)


ANY: Final = CacheControl()


def cache_control(headers: Sequence[tuple[str, str]]) -> CacheControl:
    """Return what `headers` demand; `pragma: no-cache` counts if there is no `cache-control`."""
    values = [value for name, value in headers if name == "cache-control"]
    if not values:
        pragma = any(name == "pragma" and "no-cache" in value.lower() for name, value in headers)
        return CacheControl(reads=False) if pragma else ANY
    found = {match[1].lower(): match[2] or match[3] or "" for value in values for match in _DIRECTIVE.finditer(value)}
    age = found.get("max-age")
    seconds = None if age is None else float(age) if age.isdigit() else 0.0  # an invalid age is a stale one
    return CacheControl(
        reads="no-cache" not in found and "no-store" not in found,
        writes="no-store" not in found,
        max_age=seconds,
        only="only-if-cached" in found,
    )
