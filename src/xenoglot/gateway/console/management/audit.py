"""The audit log: each change, when, by which key, and what was before and after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from msgspec import Struct

from xenoglot.codec.json.json_io import encode_json
from xenoglot.gateway.console.admin_calls import AdminCalls
from xenoglot.gateway.console.inspection.json_tree import visible
from xenoglot.gateway.console.render import moment
from xenoglot.gateway.console.route import ConsoleRequest, ConsoleRoute, Page
from xenoglot.store.ledger.audit import AuditEntry

if TYPE_CHECKING:
    from xenoglot.gateway.console.route import ConsoleResult
    from xenoglot.model.json import JSON

FILTERS: Final = ("from", "to", "actor", "action", "object")
FIRST_TIME: Final = 1e9
"""Larger numbers with a fraction are Unix seconds."""
UNSET: Final = "\N{EN DASH}"


class AuditPage(Struct, frozen=True):
    """Shows the audit log."""

    calls: AdminCalls

    def routes(self) -> tuple[ConsoleRoute, ...]:
        """Return the row of the table."""
        return (ConsoleRoute(method="GET", path="/audit", handler=self.audit),)

    async def audit(self, request: ConsoleRequest) -> ConsoleResult:
        """Return a page of entries.

        Raises:
            FailureError: the store is off, or cannot be used.
            WireError: a filter is invalid.
        """
        wanted = {name: request.parameter(name) for name in FILTERS}
        found = await self.calls.page(request, "/audit", wanted | {"after": request.parameter("after")})
        values = {
            "title": "Audit",
            "rows": [(entry, changes(entry)) for entry in found.data if isinstance(entry, AuditEntry)],
            "filters": wanted,
            "next": found.next,
            "query": urlencode({name: value for name, value in wanted.items() if value is not None}),
        }
        return Page(template="audit.html", values=values)


def changes(entry: AuditEntry) -> list[tuple[str, str, str]]:
    """Return the fields that a change set, each with its value before and after."""
    before, after = _fields(entry.before), _fields(entry.after)
    names = [*before, *(name for name in after if name not in before)]
    return [
        (visible(name, 100), before.get(name, UNSET), after.get(name, UNSET))
        for name in names
        if before.get(name, UNSET) != after.get(name, UNSET)
    ]


def _fields(value: JSON) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {name: _text(one) for name, one in value.items()}


def _text(value: JSON) -> str:
    """Return a value for people: a list without brackets, a time in UTC; nothing for what is empty."""
    if value is None or value in ([], {}, ""):
        return UNSET
    if isinstance(value, float) and value > FIRST_TIME:
        return moment(value)
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return visible(value if isinstance(value, str) else encode_json(value).decode(), 300)
