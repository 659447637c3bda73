"""`/admin/v1/keys` and `/admin/v1/audit`: API keys of the store, and the log of changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from xenoglot.errors import FailureError, WireError
from xenoglot.gateway.admin.route import (
    MOST_ROWS,
    AdminRequest,
    AdminResult,
    AdminRoute,
    Page,
    PageQuery,
    conflict,
    decode_cursor,
    not_found,
)
from xenoglot.gateway.admin.usage import moment
from xenoglot.gateway.auth import managed_keys
from xenoglot.gateway.auth.managed_keys import OLD_SECONDS, InvalidKeyError, KeyRequest, KeyUpdate
from xenoglot.gateway.config.limits import LimitSettings
from xenoglot.model.failure import Failure
from xenoglot.model.json import JSONObject
from xenoglot.store.ledger import api_keys, audit
from xenoglot.store.ledger.api_keys import KeyConflictError, KeyFilter, StoredKey
from xenoglot.store.ledger.audit import AuditEntry, AuditFilter
from xenoglot.store.ledger.interval import until
from xenoglot.store.records import StoreError

if TYPE_CHECKING:
    from xenoglot.gateway.admin.services import AdminServices
    from xenoglot.gateway.auth.stored_keys import StoredKeys
    from xenoglot.store.queries import Steps

CREATED: Final = 201

OFF: Final = Failure(
    kind="not_found", message="the gateway accepts no keys of its store: set `store = true` under [keys] of its file"
)

Role: TypeAlias = Literal["client", "viewer", "admin"]
Expiry: TypeAlias = float | str
"""Unix seconds, a time from now (`90d`), a date, or `never`."""


class KeyLimits(LimitSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of requests, tokens and concurrency, as in the configuration file."""


class KeyCreation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key to be created. `models` are names or patterns; without any, all that the tenant may use are allowed."""

    tenant: str | None = None
    name: str | None = None
    roles: tuple[Role, ...] = ("client",)
    models: tuple[str, ...] = ()
    limits: KeyLimits | None = None
    budgets: tuple[str, ...] = ()
    """Amounts of money for a period: `50/month`."""
    expires: Expiry | None = None


class KeyChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of a key; fields that are left out stay as they are."""

    name: str | UnsetType = UNSET
    roles: tuple[Role, ...] | UnsetType = UNSET
    models: tuple[str, ...] | UnsetType = UNSET
    limits: KeyLimits | UnsetType | None = UNSET
    expires: Expiry | UnsetType | None = UNSET
    disabled: bool | UnsetType = UNSET


class KeyRotation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long the old secret still works: seconds, or a time such as `24h`."""

    keep_old: Expiry = OLD_SECONDS


class KeyInfo(Struct, frozen=True, kw_only=True, omit_defaults=False):
    """A key without its secret. `shown` is the end of the secret; times are Unix seconds."""

    id: str
    name: str
    tenant: str | None
    state: Literal["active", "disabled", "expired"]
    shown: str
    roles: list[str]
    models: list[str]
    limits: JSONObject | None
    budgets: list[str]
    created: float
    created_by: str | None
    expires: float | None
    disabled: float | None
    last_used: float | None


class CreatedKeyInfo(KeyInfo, frozen=True, kw_only=True):
    """A key with its secret, which is not shown again."""

    secret: str


class KeyQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which keys are meant."""

    tenant: str | None = None


class AuditQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"from_": "from"}):
    """Which entries are meant. Times are durations ago, dates, times or Unix seconds."""

    from_: str | None = None
    to: str | None = None
    actor: str | None = None
    action: str | None = None
    object: str | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_ROWS - 1)] = 50
    after: str | None = None


