"""Builds request URLs from the base URL that an operator configured."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import urlsplit, urlunsplit

_VERSION = re.compile(r"/v\d+[a-z0-9]*(?=/|$)")


@lru_cache(maxsize=1024)  # asked for every request, and rarely another
def endpoint(base_url: str, path: str, query: str = "") -> str:
    """Return the URL of `path` (a dialect's, like `/v1/messages`) under `base_url`.

    The base may end with or without a slash, with or without a version (`/v1`, `/api/paas/v4`, `/v1beta/openai`): a
    version in it stands for the one in `path`. It may end in the beginning of the path (`/api`), or be the whole URL
    already. Its query string is kept, and `query` joined to it.
    """
    scheme, host, base, kept, _ = urlsplit(base_url)
    base = base.rstrip("/")
    head = _VERSION.match(path)
    unversioned = path if head is None else path[head.end() :]
    if not base.endswith(unversioned):
        if head is None:
            base = base.removesuffix(next(filter(base.endswith, _beginnings(path)), ""))
            base += path
        else:
            base += unversioned if _VERSION.search(base) else path
    return urlunsplit((scheme, host, base, "&".join(filter(None, (kept, query))), ""))


def _beginnings(path: str) -> list[str]:
    """Return the whole segments that `path` begins with, the longest run first."""
    ends = [index for index, character in enumerate(path) if character == "/" and index]
    return [path[:end] for end in reversed(ends)]
