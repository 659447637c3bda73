"""Laws of every page of the console: values are text, forms bear a token, viewers change nothing, no page has a secret.

A gateway has hostile text in whatever a client or an administrator can name. Every page is parsed, not searched: an
element or attribute that no template writes is a hole (https://cheatsheetseries.owasp.org, XSS and CSRF).
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast
from urllib.parse import quote

import httpx2
import pytest

from tests.gateway.admin.administered import CLIENT, KEYS, SECRETS, Administered
from tests.gateway.console.visited import Visitor
from tests.gateway.running_gateway import TIMEOUT
from xenoglot.gateway.console.render import HERE, NAVIGATION, SECURITY_HEADERS
from xenoglot.gateway.console.table import console_endpoint
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from xenoglot.gateway.admin.endpoint import AdminEndpoint
    from xenoglot.gateway.admin.services import AdminServices
    from xenoglot.gateway.console.route import ConsoleRoute

MARK = "zzmark"
HOSTILE = f"'\"><img src=x {MARK}=1 onerror=alert(1)><script {MARK}>alert(2)</script>{{{{7*7}}}}&lt;b {MARK}&gt;\u202e"
UPSTREAM_SECRET = "sk-upstream-secret-0123456789"
READING = {"/translate", "/playground/write", "/playground/read", "/configuration/check"}
"""Routes with the method POST that change nothing: what a viewer may use."""


def rows() -> list[ConsoleRoute]:
    """Return the table of the console."""
    services = cast("AdminServices", SimpleNamespace(auth=None, bodies=None, config=None, keeper=None))
    endpoint = console_endpoint(services, cast("AdminEndpoint", None))
    return [route for _, route in endpoint._routes]


ROUTES = rows()
IDS: dict[str, str] = {}
"""Ids of a key and of a request, by the beginning of a path."""
POSTED = sorted(route.path for route in ROUTES if route.method == "POST")
TEMPLATES = sorted((HERE / "templates").glob("*.html"))


@pytest.fixture(scope="module")
def gateway() -> Iterator[Administered]:
    """Give a gateway with hostile text in models, keys, tenants, budgets, sessions, bodies and the audit log."""
    with (
        Upstream(*answers("chat", text=HOSTILE).rules()) as server,
        Administered(
            server,
            environ={**SECRETS, "UPSTREAM": UPSTREAM_SECRET},
            upstream={"key_env": "UPSTREAM"},
            keys={**KEYS, "store": True},
            ledger={},
            capture={"share": 1.0},
        ) as running,
    ):
        made = running.admin("POST", "/keys", {"name": "hostile", "tenant": "ada", "models": [HOSTILE[:-1]]})
        budget = running.admin("POST", "/budgets", {"scope": f"model:{MARK}*", "amount": "5", "period": "month"})
        assert (made.status_code, budget.status_code) == (201, 201), (made.text, budget.text)
        running.generate(HOSTILE, tools=[{"type": "function", "function": {"name": "f", "description": HOSTILE}}])
        body = {"model": HOSTILE, "max_tokens": 9, "top_k": 3, "messages": [{"role": "user", "content": HOSTILE}]}
        headers = {"authorization": f"Bearer {CLIENT}", "x-session-id": "zzmark"}
        httpx2.post(f"{running.url}/v1/messages", json=body, headers=headers, timeout=TIMEOUT)
        yield running


class Markup(HTMLParser):
    """What a page is made of: anything in it that a template does not write is in `found`."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if MARK in values or tag in ("iframe", "object", "embed", "base", "style"):
            self.found.append(tag)
        if tag == "script" and not (values.get("src") or "").startswith("/console/static/"):
            self.found.append("a script in the page")
        for name, value in attrs:
            if (
                name.startswith("on")
                or name == "style"
                or re.match(r"\s*(javascript|data|vbscript):", value or "", re.IGNORECASE)
            ):
                self.found.append(f"{tag} {name}={value}")


def filled(path: str, gateway: Administered) -> str:
    """Return a path of the table with its variables filled in."""
    if not IDS:
        IDS["/keys"] = gateway.admin("GET", "/keys").json()["data"][0]["id"]
        IDS["/requests"] = gateway.admin("GET", "/requests").json()["data"][0]["id"]
    name = next((found for start, found in IDS.items() if path.startswith(start)), quote(HOSTILE, safe=""))
    path = path.replace("{id}", name).replace("{part}", "client_request").replace("{client}", "chat")
    return path.replace("{upstream}", "messages").replace("{name}", "up").replace("{action}", "disable")


