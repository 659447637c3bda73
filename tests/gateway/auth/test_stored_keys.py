"""Keys of the store in one gateway: what is known, what is looked up how often, and what a change does to both."""

from __future__ import annotations

import asyncio
from math import inf
from typing import TYPE_CHECKING, TypeVar, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from xenoglot.errors import FailureError
from xenoglot.gateway.auth import managed_keys, stored_keys
from xenoglot.gateway.auth.keys import AMBIGUOUS, WRONG, Keyring, Principal, digest_of
from xenoglot.gateway.auth.managed_keys import InvalidKeyError, KeyRequest, KeyUpdate
from xenoglot.gateway.auth.stored_keys import CROWDED, DISABLED, EXPIRED, UNREACHABLE, StoredKeys
from xenoglot.gateway.config.limits import LimitSettings
from xenoglot.gateway.config.tenants import Tenant
from xenoglot.store.ledger import api_keys, budgets
from xenoglot.store.records import StoreError
from xenoglot.store.sqlite import Memory

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from xenoglot.gateway.auth.keys import Policy
    from xenoglot.store.ledger.api_keys import StoredKey
    from xenoglot.store.queries import Steps

T = TypeVar("T")

TENANTS = {"ada": Tenant(key_env="ADA", models=("small-*",))}


class Shop:
    """A store with a clock of its own that counts its reads, and can be out of order."""

    def __init__(self) -> None:
        self.database = Memory()
        self.time = 1000.0
        self.reads = 0
        self.broken = False
        self.gate: asyncio.Event | None = None
        """Holds reads that have begun, and have read their rows."""
        self.held = asyncio.Event()

    @property
    def store(self) -> Shop:
        return self

    def now(self) -> float:
        return self.time

    async def read(self, steps: Steps[T]) -> T:
        self.reads += 1
        gate = self.gate
        found = await self.database.read(steps)
        if gate is not None:
            self.held.set()
            await gate.wait()
        return found

    async def write(self, steps: Steps[T]) -> T:
        return await self.database.write(steps)

    def has_history(self) -> bool:
        return True

    async def within(self, asked: Awaitable[T]) -> T:
        result = await asked
        if self.broken:
            raise StoreError("the store failed: here")
        return result

    async def create(self, **settings: object) -> str:
        change = managed_keys.new_change(self.time, "test")
        secret, steps = managed_keys.create(KeyRequest(**settings), change)  # type: ignore[arg-type]
        await self.write(steps)
        return secret

    async def update(self, name: str, **settings: object) -> StoredKey | None:
        change = managed_keys.new_change(self.time, "test")
        return await self.write(managed_keys.update(name, KeyUpdate(**settings), change))  # type: ignore[arg-type]


@pytest.fixture
async def shop() -> Shop:
    return Shop()


async def admitted(ring: Keyring, key: str, policy: str = "key") -> object:
    """Return what comes of a request with this key."""
    headers = [("authorization", f"Bearer {key}")]
    await ring.learn(headers)
    return ring.admit(headers, cast("Policy", policy))


def ring_of(shop: Shop) -> Keyring:
    return Keyring(stored=StoredKeys(shop, TENANTS))


async def test_a_key_that_is_created_works_at_once_and_is_looked_up_once(shop: Shop) -> None:
    ring = ring_of(shop)
    assert ring.needs_key("key")
    assert await admitted(ring, "sk-anything") == WRONG
    assert shop.reads == 0  # not in the form of a key of the store
    limits = LimitSettings(requests=("60/1m",))
    secret = await shop.create(tenant="ada", name="laptop", models=("small-1", "large"), limits=limits)
    clients = await asyncio.gather(*(admitted(ring, secret) for _ in range(5)))
    assert shop.reads == 1
    client = clients[0]
    assert isinstance(client, Principal)
    assert all(one is client for one in clients)
    assert (client.tenant, client.name, client.models, client.limits) == ("ada", "laptop", ("small-1",), limits)
    assert (client.uses, client.admin, client.viewer) == (True, False, False)
    assert client.key is not None
    assert client.key.startswith("key_")
    both = [("authorization", f"Bearer {secret}"), ("x-api-key", "another")]
    await ring.learn(both)
    assert ring.admit(both) == AMBIGUOUS


async def test_roles_open_what_they_say(shop: Shop) -> None:
    ring = ring_of(shop)
    admin = await admitted(ring, await shop.create(roles=("admin",)), "admin")
    viewer = await admitted(ring, await shop.create(roles=("viewer",)), "key")
    assert isinstance(admin, Principal)
    assert (admin.uses, admin.admin) == (False, True)
    assert not isinstance(viewer, Principal)
    client = await shop.create()
    assert not isinstance(await admitted(ring, client, "admin"), Principal)


