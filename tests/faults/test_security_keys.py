"""Who may what: route x credential x the header it stands in, tenants, and what a wrong key costs."""

from __future__ import annotations

import ast
import asyncio
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from tests.architecture.tree import MODULES
from tests.docs.pages import table
from tests.faults.direct_exchange import handle
from tests.gateway.running_gateway import config_for, endpoint_rows
from tests.gateway.scripted_backends import CHAT, HELLO, FailingBackend
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.app import Gateway
from xenoglot.gateway.auth.keys import Principal
from xenoglot.gateway.config.file_permissions import Secrets
from xenoglot.gateway.config.load import check
from xenoglot.gateway.config.settings import KeySettings
from xenoglot.gateway.config.tenants import Tenant
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.failure import Failure
from xenoglot.policy.auth_throttle import AuthThrottle, ThrottleSettings, source_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.gateway.config.load import Config

    Header = tuple[str, str]

USER, OTHER, TENANT, DIGESTED, ADMIN, VIEWER, BOTH = (
    f"key-of-{who}" for who in ("user", "other", "tenant", "digest", "admin", "viewer", "both")
)
CONFIG = config_for(
    "own",
    keys=KeySettings(env=("USERS",), admin_env=("ADMINS",), viewer_env=("VIEWERS",)),
    tenants={
        "lab": Tenant(key_env="LAB", key_sha256=(sha256(DIGESTED.encode()).hexdigest(),)),
        "shop": Tenant(key_sha256=(sha256(b"shop").hexdigest(),), models=("small", "claude-*")),
    },
    secrets=Secrets({"USERS": f"{USER} {OTHER} {BOTH}", "LAB": TENANT, "ADMINS": f"{ADMIN} {BOTH}", "VIEWERS": VIEWER}),
)

FORMS: dict[str, Callable[[str], Header]] = {
    "bearer": lambda key: ("authorization", f"Bearer {key}"),
    "x-api-key": lambda key: ("x-api-key", key),
    "api-key": lambda key: ("api-key", key),
    "x-goog-api-key": lambda key: ("x-goog-api-key", key),
}
HIDDEN_HEADERS: dict[str, tuple[str, ...]] = {
    "none": (),
    "wrong": (USER[:-1] + "R",),
    "user": (USER,),
    "tenant": (TENANT,),
    "tenant-by-digest": (DIGESTED,),
    "admin": (ADMIN,),
    "viewer": (VIEWER,),
    "both": (BOTH,),
    "two": (USER, OTHER),
}
POLICIES = ("key", "admin", "view", "manage")
REFUSALS: dict[tuple[str, str], int] = {
    ("key", "none"): 401,
    ("key", "wrong"): 401,
    ("key", "admin"): 403,
    ("key", "viewer"): 403,
    ("key", "two"): 400,
    **{
        (policy, credential): status
        for policy in POLICIES[1:]
        for credential, status in (
            ("none", 401),
            ("wrong", 401),
            ("user", 403),
            ("tenant", 403),
            ("tenant-by-digest", 403),
            ("two", 400),
        )
    },
    ("manage", "viewer"): 403,
}
"""The policy table: what is not in it may pass."""

SERVED = [row for row in endpoint_rows() if not row.path.startswith("/console")]
"""The console has sessions of its own: `tests/gateway/console`."""
UNAUTHORIZED = 401

PLACES = [
    *((row.method, row.path, row.policy) for row in SERVED),
    ("GET", "/nothing/here", "key"),
    ("DELETE", "/health", "key"),
    ("POST", "/metrics", "key"),
]


UNKNOWN: dict[tuple[str, str, str], int] = {
    (row.method, row.path, row.policy): row.dialect.encode_error(Failure(kind="authentication", message=""))[0]
    for row in SERVED
    if row.dialect is not None
}
"""The status of a request without a valid key, where the dialect has one of its own."""


def refused(place: tuple[str, str, str], status: int) -> int:
    """Return the status of a refusal at a place."""
    return UNKNOWN.get(place, status) if status == UNAUTHORIZED else status


async def statuses(config: Config, headers: Sequence[Header], query: str = "") -> dict[tuple[str, str, str], int]:
    """What each place answers to `headers`."""
    gateway = Gateway(config, {"own": Scripted(HELLO)})
    said: dict[tuple[str, str, str], int] = {}
    for method, path, policy in PLACES:
        asked = await handle(gateway, method, path + query, {} if method == "POST" else None, headers)
        said[method, path, policy] = asked.status
    return said


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("credential", HIDDEN_HEADERS)
def test_s01_r12_r14_r17_every_route_and_every_way_to_show_a_key(credential: str, form: str) -> None:
    shown = [FORMS[form](key) for key in HIDDEN_HEADERS[credential]]
    told = asyncio.run(statuses(CONFIG, shown))
    let_in = asyncio.run(statuses(config_for("own"), []))
    wanted = {place: REFUSALS.get((place[2], credential), let_in[place]) for place in PLACES}
    assert told == {place: refused(place, status) for place, status in wanted.items()}
    assert {let_in[place] for place in PLACES} & {401, 403} == set()


