"""Finds the server if none is named: variables, then `./xenoglot.toml`, then `xenoglot/config.toml` of the user.

A file in the current directory may come with a cloned repository, and its owner is then the user who cloned it. Such a
file may name providers and servers on this machine. Anything that sends keys or prompts to other hosts, opens files or
opens the gateway to others is rejected until the user has trusted the file as it is: `xenoglot config trust`.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from xenoglot.backends.redaction import for_log
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.settings import is_loopback
from xenoglot.providers import catalog
from xenoglot.user_directories import user_directory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from xenoglot.model.json import JSON, JSONObject

UPSTREAM_VARIABLE, MODEL_VARIABLE, CONFIG_VARIABLE = "XENOGLOT_UPSTREAM", "XENOGLOT_MODEL", "XENOGLOT_CONFIG"

LOCAL_NAME = "xenoglot.toml"
USER_NAME = "config.toml"

_SERVER = frozenset({"port", "drain_seconds", "ping_interval", "log_losses"})
_UPSTREAM = frozenset(
    {
        *("provider", "dialect", "base_url", "path", "models_path", "text_syntax", "emulate", "target"),
        *("model_overrides", "preserve_reasoning", "cache_marks", "retry", "breaker", "deadlines", "limits"),
    }
)
_EMBEDDED = frozenset({"enabled", "name", "slots", "context", "queue", "queue_seconds", "text_syntax"})
_HARMLESS: dict[str, frozenset[str] | None] = {
    "server": _SERVER,
    "embedded": _EMBEDDED,
    "models": None,
    "clients": None,
    "on_loss": None,
}
"""Top-level key -> the keys under it that need no trust; `None` for all. Everything else does, future keys included."""

_LONGEST = 200


class FoundConfig(NamedTuple):
    """A configuration file, and whether it was found in the current directory."""

    path: Path
    local: bool


class DefaultServer(NamedTuple):
    """What is used if no server is named: an upstream, or a configuration file; if neither, the embedded model.

    `found` is set if the file was found and not named. `model` is the one to request.
    """

    upstream: str | None = None
    config: str | None = None
    found: FoundConfig | None = None
    model: str | None = None


def default_server(environ: Mapping[str, str], folder: Path, model: str | None) -> DefaultServer:
    """Return the first that names a server: `XENOGLOT_UPSTREAM`, `XENOGLOT_CONFIG`, files, a `model` `PROVIDER/MODEL`.

    Raises:
        ConfigurationError: `./xenoglot.toml` needs to be trusted.
    """
    if upstream := environ.get(UPSTREAM_VARIABLE):
        return DefaultServer(upstream=upstream, model=model)
    if path := environ.get(CONFIG_VARIABLE):
        return DefaultServer(config=path, model=model)
    if (found := find_config(environ, folder)) is not None:
        check_found(found, environ)
        return DefaultServer(config=str(found.path), found=found, model=model)
    provider, slash, name = (model or "").partition("/")
    if slash and name and provider in catalog.names():
        return DefaultServer(upstream=provider, model=name)
    return DefaultServer(model=model)


def find_config(environ: Mapping[str, str], folder: Path) -> FoundConfig | None:
    """Return the file that is used if none is named; `None` if there is none."""
    local, user = folder / LOCAL_NAME, user_config(environ)
    if local.exists():
        return FoundConfig(local, local=True)
    return FoundConfig(user, local=False) if user.is_file() else None


def user_config(environ: Mapping[str, str]) -> Path:
    """Return the path of the user's file, which need not exist (XDG Base Directory Specification)."""
    return user_directory(environ, "XDG_CONFIG_HOME") / USER_NAME


def check_found(found: FoundConfig, environ: Mapping[str, str]) -> None:
    """Make sure that a file of the current directory may be used without being named.

    Raises:
        ConfigurationError: it belongs to another user, or it needs to be trusted and is not.
    """
    if not found.local:
        return
    try:
        content = found.path.read_bytes()
        plain = tomllib.loads(content.decode())
    except (OSError, ValueError, RecursionError):
        return  # whoever loads it reports that
    if os.name == "posix" and _owner(found.path) not in (0, os.getuid()):
        raise ConfigurationError(
            f"{found.path} belongs to another user and is not used; to use it, name it with `--config {found.path}`"
        )
    sensitive = list(sensitive_entries(plain))
    if sensitive and _record(found.path, content) not in _records(environ):
        raise ConfigurationError(
            f"{found.path} is not trusted; read it, then run `xenoglot config trust`, or name it with "
            f"`--config {found.path}`. It sets\n" + "\n".join(f"  {line}" for line in sensitive)
        )


