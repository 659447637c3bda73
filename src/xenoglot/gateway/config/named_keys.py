"""Named keys of the configuration: one key each, with rights of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.gateway.config.limits import LimitSettings, check_limits
from xenoglot.gateway.config.schema import join, shown

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from xenoglot.gateway.config.schema import Problems

_DIGEST = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

ID_PREFIX = "key_"
"""Beginning of the ids of keys, and so of no name."""

NAME_EXPECTED = f"expected letters, digits and `.`, `_`, `-`, up to 64 of them, not beginning with `{ID_PREFIX}`"


class NamedKey(Struct, frozen=True, kw_only=True):
    """One key with a name: in the environment variable `key_env`, or the one with the SHA-256 `key_sha256`.

    `tenant` is the tenant that it belongs to; `models` are the allowed names, or patterns of them, and without any all
    that its tenant may use.
    """

    key_env: str | None = None
    key_sha256: str | None = None
    tenant: str | None = None
    models: tuple[str, ...] = ()
    limits: LimitSettings | None = None


def is_key_name(text: str) -> bool:
    """Whether a key can have this name."""
    return _NAME.fullmatch(text) is not None and not text.startswith(ID_PREFIX)


def named_variables(named: Mapping[str, NamedKey]) -> Iterator[tuple[str, str]]:
    """Yield the environment variables of named keys, each with its path."""
    for name, key in named.items():
        if key.key_env is not None:
            yield join(join("keys.named", name), "key_env"), key.key_env


def check_named_keys(named: Mapping[str, NamedKey], several: Container[str], problems: Problems) -> None:
    """Note what is wrong with named keys; `several` are the variables that hold more than one key."""
    for name, key in named.items():
        path = join("keys.named", name)
        if not is_key_name(name):
            problems.add(path, f"found {shown(name)}; {NAME_EXPECTED}")
        if (key.key_env is None) is (key.key_sha256 is None):
            problems.add(path, "needs a key: set either `key_env`, an environment variable, or `key_sha256`")
        if key.key_env is not None and key.key_env in several:
            problems.add(join(path, "key_env"), f"found several keys in ${key.key_env}; expected one")
        if key.key_sha256 is not None and not _DIGEST.fullmatch(key.key_sha256):
            problems.add(join(path, "key_sha256"), "expected a SHA-256 in 64 hexadecimal digits, in lower case")
        if key.tenant is not None and not _NAME.fullmatch(key.tenant):
            problems.add(join(path, "tenant"), f"found {shown(key.tenant)}; expected the name of a tenant")
        check_models(key.models, path, problems)
        check_limits(key.limits, path, problems)


def check_models(models: Sequence[str], path: str, problems: Problems) -> None:
    """Note names of models that are empty or cannot be printed."""
    for index, model in enumerate(models):
        if not model or not model.isprintable():
            problems.add(f"{path}.models[{index}]", f"found {shown(model)}; expected a name or a pattern")
