"""Keys that are created while the gateway runs: their secrets, and what is checked before they are stored."""

from __future__ import annotations

import re
import secrets
import string
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, Struct, UnsetType

from xenoglot.errors import XenoglotError
from xenoglot.gateway.auth.file_keys import tenant_owner
from xenoglot.gateway.auth.keys import digest_of, digested
from xenoglot.gateway.config.limits import LimitSettings, check_limits, limits_json
from xenoglot.gateway.config.named_keys import ID_PREFIX, NAME_EXPECTED, check_models, is_key_name
from xenoglot.gateway.config.schema import Problems, shown
from xenoglot.policy.limits.money_budget import Budget, budget_id, is_period
from xenoglot.store.ledger import api_keys, budgets
from xenoglot.store.ledger.api_keys import StoredKey
from xenoglot.store.ledger.audit import Change

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.store.queries import Steps

PREFIX: Final = "xg-"
SECRET_CHARACTERS: Final = 43
"""Random letters and digits of a secret: 256 bits."""

SHOWN: Final = 4
"""Characters of a secret that are stored and shown, so that people can distinguish keys."""

ROLES: Final = ("client", "viewer", "admin")
"""`client` may use models, `viewer` read what administrators see, `admin` administer."""

OLD_SECONDS: Final = 86_400.0
"""How long the old secret works after a rotation, if nothing else is set."""

_LETTERS: Final = string.ascii_letters + string.digits
_SECRET: Final = re.compile(rf"{PREFIX}[A-Za-z0-9]{{{SECRET_CHARACTERS}}}")
_BUDGET: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(?: ?([A-Z]{3}))?/([a-z0-9:]+)")
MICRO: Final = 1_000_000
BUDGET_EXPECTED: Final = "expected an amount and a period, like `50/month`, `20 EUR/day` or `100/rolling:30d`"
_TENANT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class InvalidKeyError(XenoglotError):
    """A key cannot be as requested: the text names the field and the problem."""


class KeyRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key to be created. `expires` is in Unix seconds; without `models` all of its tenant are allowed.

    `budgets` are amounts of money for a period, such as `50/month` or `20 EUR/rolling:30d`.
    """

    tenant: str | None = None
    name: str | None = None
    roles: tuple[str, ...] = ("client",)
    models: tuple[str, ...] = ()
    limits: LimitSettings | None = None
    budgets: tuple[str, ...] = ()
    expires: float | None = None


class KeyUpdate(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of a key; fields that are not set stay. Its tenant cannot change: stored data belongs to that."""

    name: str | UnsetType = UNSET
    roles: tuple[str, ...] | UnsetType = UNSET
    models: tuple[str, ...] | UnsetType = UNSET
    limits: LimitSettings | UnsetType | None = UNSET
    expires: float | UnsetType | None = UNSET
    disabled: bool | UnsetType = UNSET


def is_secret(text: str) -> bool:
    """Whether a credential has the form of a key of the store, so that it is worth a query."""
    return _SECRET.fullmatch(text) is not None


def new_secret() -> str:
    """Return a new secret."""
    return PREFIX + "".join(secrets.choice(_LETTERS) for _ in range(SECRET_CHARACTERS))


def new_change(at: float, actor: str, request: str | None = None) -> Change:
    """Return a change that is about to be made, with an id for its audit entry."""
    return Change(id=f"audit_{secrets.token_hex(12)}", at=at, actor=actor, request=request)