def _owner(path: Path) -> int:
    return path.stat().st_uid


def trust(path: Path, environ: Mapping[str, str]) -> None:
    """Trust a file as it is now; after a change it has to be trusted again.

    Raises:
        ConfigurationError: it cannot be read, or the record cannot be written.
    """
    try:
        record = _record(path, path.read_bytes())
        if record in _records(environ):
            return
        place = _trusted(environ)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a", encoding="utf-8") as file:
            file.write(f"{record}\n")
    except OSError as error:
        raise ConfigurationError(f"`{error.filename}`: {os.strerror(error.errno or 0)}") from None


def servers(path: Path) -> str:
    """Return what requests go to by a file: providers and hosts, for one line of a terminal."""
    try:
        upstreams = tomllib.loads(path.read_text(encoding="utf-8")).get("upstreams")
    except (OSError, ValueError, RecursionError):
        return "not readable"  # whoever loads it says why
    tables = [table for table in upstreams.values() if isinstance(table, dict)] if isinstance(upstreams, dict) else []
    named = [_host(table["base_url"]) if "base_url" in table else str(table.get("provider")) for table in tables]
    return for_log(", ".join(dict.fromkeys(named)) or "the embedded model", _LONGEST)


def is_trusted(path: Path, environ: Mapping[str, str]) -> bool:
    """Whether a file that can be read is trusted as it is now."""
    return _record(path, path.read_bytes()) in _records(environ)


def sensitive_entries(plain: JSONObject) -> Iterator[str]:
    """Yield a line for each entry that needs trust: its path and what it could do."""
    for key, value in plain.items():
        if key == "upstreams":
            for name, upstream in (value if isinstance(value, dict) else {}).items():
                yield from _of_upstream(f"upstreams.{name}", upstream if isinstance(upstream, dict) else {})
        elif key not in _HARMLESS:
            yield for_log(f"{key}: not used without trust", _LONGEST)
        elif (allowed := _HARMLESS[key]) is not None and isinstance(value, dict):
            yield from (
                for_log(f"{key}.{inner}: {_shown(value[inner])}", _LONGEST) for inner in value if inner not in allowed
            )


def _of_upstream(path: str, upstream: JSONObject) -> Iterator[str]:
    url = upstream.get("base_url")
    if url is not None and not _is_local(url):
        yield for_log(f"{path}.base_url: requests go to {_host(url)}", _LONGEST)
    elif url is not None and "provider" in upstream:
        yield for_log(f"{path}.base_url: the key of the provider goes to {_host(url)}", _LONGEST)
    for key, value in upstream.items():
        if key not in _UPSTREAM and not (key == "key_env" and _is_own_key(upstream)):
            yield for_log(f"{path}.{key}: {_shown(value)}", _LONGEST)


def _is_own_key(upstream: JSONObject) -> bool:
    """Whether the key is the one that users of a known provider have for it, and goes to that provider."""
    name = upstream.get("provider")
    known = isinstance(name, str) and name in catalog.names() and "base_url" not in upstream
    return known and upstream["key_env"] == catalog.get(name).key_env


def _is_local(url: JSON) -> bool:
    try:
        host = urlsplit(url).hostname if isinstance(url, str) else None
    except ValueError:
        return False
    return host is not None and is_loopback(host)


def _host(url: JSON) -> str:
    """Return scheme and host of a URL, without user, password, path and query."""
    try:
        parts = urlsplit(str(url))
    except ValueError:
        return "a URL that cannot be read"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _shown(value: Any) -> str:  # noqa: ANN401  whatever the file holds
    return "a table" if isinstance(value, dict) else str(value)


def _record(path: Path, content: bytes) -> str:
    """Return the line that stands for a file with this content: a hash, as a path may hold any character."""
    name = os.fsencode(path.resolve())
    return hashlib.sha256(len(name).to_bytes(8) + name + content).hexdigest()


def _records(environ: Mapping[str, str]) -> frozenset[str]:
    try:
        return frozenset(_trusted(environ).read_text(encoding="utf-8").split())
    except (OSError, ValueError):
        return frozenset()


def _trusted(environ: Mapping[str, str]) -> Path:
    return user_directory(environ, "XDG_STATE_HOME") / "trusted-configurations"
