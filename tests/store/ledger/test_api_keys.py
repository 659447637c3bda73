"""API keys in every kind of store: each change is in the audit log, grows the version, and has no secret in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec
import pytest
from msgspec.structs import replace

from xenoglot.store.ledger import api_keys, audit
from xenoglot.store.ledger.api_keys import KeyConflictError, KeyFilter, StoredKey
from xenoglot.store.ledger.audit import AuditFilter, Change
from xenoglot.store.records import StoreError

if TYPE_CHECKING:
    from xenoglot.store.sql import SQLStore
    from xenoglot.store.store import Store

FULL = StoredKey(
    id="key_1",
    tenant="ada",
    name="laptop",
    owner="owner-digest",
    shown="wxyz",
    roles=("client", "viewer"),
    models=("small-*", "large"),
    limits={"requests": ["60/1m"], "concurrency": 4},
    budgets=("budget_1",),
    created=100.5,
    created_by="cli:root",
    expires=1e9,
)
BARE = StoredKey(id="key_2", name="ci", owner="another", shown="abcd", created=200.0)


def change(number: int, at: float = 300.0) -> Change:
    return Change(id=f"audit_{number}", at=at, actor="cli:root", request="req_1")


async def secrets_of(database: SQLStore, key: str) -> dict[str, float | None]:
    snapshot = await database.read(api_keys.by_ids([key]))
    assert snapshot is not None
    return {secret.digest: secret.expires for secret in snapshot.secrets}


async def test_keys_are_stored_changed_rotated_and_deleted(store: Store) -> None:
    database = cast("SQLStore", store)
    assert await database.read(api_keys.version()) == 0
    await database.write(api_keys.create(FULL, "digest-1", change(1, 100.5)))
    await database.write(api_keys.create(BARE, "digest-2", change(2, 200.0)))
    assert [await database.read(api_keys.get(name)) for name in ("key_1", "laptop", "ci", "x")] == [
        FULL, FULL, BARE, None,
    ]  # fmt: skip
    assert await database.read(api_keys.by_digests(["digest-1", "digest-9"])) == (
        2, [("digest-1", None, FULL)],
    )  # fmt: skip

    changed = replace(FULL, disabled=300.0, models=())
    fields = {"disabled": 300.0, "models": ()}
    assert await database.write(api_keys.update("key_1", fields, change(3), "key.disable")) == changed
    assert await database.write(api_keys.update("key_1", fields, change(4))) == changed  # which changes nothing
    assert await database.write(api_keys.rotate("ci", "digest-3", "9999", change(5), 400.0)) == replace(
        BARE, shown="9999"
    )
    assert await secrets_of(database, "key_2") == {"digest-2": 400.0, "digest-3": None}
    await database.write(api_keys.rotate("ci", "digest-4", "0000", change(6, 500.0), 600.0))
    assert await secrets_of(database, "key_2") == {"digest-3": 600.0, "digest-4": None}
    assert await database.write(api_keys.delete("laptop", change(7))) == changed
    assert await database.write(api_keys.delete("laptop", change(8))) is None
    assert await database.read(api_keys.by_digests(["digest-1", "digest-2"])) == (8, [])
    assert await database.read(api_keys.by_ids(["key_1"], 8)) is None

    entries = await database.read(audit.entries(AuditFilter(object="key:key_1")))
    assert [(entry.id, entry.action) for entry in entries] == [
        ("audit_7", "key.delete"), ("audit_3", "key.disable"), ("audit_1", "key.create"),
    ]  # fmt: skip
    assert (entries[1].before, entries[1].after) == (FULL.public(), changed.public())
    assert (entries[0].actor, entries[0].request, entries[0].after) == ("cli:root", "req_1", None)
    every = await database.read(audit.entries(AuditFilter(limit=100)))
    assert len(every) == 6
    assert b"digest" not in msgspec.json.encode(every)


async def test_names_are_unique_and_a_refused_change_leaves_nothing(store: Store) -> None:
    database = cast("SQLStore", store)
    await database.write(api_keys.create(FULL, "digest-1", change(1)))
    await database.write(api_keys.create(BARE, "digest-2", change(2)))
    for steps in (
        api_keys.create(replace(BARE, id="key_3"), "digest-3", change(3)),
        api_keys.update("key_2", {"name": "laptop", "models": ("x",)}, change(4)),
    ):
        with pytest.raises(KeyConflictError, match="another key is named"):
            await database.write(steps)
    with pytest.raises(StoreError):
        await database.write(api_keys.create(replace(BARE, id="key_3", name="new"), "digest-1", change(5)))
    assert await database.read(api_keys.listed(KeyFilter())) == [BARE, FULL]
    assert len(await database.read(audit.entries(AuditFilter()))) == 2
    assert await database.read(api_keys.version()) == 2


async def test_lists_go_on_after_a_key_and_after_an_entry(store: Store) -> None:
    database = cast("SQLStore", store)
    keys = [replace(BARE, id=f"key_{n}", name=f"n{n}", created=float(n // 2)) for n in range(7)]
    for number, key in enumerate(keys):
        await database.write(api_keys.create(replace(key, tenant="ada"), f"digest-{number}", change(number, 5.0)))
    seen: list[str] = []
    while page := await database.read(api_keys.listed(KeyFilter(after=seen[-1] if seen else None, limit=3))):
        seen += [key.id for key in page]
    assert seen == [f"key_{n}" for n in (6, 5, 4, 3, 2, 1, 0)]
    first = await database.read(audit.entries(AuditFilter(limit=4)))
    rest = await database.read(audit.entries(AuditFilter(limit=4, after=first[-1].id)))
    assert [entry.id for entry in (*first, *rest)] == [f"audit_{n}" for n in (6, 5, 4, 3, 2, 1, 0)]
    assert await database.read(api_keys.listed(KeyFilter(tenant="ben"))) == []
    assert {key.id for key in await database.read(api_keys.by_owner("another"))} == set(seen)


async def test_the_last_use_only_moves_forward_and_is_no_change(store: Store) -> None:
    database = cast("SQLStore", store)
    await database.write(api_keys.create(BARE, "digest-1", change(1)))
    for at in (50.0, 70.0, 60.0):
        await database.write(api_keys.used({"key_2": at, "key_9": at}))
    found = await database.read(api_keys.get("ci"))
    assert found == replace(BARE, last_used=70.0)
    assert await database.read(api_keys.version()) == 1
    assert await database.read(api_keys.names(["key_2", "key_9"])) == {"key_2": "ci"}
