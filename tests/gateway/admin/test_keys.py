"""`/admin/v1/keys` and `/admin/v1/audit`: keys are handed out and taken back over HTTP, each change on record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.gateway.admin.administered import ADMIN, KEYS, SECRETS, VIEWER, Administered
from tests.gateway.running_gateway import TIMEOUT
from xenoglot.gateway.auth import stored_keys
from xenoglot.gateway.auth.managed_keys import is_secret
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.json import JSON, JSONObject


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    """Give a server that answers."""
    with Upstream(*answers("chat", text="Hi").rules()) as scripted:
        yield scripted


@pytest.fixture(scope="module")
def administered(upstream: Upstream) -> Iterator[Administered]:
    """Give a gateway that accepts keys of its store, and looks for changes so seldom that none is found by that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_keys, "POLL_SECONDS", 3600.0)
        with Administered(upstream, environ=SECRETS, keys={**KEYS, "store": True}) as running:
            yield running


def status(running: Administered, key: str, model: str = "m") -> int:
    """Return the status of a request with this key."""
    body = {"model": model, "messages": [{"role": "user", "content": "Hi"}]}
    headers = {"authorization": f"Bearer {key}"}
    return httpx2.post(f"{running.url}/v1/chat/completions", json=body, headers=headers, timeout=TIMEOUT).status_code


def made(running: Administered, **body: JSON) -> JSONObject:
    """Create a key."""
    answer = running.admin("POST", "/keys", body)
    assert answer.status_code == 201, answer.text
    found: JSONObject = answer.json()
    return found


def test_a_key_lives_from_its_creation_to_its_deletion(administered: Administered) -> None:
    limits: JSONObject = {"requests": ["600/1m"], "concurrency": 4}
    key = made(administered, tenant="ada", name="laptop", models=["m", "n*"], limits=limits, expires="90d")
    secret, place = key.pop("secret"), f"/keys/{key['id']}"
    assert is_secret(secret)
    assert (key["name"], key["tenant"], key["models"], key["limits"]) == ("laptop", "ada", ["m", "n*"], limits)
    assert (key["state"], key["roles"], key["expires"] - key["created"]) == ("active", ["client"], 90 * 86_400)
    assert [status(administered, secret, model) for model in ("m", "nine", "x")] == [200, 200, 404]
    assert administered.admin("GET", place, key=VIEWER).json() == key
    assert administered.admin("GET", "/keys/laptop").json() == key
    assert administered.admin("GET", "/keys?tenant=ada").json()["data"] == [key]

    changed = administered.admin("PATCH", place, {"models": [], "limits": None, "name": "desktop", "expires": None})
    assert changed.json() == key | {"models": [], "limits": None, "name": "desktop", "expires": None}
    assert status(administered, secret, "x") == 200
    disabled = administered.admin("PATCH", place, {"disabled": True}).json()
    assert disabled["state"] == "disabled"
    assert status(administered, secret) == 401
    administered.admin("PATCH", place, {"disabled": False})
    assert status(administered, secret) == 200

    rotated = administered.admin("POST", f"{place}/rotate", {"keep_old": 60}).json()
    assert rotated["id"] == key["id"]
    assert [status(administered, one) for one in (secret, rotated["secret"])] == [200, 200]
    last = administered.admin("POST", f"{place}/rotate", {"keep_old": 0}).json()
    keys = (secret, rotated["secret"], last["secret"])
    assert [status(administered, one) for one in keys] == [401, 401, 200]
    deleted = administered.admin("DELETE", place)
    assert (deleted.status_code, deleted.json()["name"]) == (200, "desktop")
    assert status(administered, last["secret"]) == 401
    assert administered.admin("GET", place).status_code == 404

    log = administered.admin("GET", f"/audit?object=key:{key['id']}", key=VIEWER)
    entries = log.json()["data"]
    assert [entry["action"] for entry in entries] == [
        "key.delete", "key.rotate", "key.rotate", "key.enable", "key.disable", "key.update", "key.create",
    ]  # fmt: skip
    assert all(entry["actor"].startswith("key_") and entry["request"].startswith("req_") for entry in entries)
    assert (entries[5]["before"]["name"], entries[5]["after"]["name"]) == ("laptop", "desktop")
    assert [one for one in keys if one in log.text] == []


