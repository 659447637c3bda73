"""API keys of the store: listed, created, changed, rotated, disabled and deleted. Secrets are shown once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from msgspec import Struct

from xenoglot.errors import FailureError, WireError
from xenoglot.gateway.admin.keys import OFF, CreatedKeyInfo, KeyInfo
from xenoglot.gateway.console.admin_calls import AdminCalls
from xenoglot.gateway.console.management.forms import FormProblem, lists, number, texts
from xenoglot.gateway.console.management.made_key import MadeKey, made_cookie, made_key
from xenoglot.gateway.console.route import ConsoleRequest, ConsoleRoute, Page, Redirect

if TYPE_CHECKING:
    from xenoglot.gateway.admin.route import AdminResult
    from xenoglot.gateway.console.route import ConsoleResult
    from xenoglot.model.json import JSONObject

FIELDS: Final = ("name", "tenant", "models", "requests", "tokens", "concurrency", "budgets", "expires")
"""Fields of the form for a new key that show their problems."""
CHANGED: Final = ("name", "models", "requests", "tokens", "concurrency", "expires")
"""Those of the form for a key that exists."""
WINDOWS: Final = ("requests", "tokens")
"""Limits for a time."""
ACTIONS: Final = {"disable": {"disabled": True}, "enable": {"disabled": False}}


class KeyPages(Struct, frozen=True):
    """Shows and changes keys."""

    calls: AdminCalls

    def routes(self) -> tuple[ConsoleRoute, ...]:
        """Return the rows of the table."""
        return (
            ConsoleRoute(method="GET", path="/keys", handler=self.keys),
            ConsoleRoute(method="POST", path="/keys", handler=self.create, changes=True),
            ConsoleRoute(method="GET", path="/keys/{id}", handler=self.key),
            ConsoleRoute(method="POST", path="/keys/{id}", handler=self.update, changes=True),
            ConsoleRoute(method="POST", path="/keys/{id}/{action}", handler=self.change, changes=True),
        )

    async def keys(self, request: ConsoleRequest) -> ConsoleResult:
        """Return the list.

        Raises:
            FailureError: the store cannot be used.
            WireError: a parameter is invalid.
        """
        return await self._page(request)

    async def create(self, request: ConsoleRequest) -> ConsoleResult:
        """Create a key, and lead to the list, which shows its secret; or show the form again, with the problem.

        Raises:
            FailureError: the store cannot be used.
        """
        try:
            made = await self.calls.call(request, "POST", "/keys", body=_definition(request))
        except (FailureError, WireError) as error:
            return await self._page(request, problem=FormProblem(error, request.form, FIELDS))
        return _listed(request, made)

    async def key(self, request: ConsoleRequest) -> ConsoleResult:
        """Return the page of one key.

        Raises:
            FailureError: there is no such key, or the store cannot be used.
        """
        return await self._key_page(request)

    async def update(self, request: ConsoleRequest) -> ConsoleResult:
        """Change a key; or show the form again, with the problem.

        Raises:
            FailureError: there is no such key, or the store cannot be used.
        """
        key = await self._key(request)
        try:
            await self.calls.call(request, "PATCH", _path(key.id), body=_update(request, key))
        except (FailureError, WireError) as error:
            return await self._key_page(request, FormProblem(error, request.form, CHANGED))
        return Redirect(to=_path(key.id))

    async def change(self, request: ConsoleRequest) -> ConsoleResult:
        """Disable, enable, rotate or delete a key.

        Raises:
            FailureError: there is no such key or action, or the store cannot be used.
            WireError: a field is invalid.
        """
        action, path = request.variables["action"], _path(request.variables["id"])
        if action == "rotate":
            body = texts(request.form, "keep_old")
            made = await self.calls.call(request, "POST", f"{path}/rotate", body=body)
            return _listed(request, made)
        if action == "delete":
            await self.calls.call(request, "DELETE", path)
        elif action in ACTIONS:
            await self.calls.call(request, "PATCH", path, body={**ACTIONS[action]})
        else:
            raise WireError("$.action", "expected disable, enable, rotate or delete")
        return Redirect(to="/keys")

    async def _key(self, request: ConsoleRequest) -> KeyInfo:
        return await self.calls.object(KeyInfo, request, _path(request.variables["id"]))

    async def _key_page(self, request: ConsoleRequest, problem: FormProblem | None = None) -> ConsoleResult:
        key = await self._key(request)
        shown = {"name": key.name, "models": ", ".join(key.models), "expires": "", **_limit_texts(key)}
        values = {
            "title": f"Key {key.name}",
            "key": key,
            "problem": problem,
            "shown": shown if problem is None else problem.entered,
            "changes": request.session.administers,
        }
        return Page(template="key.html", values=values, status=200 if problem is None else problem.status)

    async def _page(self, request: ConsoleRequest, *, problem: FormProblem | None = None) -> ConsoleResult:
        values: dict[str, object] = {"title": "Keys", "rows": [], "next": None, "off": "", "problem": problem}
        try:
            parameters = {"tenant": request.parameter("tenant"), "after": request.parameter("after")}
            found = await self.calls.page(request, "/keys", parameters)
            values |= {"rows": list(found.data), "next": found.next}
        except FailureError as error:
            if error.failure != OFF:
                raise
            values["off"] = OFF.message
        made, cookie = made_key(request)
        values |= {"made": made, "changes": request.session.administers}
        status = 200 if problem is None else problem.status
        return Page(template="keys.html", values=values, status=status, cookie=cookie)


def _path(name: str) -> str:
    return f"/keys/{quote(name, safe='')}"


def _listed(request: ConsoleRequest, made: AdminResult) -> Redirect:
    """Return the way to the list, which shows the secret of a key once: a reload of it makes no other key."""
    if not isinstance(made, CreatedKeyInfo):
        raise TypeError(type(made).__name__)
    return Redirect(to="/keys", cookie=made_cookie(request, MadeKey(made.name, made.secret)))


def _limit_texts(key: KeyInfo) -> dict[str, str]:
    """Return the limits of a key as the form has them."""
    limits = key.limits or {}
    windows = {name: found if isinstance(found := limits.get(name), list) else [] for name in WINDOWS}
    texts_of = {name: ", ".join(map(str, found)) for name, found in windows.items()}
    return {**texts_of, "concurrency": str(limits.get("concurrency", ""))}


def _update(request: ConsoleRequest, key: KeyInfo) -> JSONObject:
    """Return the body of a change: a list or limit that is empty is removed, a date that is empty stays.

    Limits that the form does not have stay as they are.

    Raises:
        WireError: the number of concurrent requests is none.
    """
    form = request.form
    others = {name: value for name, value in (key.limits or {}).items() if name not in (*WINDOWS, "concurrency")}
    limits = others | _limits(request)
    body: JSONObject = {"models": [], **texts(form, "name", "expires"), **lists(form, "roles", "models")}
    return {**body, "limits": limits or None}


def _limits(request: ConsoleRequest) -> JSONObject:
    limits = lists(request.form, *WINDOWS)
    if concurrency := request.form.get("concurrency", "").strip():
        limits["concurrency"] = number("$.concurrency", concurrency)
    return limits


def _definition(request: ConsoleRequest) -> JSONObject:
    """Return the body for a new key.

    Raises:
        WireError: the number of concurrent requests is none.
    """
    form = request.form
    body = texts(form, "name", "tenant", "expires") | lists(form, "roles", "models", "budgets")
    limits = _limits(request)
    return {**body, "limits": limits} if limits else body