async def test_wrong_keys_are_looked_up_one_query_at_a_time_and_seldom_again(shop: Shop) -> None:
    ring = ring_of(shop)
    shop.gate = asyncio.Event()
    wrong = [managed_keys.new_secret() for _ in range(50)]
    first = asyncio.create_task(admitted(ring, wrong[0]))
    await shop.held.wait()
    others = [asyncio.create_task(admitted(ring, key)) for key in wrong]
    for _ in range(10):
        await asyncio.sleep(0)
    assert shop.reads == 1
    shop.gate.set()
    assert set(await asyncio.gather(first, *others)) == {WRONG}
    assert shop.reads == 2
    assert await admitted(ring, wrong[7]) == WRONG
    assert shop.reads == 2
    shop.time += stored_keys.UNKNOWN_SECONDS
    assert await admitted(ring, wrong[7]) == WRONG
    assert shop.reads == 3


async def test_more_unknown_keys_than_can_wait_are_refused(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_keys, "MOST_WAITING", 3)
    ring = ring_of(shop)
    shop.gate = asyncio.Event()
    waiting = [asyncio.create_task(admitted(ring, managed_keys.new_secret())) for _ in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(FailureError) as refused:
        await admitted(ring, managed_keys.new_secret())
    assert refused.value.failure == CROWDED
    shop.gate.set()
    assert set(await asyncio.gather(*waiting)) == {WRONG}


async def test_a_change_holds_after_the_next_look(shop: Shop) -> None:
    stored = StoredKeys(shop, {})
    ring = Keyring(stored=stored)
    forgotten: list[bool] = []

    class Listener:
        def forget(self) -> None:
            forgotten.append(True)

    listener = Listener()
    stored.listeners.add(listener)
    secret = await shop.create(name="ci")
    assert isinstance(await admitted(ring, secret), Principal)
    await stored.refresh()
    assert forgotten == []  # nothing has changed
    await shop.update("ci", disabled=True)
    await stored.refresh()
    assert (await admitted(ring, secret), len(forgotten)) == (DISABLED, 1)
    await shop.update("ci", disabled=False, models=("small",))
    await stored.refresh()
    client = await admitted(ring, secret)
    assert isinstance(client, Principal)
    assert client.models == ("small",)
    await shop.write(api_keys.delete("ci", managed_keys.new_change(1.0, "test")))
    await stored.refresh()
    assert await admitted(ring, secret) == WRONG
    await stored.aclose()


async def test_after_a_rotation_both_secrets_work_until_the_old_one_expires(shop: Shop) -> None:
    stored = StoredKeys(shop, {})
    ring = Keyring(stored=stored)
    old = await shop.create(name="ci")
    before = await admitted(ring, old)
    new, steps = managed_keys.rotate("ci", managed_keys.new_change(shop.time, "test"), shop.time + 60)
    await shop.write(steps)
    await stored.refresh()
    after = await admitted(ring, new)
    assert before == after == await admitted(ring, old)
    shop.time += 60
    assert await admitted(ring, old) == EXPIRED
    assert await admitted(ring, new) == after
    await stored.aclose()


async def test_a_key_expires_by_itself_and_remembered_decisions_with_it(shop: Shop) -> None:
    stored = StoredKeys(shop, {})
    ring = Keyring(stored=stored)
    secret = await shop.create(expires=1060.0)
    assert isinstance(await admitted(ring, secret), Principal)
    forgotten: list[float] = []

    class Listener:
        def forget(self) -> None:
            forgotten.append(shop.time)

    listener = Listener()
    stored.listeners.add(listener)
    for shop.time in (1059.0, 1060.0, 1061.0):
        await stored.refresh()
    assert await admitted(ring, secret) == EXPIRED
    assert forgotten == [1060.0]
    await stored.aclose()


async def test_in_an_outage_known_keys_work_and_unknown_ones_are_not_called_wrong(shop: Shop) -> None:
    stored = StoredKeys(shop, {})
    ring = Keyring(stored=stored)
    known, other = await shop.create(), await shop.create()
    assert isinstance(await admitted(ring, known), Principal)
    shop.broken = True
    with pytest.raises(StoreError):
        await stored.refresh()
    assert isinstance(await admitted(ring, known), Principal)
    with pytest.raises(FailureError) as refused:
        await admitted(ring, other)
    assert refused.value.failure == UNREACHABLE
    shop.broken = False
    assert isinstance(await admitted(ring, other), Principal)
    await stored.aclose()


async def test_a_look_up_that_a_change_overtakes_does_not_bring_the_old_state_back(shop: Shop) -> None:
    stored = StoredKeys(shop, {})
    ring = Keyring(stored=stored)
    first, second = await shop.create(name="one"), await shop.create(name="two")
    await admitted(ring, first)
    shop.gate = asyncio.Event()
    slow = asyncio.create_task(admitted(ring, second))
    await shop.held.wait()
    gate, shop.gate = shop.gate, None
    await shop.update("two", disabled=True)
    await stored.refresh()
    gate.set()
    assert await slow == DISABLED
    await stored.aclose()


async def test_after_a_reload_known_keys_are_known_with_the_new_tenants(shop: Shop) -> None:
    before, after = StoredKeys(shop, {}), StoredKeys(shop, TENANTS)
    secret = await shop.create(tenant="ada")
    assert isinstance(await admitted(Keyring(stored=before), secret), Principal)
    after.inherit(before)
    shop.broken = True
    client = await admitted(Keyring(stored=after), secret)
    assert isinstance(client, Principal)
    assert client.models == ("small-*",)
    shop.broken = False
    await before.aclose()
    await after.aclose()


async def models_at(shop: Shop, tenants: Mapping[str, Tenant], secret: str, before: StoredKeys | None = None) -> object:
    """Return the models that a key may use at a gateway with these tenants."""
    stored = StoredKeys(shop, tenants)
    await stored.start()
    if before is not None:
        stored.inherit(before)
    client = await admitted(Keyring(stored=stored), secret)
    await stored.aclose()
    assert isinstance(client, Principal)
    return client.models


async def test_a_tenant_that_is_removed_allows_its_keys_no_more_than_before(shop: Shop) -> None:
    """After a restart, and after a reload; a tenant without models allows all again."""
    all_of_ada = await shop.create(tenant="ada")
    some = await shop.create(tenant="ada", models=("small-1", "large"))
    before = StoredKeys(shop, TENANTS)
    await before.start()
    assert await models_at(shop, {}, all_of_ada) == ("small-*",)
    assert await models_at(shop, {}, all_of_ada, before) == ("small-*",)
    assert await models_at(shop, {"ben": Tenant(models=("x",))}, some) == ("small-1",)
    assert await models_at(shop, {"ada": Tenant()}, all_of_ada) == ()
    assert await models_at(shop, {}, all_of_ada) == ()
    await before.aclose()


async def test_a_key_of_a_removed_tenant_is_refused_while_its_models_are_unknown(shop: Shop) -> None:
    secret = await shop.create(tenant="ada")
    await StoredKeys(shop, TENANTS).start()
    stored = StoredKeys(shop, {})
    shop.broken = True
    await stored.start()
    with pytest.raises(FailureError):
        await admitted(Keyring(stored=stored), secret)
    shop.broken = False
    client = await admitted(Keyring(stored=stored), secret)
    assert isinstance(client, Principal)
    assert client.models == ("small-*",)
    await stored.aclose()


async def test_when_keys_were_last_used_is_written_later(shop: Shop) -> None:
    stored = StoredKeys(shop, {})
    ring = Keyring(stored=stored)
    secret = await shop.create(name="ci")
    await admitted(ring, secret)
    key = await shop.read(api_keys.get("ci"))
    assert key is not None
    assert key.last_used is None
    await stored.aclose()
    assert await shop.read(api_keys.get("ci")) == replace(key, last_used=1000.0)


async def test_a_batch_finds_a_valid_key_of_its_owner(shop: Shop) -> None:
    stored = StoredKeys(shop, {})
    await shop.create(tenant="ada", name="old")
    await shop.create(tenant="ada", name="admin", roles=("admin",))
    key = await shop.read(api_keys.get("old"))
    assert key is not None
    client = await stored.client_of(key.owner)
    assert client is not None
    assert client.name == "old"
    await shop.update("old", disabled=True)
    assert await stored.client_of(key.owner) is None


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"name": "key_1"}, 'name: found "key_1"; expected letters'),
        ({"name": ""}, 'name: found ""'),
        ({"tenant": "a b"}, 'tenant: found "a b"'),
        ({"roles": ("root",)}, 'roles: found "root"; expected some of client, viewer, admin'),
        ({"roles": ()}, "roles: found none"),
        ({"models": ("",)}, 'models[0]: found ""'),
        ({"limits": LimitSettings(tokens=("much",))}, 'limits.tokens[0]: found "much"'),
        ({"budgets": ("50",)}, 'budgets: found "50"; expected an amount and a period, like `50/month`'),
        ({"budgets": ("50/fortnight",)}, 'budgets: found "50/fortnight"'),
        ({"expires": 999.0}, "expires: that time is past"),
    ],
)
async def test_a_key_that_cannot_be_is_not_created(shop: Shop, settings: dict[str, object], problem: str) -> None:
    with pytest.raises(InvalidKeyError) as refused:
        await shop.create(**settings)
    assert problem in str(refused.value)