def test_the_budgets_of_a_key_are_deleted_with_it(administered: Administered) -> None:
    key = made(administered, budgets=["50/month", "5/day"])
    made(administered, budgets=["50/month"])
    assert administered.admin("DELETE", f"/keys/{key['id']}").status_code == 200
    deleted = administered.admin("GET", "/audit?action=budget.delete").json()["data"]
    assert [entry["before"]["scope"] for entry in deleted] == [f"key:{key['id']}"] * 2
    assert {entry["object"] for entry in deleted} == {f"budget:{name}" for name in key["budgets"]}


def test_an_administrator_with_a_key_of_the_store_can_hand_out_keys(administered: Administered) -> None:
    admin = made(administered, roles=["admin"])["secret"]
    viewer = made(administered, roles=["viewer"])["secret"]
    assert administered.admin("POST", "/keys", {}, key=admin).status_code == 201
    assert administered.admin("POST", "/keys", {}, key=viewer).status_code == 403
    assert administered.admin("GET", "/keys", key=viewer).status_code == 200
    assert [status(administered, one) for one in (admin, viewer)] == [403, 403]


def test_lists_have_pages(administered: Administered) -> None:
    names = [made(administered, tenant="pages", name=f"page-{number}")["name"] for number in range(5)]
    seen: list[str] = []
    after = ""
    while True:
        page = administered.admin("GET", f"/keys?tenant=pages&limit=2{after}").json()
        seen += [key["name"] for key in page["data"]]
        assert page["has_more"] is (page["next"] is not None)
        if not page["has_more"]:
            break
        after = f"&after={page['next']}"
    assert sorted(seen) == names
    first = administered.admin("GET", "/audit?limit=2&action=key.create").json()
    rest = administered.admin("GET", f"/audit?limit=2&action=key.create&after={first['next']}").json()
    ids = [entry["id"] for entry in (*first["data"], *rest["data"])]
    assert len(set(ids)) == 4


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        pytest.param("POST", "/keys", {"colour": 1}, (400, "colour"), id="unknown-field"),
        pytest.param("POST", "/keys", {"name": "a b"}, (400, "name"), id="name"),
        pytest.param("POST", "/keys", {"roles": ["root"]}, (400, "roles[0]"), id="role"),
        pytest.param("POST", "/keys", {"limits": {"speed": 1}}, (400, "limits.speed"), id="unknown-limit"),
        pytest.param("POST", "/keys", {"limits": {"tokens": ["x"]}}, (400, "limits.tokens[0]"), id="window"),
        pytest.param("POST", "/keys", {"budgets": ["50"]}, (400, "budgets"), id="budget"),
        pytest.param("POST", "/keys", {"expires": "soon"}, (400, "expires"), id="expires"),
        pytest.param("POST", "/keys", {"expires": 1.0}, (400, "expires"), id="past"),
        pytest.param("PATCH", "/keys/key_0", {}, (404, None), id="no-such-key"),
        pytest.param("PATCH", "/keys/key_0", {"tenant": "ben"}, (400, "tenant"), id="tenants-stay"),
        pytest.param("POST", "/keys/key_0/rotate", {}, (404, None), id="rotate-none"),
        pytest.param("POST", "/keys/key_0/rotate", {"keep_old": "never"}, (400, "keep_old"), id="keep"),
        pytest.param("DELETE", "/keys/key_0", None, (404, None), id="delete-none"),
        pytest.param("GET", "/keys?after=x", None, (400, "after"), id="cursor"),
        pytest.param("GET", "/audit?from=x", None, (400, "from"), id="time"),
    ],
)
def test_mistakes_have_their_path(
    administered: Administered, method: str, path: str, body: JSON, expected: tuple[int, str | None]
) -> None:
    answer = administered.admin(method, path, body)
    assert (answer.status_code, answer.json()["error"]["param"]) == expected


def test_two_keys_have_not_one_name(administered: Administered) -> None:
    made(administered, name="taken")
    answer = administered.admin("POST", "/keys", {"name": "taken"})
    assert (answer.status_code, answer.json()["error"]["message"]) == (409, "another key is named `taken`")


def test_without_keys_of_the_store_there_are_none_to_administer(upstream: Upstream) -> None:
    with Administered(upstream, environ=SECRETS, keys=KEYS) as running:
        answers_ = [running.admin("GET", "/keys"), running.admin("POST", "/keys", {}, key=ADMIN)]
        log = running.admin("GET", "/audit")
    assert [answer.status_code for answer in answers_] == [404, 404]
    assert "set `store = true` under [keys]" in answers_[0].text
    assert (log.status_code, log.json()["data"]) == (200, [])
