"""A source of credentials for tests: issues numbered tokens by a clock that a test advances."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.backends.raw_server import ManualClockLoop
from xenoglot.backends.remote.sign_in.credential import Credential, SignInError
from xenoglot.backends.remote.sign_in.refreshed_credential import RefreshedCredential

if TYPE_CHECKING:
    from collections.abc import Callable

LIFETIME = 3600.0
EPOCH = 1_800_000_000.0


def wall_clock() -> float:
    """Return the seconds since the epoch by the clock of the loop, which stands until a test advances it."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ManualClockLoop)
    return EPOCH + loop.time()


class TokenIssuer:
    """Issues `token-1`, `token-2`, and so on; `errors` are raised before, one for each attempt."""

    secrets = ("client-secret-of-the-issuer",)

    def __init__(self, lifetime: float = LIFETIME) -> None:
        self.lifetime = lifetime
        self.errors: list[Exception] = []
        self.issued: dict[str, float] = {}
        self.anew: list[bool] = []
        self.gate: asyncio.Event | None = None
        """While it is not set, no attempt ends."""

    def fetch(self, *, anew: bool) -> Credential[str]:
        """Return the next token."""
        self.anew.append(anew)
        if self.errors:
            raise self.errors.pop(0)
        token = f"token-number-{len(self.issued) + 1}"
        self.issued[token] = wall_clock() + self.lifetime
        return Credential(value=token, expires_at=self.issued[token], secrets=(token,))

    def accepts(self, token: str) -> bool:
        """Return whether a server accepts a token now."""
        return wall_clock() < self.issued.get(token, 0.0)

    async def run(self, work: Callable[[], Credential[str]]) -> Credential[str]:
        """Run an attempt; no thread is needed."""
        await asyncio.sleep(0)
        if self.gate is not None:
            await self.gate.wait()
        return work()

    def credential(self, name: str = "up") -> RefreshedCredential[str]:
        """Return a credential that is refreshed from here."""
        return RefreshedCredential(self, name=name, strategy="test", clock=wall_clock, run=self.run)


def refused(problem: str = "invalid_grant", remedy: str = "renew the key") -> SignInError:
    """Return the error of a token endpoint."""
    return SignInError(problem, remedy)