async def test_a_key_comes_with_its_budgets(shop: Shop) -> None:
    await shop.create(name="ci", budgets=("50/month", "0.5 EUR/rolling:30d"))
    key = await shop.read(api_keys.get("ci"))
    assert key is not None
    found = {budget.id: budget for budget in await shop.read(budgets.definitions())}
    assert [(found[name].scope, found[name].amount, found[name].currency) for name in key.budgets] == [
        (f"key:{key.id}", 50_000_000, "USD"),
        (f"key:{key.id}", 500_000, "EUR"),
    ]


async def test_secrets_have_256_bits_and_are_not_in_the_store(shop: Shop) -> None:
    secret = await shop.create(name="ci")
    assert managed_keys.is_secret(secret)
    assert 62**managed_keys.SECRET_CHARACTERS > 2**255
    assert len({managed_keys.new_secret() for _ in range(100)}) == 100
    found = await shop.read(api_keys.get("ci"))
    assert secret not in repr(found)
    assert digest_of(secret).hex() not in repr(found)


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(
            ["create", "create", "disable", "enable", "rotate", "keep", "expire", "delete", "wait", "wait"]
        ),
        st.sampled_from(["one", "one", "other"]),
        st.booleans(),
    ),
    min_size=8,
    max_size=25,
)


