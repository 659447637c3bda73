"""State of a gateway over HTTP: upstreams and a check of one, tenants, the configuration, a reload, a translation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gateway.admin.administered import KEYS, SECRETS, Administered
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

    from xenoglot.model.json import JSON, JSONObject

UPSTREAM_KEYS = {"UP": "sk-upstream-0123456789 sk-upstream-9876543210", "ADA": "ada-secret-0123456789"}
TENANTS: JSONObject = {"ada": {"key_env": "ADA", "models": ["m*"]}}


@pytest.fixture(scope="module")
def administered() -> Iterator[Administered]:
    """Give a gateway with two keys for its upstream, and a tenant."""
    with (
        Upstream(*answers("chat", text="Hi").rules()) as server,
        Administered(
            server,
            environ=SECRETS | UPSTREAM_KEYS,
            keys=KEYS,
            tenants=TENANTS,
            upstream={"key_env": "UP"},
            upstreams={
                "up": {"dialect": "chat", "base_url": server.url, "key_env": "UP"},
                "down": {"dialect": "messages", "base_url": "http://127.0.0.1:9/v1"},
            },
            models=[{"name": "*", "upstream": "up"}],
            ledger={},
        ) as running,
    ):
        running.generate("m")
        yield running


def test_upstreams_have_their_state(administered: Administered) -> None:
    page = administered.admin("GET", "/upstreams").json()
    up, down = page["data"]
    assert (up["name"], up["dialect"], up["keys"], down["name"], down["targets"]) == ("up", "chat", 2, "down", [])
    (target,) = up["targets"]
    assert isinstance(target.pop("first_byte_ms"), float), "the clock of an event loop may count whole milliseconds"
    assert target == {
        "model": "", "breaker": "closed", "running": 0, "attempts": {"answered": 1}, "keys": 2, "keys_resting": 0
    }  # fmt: skip
    assert "sk-upstream" not in str(page)


@pytest.mark.parametrize(
    ("name", "ok", "problem"),
    [pytest.param("down", False, "connect", id="unreachable")],
)
def test_an_upstream_is_checked(administered: Administered, name: str, ok: bool, problem: str) -> None:  # noqa: FBT001  a case
    found = administered.admin("POST", f"/upstreams/{name}/check").json()
    assert (found["name"], found["ok"], found["models"]) == (name, ok, [])
    assert problem in found["problem"]


def test_an_upstream_that_does_not_exist(administered: Administered) -> None:
    assert administered.admin("POST", "/upstreams/nothing/check").status_code == 404


def test_tenants_have_their_models_and_the_number_of_their_keys(administered: Administered) -> None:
    assert administered.admin("GET", "/tenants").json()["data"] == [
        {"name": "ada", "configured": True, "models": ["m*"], "file_keys": 1, "stored_keys": 0}
    ]


def test_the_configuration_has_no_secrets(administered: Administered) -> None:
    answer = administered.admin("GET", "/config")
    config = answer.json()["config"]
    assert config["upstreams"]["up"]["key_env"] == "UP"
    assert config["keys"]["admin_env"] == ["ADMIN"]
    for secrets in (SECRETS | UPSTREAM_KEYS).values():
        assert all(secret not in answer.text for secret in secrets.split())


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        pytest.param("[server", ["not TOML: "], id="not-toml"),
        pytest.param("[server]\nport = 'x'\ncolour = 1", ["server.colour", "server.port"], id="two-mistakes"),
    ],
)
def test_a_configuration_with_mistakes(administered: Administered, text: str, problems: list[str]) -> None:
    found = administered.admin("POST", "/config/check", {"toml": text}).json()
    assert (found["ok"], found["changed"]) == (False, [])
    assert [any(problem in line for line in found["problems"]) for problem in problems] == [True] * len(problems)


def test_a_check_lists_what_would_change(administered: Administered) -> None:
    text = '[upstreams.up]\ndialect = "chat"\nbase_url = "http://127.0.0.1:9/v1"\n[server]\ndrain_seconds = 7.0\n'
    found = administered.admin("POST", "/config/check", {"toml": text}).json()
    assert (found["ok"], found["problems"]) == (True, [])
    assert {"server.drain_seconds", "upstreams.up.base_url", "upstreams.down", "tenants.ada"} <= set(found["changed"])
    assert "upstreams.up.dialect" not in found["changed"]


def test_without_a_file_there_is_nothing_to_reload(administered: Administered) -> None:
    answer = administered.admin("POST", "/reload")
    assert answer.status_code == 409
    assert "without a configuration file" in answer.json()["error"]["message"]


CHAT: JSONObject = {"model": "m", "seed": 3, "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}


def translated(administered: Administered, **body: JSON) -> httpx2.Response:
    return administered.admin("POST", "/translate", body)


def test_a_request_is_translated_and_its_losses_are_named(administered: Administered) -> None:
    found = translated(administered, **{"from": "openai", "to": "messages", "body": CHAT}).json()
    assert (found["from"], found["to"], found["stream"]) == ("chat", "messages", None)
    assert found["body"]["messages"] == [{"role": "user", "content": "Hi"}]
    assert [(loss["where"], loss["what"], loss["how"]) for loss in found["losses"]] == [
        ("$.sampling", "seed", "dropped")
    ]


def test_a_request_is_translated_for_a_server_with_facts(administered: Administered) -> None:
    facts = {"max_tokens_field": "max_completion_tokens", "lacks": ["seed"]}
    found = translated(administered, **{"from": "chat", "to": "chat", "body": CHAT, "target": facts}).json()
    assert (found["body"]["max_completion_tokens"], "seed" in found["body"]) == (9, False)
    assert [(loss["what"], loss["how"]) for loss in found["losses"]] == [("seed", "dropped")]


def test_a_stream_is_translated(administered: Administered) -> None:
    stream = (
        'data: {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    )
    found = translated(administered, **{"from": "chat", "to": "messages", "stream": stream}).json()
    assert found["body"] is None
    assert '"text_delta","text":"Hi"' in found["stream"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        pytest.param({"from": "chat", "to": "messages"}, "body", id="nothing"),
        pytest.param({"from": "chat", "to": "chatt", "body": CHAT}, "to", id="no-such-dialect"),
        pytest.param({"from": "chat", "body": CHAT}, "to", id="missing"),
        pytest.param({"from": "chat", "to": "messages", "body": {"messages": 3}}, "body", id="no-request"),
        pytest.param({"from": "chat", "to": "messages", "body": CHAT, "x": 1}, "x", id="unknown-field"),
        pytest.param(
            {"from": "chat", "to": "messages", "body": CHAT, "target": {"lack": []}}, "target", id="unknown-fact"
        ),
        pytest.param(
            {"from": "chat", "to": "messages", "body": CHAT, "target": {"lacks": 3}}, "target", id="invalid-fact"
        ),
    ],
)
def test_a_translation_that_is_invalid(administered: Administered, body: JSONObject, param: str) -> None:
    answer = translated(administered, **body)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"].partition(".")[0] == param
