"""Keys of the configuration file: their clients, ids and names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from msgspec.structs import replace

from xenoglot.gateway.auth.keys import Keyring, Principal, digest_of, digested, owner_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.gateway.config.load import Config

T = TypeVar("T")

KEY_DIGITS: Final = 12
"""Digits of a digest in the id of a key of the file."""


def build_keyring(config: Config) -> Keyring:
    """Return the keys of `config`: those of `[keys]`, of its administrators, and of its tenants.

    A key is named after its tenant or its environment variable; several of one are numbered.
    """
    found: dict[bytes, Principal] = {}
    for tenant_name, tenant in config.tenants.items():
        client = Principal(owner=tenant_owner(tenant_name), tenant=tenant_name, models=tenant.models)
        held = () if tenant.key_env is None else config.secrets[tenant.key_env].split()
        digests = [*(digest_of(key) for key in held), *(bytes.fromhex(digest) for digest in tenant.key_sha256)]
        for name, digest in _numbered(tenant_name, digests):
            found[digest] = replace(client, key=_key_id(digested(b"key\0" + digest)), name=name)
    for variable in config.keys.env:
        for name, key in _numbered(variable, config.secrets[variable].split()):
            found.setdefault(digest_of(key), _without_tenant(key, name))
    for variable in config.keys.admin_env:
        for name, key in _numbered(variable, config.secrets[variable].split()):
            digest = digest_of(key)
            found[digest] = replace(found.get(digest, replace(_without_tenant(key, name), uses=False)), admin=True)
    for variable in config.keys.viewer_env:
        for name, key in _numbered(variable, config.secrets[variable].split()):
            digest = digest_of(key)
            found[digest] = replace(found.get(digest, replace(_without_tenant(key, name), uses=False)), viewer=True)
    return Keyring(clients=found.items())


def tenant_owner(tenant: str) -> str:
    """Return the owner of what clients of a tenant store."""
    return digested(b"tenant\0" + tenant.encode())


def _without_tenant(key: str, name: str) -> Principal:
    owner = owner_of(key)
    return Principal(owner=owner, key=_key_id(owner), name=name)


def _key_id(digest: str) -> str:
    return f"key_{digest[:KEY_DIGITS]}"


def _numbered(name: str, keys: Sequence[T]) -> list[tuple[str, T]]:
    """Return keys with names: several under one `name` are numbered from 1."""
    return [(name if len(keys) == 1 else f"{name}-{number}", key) for number, key in enumerate(keys, 1)]
