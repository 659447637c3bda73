"""Keys, budgets and the audit log in the console: forms, their errors, and what viewers see of them."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING

import pytest

from tests.gateway.admin.administered import ADMIN, KEYS, SECRETS, Administered
from tests.gateway.console.visited import Visitor
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterator

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def gateway() -> Iterator[Administered]:
    """Give a gateway with keys in its store and a budget in its file."""
    with (
        Upstream(*answers("chat", text="Hi").rules()) as server,
        Administered(
            server,
            environ=SECRETS,
            keys={**KEYS, "store": True},
            ledger={},
            budgets=[{"scope": "all", "amount": 100, "period": "total"}],
        ) as running,
    ):
        yield running


def secret_of(page: str) -> str:
    found = re.search(r'<pre id="secret"[^>]*>(.*?)</pre>', page)
    assert found is not None
    return found[1]


def row(page: str, name: str) -> str:
    """Return the row of a table that has a name."""
    found: list[str] = [one for one in re.findall(r"<tr\b.*?</tr>", page, re.DOTALL) if f">{name}<" in one]
    assert len(found) == 1
    return found[0]


def actions(part: str) -> list[str]:
    return [unescape(one) for one in re.findall(r'action="/console(/[^"]+)"', part)]


def budget_of(gateway: Administered, scope: str) -> tuple[object, ...]:
    (found,) = (one for one in gateway.admin("GET", "/budgets").json()["data"] if one["scope"] == scope)
    return found["amount"], found["warn_at"], found["on_exceeded"], found["zone"]


def test_a_key_lives_in_the_console(admin: Visitor, gateway: Administered) -> None:
    form = {"name": "laptop", "tenant": "ada", "roles": "client", "models": "small*, big", "expires": "90d"}
    made = admin.post("/keys", {**form, "requests": "600/1m", "concurrency": "4", "budgets": ""})
    assert (made.status_code, made.headers["location"]) == (303, "/console/keys")
    secret = secret_of(admin.get("/keys").text)
    (key,) = gateway.admin("GET", "/keys?tenant=ada").json()["data"]
    assert (key["models"], key["limits"]) == (["small*", "big"], {"requests": ["600/1m"], "concurrency": 4})
    listed = admin.get("/keys").text
    assert secret not in listed
    rotate, disable, _ = actions(row(listed, "laptop"))
    assert admin.post(rotate, {"keep_old": "1h"}).status_code == 303
    assert secret_of(admin.get("/keys").text) not in (secret, "")
    assert admin.post(disable, {}).headers["location"] == "/console/keys"
    _, enable, delete = actions(row(admin.get("/keys").text, "laptop"))
    assert gateway.admin("GET", "/keys/laptop").json()["state"] == "disabled"
    assert admin.post(enable, {}).status_code == 303
    assert gateway.admin("GET", "/keys/laptop").json()["state"] == "active"
    assert admin.post(delete, {}).status_code == 303
    assert gateway.admin("GET", "/keys/laptop").status_code == 404


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("expires", "soon", "expected"),
        ("concurrency", "many", "expected a whole number"),
        ("budgets", "much", "expected"),
        ("requests", "many", "expected"),
        ("roles", "king", "king"),
    ],
)
def test_a_mistake_is_shown_at_its_field(admin: Visitor, field: str, value: str, problem: str) -> None:
    answer = admin.post("/keys", {"models": HOSTILE, "roles": "client", field: value})
    assert answer.status_code == 400
    assert problem.lower() in answer.text.lower()
    if field != "roles":
        assert f'aria-describedby="problem-{field}"' in answer.text
        assert f'value="{value}"' in answer.text
    assert "<img" not in answer.text


def test_a_key_is_changed_after_its_creation(admin: Visitor, viewer: Visitor, gateway: Administered) -> None:
    form = {"name": "changing", "tenant": "bob", "models": "small*", "requests": "60/1m", "concurrency": "4"}
    admin.post("/keys", form)
    (key,) = gateway.admin("GET", "/keys?tenant=bob").json()["data"]
    gateway.admin("PATCH", f"/keys/{key['id']}", {"limits": {**key["limits"], "queue": 3}})
    page = admin.get(f"/keys/{key['id']}").text
    assert ('name="models"' in page, 'value="small*"' in page, 'value="60/1m"' in page) == (True, True, True)
    wrong = admin.post(f"/keys/{key['id']}", {**form, "requests": "many"})
    assert (wrong.status_code, 'id="problem-requests"' in wrong.text) == (400, True)
    wanted = {"name": "changed", "roles": "viewer", "models": "big, huge", "requests": "", "tokens": "9/1h"}
    saved = admin.post(f"/keys/{key['id']}", {**wanted, "concurrency": "", "expires": "90d"})
    assert saved.headers["location"] == f"/console/keys/{key['id']}"
    found = gateway.admin("GET", f"/keys/{key['id']}").json()
    assert (found["name"], found["roles"], found["models"]) == ("changed", ["viewer"], ["big", "huge"])
    assert found["limits"] == {"tokens": ["9/1h"], "queue": 3}
    assert admin.post(f"/keys/{key['id']}", {"name": "changed", "roles": "viewer"}).status_code == 303
    emptied = gateway.admin("GET", f"/keys/{key['id']}").json()
    assert (emptied["models"], emptied["limits"], emptied["expires"]) == ([], {"queue": 3}, found["expires"])
    assert viewer.post(f"/keys/{key['id']}", wanted).status_code == 403
    assert "<form" not in viewer.get(f"/keys/{key['id']}").text.partition("<main")[2]
    assert admin.get("/keys/none").status_code == 404


def test_a_secret_is_shown_once_to_the_session_that_made_it(admin: Visitor, gateway: Administered) -> None:
    """A reload shows it no more, another session never, and a cookie that the session did not make is no secret."""
    other = Visitor(gateway.url)
    other.sign_in(ADMIN)
    made = admin.post("/keys", {"name": "once"})
    cookie = made.headers["set-cookie"]
    assert "; Path=/console/keys; Max-Age=120; HttpOnly; SameSite=Strict" in cookie
    first = admin.get("/keys")
    assert secret_of(first.text).startswith("xg-")
    assert "Max-Age=0" in first.headers["set-cookie"]
    assert 'id="secret"' not in admin.get("/keys").text
    session = f"xenoglot_console={other.cookies['xenoglot_console']}"
    for stolen in (cookie.partition(";")[0], "xenoglot_console_key=AAAA", "xenoglot_console_key=%"):
        answer = other.get("/keys", {"cookie": f"{session}; {stolen}"})
        assert (answer.status_code, 'id="secret"' in answer.text) == (200, False)
    other.close()


def test_a_second_key_of_a_name_is_refused(admin: Visitor) -> None:
    assert admin.post("/keys", {"name": "twice"}).status_code == 303
    answer = admin.post("/keys", {"name": "twice"})
    assert answer.status_code == 409
    assert 'role="alert"' in answer.text


def test_a_budget_lives_in_the_console(admin: Visitor, gateway: Administered) -> None:
    form = {"scope": "model:a/b*", "amount": "2.5", "currency": "USD", "period": "month", "warn_at": "80"}
    assert admin.post("/budgets", form).headers["location"] == "/console/budgets"
    page = admin.get("/budgets").text
    assert "set in the file" in row(page, "all")
    mine = row(page, "model:a/b*")
    assert '<meter min="0" max="2500000" value="0" high="2000000"' in mine
    change, delete = actions(mine)
    refused = admin.post(change, {"amount": "much"})
    assert (refused.status_code, "expected a number" in row(refused.text, "model:a/b*")) == (400, True)
    refused = admin.post(change, {"amount": "3", "warn_at": "many"})
    assert (refused.status_code, "expected a whole number" in row(refused.text, "model:a/b*")) == (400, True)
    wanted = {"amount": "3", "warn_at": "50", "on_exceeded": "warn", "zone": "Europe/Oslo"}
    assert admin.post(change, wanted).status_code == 303
    assert budget_of(gateway, "model:a/b*") == (3_000_000, 50, "warn", "Europe/Oslo")
    assert admin.post(change, {**wanted, "warn_at": ""}).status_code == 303
    assert budget_of(gateway, "model:a/b*") == (3_000_000, None, "warn", "Europe/Oslo")
    assert "set in the file" not in admin.get("/budgets?scope=model:a/b*").text
    again = admin.post("/budgets", form)
    assert (again.status_code, "change it with PATCH" in again.text) == (409, True)
    assert admin.post(delete, {}).status_code == 303
    assert len(gateway.admin("GET", "/budgets").json()["data"]) == 1


@pytest.mark.parametrize(
    ("field", "value"), [("scope", "nobody"), ("amount", "-1"), ("warn_at", "x"), ("zone", "Mars")]
)
def test_a_mistake_of_a_budget_is_shown_at_its_field(admin: Visitor, field: str, value: str) -> None:
    form = {"scope": "all", "amount": "1", "period": "day", "currency": "USD", field: value}
    answer = admin.post("/budgets", form)
    assert answer.status_code == 400
    assert f'id="problem-{field}"' in answer.text


@pytest.mark.parametrize("path", ["/keys", "/budgets"])
def test_viewers_see_no_forms_and_change_nothing(viewer: Visitor, path: str) -> None:
    page = viewer.get(path).text
    assert [one for one in actions(page) if one != "/sign-out"] == []
    assert viewer.post(path, {"name": "mine", "scope": "all", "amount": "1"}).status_code == 403


def test_the_log_has_what_was_changed(admin: Visitor, viewer: Visitor) -> None:
    made = admin.post("/keys", {"name": "hostile", "models": HOSTILE, "roles": "client"})
    assert made.status_code == 303
    page = viewer.get("/audit?action=key.create").text
    assert "<img" not in page
    assert "key.create" in page
    assert "<b>roles</b>: client</div>" in page  # what was created has nothing before it, and a list no brackets
    assert re.search(r"<b>created</b>: \d{4}-\d\d-\d\dT", page)
    assert "&lt;img src=x" in page
    assert "No change matches" in viewer.get("/audit?actor=nobody").text
    assert viewer.get("/audit?from=never").status_code == 400


def test_a_gateway_without_them_says_what_to_set() -> None:
    with (
        Upstream(*answers("chat", text="Hi").rules()) as server,
        Administered(server, environ=SECRETS, keys=KEYS) as running,
    ):
        browser = Visitor(running.url)
        browser.sign_in(ADMIN)
        keys, budgets = browser.get("/keys"), browser.get("/budgets")
        browser.close()
    assert (keys.status_code, "store = true" in keys.text) == (200, True)
    assert (budgets.status_code, "[ledger]" in budgets.text) == (200, True)