class Model:
    """What is right: secrets with the times when they expire, by the names of their keys."""

    def __init__(self) -> None:
        self.secrets: dict[str, dict[str, float]] = {}
        self.ends: dict[str, float] = {}
        self.disabled: set[str] = set()

    def expected(self, name: str, secret: str, now: float) -> object:
        """Return what comes of a request with this secret, `True` if it is let in."""
        if name not in self.secrets or secret not in self.secrets[name]:
            return WRONG
        if name in self.disabled:
            return DISABLED
        return EXPIRED if now >= min(self.secrets[name][secret], self.ends[name]) else True


class Changes:
    """Makes the changes of an example in a store and in the model of it."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.model = Model()
        self.every: set[tuple[str, str]] = set()
        """Every secret that there ever was, with the name of its key."""

    async def apply(self, operation: str, name: str) -> None:
        """Make one change; one that is not possible changes nothing."""
        model, shop, now = self.model, self.shop, self.shop.time
        if operation == "create" and name not in model.secrets:
            secret = await shop.create(name=name)
            model.secrets[name], model.ends[name] = {secret: inf}, inf
            self.every.add((name, secret))
        elif operation in ("disable", "enable") and await shop.update(name, disabled=operation == "disable"):
            (model.disabled.add if operation == "disable" else model.disabled.discard)(name)
        elif operation == "expire" and await shop.update(name, expires=now + 5):
            model.ends[name] = now + 5
        elif operation in ("rotate", "keep"):
            await self._rotate(name, now if operation == "rotate" else now + 7)
        elif operation == "delete":
            await shop.write(api_keys.delete(name, managed_keys.new_change(now, "test")))
            model.secrets.pop(name, None)
            model.disabled.discard(name)

    async def _rotate(self, name: str, end: float) -> None:
        secret, steps = managed_keys.rotate(name, managed_keys.new_change(self.shop.time, "test"), end)
        if await self.shop.write(steps) is not None:
            secrets = self.model.secrets[name]
            alive = {one: min(until, end) for one, until in secrets.items() if min(until, end) > self.shop.time}
            self.model.secrets[name] = {**alive, secret: inf}
            self.every.add((name, secret))


@settings(max_examples=60)
@example([("create", "one", False), ("keep", "one", True), ("wait", "one", False), ("wait", "one", False)])
@given(OPERATIONS)
def test_law_after_a_look_each_secret_does_what_the_store_says(operations: list[tuple[str, str, bool]]) -> None:
    async def run() -> None:
        shop = Shop()
        stored = StoredKeys(shop, {})
        ring, changes = Keyring(stored=stored), Changes(shop)
        for operation, name, requested in operations:
            if operation == "wait":
                shop.time += 4
            else:
                await changes.apply(operation, name)
            for _, secret in changes.every if requested else ():
                await admitted(ring, secret)
        await stored.refresh()
        shop.time += stored_keys.UNKNOWN_SECONDS
        for name, secret in changes.every:
            found = await admitted(ring, secret)
            assert (isinstance(found, Principal) or found) == changes.model.expected(name, secret, shop.time)
        await stored.aclose()
        await shop.database.aclose()

    asyncio.run(run())