def pages(gateway: Administered) -> list[str]:
    """Return every page of the table, with hostile parameters where a page reads any, and pages that do not exist."""
    hostile = quote(HOSTILE, safe="")
    query = f"?model={hostile}&tenant={hostile}&session={hostile}&scope={hostile}&actor={hostile}&to={hostile}"
    paths = [
        filled(route.path, gateway) for route in ROUTES if route.method == "GET" and route.path != "/requests/live"
    ]
    parts = [f"{to}?from={hostile}" for to, _ in NAVIGATION]
    return [
        *paths,
        *(path + query.replace("&to=", "&x=") for path in paths),
        *parts,
        f"/{hostile}",
        f"/requests/{hostile}",
    ]


@pytest.fixture(scope="module")
def visited(gateway: Administered, admin: Visitor, viewer: Visitor) -> list[httpx2.Response]:
    """Give the answers to all pages, and to the pieces of them that scripts load."""
    paths = pages(gateway)
    piece = {"hx-request": "true"}
    return [admin.get(path) for path in paths] + [viewer.get(path, piece) for path in paths]


def test_values_are_text_on_every_page(visited: list[httpx2.Response]) -> None:
    holes: dict[str, list[str]] = {}
    seen = 0
    for answer in visited:
        assert answer.status_code < 500, answer.url
        if answer.headers.get("content-type", "").startswith("text/html"):
            markup = Markup()
            markup.feed(answer.text)
            seen += MARK in answer.text
            if markup.found or "49&lt;b" in answer.text:
                holes[str(answer.url)] = markup.found
    assert (holes, seen > len(NAVIGATION)) == ({}, True)


@pytest.mark.parametrize("path", POSTED)
def test_values_that_were_entered_are_text(gateway: Administered, admin: Visitor, path: str) -> None:
    fields = (
        "name",
        "tenant",
        "models",
        "requests",
        "scope",
        "amount",
        "period",
        "zone",
        "warn_at",
        "toml",
        "to",
        "key",
    )
    if path in ("/sign-out", "/configuration/reload") or path.endswith("{action}"):
        return
    answer = admin.post(filled(path, gateway), dict.fromkeys(fields, HOSTILE))
    markup = Markup()
    markup.feed(answer.text if answer.headers["content-type"].startswith("text/html") else "")
    assert markup.found == []


def test_the_parser_notices_holes() -> None:
    markup = Markup()
    markup.feed(HOSTILE + '<a href="javascript:alert(1)" style="x">')
    assert len(markup.found) >= 5


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_template_turns_escapes_off(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"\|\s*safe\b|autoescape|Markup|\sstyle=|\son\w+=|hx-on|hx-vals|<style", text) == []
    assert re.findall(r"<script(?! src=\"\{\{ static\()", text) == []
    assert re.findall(r"\s[\w-]+=\{\{", text) == []  # a value without quotes around it could leave its attribute


@pytest.mark.parametrize("path", POSTED)
def test_a_form_needs_the_token_and_the_origin(gateway: Administered, admin: Visitor, path: str) -> None:
    """Signing in has no session yet: another origin cannot do it either."""
    place = filled(path, gateway)
    assert admin.post(place, {}, {"origin": "https://evil.example"}).status_code == 403
    if path != "/sign-in":
        assert admin.post(place, {"csrf": "0" * 64}, token=False).status_code == 403
        assert admin.post(place, {}, token=False).status_code == 403


@pytest.mark.parametrize("path", POSTED)
def test_viewers_change_nothing(gateway: Administered, viewer: Visitor, path: str) -> None:
    if path in ("/sign-in", "/sign-out"):
        return
    before = gateway.admin("GET", "/audit").json()["data"]
    status = viewer.post(filled(path, gateway), {"toml": "", "name": "mine"}).status_code
    assert (status == 403) is (path not in READING)
    assert gateway.admin("GET", "/audit").json()["data"] == before


def test_no_page_has_a_secret(visited: list[httpx2.Response]) -> None:
    for answer in visited:
        text = answer.text.replace("--client-key-env", "")  # the name of an option
        assert [one for one in (*SECRETS.values(), UPSTREAM_SECRET) if one in text] == [], answer.url


def test_every_answer_has_the_headers(gateway: Administered, visited: list[httpx2.Response]) -> None:
    """Pages, errors, files, redirects: no frame, no script of others; nothing but files stays in a cache."""
    stranger = Visitor(gateway.url)
    others = [stranger.get(path) for path in ("/", "/sign-in", "/keys", "/static/nothing.js", "/static/console.js")]
    stranger.close()
    for answer in (*visited, *others):
        for name, value in SECURITY_HEADERS:
            assert answer.headers.get(name) == value, answer.url
        kept = "/static/" in str(answer.url)
        assert kept or answer.headers["cache-control"] == "no-store", answer.url
        assert answer.headers["x-content-type-options"] == "nosniff", answer.url
