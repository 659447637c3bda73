"""Makes pages from the templates, and gives out the files that they need; nothing is loaded from elsewhere."""

from __future__ import annotations

import mimetypes
import time
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from msgspec import Struct

from xenoglot.codec.json.json_io import encode_json
from xenoglot.gateway.console.route import CONSOLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.gateway.console.route import Session
    from xenoglot.model.json import JSON

HERE: Final = Path(__file__).parent
UNKNOWN: Final = "\N{EN DASH}"
MICRO: Final = 1_000_000
SECOND_MS: Final = 1000.0
FEW_MS: Final = 10
"""Below that tenths are shown."""

NAVIGATION: Final = (
    ("/", "Overview"),
    ("/requests", "Requests"),
    ("/translate", "Translate"),
    ("/playground", "Playground"),
    ("/usage", "Usage"),
    ("/keys", "Keys"),
    ("/budgets", "Budgets"),
    ("/upstreams", "Upstreams"),
    ("/configuration", "Configuration"),
    ("/audit", "Audit"),
    ("/fidelity", "Fidelity"),
    ("/connect", "Connect"),
)
"""Paths and titles of the pages, in their order."""

SECURITY_HEADERS: Final = (
    (
        "content-security-policy",
        (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
            "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
        ),
    ),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
)
"""No script or style inside a page, nothing from elsewhere, no frame around it (https://www.w3.org/TR/CSP3/)."""


class StaticFile(Struct, frozen=True):
    """A file that pages load: a script or a style."""

    body: bytes
    media_type: str
    version: str
    """The beginning of its SHA-256, which is in its URL, so that browsers may keep it for ever."""


class Renderer:
    """Makes pages; `paths` are those that the gateway serves, so that the navigation names no other."""

    def __init__(self, paths: frozenset[str]) -> None:
        self.files = {path.name: _read(path) for path in sorted((HERE / "static").iterdir()) if path.is_file()}
        self._environment = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {
            "money": money,
            "ms": milliseconds,
            "count": count,
            "moment": moment,
            "json": json_text,
            "segment": segment,
        }
        self._environment.globals |= {
            "static": self._url,
            "console": CONSOLE,
            "navigation": [one for one in NAVIGATION if one[0] in paths],
        }

    def render(self, template: str, session: Session | None, path: str, values: Mapping[str, object]) -> bytes:
        """Return the HTML of a template for the page at `path`."""
        made = self._environment.get_template(template)
        text: str = made.render(session=session, path=path, **values)
        return text.encode("utf-8", "replace")

    def _url(self, name: str) -> str:
        return f"{CONSOLE}/static/{name}?v={self.files[name].version}"


def money(micro: JSON, currency: object = "USD") -> str:
    """Return an amount in micro-units for people; a dash if it is not known."""
    if not isinstance(micro, int):
        return UNKNOWN
    text = f"{abs(micro) / MICRO:,.6f}"
    whole, _, places = text.partition(".")
    places = places.rstrip("0").ljust(2, "0")
    return f"{'-' if micro < 0 else ''}{whole}.{places} {currency or 'USD'}"


def milliseconds(value: object) -> str:
    """Return a duration for people; a dash if it is not known."""
    if not isinstance(value, int | float):
        return UNKNOWN
    if value >= SECOND_MS:
        return f"{value / SECOND_MS:,.2f} s"
    return f"{value:.1f} ms" if 0 < value < FEW_MS else f"{value:.0f} ms"


def count(value: object) -> str:
    """Return a number with separators; a dash if it is not known."""
    return f"{value:,}" if isinstance(value, int) else UNKNOWN


def moment(value: object) -> str:
    """Return Unix seconds as an ISO time in UTC, which a script shows in the time of the browser."""
    if not isinstance(value, int | float):
        return ""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(value))


def segment(value: str) -> str:
    """Return a name as one segment of a path."""
    return quote(value, safe="")


def json_text(value: JSON) -> str:
    """Return JSON for an attribute that a script reads."""
    return encode_json(value).decode()


def _read(path: Path) -> StaticFile:
    body = path.read_bytes()
    media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    if media_type.startswith("text/"):
        media_type += "; charset=utf-8"
    return StaticFile(body, media_type, sha256(body).hexdigest()[:16])