def create(new: KeyRequest, change: Change) -> tuple[str, Steps[StoredKey]]:
    """Return the secret of a new key, and the steps that store the key.

    Raises:
        InvalidKeyError: it cannot be as requested.
    """
    key_id = f"{ID_PREFIX}{secrets.token_hex(8)}"
    secret = new_secret()
    tenant = new.tenant
    own = [_budget(text, key_id) for text in new.budgets]
    key = StoredKey(
        id=key_id,
        tenant=tenant,
        name=new.name if new.name is not None else f"{tenant or 'key'}-{key_id[-6:]}",
        owner=digested(b"owner of key\0" + key_id.encode()) if tenant is None else tenant_owner(tenant),
        shown=secret[-SHOWN:],
        roles=tuple(role for role in ROLES if role in new.roles),
        models=new.models,
        limits=limits_json(new.limits),
        budgets=tuple(budget.id for budget in own),
        created=change.at,
        created_by=change.actor,
        expires=new.expires,
    )
    if tenant is not None and not _TENANT.fullmatch(tenant):
        raise InvalidKeyError(f"tenant: found {shown(tenant)}; expected letters, digits and `.`, `_`, `-`")
    if new.expires is not None and new.expires <= change.at:
        raise InvalidKeyError("expires: that time is past")
    _check(key.name, new.roles, new.models, new.limits)
    return secret, _create(key, digest_of(secret).hex(), own, change)


def update(reference: str, wanted: KeyUpdate, change: Change) -> Steps[StoredKey | None]:
    """Return the steps that change the key with this id or name.

    Raises:
        InvalidKeyError: it cannot be as requested.
    """
    fields = {name: value for name in wanted.__struct_fields__ if (value := getattr(wanted, name)) is not UNSET}
    limits = fields.get("limits")
    _check(fields.get("name", "name"), fields.get("roles", ROLES), fields.get("models", ()), limits)
    if "limits" in fields:
        fields["limits"] = limits_json(limits)
    if "roles" in fields:
        fields["roles"] = tuple(role for role in ROLES if role in fields["roles"])
    action = "key.update"
    if "disabled" in fields:
        action = "key.disable" if fields["disabled"] else "key.enable"
        fields["disabled"] = change.at if fields["disabled"] else None
    return api_keys.update(reference, fields, change, action)


def rotate(reference: str, change: Change, old_until: float) -> tuple[str, Steps[StoredKey | None]]:
    """Return another secret for the key with this id or name, and the steps that store it.

    The old one expires at `old_until`.
    """
    secret = new_secret()
    return secret, api_keys.rotate(reference, digest_of(secret).hex(), secret[-SHOWN:], change, old_until)


def delete(reference: str, change: Change) -> Steps[StoredKey | None]:
    """Return the steps that delete the key with this id or name, and its budgets."""
    key = yield from api_keys.delete(reference, change)
    if key is not None:
        for budget in (yield from budgets.of_scope(f"key:{key.id}")):
            yield from budgets.delete(budget, new_change(change.at, change.actor, change.request))
    return key


def _create(key: StoredKey, digest: str, own: Sequence[Budget], change: Change) -> Steps[StoredKey]:
    created = yield from api_keys.create(key, digest, change)
    for budget in own:
        yield from budgets.put(budget, new_change(change.at, change.actor, change.request))
    return created


def _budget(text: str, key_id: str) -> Budget:
    """Return the budget of a key that a text such as `50/month` or `20 EUR/rolling:30d` means.

    Raises:
        InvalidKeyError: it means none.
    """
    found = _BUDGET.fullmatch(text)
    if found is None or not is_period(found[3]):
        raise InvalidKeyError(f"budgets: found {shown(text)}; {BUDGET_EXPECTED}")
    scope, currency = f"key:{key_id}", found[2] or "USD"
    amount = int(Decimal(found[1]) * MICRO)
    return Budget(
        id=budget_id(scope, found[3], currency), scope=scope, amount=amount, currency=currency, period=found[3]
    )


def _check(name: str, roles: tuple[str, ...], models: tuple[str, ...], limits: LimitSettings | None) -> None:
    problems = Problems({})
    if not is_key_name(name):
        problems.add("name", f"found {shown(name)}; {NAME_EXPECTED}")
    for role in roles:
        if role not in ROLES:
            problems.add("roles", f"found {shown(role)}; expected some of {', '.join(ROLES)}")
    if not roles:
        problems.add("roles", f"found none; expected some of {', '.join(ROLES)}")
    check_models(models, "", problems)
    check_limits(limits, "", problems)
    if problems.lines:
        raise InvalidKeyError("; ".join(problems.lines))
