"""The page Configuration: what is in force, what another text would change, and a reload of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from xenoglot.codec.json.json_io import encode_json
from xenoglot.errors import FailureError
from xenoglot.gateway.admin.configuration import ConfigCheck, ConfigState
from xenoglot.gateway.console.admin_calls import AdminCalls
from xenoglot.gateway.console.route import ConsoleRequest, ConsoleRoute, Page

if TYPE_CHECKING:
    from xenoglot.gateway.console.route import ConsoleResult
    from xenoglot.model.json import JSON


class ConfigurationPages(Struct, frozen=True):
    """Shows, checks and reloads the configuration."""

    calls: AdminCalls

    def routes(self) -> tuple[ConsoleRoute, ...]:
        """Return the rows of the table."""
        return (
            ConsoleRoute(method="GET", path="/configuration", handler=self.configuration),
            ConsoleRoute(method="POST", path="/configuration/check", handler=self.check),
            ConsoleRoute(method="POST", path="/configuration/reload", handler=self.reload, changes=True),
        )

    async def configuration(self, request: ConsoleRequest) -> ConsoleResult:
        """Return the page."""
        return await self._page(request, {})

    async def check(self, request: ConsoleRequest) -> ConsoleResult:
        """Return the mistakes in a text, or what it would change."""
        text = request.form.get("toml", "")
        checked = await self.calls.call(request, "POST", "/config/check", body={"toml": text}, reads=True)
        values: dict[str, object] = {"checked": checked, "toml": text, "changes": []}
        if isinstance(checked, ConfigCheck) and checked.changed:
            config = (await self.calls.object(ConfigState, request, "/config")).config
            values["changes"] = [(path, _text(_at(config, path))) for path in checked.changed]
        if request.is_fragment:
            return Page(template="configuration_check.html", values=values)
        return await self._page(request, values)

    async def reload(self, request: ConsoleRequest) -> ConsoleResult:
        """Reload the file; return what became of it."""
        try:
            await self.calls.call(request, "POST", "/reload")
        except FailureError as error:
            if error.failure.kind not in ("conflict", "not_found"):
                raise
            values: dict[str, object] = {"reloaded": False, "problem": error.failure.message}
        else:
            values = {"reloaded": True, "problem": None}
        if request.is_fragment:
            return Page(template="configuration_reload.html", values=values)
        return await self._page(request, values)

    async def _page(self, request: ConsoleRequest, more: dict[str, object]) -> Page:
        found = await self.calls.object(ConfigState, request, "/config")
        tables = [(name, _text(value)) for name, value in found.config.items() if value not in (None, {}, [])]
        values = {"title": "Configuration", "tables": tables, "checked": None, "toml": "", "changes": [], **more}
        return Page(template="configuration.html", values=values)


def _at(config: JSON, path: str) -> JSON:
    """Return the value at a path of names; `None` if there is none."""
    value: JSON = config
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _text(value: JSON) -> str:
    return msgspec.json.format(encode_json(value)).decode()