@pytest.mark.parametrize("credential", ["none", "user"])
@pytest.mark.parametrize("name", ["key", "api_key", "API_KEY", "x-goog-api-key", "access_token", "a=b&%6Bey"])
def test_s07_r31_a_key_in_the_url_is_refused_everywhere_it_would_count(credential: str, name: str) -> None:
    shown = [FORMS["bearer"](key) for key in HIDDEN_HEADERS[credential]]
    told = asyncio.run(statuses(CONFIG, shown, f"?alt=sse&{name}={USER}"))
    let_in = asyncio.run(statuses(config_for("own"), [], f"?alt=sse&{name}={USER}"))
    assert told == {place: let_in[place] if place[2] == "open" else refused(place, UNAUTHORIZED) for place in PLACES}


async def test_s07_the_refusal_says_what_to_do() -> None:
    asked = await handle(Gateway(CONFIG, {"own": Scripted(HELLO)}), "POST", f"/v1/chat/completions?key={USER}", CHAT)
    assert "x-goog-api-key: KEY" in asked.json["error"]["message"]
    assert USER not in f"{asked.body!r}{asked.response_headers}"


def test_r14_without_administrators_users_see_the_metrics() -> None:
    config = config_for("own", keys=KeySettings(env=("USERS",)), secrets=CONFIG.secrets)
    told = [asyncio.run(statuses(config, shown)) for shown in ([], [FORMS["bearer"](USER)])]
    assert [said["GET", "/metrics", "admin"] for said in told] == [401, 200]


def test_r14_administrators_alone_close_what_is_theirs() -> None:
    config = config_for("own", keys=KeySettings(admin_env=("ADMINS",)), secrets=CONFIG.secrets)
    told = [asyncio.run(statuses(config, shown)) for shown in ([], [FORMS["bearer"](ADMIN)])]
    assert [said["GET", "/metrics", "admin"] for said in told] == [401, 200]
    assert [said["GET", "/v1/models", "key"] for said in told] == [200, 200]


def test_r12_each_place_has_one_policy() -> None:
    places = [(row.method, row.path) for row in endpoint_rows()]
    assert len(set(places)) == len(places)
    assert {row.policy for row in endpoint_rows()} == {"open", *POLICIES}


