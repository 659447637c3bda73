"""Keys of the store: looked up by digest when they are first seen, kept in memory, dropped when they change.

Theory of operation. A credential in the form of a key of the store that is not known is looked up, and the request
waits for it. At most one query is in progress, which takes all digests that wait; after one that found nothing there is
a short pause, and an unknown digest is not looked up again for some time: so wrong keys cannot hammer the store. What
is found is kept. While anything is, the version of the keys in the store is read twice a second: if it has grown,
the keys in memory are read again. So a change by any process holds here within a second; one that this gateway makes
holds at once. While the store cannot be used, known keys work on, and for others requests are refused with a 503.

A snapshot knows its version, and one that is older than what is known is not used, so a query that is overtaken by a
change cannot bring the old state back.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from hashlib import blake2b
from hmac import compare_digest
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast
from weakref import WeakSet

import msgspec

from xenoglot.errors import FailureError
from xenoglot.gateway.auth.file_keys import models_of_tenant
from xenoglot.gateway.auth.keys import Principal
from xenoglot.gateway.auth.managed_keys import is_secret
from xenoglot.gateway.config.limits import LimitSettings
from xenoglot.gateway.config.tenants import Tenant
from xenoglot.model.failure import Failure
from xenoglot.store.ledger import api_keys, tenant_models
from xenoglot.store.records import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeVar

    from xenoglot.store.ledger.api_keys import KeySecret, KeySnapshot, StoredKey
    from xenoglot.store.queries import Database
    from xenoglot.store.store import TimedStore

    T = TypeVar("T")

POLL_SECONDS: Final = 0.5
"""Between looks for changes."""
PAUSE_SECONDS: Final = 0.02
"""After a query that found no key, before the next."""
UNKNOWN_SECONDS: Final = 2.0
"""How long a digest that was not found is not looked up again."""
USED_SECONDS: Final = 60.0
"""Between writes of when keys were last used."""
MOST_KNOWN: Final = 50_000
MOST_UNKNOWN: Final = 16_384
MOST_WAITING: Final = 1_000
"""Digests that wait to be looked up; requests with further ones are refused."""

EXPIRED: Final = Failure(kind="authentication", message="the API key has expired: ask for another one")
DISABLED: Final = Failure(kind="authentication", message="the API key is disabled: ask for another one")
UNREACHABLE: Final = Failure(
    kind="overloaded", message="service unavailable: the API key cannot be checked now", retry_after=5.0
)
CROWDED: Final = Failure(
    kind="overloaded", message="service unavailable: too many unknown API keys are being checked", retry_after=1.0
)

_NO_DIGEST: Final = bytes(32)
_logger = logging.getLogger("xenoglot.gateway")


class KeyListener(Protocol):
    """What remembers decisions about keys."""

    def forget(self) -> None:
        """Decide again: keys have changed."""
        ...


class _Known(NamedTuple):
    digest: bytes
    version: int
    expires: float
    key: StoredKey
    client: Principal


class StoredKeys:
    """The keys of a store, as one gateway knows them. `tenants` are those of the configuration."""

    def __init__(self, store: TimedStore, tenants: Mapping[str, Tenant]) -> None:
        self.listeners: WeakSet[KeyListener] = WeakSet()
        self._store = store
        self._database = cast("Database", store.store)
        self._tenants = tenants
        self._removed: dict[str, Tenant] = {}
        """Tenants that were configured once: their keys may use no more than they could."""
        self._remembered = False
        self._secret = secrets.token_bytes(32)
        self._known: dict[bytes, _Known] = {}
        self._unknown: dict[bytes, float] = {}
        """Digests that were not found, and until when they are not looked up again."""
        self._waiting: dict[bytes, asyncio.Future[bool]] = {}
        self._version: int | None = None
        self._next_expiry = inf
        self._used: dict[str, float] = {}
        self._used_written = 0.0
        self._looking: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._failing = False
        self._closed = False

    async def start(self) -> None:
        """Store what tenants may use, and learn what those could that are not configured any more.

        While there is no store, that is done when a key is looked up in it.
        """
        try:
            if self._store.store.has_history():
                await self._remember()
        except StoreError as error:
            self._failed(error)

    def find(self, digest: bytes) -> Principal | Failure | None:
        """Return the client of a key that is known, or why it may not be used; `None` if it is not known."""
        known = self._known.get(self._place(digest))
        if not compare_digest(digest, _NO_DIGEST if known is None else known.digest) or known is None:
            return None
        now = self._store.now()
        if known.key.disabled is not None:
            return DISABLED
        if now >= known.expires:
            return EXPIRED
        self._used[known.key.id] = now
        return known.client

    async def learn(self, credential: str, digest: bytes) -> None:
        """Look a credential up if it may be a key of the store that is not known here.

        Raises:
            FailureError: that cannot be found out now.
        """
        if is_secret(credential):
            await self.look_up(digest)

    async def look_up(self, digest: bytes) -> None:
        """Look up the key whose secret has this SHA-256 digest, if it is not known here.

        Raises:
            FailureError: that cannot be found out now.
        """
        if self._place(digest) in self._known:
            return
        if self._unknown.get(self._place(digest), 0.0) > self._store.now():
            return
        waiting = self._waiting.get(digest)
        if waiting is None:
            if len(self._waiting) >= MOST_WAITING:
                raise FailureError(CROWDED)
            waiting = self._waiting[digest] = asyncio.get_running_loop().create_future()
            if self._looking is None:
                self._looking = asyncio.get_running_loop().create_task(self._look())
        if not await asyncio.shield(waiting):
            raise FailureError(UNREACHABLE)

    async def client_of(self, owner: str) -> Principal | None:
        """Return a client that may use models and has the data of `owner`; `None` if no key of theirs is valid.

        Raises:
            StoreError: the store fails, or does not answer in time.
        """
        await self._remember()
        now = self._store.now()
        for key in await self._store.within(self._database.read(api_keys.by_owner(owner))):
            if "client" in key.roles and key.disabled is None and now < (key.expires or inf):
                return self._client(key)
        return None

    async def refresh(self) -> None:
        """See whether keys have changed, and if so, read again those that are known.

        Raises:
            StoreError: the store fails, or does not answer in time.
        """
        await self._remember()
        ids = sorted({known.key.id for known in self._known.values()})
        snapshot = await self._store.within(self._database.read(api_keys.by_ids(ids, self._version)))
        if snapshot is not None:
            kept = [known for known in self._known.values() if known.version >= snapshot.version]
            self._known = {self._place(known.digest): known for known in kept}
            self._unknown.clear()
            self._version = snapshot.version
            self._add(snapshot)
            self._forget()
        elif self._store.now() >= self._next_expiry:
            self._forget()

    async def flush(self) -> None:
        """Write when keys were last used.

        Raises:
            StoreError: the store fails, or does not answer in time.
        """
        used, self._used = self._used, {}
        self._used_written = self._store.now()
        if used:
            await self._store.within(self._database.write(api_keys.used(used)))

    def used(self, ids: Iterable[str], at: float) -> None:
        """Note that keys were used."""
        for key_id in ids:
            self._used[key_id] = at

    def inherit(self, other: StoredKeys) -> None:
        """Continue with what `other` knew of the same store."""
        removed = other._removed | {name: tenant for name, tenant in other._tenants.items() if tenant.models}
        self._removed |= {name: tenant for name, tenant in removed.items() if name not in self._tenants}
        self._version = other._version
        for known in other._known.values():
            self._put(known._replace(client=self._client(known.key)))
        self._start_watching()

    async def aclose(self) -> None:
        """Look for nothing more."""
        self._closed = True
        for task in (self._looking, self._watching):
            if task is not None:
                task.cancel()
                await asyncio.wait({task})
        try:
            await self.flush()
        except StoreError:
            return  # when a key was last used is not worth an error

    async def _look(self) -> None:
        try:
            while self._waiting and not self._closed:
                batch = list(islice(self._waiting, api_keys.MOST_LOOKED_UP))
                found = await self._look_up(batch)
                if not found:
                    await asyncio.sleep(PAUSE_SECONDS)
        finally:
            self._looking = None
            self._answer(tuple(self._waiting), known=False)  # none are left, unless this fails

    async def _look_up(self, batch: Sequence[bytes]) -> int:
        """Look digests up; return how many were found."""
        digests = [digest.hex() for digest in batch]
        snapshot = None
        try:
            await self._remember()
            snapshot = await self._store.within(self._database.read(api_keys.by_digests(digests)))
            if self._version is not None and snapshot.version < self._version:
                return 1  # overtaken by a change: once more, at once
        except StoreError as error:
            self._failed(error)
        if snapshot is not None:
            self._version = snapshot.version if self._version is None else self._version
            self._add(snapshot)
            self._note_unknown(batch)
        self._answer(batch, known=snapshot is not None)
        return 0 if snapshot is None else len(snapshot.secrets)

    async def _remember(self) -> None:
        if self._remembered:
            return
        configured = {name: tenant.models for name, tenant in self._tenants.items()}
        found = await self._store.within(self._database.write(tenant_models.remember(configured)))
        self._removed = {name: Tenant(models=models) for name, models in found.items()}
        self._remembered = True

    def _answer(self, batch: Sequence[bytes], *, known: bool) -> None:
        for digest in batch:
            waiting = self._waiting.pop(digest)
            if not waiting.done():
                waiting.set_result(known)

    def _note_unknown(self, batch: Sequence[bytes]) -> None:
        until = self._store.now() + UNKNOWN_SECONDS
        for digest in batch:
            place = self._place(digest)
            if place not in self._known:
                self._unknown.pop(place, None)
                self._unknown[place] = until
        while len(self._unknown) > MOST_UNKNOWN:
            del self._unknown[next(iter(self._unknown))]

    def _add(self, snapshot: KeySnapshot) -> None:
        for secret in snapshot.secrets:
            self._put(self._known_of(secret, snapshot.version))
        self._start_watching()

    def _start_watching(self) -> None:
        if self._known and self._watching is None and not self._closed:
            self._watching = asyncio.get_running_loop().create_task(self._watch())

    def _put(self, known: _Known) -> None:
        self._known[self._place(known.digest)] = known
        self._next_expiry = min(self._next_expiry, known.expires)
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]

    def _known_of(self, secret: KeySecret, version: int) -> _Known:
        expires = min(inf if at is None else at for at in (secret.expires, secret.key.expires))
        return _Known(bytes.fromhex(secret.digest), version, expires, secret.key, self._client(secret.key))

    def _client(self, key: StoredKey) -> Principal:
        name = key.tenant or ""
        tenant = self._tenants.get(name) or self._removed.get(name)
        limits = None if key.limits is None else msgspec.convert(key.limits, LimitSettings)
        return Principal(
            owner=key.owner,
            tenant=key.tenant,
            models=models_of_tenant(key.models, tenant),
            uses="client" in key.roles,
            admin="admin" in key.roles,
            viewer="viewer" in key.roles,
            key=key.id,
            name=key.name,
            limits=limits,
        )

    def _forget(self) -> None:
        now = self._store.now()
        self._next_expiry = min((known.expires for known in self._known.values() if known.expires > now), default=inf)
        for listener in tuple(self.listeners):
            listener.forget()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            try:
                await self.refresh()
                if self._store.now() - self._used_written >= USED_SECONDS:
                    await self.flush()
            except StoreError as error:
                self._failed(error)
            else:
                if self._failing:
                    _logger.info("API keys of the store are read again")
                self._failing = False

    def _failed(self, error: StoreError) -> None:
        if not self._failing:
            _logger.error("API keys of the store cannot be read; known ones work on: %s", error)
        self._failing = True

    def _place(self, digest: bytes) -> bytes:
        return blake2b(digest, key=self._secret, digest_size=16).digest()
