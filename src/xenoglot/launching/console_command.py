"""The command `xenoglot console`: opens the web console of a running gateway."""

from __future__ import annotations

import sys
import webbrowser
from typing import TYPE_CHECKING

from xenoglot.errors import ConfigurationError
from xenoglot.gateway.console.links import fragment
from xenoglot.launching import health

if TYPE_CHECKING:
    import argparse

SECONDS = 3.0
"""How long the gateway may take to answer."""
LONGEST_URL = 100_000
"""An argument of a program is shorter than 128 KiB (Linux, `MAX_ARG_STRLEN`)."""


def run(options: argparse.Namespace) -> int:
    """Open the console, or print its URL; return 0, or 1 if the gateway does not answer or there is no browser.

    Raises:
        ConfigurationError: the URL is not one.
    """
    url = console_url(str(options.url))
    if options.print:
        sys.stdout.write(f"{url}\n")
        return health.HEALTHY
    return _opened(url, url)


def open_translation(base: str, source: str, target: str, data: bytes) -> int:
    """Open the page Translate of the gateway at `base` with a text; return 0, or 1 as `run` does.

    The text is in the fragment of the URL, which browsers do not send.

    Raises:
        ConfigurationError: the URL is not one, or the text is too long for a browser's command line.
    """
    page = f"{console_url(base)}/translate"
    url = f"{page}#{fragment(source, target, data.decode(errors='replace'))}"
    if len(url) > LONGEST_URL:
        raise ConfigurationError("--open: the input is too long for the address of a page; paste it there")
    return _opened(url, page)


def console_url(base: str) -> str:
    """Return the URL of the console of the gateway at `base`.

    Raises:
        ConfigurationError: that is no URL.
    """
    stem = base.rstrip("/").removesuffix("/console").removesuffix("/v1")
    if not health.is_url(stem):
        raise ConfigurationError(f'console: found "{base}"; expected a URL like http://127.0.0.1:8080')
    return f"{stem}/console"


def _opened(url: str, page: str) -> int:
    healthy, line = health.check(page.partition("/console")[0], "live", SECONDS)
    if not healthy:
        sys.stderr.write(f"{line}; start a gateway with `xenoglot serve`\n")
        return health.UNHEALTHY
    if not webbrowser.open(url):
        sys.stderr.write(f"no browser can be started here; open {page}\n")
        return health.UNHEALTHY
    sys.stdout.write(f"opened {page}\n")
    return health.HEALTHY
