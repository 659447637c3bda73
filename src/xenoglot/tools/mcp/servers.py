"""MCP servers in the common configuration format: `{"mcpServers": {name: {command, args, env} or {url, headers}}}`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field

from xenoglot.codec.json.json_io import decode_json
from xenoglot.errors import ConfigurationError, WireError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.model.json import JSON

LONGEST_FILE = 1_000_000
"""Most bytes of a configuration file."""

_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_TABLES = ("mcpServers", "servers")
"""Names of the table of servers, in most files and in editors."""

_HTTP = ("http", "streamable-http", "streamableHttp", "streamable_http")


class McpServer(Struct, frozen=True, kw_only=True):
    """One server: a `command` that is started and connected by its pipes, or the `url` of a running one.

    A started server gets few variables (`HOME`, `PATH` and the like) and those of `env`; `headers` are sent with each
    request.
    """

    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    type: str | None = None
    disabled: bool = False


def read_servers(path: str | Path, environ: Mapping[str, str] | None = None) -> dict[str, McpServer]:
    """Return the servers of a file by name, without disabled ones.

    `${NAME}` and `${NAME:-default}` in texts are replaced by environment variables.

    Raises:
        ConfigurationError: unreadable, or not in the format; the text has the path.
    """
    try:
        with Path(path).open("rb") as file:
            text = file.read(LONGEST_FILE + 1)
    except OSError as error:
        raise ConfigurationError(f"`{path}` cannot be read: {os.strerror(error.errno or 0)}") from None
    if len(text) > LONGEST_FILE:
        raise ConfigurationError(f"`{path}` is larger than {LONGEST_FILE} bytes")
    try:
        plain = decode_json(text)
    except WireError as error:
        raise ConfigurationError(f"`{path}`: {error}") from None
    return servers_of(plain, str(path), os.environ if environ is None else environ)


def servers_of(plain: JSON, where: str, environ: Mapping[str, str]) -> dict[str, McpServer]:
    """Return the servers in JSON of that format; see `read_servers`.

    Raises:
        ConfigurationError: not in the format.
    """
    tables = [plain[name] for name in _TABLES if name in plain] if isinstance(plain, dict) else []
    if not tables or not isinstance(tables[0], dict):
        raise ConfigurationError(f'{where}: expected an object with "mcpServers", an object of servers by name')
    found = {name: _server(said, f"{where}: mcpServers.{name}", environ) for name, said in tables[0].items()}
    return {name: server for name, server in found.items() if not server.disabled}


def checked(server: McpServer, where: str) -> McpServer:
    """Return the server if it is valid.

    Raises:
        ConfigurationError: neither or both of `command` and `url`, or an unsupported transport.
    """
    if (server.command is None) == (server.url is None):
        raise ConfigurationError(f"{where}: expected either `command` or `url`")
    if server.type is not None and server.type not in ("stdio", *_HTTP):
        raise ConfigurationError(f'{where}.type: found "{server.type}"; expected "stdio" or "http"')
    if server.url is not None and not server.url.startswith(("http://", "https://")):
        raise ConfigurationError(f"{where}.url: expected a URL that begins with http:// or https://")
    return server


def _server(said: JSON, where: str, environ: Mapping[str, str]) -> McpServer:
    try:
        server = msgspec.convert(_expanded(said, where, environ), McpServer)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{where}: {error}") from None
    return server if server.disabled else checked(server, where)


def _expanded(value: JSON, where: str, environ: Mapping[str, str]) -> JSON:
    """Return a value with the variables in its texts put in."""
    match value:
        case str():
            return _VARIABLE.sub(lambda found: _variable(found, where, environ), value)
        case list():
            return [_expanded(item, where, environ) for item in value]
        case dict():
            return {name: _expanded(item, where, environ) for name, item in value.items()}
        case _:
            return value


def _variable(found: re.Match[str], where: str, environ: Mapping[str, str]) -> str:
    name, otherwise = found[1], found[2]
    value = environ.get(name) or otherwise
    if value is None:
        raise ConfigurationError(f"{where}: the environment variable `{name}` is not set")
    return str(value)