def test_r12_r20_one_file_reads_the_host_and_none_a_forwarded_one() -> None:
    words = {"host", "x-forwarded-host", "x-forwarded-for", "x-forwarded-proto", "forwarded", "x-real-ip"}
    found = {
        (name, node.value)
        for name, path in MODULES.items()
        if name.startswith(("xenoglot.gateway", "xenoglot.http1"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in words
    }
    expected = {
        "auth.request_checks",
        "config.from_flags",
        "config.load",
        "config.schema",
        "config.settings",
        "process.build",
        "process.reload",
        "process.serve",
        "tool_execution.request_tools",  # the list of headers that a request may not set for its MCP servers
        "xenoglot.http1.syntax",  # the list of fields that each end writes itself
    }
    assert {name.removeprefix("xenoglot.gateway.") for name, _ in found} <= expected
    assert {word for _, word in found} == {"host"}


class ListingBackend(Scripted):
    """Has several models."""

    async def models(self) -> list[ModelInfo]:
        """Name them."""
        return [ModelInfo(id=name) for name in ("small", "large", "claude-3", "claude-4")]


SHOP = [FORMS["bearer"]("shop")]


@pytest.mark.parametrize(("model", "status"), [("small", 200), ("claude-9", 200), ("large", 404), ("claude", 404)])
@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/api/chat", "/v1/messages/count_tokens"]
)
async def test_r14_a_tenant_asks_for_its_models_alone(path: str, model: str, status: int) -> None:
    gateway = Gateway(CONFIG, {"own": ListingBackend(HELLO)})
    body = {**CHAT, "model": model, "max_tokens": 9, "input": "Hi"}
    if path == "/v1/responses":
        del body["messages"]
    asked, other = [await handle(gateway, "POST", path, body, headers) for headers in (SHOP, [FORMS["bearer"](TENANT)])]
    assert (asked.status, other.status) == (status, 200)


@pytest.mark.parametrize("path", ["/v1/models", "/api/tags", "/v1beta/models"])
async def test_r14_a_tenant_sees_its_models_alone(path: str) -> None:
    gateway = Gateway(CONFIG, {"own": ListingBackend(HELLO)})
    shop, lab = [(await handle(gateway, "GET", path, None, key)).body for key in (SHOP, [FORMS["bearer"](TENANT)])]
    assert [b"large" in shop, b"claude-3" in shop, b"large" in lab] == [False, True, True]


async def test_r16_what_is_not_allowed_is_told_as_what_is_not_there() -> None:
    gateway = Gateway(CONFIG, {"own": ListingBackend(HELLO)})
    told = [
        (await handle(gateway, "POST", "/v1/chat/completions", {**CHAT, "model": model}, SHOP)).json["error"]["message"]
        for model in ("large", "nobody")
    ]
    assert told[0].replace("large", "nobody") == told[1]


def test_r15_r16_a_tenant_is_one_owner_and_nobody_elses() -> None:
    ring = Gateway(CONFIG, {"own": Scripted(HELLO)}).auth.keyring
    clients = [ring.admit([FORMS["x-api-key"](key)]) for key in (TENANT, DIGESTED, USER, OTHER)]
    owners = [client.owner for client in clients if isinstance(client, Principal)]
    assert owners[0] == owners[1]
    assert (len(owners), len(set(owners))) == (4, 3)


def test_r10_keys_are_nowhere_but_in_the_environment() -> None:
    ring = Gateway(CONFIG, {"own": Scripted(HELLO)}).auth.keyring
    held = repr([getattr(ring, name) for name in ring.__slots__])
    assert [key for key in (USER, TENANT, DIGESTED, ADMIN, BOTH) if key in held] == []


async def test_r11_a_wrong_key_reaches_nothing_and_changes_no_state() -> None:
    gateway = Gateway(CONFIG, {"own": FailingBackend()})
    gateway.auth.throttle = AuthThrottle(ThrottleSettings(burst=5, sources=8))
    for guess in range(50):
        for peer in (f"192.0.2.{guess}", "198.51.100.1"):
            key = FORMS["x-api-key"](f"guess-{guess}")
            asked = await handle(gateway, "POST", "/v1/responses", CHAT, [key], peer=peer)
            assert asked.status in {401, 429}
    assert len(gateway.auth.throttle._buckets) == 8
    assert len(gateway.auth.throttle._guests) == 0
    assert gateway.requests.tasks == set()


async def listed_models(gateway: Gateway, key: str, peer: str) -> int:
    """What a request with a key gets."""
    return (await handle(gateway, "GET", "/v1/models", None, [FORMS["bearer"](key)], peer=peer)).status


class Clock:
    """A clock that is told the time."""

    now = 1000.0

    def __call__(self) -> float:
        """Tell it."""
        return self.now


async def test_s16_guessing_is_slow_and_nobody_else_suffers() -> None:
    clock = Clock()
    gateway = Gateway(CONFIG, {"own": ListingBackend(HELLO)}, clock=clock)
    attacker, elsewhere = "203.0.113.7", "203.0.113.8"
    assert await listed_models(gateway, USER, attacker) == 200  # somebody lives behind the same address
    refused = [await listed_models(gateway, f"guess-{guess}", attacker) for guess in range(300)]
    assert refused == [401] * 100 + [429] * 200
    assert await listed_models(gateway, OTHER, attacker) == 429  # a right guess is told as a wrong one
    assert await listed_models(gateway, USER, attacker) == 200
    assert await listed_models(gateway, OTHER, elsewhere) == 200
    clock.now += 2
    told = [await listed_models(gateway, f"late-{guess}", attacker) for guess in range(4)]
    assert told == [401, 401, 429, 429]
    clock.now += 1
    assert await listed_models(gateway, OTHER, attacker) == 200


async def test_s16_the_one_refused_is_told_when_to_come_again() -> None:
    gateway = Gateway(CONFIG, {"own": Scripted(HELLO)}, clock=Clock())
    gateway.auth.throttle = AuthThrottle(ThrottleSettings(burst=1, per_second=0.1))
    asked = [
        await handle(gateway, "POST", "/v1/messages", CHAT, [FORMS["x-api-key"]("guess")], peer="2001:db8::1")
        for _ in range(2)
    ]
    assert [(one.status, one.response_headers.get("retry-after")) for one in asked] == [(401, None), (429, "10")]


def test_s16_what_codex_and_claude_code_send_for_one_mistake_is_no_attack() -> None:
    throttle = AuthThrottle()
    codex = [throttle.refused("a", now=attempt / 10) for attempt in range(30)]  # five attempts in six connections
    claude = [throttle.refused("b", now=2.0**attempt) for attempt in range(12)]
    assert {*codex, *claude} == {0.0}


def test_s16_memory_is_bounded() -> None:
    throttle = AuthThrottle(ThrottleSettings(sources=10, guests=10))
    for number in range(1000):
        throttle.refused(f"source-{number}", 1.0)
        throttle.accepted(f"source-{number}", f"owner-{number}", 1.0)
    assert (len(throttle._buckets), len(throttle._guests)) == (10, 10)


@pytest.mark.parametrize(
    ("peer", "source"),
    [
        pytest.param("192.0.2.1", "192.0.2.1", id="S16-address"),
        pytest.param("::ffff:192.0.2.1", "192.0.2.1", id="S16-mapped"),
        pytest.param("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64", id="S16-network"),
        pytest.param("fe80::1%eth0", "fe80::/64", id="S16-zone"),
        pytest.param("127.0.0.1", None, id="S16-this-machine"),
        pytest.param("::1", None, id="S16-this-machine-6"),
        pytest.param("", None, id="S16-unix-socket"),
    ],
)
def test_sources(peer: str, source: str | None) -> None:
    assert source_of(peer) == source


ENVIRON = {"A": "key-a", "B": "key-b key-a"}


@pytest.mark.parametrize(
    ("plain", "line"),
    [
        pytest.param(
            {"tenants": {"x": {}}},
            "tenants.x: needs a key: name an environment variable in `key_env`, or digests in `key_sha256`",
            id="R10-no-key",
        ),
        pytest.param(
            {"tenants": {"x": {"key_sha256": ["A" * 64]}}},
            "tenants.x.key_sha256[0]: expected a SHA-256 in 64 hexadecimal digits, in lower case",
            id="R10-no-digest",
        ),
        pytest.param(
            {"tenants": {"x": {"key_env": "A"}, "y": {"key_env": "B"}}},
            "tenants.y: holds a key that is in `tenants.x` already: each is one client's",
            id="R15-one-key-of-two-tenants",
        ),
        pytest.param(
            {"keys": {"env": ["A"]}, "tenants": {"y": {"key_sha256": [sha256(b"key-a").hexdigest()]}}},
            "tenants.y: holds a key that is in `keys.env` already: each is one client's",
            id="R15-a-tenants-key-is-a-clients",
        ),
        pytest.param(
            {"tenants": {"x": {"key_env": "A", "models": [""]}}},
            'tenants.x.models[0]: found ""; expected a name or a pattern',
            id="R14-no-name",
        ),
        pytest.param(
            {"keys": {"admin_env": ["C"]}},
            'keys.admin_env[0]: the environment variable "C" is not set',
            id="R14-no-variable",
        ),
    ],
)
def test_mistakes_in_the_file(plain: dict[str, object], line: str) -> None:
    with pytest.raises(Exception, match="here: ") as caught:
        check(plain, ENVIRON, "here")
    assert str(caught.value) == f"here: {line}"


def test_r40_a_tenant_is_key_enough_to_listen_to_others() -> None:
    plain = {"server": {"host": "0.0.0.0"}, "tenants": {"x": {"key_env": "A"}}}  # noqa: S104  the case
    assert check(plain, ENVIRON, "here").server.host == "0.0.0.0"  # noqa: S104


def test_r14_a_key_of_the_administration_alone_does_not_let_others_in() -> None:
    plain = {"server": {"host": "0.0.0.0"}, "keys": {"admin_env": ["A"]}}  # noqa: S104  the case
    with pytest.raises(Exception, match="which others can reach; that needs client keys"):
        check(plain, ENVIRON, "here")


ROWS = {
    "none": ("none",),
    "an unknown one": ("wrong",),
    "a client's, or a tenant's": ("user", "tenant", "tenant-by-digest"),
    "an administrator's": ("admin",),
    "a viewer's": ("viewer",),
    "two different ones": ("two",),
}


def test_r12_r14_the_page_says_the_same() -> None:
    said = {row[0]: row[1:] for row in table("security.md", "Who may do what")}
    assert set(said) == {*ROWS, "any, in the query of the URL"}
    for shown_as, credentials in ROWS.items():
        for credential in credentials:
            told = [
                "yes",
                *(str(REFUSALS.get((policy, credential), "yes")) for policy in POLICIES),
            ]
            assert said[shown_as] == told, credential
    assert said["any, in the query of the URL"] == ["yes", "401", "401", "401", "401"]
