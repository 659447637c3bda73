"""Keys of the configuration file: each has an id and a name, and no two of them the same id."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from xenoglot.gateway.auth.file_keys import build_keyring
from xenoglot.gateway.auth.keys import Principal
from xenoglot.gateway.config.load import check

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
