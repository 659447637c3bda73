"""The configuration file as a thing that others may read or write, and what of a configuration can be shown (S21)."""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING

import msgspec

from xenoglot.backends.redaction import MASK, Redactor
from xenoglot.codec.json.json_io import encode_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from msgspec import Struct

    from xenoglot.gateway.config.schema import Problems
    from xenoglot.gateway.config.settings import UpstreamSettings
    from xenoglot.model.json import JSON, JSONObject

_SECRET = re.compile(r"auth|cookie|credential|key|passw|secret|signature|token", re.IGNORECASE)
"""What is in the names of headers and parameters that hold secrets."""

_QUERY = re.compile(r"(?<==)[^&#]+")


class Secrets:
    """The values of the environment variables that the configuration names; never shown."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values.values())

    def plus(self, name: str, value: str) -> Secrets:
        """Return these and one more."""
        return Secrets({**self._values, name: value})

    def __repr__(self) -> str:
        return f"Secrets({', '.join(self._values)})"


def check_file(path: Path, upstreams: Mapping[str, UpstreamSettings], problems: Problems) -> None:
    """Note who else may write or read the file: writers decide where keys are sent, readers see its content.

    Where files have no owners and modes there is nothing to note.
    """
    if os.name != "posix":
        return
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):  # a pipe, say
        return
    if mode & stat.S_IWOTH:
        problems.add(f"{path}", "everybody may write it, and so have keys sent anywhere: `chmod o-w` it")
    if (folder := _open_folder(path)) is not None:
        problems.add(f"{folder}", f"everybody may write this folder, and so replace {path}: `chmod o-w` it")
    if mode & stat.S_IROTH:
        for place in secret_places(upstreams):
            problems.add(place, f"may be a secret, and everybody may read it: `chmod o-r {path}`")


def _open_folder(path: Path) -> Path | None:
    """Return the first folder above the file, or above what it links to, in which everybody may replace it.

    In a folder with the sticky bit, such as `/tmp`, only the owner of a file may; on a file system that is mounted
    read-only, no user may. Kubernetes mounts the folder of a ConfigMap with mode 777, and read-only.
    """
    for folder in (*path.absolute().parents, *path.resolve().parents):
        mode = folder.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX and not os.statvfs(folder).f_flag & os.ST_RDONLY:
            return folder
    return None


def secret_places(upstreams: Mapping[str, UpstreamSettings]) -> list[str]:
    """Return where something stands in the file itself that may be a secret, by its name."""
    return [f"upstreams.{name}.{place}" for name, upstream in upstreams.items() for place in _secrets_of(upstream)]


def _secrets_of(upstream: UpstreamSettings) -> list[str]:
    headers = [f"headers.{name}" for name in upstream.headers if _SECRET.search(name)]
    query = (upstream.base_url or "").partition("?")[2]
    named = any(_SECRET.search(pair.partition("=")[0]) for pair in query.split("&"))
    return [*headers, *(["base_url"] if named else [])]


def shown(config: Struct, secrets: Secrets) -> str:
    """Return what is configured as JSON, in the words of the file, without any of its `secrets`.

    Of what stands in environment variables only their names are shown, of headers and queries that may be secret only
    that they are set; secrets in other values are masked.
    """
    said = {field: getattr(config, field) for field in config.__struct_fields__ if field != "secrets"}
    plain: JSONObject = msgspec.to_builtins(said, str_keys=True)
    for upstream in plain["upstreams"].values():
        upstream["headers"] = {
            name: MASK if _SECRET.search(name) else value for name, value in upstream["headers"].items()
        }
        upstream["base_url"] = _masked(upstream["base_url"] or "") or None
    for table in ("store", "limits"):
        plain[table]["url"] = _masked(plain[table].get("url") or "") or None
    redact = Redactor(piece for secret in secrets for piece in (secret, *secret.split()))
    return msgspec.json.format(encode_json(redact.json(_said(plain))), indent=2).decode()


def _masked(url: str) -> str:
    address, mark, query = url.partition("?")
    return address + mark + _QUERY.sub(MASK, query)


def _said(value: JSON) -> JSON:
    """Return a value without fields that are not set, which TOML cannot express."""
    if isinstance(value, dict):
        return {key: _said(item) for key, item in value.items() if item is not None}
    return [_said(item) for item in value] if isinstance(value, list) else value
