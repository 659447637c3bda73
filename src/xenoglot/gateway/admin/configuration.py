"""`/admin/v1/config` and `/admin/v1/reload`: the configuration without its secrets, a check of another, a reload."""

from __future__ import annotations

import asyncio
import logging
import os
import tomllib
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from xenoglot.codec.json.json_io import decode_json
from xenoglot.errors import ConfigurationError, FailureError
from xenoglot.gateway.admin.route import AdminRequest, AdminRoute, conflict
from xenoglot.gateway.admin.services import AdminServices
from xenoglot.gateway.config import load
from xenoglot.gateway.config.file_permissions import shown
from xenoglot.model.failure import Failure
from xenoglot.model.json import JSONObject
from xenoglot.store.ledger import audit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.gateway.admin.route import AdminResult
    from xenoglot.gateway.config.load import Config
    from xenoglot.model.json import JSON

NO_FILE: Final = Failure(
    kind="conflict", message="the gateway was started without a configuration file, so there is nothing to reload"
)

_logger = logging.getLogger("xenoglot.gateway")


class ConfigText(Struct, frozen=True, forbid_unknown_fields=True):
    """The text of a configuration file."""

    toml: str


class ConfigState(Struct, frozen=True, kw_only=True):
    """The configuration in the words of the file, defaults included. Secrets are masked."""

    object: Literal["config"] = "config"
    config: JSONObject


class ConfigCheck(Struct, frozen=True, kw_only=True):
    """Whether a configuration is valid: all mistakes, or the paths of the values that it changes."""

    object: Literal["config.check"] = "config.check"
    ok: bool
    problems: list[str]
    changed: list[str]


class ReloadResult(Struct, frozen=True, kw_only=True):
    """The configuration file was reloaded."""

    object: Literal["reload"] = "reload"
    ok: bool = True


class ConfigRoutes(Struct, frozen=True):
    """Routes for the configuration."""

    services: AdminServices

    def routes(self) -> tuple[AdminRoute, ...]:
        """Return the rows of the table."""
        return (
            AdminRoute(
                method="GET",
                path="/config",
                handler=self.config,
                summary="Return the configuration; secrets are masked.",
                returns=ConfigState,
            ),
            AdminRoute(
                method="POST",
                path="/config/check",
                handler=self.check,
                summary="Check the text of a configuration file, and list what it would change.",
                takes=ConfigText,
                returns=ConfigCheck,
            ),
            AdminRoute(
                method="POST",
                path="/reload",
                handler=self.reload,
                summary="Reload the configuration file.",
                returns=ReloadResult,
                changes=True,
            ),
        )

    async def config(self, request: AdminRequest) -> AdminResult:  # noqa: ARG002  the form of a handler
        """Return the configuration that is used now."""
        return ConfigState(config=_plain(self.services.config))

    async def check(self, request: AdminRequest) -> AdminResult:
        """Check a configuration without using it.

        Raises:
            WireError: the body is invalid.
        """
        text = request.body(ConfigText).toml
        try:
            wanted = await asyncio.to_thread(_read, text)
        except ConfigurationError as error:
            lines = [line.strip() for line in str(error).splitlines()]
            return ConfigCheck(ok=False, problems=lines[1:] or lines, changed=[])
        changed = sorted(_changed(_plain(self.services.config), _plain(wanted)))
        return ConfigCheck(ok=True, problems=[], changed=changed)

    async def reload(self, request: AdminRequest) -> AdminResult:
        """Reload the configuration file. A mistake in it changes nothing.

        Raises:
            FailureError: there is no file, or it has a mistake.
        """
        services = self.services
        if services.reload is None:
            raise FailureError(NO_FILE)
        problem = await services.reload()
        if problem is not None:
            raise conflict(f"configuration not reloaded: {services.redact(problem)}")
        _logger.info("%s has reloaded the configuration, request %s", request.actor, request.id)
        if services.keeper is not None:
            await services.write(audit.record(request.change(services.now()), "reload", "config"))
        return ReloadResult()


def _read(text: str) -> Config:
    """Return the configuration in the text of a file.

    Raises:
        ConfigurationError: it has mistakes.
    """
    try:
        plain = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        message = f"not TOML: {error}"
        raise ConfigurationError(message) from None
    return load.check(plain, os.environ, "the text")


def _plain(config: Config) -> JSONObject:
    """Return a configuration as JSON, its secrets masked."""
    plain = decode_json(shown(config, config.secrets))
    return plain if isinstance(plain, dict) else {}


def _changed(before: JSON, after: JSON, path: str = "") -> Iterator[str]:
    """Yield the paths of the values that differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in {*before, *after}:
            yield from _changed(before.get(name), after.get(name), f"{path}.{name}" if path else name)
    elif before != after:
        yield path
