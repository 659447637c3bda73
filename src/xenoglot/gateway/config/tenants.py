"""Tenants as the configuration has them: several keys that are one client, and what that client may ask for."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.gateway.config.limits import LimitSettings, check_limits
from xenoglot.gateway.config.named_keys import check_models
from xenoglot.gateway.config.schema import join, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from xenoglot.gateway.config.file_permissions import Secrets
    from xenoglot.gateway.config.named_keys import NamedKey
    from xenoglot.gateway.config.schema import Problems

_DIGEST = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Tenant(Struct, frozen=True, kw_only=True):
    """Clients that share stored data: holders of the keys in `key_env`, or of keys with a SHA-256 in `key_sha256`.

    `models` are the allowed names, or patterns of them; without any, all are allowed. `limits` are shared by all keys
    of the tenant, in place of those of `[keys]`.
    """

    key_env: str | None = None
    key_sha256: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    limits: LimitSettings | None = None


def wanted(tenants: Mapping[str, Tenant]) -> Iterator[tuple[str, str]]:
    """Yield the environment variables of tenants, each with its path."""
    for name, tenant in tenants.items():
        if tenant.key_env is not None:
            yield join(join("tenants", name), "key_env"), tenant.key_env


def check_tenants(  # noqa: PLR0913  each is read alone
    tenants: Mapping[str, Tenant],
    named: Mapping[str, NamedKey],
    client_keys: Sequence[str],
    secrets: Secrets,
    problems: Problems,
    *,
    stored: bool = False,
) -> None:
    """Note what is wrong with the tenants, and keys that two of tenants, `named` keys and `client_keys` share.

    `stored` is whether the store may have keys of tenants.
    """
    for name, tenant in tenants.items():
        path = join("tenants", name)
        if not _NAME.fullmatch(name):
            problems.add(path, f"found {shown(name)}; a name is letters, digits and `.`, `_`, `-`")
        has_others = stored or any(key.tenant == name for key in named.values())
        if tenant.key_env is None and not tenant.key_sha256 and not has_others:
            problems.add(path, "needs a key: name an environment variable in `key_env`, or digests in `key_sha256`")
        for index, digest in enumerate(tenant.key_sha256):
            if not _DIGEST.fullmatch(digest):
                problems.add(
                    f"{path}.key_sha256[{index}]", "expected a SHA-256 in 64 hexadecimal digits, in lower case"
                )
        check_models(tenant.models, path, problems)
        check_limits(tenant.limits, path, problems)
    _check_holders((*_held(tenants, client_keys, secrets), *_held_by_name(named, secrets)), problems)


def _check_holders(held: Iterable[tuple[str, str]], problems: Problems) -> None:
    """Note keys that two have: what is kept would be whose?"""
    holders: dict[str, str] = {}
    for path, digest in held:
        first = holders.setdefault(digest, path)
        if first != path:
            problems.add(path, f"holds a key that is in `{first}` already: each is one client's")


def _held(tenants: Mapping[str, Tenant], client_keys: Sequence[str], secrets: Secrets) -> Iterator[tuple[str, str]]:
    for key in client_keys:
        yield "keys.env", _digest(key)
    for name, tenant in tenants.items():
        path = join("tenants", name)
        if tenant.key_env is not None:
            for key in secrets[tenant.key_env].split():
                yield path, _digest(key)
        for digest in tenant.key_sha256:
            yield path, digest


def _held_by_name(named: Mapping[str, NamedKey], secrets: Secrets) -> Iterator[tuple[str, str]]:
    for name, key in named.items():
        path = join("keys.named", name)
        if key.key_env is not None:
            yield path, _digest(secrets[key.key_env])
        if key.key_sha256 is not None:
            yield path, key.key_sha256


def _digest(key: str) -> str:
    return sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
