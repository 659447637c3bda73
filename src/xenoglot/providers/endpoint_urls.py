"""Base URLs of providers: the URL of the row, with the operator's settings in place of its braces."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.providers.provider import Provider, ProviderEndpoint

_VALUE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
"""A part of the name of a host or one segment of a path; nothing that leads elsewhere."""

_BRACES = re.compile(r"\{([^{}]*)\}")


def endpoint_of(row: Provider, dialect: str | None) -> ProviderEndpoint:
    """Return the face that speaks `dialect`; without one, the first.

    Raises:
        ConfigurationError: there is none.
    """
    for face in row.faces:
        if dialect in (None, face.dialect):
            return face
    spoken = ", ".join(dict.fromkeys(face.dialect for face in row.faces))
    raise ConfigurationError(f"`{row.name}` does not speak `{dialect}`; it speaks {spoken}")


def required_settings(face: ProviderEndpoint) -> tuple[str, ...]:
    """Return the names of the settings that an address needs."""
    return tuple(dict.fromkeys(_BRACES.findall(face.base_url)))


def value_of(row: Provider, name: str, said: Mapping[str, str], environ: Mapping[str, str]) -> str:
    """Return what stands for a setting: what was said, what the environment has, the usual; in this order.

    Raises:
        ConfigurationError: there is nothing, or nothing that can stand in an address.
    """
    setting = row.settings[name]
    value = said.get(name) or environ.get(setting.env or "") or setting.default
    if not value:
        place = f", or set the environment variable {setting.env}" if setting.env else ""
        raise ConfigurationError(f"required by `{row.name}`, {setting.title}: write it here{place}")
    if not _VALUE.fullmatch(value):
        raise ConfigurationError(f"found `{value[:60]}`; expected {setting.title}: letters, digits, `.`, `_` and `-`")
    return value


def base_url(face: ProviderEndpoint, values: Mapping[str, str]) -> str:
    """Return the address, every setting in its place."""
    return _BRACES.sub(lambda found: values[found[1]], face.base_url)
