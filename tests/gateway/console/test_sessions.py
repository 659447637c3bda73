"""Who may see the console: keys and their roles, cookies, tokens of forms, origins, and gateways without keys."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple, cast

import httpx2
import pytest

from tests.gateway.admin.administered import ADMIN, CLIENT, KEYS, SECRETS, VIEWER, Administered
from tests.gateway.console.visited import Visitor
from tests.gateway.running_gateway import TIMEOUT
from xenoglot.errors import FailureError
from xenoglot.gateway.auth.keys import Keyring, Principal, digest_of_wire
from xenoglot.gateway.console.sessions import ALL, COOKIE, LOGINS, Sessions
from xenoglot.gateway.endpoint.request_context import AuthService
from xenoglot.policy.auth_throttle import AuthThrottle, ThrottleSettings
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.gateway.admin.services import AdminServices
    from xenoglot.gateway.http.application import Exchange
    from xenoglot.model.json import JSON, JSONObject

STORED = {**KEYS, "store": True}


def served(upstream: Upstream, keys: JSONObject, **more: JSON) -> Administered:
    """Return a gateway with these keys, in front of a scripted server."""
    return Administered(upstream, environ=SECRETS, keys=keys, **{"ledger": {}, **more})


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream(*answers("chat", text="Hello.").rules()) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(upstream: Upstream) -> Iterator[Administered]:
    with served(upstream, STORED) as running:
        yield running


@pytest.fixture
def visitor(gateway: Administered) -> Iterator[Visitor]:
    browser = Visitor(gateway.url)
    yield browser
    browser.close()


@pytest.mark.parametrize("path", ["/", "/requests?failed=true", "/nothing"])
def test_without_a_session_one_has_to_sign_in(visitor: Visitor, path: str) -> None:
    answer = visitor.get(path)
    if path == "/nothing":
        assert (answer.status_code, "no page" in answer.text) == (404, True)
        return
    assert (answer.status_code, answer.text) == (303, "")
    assert answer.headers["location"].partition("?")[0] == "/console/sign-in"
    assert visitor.sign_in(ADMIN, "/requests?failed=true").headers["location"] == "/console/requests?failed=true"


@pytest.mark.parametrize(("key", "role"), [(ADMIN, "admin"), (VIEWER, "viewer")])
def test_a_key_with_a_role_opens_a_session(visitor: Visitor, key: str, role: str) -> None:
    answer = visitor.sign_in(key)
    cookie = answer.headers["set-cookie"]
    assert answer.status_code == 303
    assert cookie.split("; ")[1:] == ["Path=/console", "Max-Age=43200", "HttpOnly", "SameSite=Strict"]
    page = visitor.get()
    assert page.status_code == 200
    assert f"· {role}" in page.text
    assert key not in page.text
    assert key not in cookie


@pytest.mark.parametrize(
    ("key", "status", "problem"),
    [
        (CLIENT, 403, "neither the role admin nor the role viewer"),
        ("wrong", 401, "not one of this gateway"),
        ("", 401, "enter the API key"),
        ("schlüssel", 401, "enter the API key"),
    ],
)
def test_other_keys_open_none(visitor: Visitor, key: str, status: int, problem: str) -> None:
    answer = visitor.sign_in(key)
    assert (answer.status_code, problem in answer.text, visitor.cookies) == (status, True, {})


class _Sender(NamedTuple):
    """What of a request tells who sent it."""

    peer: str = "203.0.113.5"
    query: str = ""
    headers: tuple[()] = ()


async def test_wrong_keys_are_slowed_down() -> None:
    auth = AuthService(Keyring(["right"]), lambda: 0.0)
    sessions = Sessions(cast("AdminServices", None), auth)
    kinds = []
    for number in range(ThrottleSettings().burst + 1):
        with pytest.raises(FailureError) as raised:
            await sessions.sign_in(cast("Exchange", _Sender()), f"wrong-{number}")
        kinds.append(raised.value.failure.kind)
    assert kinds == ["authentication"] * ThrottleSettings().burst + ["rate_limit"]


async def test_wrong_keys_of_many_addresses_are_slowed_down_together() -> None:
    """A key that has opened the console before still does; a right one that is new waits as a wrong one does."""
    auth = AuthService(Keyring(["right"]), lambda: 0.0)
    throttle = AuthThrottle(LOGINS)
    throttle.accepted(ALL, digest_of_wire("known").hex(), 0.0)
    sessions = Sessions(cast("AdminServices", None), auth, throttle)
    kinds = []
    for number in range(LOGINS.burst + 1):
        with pytest.raises(FailureError) as raised:
            await sessions.sign_in(cast("Exchange", _Sender(peer=f"203.0.{number % 250}.5")), f"wrong-{number}")
        kinds.append(raised.value.failure.kind)
    assert kinds == ["authentication"] * LOGINS.burst + ["rate_limit"]
    client = Principal(owner="o", admin=True)
    with pytest.raises(FailureError):
        sessions._limit(client, "new")
    sessions._limit(client, "known")


def test_a_cookie_that_came_before_is_no_session_after(visitor: Visitor, gateway: Administered) -> None:
    """Session fixation: a session has a token of its own, whatever the browser had, and each another one."""
    planted = {"cookie": f"{COOKIE}={'a' * 43}"}
    answer = visitor.post("/sign-in", {"key": ADMIN}, planted, token=False)
    first = visitor.cookies[COOKIE]
    assert (answer.status_code, first != "a" * 43) == (303, True)
    assert visitor.get("/", planted).status_code == 303
    other = Visitor(gateway.url)
    other.sign_in(ADMIN)
    assert other.cookies[COOKIE] != first
    other.close()


def test_cookies_go_over_https_alone_where_the_page_did(visitor: Visitor) -> None:
    form = {"key": ADMIN}
    answer = visitor.post("/sign-in", form, {"origin": visitor.url.replace("http:", "https:")}, token=False)
    assert answer.headers["set-cookie"].endswith("; Secure")


def test_signing_out_ends_the_session_everywhere(visitor: Visitor, gateway: Administered) -> None:
    visitor.sign_in(ADMIN)
    token = visitor.cookies[COOKIE]
    answer = visitor.post("/sign-out", {})
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/sign-in")
    other = Visitor(gateway.url)
    assert other.get("/", {"cookie": f"{COOKIE}={token}"}).status_code == 303
    other.close()


def test_a_session_ends_with_its_key(visitor: Visitor, gateway: Administered) -> None:
    made = gateway.admin("POST", "/keys", {"name": "visitor", "roles": ["viewer"]}).json()
    visitor.sign_in(made["secret"])
    assert visitor.get().status_code == 200
    gateway.admin("PATCH", "/keys/visitor", {"disabled": True})
    assert visitor.get().status_code == 303


ENDINGS: tuple[tuple[str, str, JSON], ...] = (
    ("PATCH", "", {"disabled": True}),
    ("PATCH", "", {"expires": 1.0}),
    ("PATCH", "", {"roles": ["client"]}),
    ("POST", "/rotate", {"keep_old": 0}),
    ("DELETE", "", None),
)
"""Requests after which the secret of a key opens the console no more."""


@pytest.mark.parametrize(
    ("method", "action", "body"), ENDINGS, ids=["disabled", "expired", "role", "rotated", "deleted"]
)
def test_live_rows_end_with_the_key(
    visitor: Visitor, gateway: Administered, method: str, action: str, body: JSON
) -> None:
    """Those of the console, and those of the administration."""
    made = gateway.admin("POST", "/keys", {"name": "follower", "roles": ["viewer"]}).json()
    visitor.sign_in(made["secret"])
    places = {
        f"{gateway.url}/console/requests/live": {"cookie": f"{COOKIE}={visitor.cookies[COOKIE]}"},
        f"{gateway.url}/admin/v1/requests?follow=true": {"x-api-key": made["secret"]},
    }
    with ExitStack() as stack:
        streams = []
        for place, headers in places.items():
            answer = stack.enter_context(httpx2.stream("GET", place, headers=headers, timeout=TIMEOUT))
            streams.append(answer.iter_lines())
            assert next(streams[-1]) == ": requests as they end"
        assert gateway.admin(method, f"/keys/follower{action}", body).status_code in (200, 201, 204)
        for lines in streams:
            assert [line for line in lines if line.startswith("data:")] == []
    gateway.admin("DELETE", "/keys/follower")


def test_live_rows_end_with_the_session(visitor: Visitor, gateway: Administered) -> None:
    visitor.sign_in(VIEWER)
    headers = {"cookie": f"{COOKIE}={visitor.cookies[COOKIE]}"}
    with httpx2.stream("GET", f"{gateway.url}/console/requests/live", headers=headers, timeout=TIMEOUT) as answer:
        lines = answer.iter_lines()
        assert next(lines) == ": requests as they end"
        visitor.post("/sign-out", {})
        assert [line for line in lines if line.startswith("data:")] == []


@pytest.mark.parametrize("token", ["", "0" * 64, "é"])
def test_a_form_without_the_token_of_its_session_changes_nothing(visitor: Visitor, token: str) -> None:
    visitor.sign_in(ADMIN)
    answer = visitor.post("/sign-out", {"csrf": token}, token=False)
    assert (answer.status_code, visitor.get().status_code) == (403, 200)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
def test_pages_of_other_origins_send_nothing(visitor: Visitor, origin: str) -> None:
    visitor.sign_in(ADMIN)
    assert visitor.post("/sign-out", {}, {"origin": origin}).status_code == 403
    assert visitor.get().status_code == 200


@pytest.mark.parametrize("to", ["https://evil.example", "//evil.example", "/\\evil.example\n", "javascript:alert(1)"])
def test_signing_in_leads_to_no_other_site(visitor: Visitor, to: str) -> None:
    place = visitor.sign_in(ADMIN, to).headers["location"]
    assert place == "/console" or place.startswith("/console/")


@pytest.mark.parametrize("cookie", ["", "x", "=", "a=b;;", "xenoglot_console", "xenoglot_console=" + "a" * 5000])
def test_any_cookie_is_read(visitor: Visitor, cookie: str) -> None:
    assert visitor.get("/", {"cookie": cookie}).status_code == 303


def test_pages_may_run_nothing_but_our_own_scripts(visitor: Visitor) -> None:
    visitor.sign_in(ADMIN)
    answer = visitor.get()
    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("keys", "more", "status"),
    [
        ({}, {}, 200),  # nobody needs a key, and only this machine can reach it
        ({}, {"server": {"port": 0, "console": False}}, 404),
        ({"env": ["CLIENT"]}, {}, 404),  # whoever has a key of a client is no administrator
        ({**KEYS}, {"store": {"url": "off"}, "ledger": {"enabled": False}}, 404),  # sessions have no place
        ({**KEYS}, {"server": {"port": 0, "console": False}}, 404),
    ],
)
def test_where_there_is_a_console(upstream: Upstream, keys: JSONObject, more: JSONObject, status: int) -> None:
    with served(upstream, keys, **more) as running:
        browser = Visitor(running.url)
        answer = browser.get()
        assert answer.status_code == status
        assert ("Sign out" in answer.text, "read only" in answer.text) == (False, status == 200)
        browser.close()