class KeyRoutes:
    """Routes for API keys and the audit log. Keys are those of the store; `stored` knows those that are in use."""

    def __init__(self, services: AdminServices, stored: StoredKeys | None) -> None:
        self._services = services
        self._stored = stored

    def routes(self) -> tuple[AdminRoute, ...]:
        """Return the rows of the table."""
        return (
            AdminRoute(
                method="GET",
                path="/keys",
                handler=self.keys,
                summary="List API keys, the newest first.",
                query=KeyQuery,
                returns=KeyInfo,
                paged=True,
            ),
            AdminRoute(
                method="POST",
                path="/keys",
                handler=self.create,
                summary="Create an API key; its secret is in this response only.",
                takes=KeyCreation,
                returns=CreatedKeyInfo,
                status=CREATED,
                changes=True,
            ),
            AdminRoute(
                method="GET", path="/keys/{id}", handler=self.key, summary="Return one API key.", returns=KeyInfo
            ),
            AdminRoute(
                method="PATCH",
                path="/keys/{id}",
                handler=self.update,
                summary="Change an API key: its name, roles, models, limits or expiry, or disable it.",
                takes=KeyChange,
                returns=KeyInfo,
                changes=True,
            ),
            AdminRoute(
                method="DELETE",
                path="/keys/{id}",
                handler=self.delete,
                summary="Delete an API key and its budgets, and return it as it was.",
                returns=KeyInfo,
                changes=True,
            ),
            AdminRoute(
                method="POST",
                path="/keys/{id}/rotate",
                handler=self.rotate,
                summary="Replace the secret of an API key; the old one still works for some time.",
                takes=KeyRotation,
                returns=CreatedKeyInfo,
                changes=True,
            ),
            AdminRoute(
                method="GET",
                path="/audit",
                handler=self.audit,
                summary="List changes by administrators, the newest first.",
                query=AuditQuery,
                returns=AuditEntry,
                paged=True,
            ),
        )

    async def keys(self, request: AdminRequest) -> AdminResult:
        """Return keys.

        Raises:
            FailureError: keys of the store are off, or the store cannot be used.
            WireError: a parameter is invalid.
        """
        query = request.query(KeyQuery)
        self._need()
        which = KeyFilter(tenant=query.tenant, after=_after(query.after), limit=query.limit + 1)
        found = await self._services.read(api_keys.listed(which))
        return Page.of([self._info(key) for key in found], query.limit, lambda key: (key.id,))

    async def create(self, request: AdminRequest) -> AdminResult:
        """Create a key.

        Raises:
            FailureError: keys of the store are off, the store cannot be used, or another key has the name.
            WireError: a field is invalid.
        """
        self._need()
        body, now = request.body(KeyCreation), self._services.now()
        wanted = KeyRequest(
            tenant=body.tenant,
            name=body.name,
            roles=body.roles,
            models=body.models,
            limits=body.limits,
            budgets=body.budgets,
            expires=_time("$.expires", body.expires, now),
        )
        try:
            secret, steps = managed_keys.create(wanted, request.change(now))
        except InvalidKeyError as error:
            raise _wire_error(error) from None
        return self._info_with(await self._write(steps, request), secret)

    async def key(self, request: AdminRequest) -> AdminResult:
        """Return one key.

        Raises:
            FailureError: keys of the store are off, the store cannot be used, or there is no such key.
        """
        self._need()
        key = await self._services.read(api_keys.get(request.variables["id"]))
        return self._info(_found(key, request))

    async def update(self, request: AdminRequest) -> AdminResult:
        """Change a key.

        Raises:
            FailureError: keys of the store are off, the store cannot be used, there is no such key, or another one has
                the name.
            WireError: a field is invalid.
        """
        self._need()
        body, now = request.body(KeyChange), self._services.now()
        expires = UNSET if body.expires is UNSET else _time("$.expires", body.expires, now)
        wanted = KeyUpdate(
            name=body.name,
            roles=body.roles,
            models=body.models,
            limits=body.limits,
            expires=expires,
            disabled=body.disabled,
        )
        try:
            steps = managed_keys.update(request.variables["id"], wanted, request.change(now))
        except InvalidKeyError as error:
            raise _wire_error(error) from None
        return self._info(await self._write(steps, request))

    async def delete(self, request: AdminRequest) -> AdminResult:
        """Delete a key and its budgets.

        Raises:
            FailureError: keys of the store are off, the store cannot be used, or there is no such key.
        """
        self._need()
        change = request.change(self._services.now())
        return self._info(await self._write(managed_keys.delete(request.variables["id"], change), request))

    async def rotate(self, request: AdminRequest) -> AdminResult:
        """Give a key another secret.

        Raises:
            FailureError: keys of the store are off, the store cannot be used, or there is no such key.
            WireError: a field is invalid.
        """
        self._need()
        keep, now = request.body(KeyRotation).keep_old, self._services.now()
        end = now + keep if isinstance(keep, float) else _time("$.keep_old", keep, now)
        if end is None or end < now:
            raise WireError("$.keep_old", "expected at least 0 seconds, or a time like 24h")
        secret, steps = managed_keys.rotate(request.variables["id"], request.change(now), end)
        return self._info_with(await self._write(steps, request), secret)

    async def audit(self, request: AdminRequest) -> AdminResult:
        """Return entries of the audit log.

        Raises:
            FailureError: the store is off, or cannot be used.
            WireError: a parameter is invalid.
        """
        query, services = request.query(AuditQuery), self._services
        now = services.now()
        which = AuditFilter(
            since=0.0 if query.from_ is None else moment("$.from", query.from_, now),
            until=now + 1 if query.to is None else moment("$.to", query.to, now),
            actor=query.actor,
            action=query.action,
            object=query.object,
            after=_after(query.after),
            limit=query.limit + 1,
        )
        return Page.of(await services.read(audit.entries(which)), query.limit, lambda entry: (entry.id,))

    async def _write(self, steps: Steps[StoredKey] | Steps[StoredKey | None], request: AdminRequest) -> StoredKey:
        """Make a change, and have this gateway act on it at once."""
        stored = self._need()
        try:
            key = await self._services.write(steps)
        except KeyConflictError as error:
            raise conflict(str(error)) from None
        try:
            await stored.refresh()
        except StoreError:
            return _found(key, request)  # it is made, and will be noticed when the store can be read again
        return _found(key, request)

    def _need(self) -> StoredKeys:
        if self._stored is None:
            raise FailureError(OFF)
        return self._stored

    def _info(self, key: StoredKey) -> KeyInfo:
        return msgspec.convert({**key.public(), "state": self._state(key)}, KeyInfo)

    def _info_with(self, key: StoredKey, secret: str) -> CreatedKeyInfo:
        return msgspec.convert({**key.public(), "state": self._state(key), "secret": secret}, CreatedKeyInfo)

    def _state(self, key: StoredKey) -> str:
        return key.state(self._services.now())


def _found(key: StoredKey | None, request: AdminRequest) -> StoredKey:
    if key is None:
        raise not_found("API key", request.variables["id"])
    return key


def _after(cursor: str | None) -> str | None:
    place = decode_cursor(cursor, str)
    return None if place is None else str(place[0])


def _time(path: str, value: Expiry | None, now: float) -> float | None:
    """Return the Unix time that a field means; `None` for `never` or nothing."""
    if not isinstance(value, str):
        return value
    try:
        return until(value, now)
    except ValueError as error:
        raise WireError(path, str(error)) from None


def _wire_error(error: InvalidKeyError) -> WireError:
    """Return the error with the path of the field."""
    field, _, problem = str(error).partition(": ")
    return WireError(f"$.{field}", problem)
