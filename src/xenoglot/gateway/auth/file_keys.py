"""Keys of the configuration file: their clients, ids and names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from msgspec.structs import replace

from xenoglot.codec.glob import matches
from xenoglot.gateway.auth.keys import Keyring, Principal, digest_of, digested, owner_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xenoglot.gateway.auth.keys import KeySource
    from xenoglot.gateway.config.load import Config
    from xenoglot.gateway.config.named_keys import NamedKey
    from xenoglot.gateway.config.tenants import Tenant

T = TypeVar("T")

KEY_DIGITS: Final = 12
"""Digits of a digest in the id of a key of the file."""

NO_MODEL: Final = ("",)
"""Allowed models that match no name."""


def build_keyring(config: Config, stored: KeySource | None = None) -> Keyring:
    """Return the keys of `config`: named ones, those of `[keys]`, of its administrators, and of its tenants.

    Those of the store are `stored`.

    A key without a name is named after its tenant or its environment variable; several of one are numbered.
    """
    found: dict[bytes, Principal] = {}
    for tenant_name, tenant in config.tenants.items():
        client = Principal(owner=tenant_owner(tenant_name), tenant=tenant_name, models=tenant.models)
        held = () if tenant.key_env is None else config.secrets[tenant.key_env].split()
        digests = [*(digest_of(key) for key in held), *(bytes.fromhex(digest) for digest in tenant.key_sha256)]
        for name, digest in _numbered(tenant_name, digests):
            found[digest] = replace(client, key=_key_id(digested(b"key\0" + digest)), name=name)
    for name, named in config.keys.named.items():
        digest, client = _named(named, config)
        found[digest] = replace(client, name=name)
    for name, key in _of_variables(config.keys.env, config):
        found.setdefault(digest_of(key), _without_tenant(key, name))
    for role, variables in (("admin", config.keys.admin_env), ("viewer", config.keys.viewer_env)):
        for name, key in _of_variables(variables, config):
            digest = digest_of(key)
            client = found.get(digest, replace(_without_tenant(key, name), uses=False))
            found[digest] = replace(client, **{role: True})
    return Keyring(clients=found.items(), stored=stored)


def _of_variables(variables: Sequence[str], config: Config) -> Iterator[tuple[str, str]]:
    """Yield the keys in environment variables, each after its name."""
    for variable in variables:
        yield from _numbered(variable, config.secrets[variable].split())


def _named(named: NamedKey, config: Config) -> tuple[bytes, Principal]:
    """Return a named key by its digest."""
    digest = bytes.fromhex(named.key_sha256 or "") or digest_of(config.secrets[named.key_env or ""])
    key = digested(b"key\0" + digest)
    tenant = named.tenant
    owner = digested(b"owner of key\0" + digest) if tenant is None else tenant_owner(tenant)
    models = named.models if tenant is None else models_of_tenant(named.models, config.tenants.get(tenant))
    return digest, Principal(owner=owner, tenant=tenant, models=models, key=_key_id(key), limits=named.limits)


def models_of_tenant(models: tuple[str, ...], tenant: Tenant | None) -> tuple[str, ...]:
    """Return which models a key of a tenant may use: `models`, as far as the tenant may; all of the tenant's if empty.

    A pattern of which the tenant allows only a part is replaced by that part.
    """
    allowed = () if tenant is None else tenant.models
    if not models or not allowed:
        return models or allowed
    own = [name for name in models if any(matches(pattern, name) for pattern in allowed)]
    narrower = [pattern for pattern in allowed if pattern not in own and any(matches(name, pattern) for name in models)]
    return (*own, *narrower) or NO_MODEL


def key_names(config: Config) -> dict[str, str]:
    """Return the names of the keys of `config` by their ids."""
    return {client.key: client.name for client in build_keyring(config).clients if client.key and client.name}


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
