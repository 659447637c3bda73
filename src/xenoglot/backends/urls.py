"""From the base URL that an operator wrote to the URL that is asked."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

_VERSION = re.compile(r"/v\d+[a-z0-9]*(?=/|$)")


def endpoint(base_url: str, path: str) -> str:
    """Return the URL of `path` (a dialect's, like `/v1/messages`) under `base_url`.

    The base may end with or without a slash, with or without a version (`/v1`, `/api/paas/v4`, `/v1beta/openai`): a
    version in it stands for the one in `path`. It may be the whole URL already. Its query string is kept.
    """
    scheme, host, base, query, _ = urlsplit(base_url)
    base = base.rstrip("/")
    unversioned = _VERSION.sub("", path, count=1)
    if not base.endswith(unversioned):
        base += unversioned if _VERSION.search(base) else path
    return urlunsplit((scheme, host, base, query, ""))
