"""Keys of the configuration file: each has an id and a name, and no two of them the same id."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from xenoglot.codec.glob import matches
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.auth.file_keys import build_keyring, models_of_tenant
from xenoglot.gateway.auth.keys import Principal
from xenoglot.gateway.config.load import check
from xenoglot.gateway.config.tenants import Tenant

if TYPE_CHECKING:
    from xenoglot.gateway.auth.keys import Keyring
    from xenoglot.model.json import JSONObject

ENVIRON = {"ADA": "ada-1 ada-2", "BEN": "ben-1", "CLIENTS": "one two", "ADMIN": "one root"}
PLAIN: JSONObject = {
    "tenants": {
        "ada": {"key_env": "ADA", "key_sha256": [sha256(b"ada-3").hexdigest()], "models": ["small-*"]},
        "ben": {"key_env": "BEN"},
    },
    "keys": {"env": ["CLIENTS"], "admin_env": ["ADMIN"]},
}


def found(ring: Keyring, key: str) -> Principal:
    client = ring.admit([("x-api-key", key)], "key")
    if not isinstance(client, Principal):
        client = ring.admit([("x-api-key", key)], "admin")
    assert isinstance(client, Principal)
    return client


def test_each_key_has_an_id_and_a_name() -> None:
    ring = build_keyring(check(PLAIN, ENVIRON, "here"))
    clients = [found(ring, key) for key in ("ada-1", "ada-2", "ada-3", "ben-1", "one", "two", "root")]
    names = ["ada-1", "ada-2", "ada-3", "ben", "CLIENTS-1", "CLIENTS-2", "ADMIN-2"]
    assert [one.name for one in clients] == names
    assert len({one.key for one in clients}) == len(clients)
    assert len({one.owner for one in clients[:3]}) == 1
    assert [(one.uses, one.admin) for one in clients[4:]] == [(True, True), (True, False), (False, True)]
    again = build_keyring(check(PLAIN, ENVIRON, "here"))
    assert [found(again, key).key for key in ("ada-1", "root")] == [clients[0].key, clients[-1].key]


def test_the_id_of_a_key_tells_nothing_of_its_digest() -> None:
    ring = build_keyring(check(PLAIN, ENVIRON, "here"))
    for key in ("ada-1", "ben-1", "two"):
        client = found(ring, key)
        assert client.key is not None
        assert client.key.removeprefix("key_") not in sha256(key.encode()).hexdigest()


def named(plain: JSONObject, tenants: JSONObject | None = None) -> Keyring:
    return build_keyring(check({"keys": {"named": plain}, "tenants": tenants or {}}, ENVIRON, "here"))


def test_a_named_key_has_rights_of_its_own() -> None:
    limits = {"requests": ["60/1m"]}
    tenant = {"ada": {"key_env": "ADA", "models": ["small-*", "large"]}}
    ring = named(
        {
            "ci": {"key_env": "BEN", "tenant": "ada", "models": ["small-1", "other"], "limits": limits},
            "laptop": {"key_sha256": sha256(b"lap").hexdigest()},
        },
        tenant,
    )
    ci, laptop, ada = found(ring, "ben-1"), found(ring, "lap"), found(ring, "ada-1")
    assert (ci.name, ci.tenant, ci.models, ci.owner) == ("ci", "ada", ("small-1",), ada.owner)
    assert ci.limits is not None
    assert ci.limits.requests == ("60/1m",)
    assert (laptop.name, laptop.tenant, laptop.models, laptop.limits) == ("laptop", None, (), None)
    assert len({ci.key, laptop.key, ada.key}) == 3
    assert laptop.owner not in ("", ada.owner)


@pytest.mark.parametrize(
    ("models", "allowed", "expected"),
    [
        pytest.param((), (), (), id="all"),
        pytest.param((), ("a-*",), ("a-*",), id="the-tenants"),
        pytest.param(("a-*",), (), ("a-*",), id="the-keys"),
        pytest.param(("a-1", "b"), ("a-*",), ("a-1",), id="some"),
        pytest.param(("a-*",), ("a-1", "b"), ("a-1",), id="narrower"),
        pytest.param(("*",), ("a-*", "b"), ("a-*", "b"), id="whatever-the-tenant-may"),
        pytest.param(("a-*",), ("a-*",), ("a-*",), id="the-same"),
        pytest.param(("c",), ("a-*",), ("",), id="none-is-not-all"),
    ],
)
def test_a_key_may_use_no_more_than_its_tenant(
    models: tuple[str, ...], allowed: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert models_of_tenant(models, Tenant(models=allowed)) == expected
    client = Principal(models=expected)
    for name in ("a-1", "a-2", "b", "c"):
        wanted = all(not some or any(matches(one, name) for one in some) for some in (models, allowed))
        assert client.allows(name) is wanted


@pytest.mark.parametrize(
    ("plain", "problem"),
    [
        ({"ci": {}}, "keys.named.ci: needs a key"),
        ({"ci": {"key_env": "BEN", "key_sha256": "0" * 64}}, "keys.named.ci: needs a key"),
        ({"ci": {"key_env": "ADA"}}, "keys.named.ci.key_env: found several keys in $ADA; expected one"),
        ({"ci": {"key_env": "GONE"}}, 'keys.named.ci.key_env: the environment variable "GONE" is not set'),
        ({"ci": {"key_sha256": "no"}}, "keys.named.ci.key_sha256: expected a SHA-256"),
        ({"key_1": {"key_env": "BEN"}}, 'keys.named.key_1: found "key_1"; expected letters'),
        ({"ci": {"key_env": "BEN", "models": [""]}}, 'keys.named.ci.models[0]: found ""'),
        ({"ci": {"key_env": "BEN", "limits": {"tokens": ["x"]}}}, "keys.named.ci.limits.tokens[0]: found"),
        ({"a": {"key_env": "BEN"}, "b": {"key_env": "BEN"}}, "keys.named.b: holds a key that is in `keys.named.a`"),
    ],
)
def test_mistakes_of_named_keys_are_reported(plain: JSONObject, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        named(plain)
    assert problem in str(caught.value)


def test_keys_of_the_store_allow_other_addresses_and_need_a_store() -> None:
    server = {"host": "0.0.0.0"}  # noqa: S104  the case
    assert check({"server": server, "keys": {"store": True}}, {}, "here").needs_key
    with pytest.raises(ConfigurationError, match=r"server\.host"):
        check({"server": server, "keys": {"admin_env": ["ADMIN"]}}, ENVIRON, "here")
    with pytest.raises(ConfigurationError, match="needs a store"):
        check({"store": {"url": "off"}, "keys": {"store": True}}, {}, "here")
