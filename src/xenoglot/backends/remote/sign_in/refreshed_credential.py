"""One credential in memory, refreshed in the background before it expires.

Theory of operation. Libraries that sign in block, so each attempt runs in a daemon thread; there is one at a time. A
timer begins the next attempt, well before the credential expires, and another timer drops it when it has: a request
only reads `current`. While a refresh fails, the old credential stays valid, and attempts are repeated with growing
delays. A request that finds none begins an attempt, or joins the one in progress, and waits for its outcome. A thread
that hangs is left alone, and its outcome is used when it comes; no second one is started meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from xenoglot.backends.redaction import Redactor, for_log
from xenoglot.backends.remote.sign_in.credential import (
    SHORTEST_DELAY,
    Credential,
    CredentialSource,
    SignInError,
    backoff_delay,
    refresh_delay,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

_logger = logging.getLogger("xenoglot")

WAIT_SECONDS: Final = 20.0
"""How long a request waits for a credential."""
ATTEMPT_SECONDS: Final = 30.0
"""How long an attempt may take before it counts as failed."""
RENEWAL_SECONDS: Final = 10.0
"""A credential of this age is not fetched again because a server refused it: the next would be refused too."""
LONGEST_PROBLEM: Final = 300
"""Characters of a library's error that are logged."""
LATER: Final = "the next attempt follows by itself"


async def run_in_daemon(work: Callable[[], T]) -> T:
    """Return what `work` returns in a daemon thread, for which the end of the process does not wait."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def settle(done: Callable[[], None]) -> None:
        if not outcome.done():
            done()

    def run() -> None:
        try:
            done = partial(outcome.set_result, work())
        except Exception as problem:  # noqa: BLE001  raised where it is awaited
            error = RuntimeError(str(problem)) if isinstance(problem, StopIteration) else problem
            done = partial(outcome.set_exception, error)
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, done)

    threading.Thread(target=run, name="sign-in", daemon=True).start()
    return await outcome


class RefreshedCredential(Generic[T]):
    """The credential of one upstream. `name` is the upstream's, `strategy` that of its sign-in, for messages.

    `clock` gives seconds since the epoch, `run` runs a blocking function.
    """

    def __init__(  # noqa: PLR0913  clock and threads are arguments
        self,
        source: CredentialSource[T],
        *,
        name: str,
        strategy: str,
        clock: Callable[[], float] = time.time,
        run: Callable[[Callable[[], Credential[T]]], Awaitable[Credential[T]]] = run_in_daemon,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        self.current: Credential[T] | None = None
        """The valid credential; `None` while there is none."""
        self.problem = ""
        """Why the last attempt failed, for operators; empty after a success."""
        self.fetches = 0
        """Attempts so far."""
        self._source = source
        self._where = f"sign-in `{strategy}` of upstream `{name}`"
        self._clock, self._run = clock, run
        self._wait_seconds = wait_seconds
        self._redactors: list[Redactor] = []
        self._redact = Redactor()
        self._failures = 0
        self._ended_at = float("-inf")
        self._attempt: asyncio.Task[None] | None = None
        self._hanging: asyncio.Future[Credential[T]] | None = None
        self._refresh_timer: asyncio.TimerHandle | None = None
        self._expiry_timer: asyncio.TimerHandle | None = None
        self._closed = False

    def redacted_by(self, redactor: Redactor) -> None:
        """Have every credential removed from texts by `redactor`."""
        self._redactors.append(redactor)
        redactor.remember(*self._source.secrets, *(() if self.current is None else self.current.secrets))

    def start(self) -> None:
        """Begin to fetch, if that has not begun."""
        if self.current is None and self._refresh_timer is None:
            self._begin()

    async def get(self) -> Credential[T]:
        """Return a valid credential; waits for one that is being fetched, up to `wait_seconds`.

        Raises:
            SignInError: there is none.
        """
        if self.current is None:
            await self._outcome(anew=False)
        if self.current is None:
            raise SignInError(self.problem or f"{self._where}: no credential within {self._wait_seconds:g} s")
        return self.current

    async def renew(self, refused: object = None) -> bool:
        """Fetch another credential, because a server refused this one; return whether there is one to retry with.

        `refused` is the value of the one that was refused, where it is known: it is not sent again. If it has been
        replaced since, nothing is fetched.
        """
        if self.current is not None and refused not in (None, self.current.value):
            return True
        if self.current is None or self._is_past(RENEWAL_SECONDS) or self._attempt is not None:
            await self._outcome(anew=True)
        return self.current is not None and not self.problem and self.current.value != refused

    async def aclose(self) -> None:
        """Stop refreshing. A thread in progress is left alone."""
        self._closed = True
        for timer in (self._refresh_timer, self._expiry_timer):
            if timer is not None:
                timer.cancel()
        for work in (self._attempt, self._hanging):
            if work is not None:
                work.cancel()
                await asyncio.wait((work,))

    async def _outcome(self, *, anew: bool) -> None:
        """Wait for the attempt in progress; begin one if there is none, unless one has just failed."""
        if self._attempt is None and (not self.problem or self._is_past(SHORTEST_DELAY)):
            self._begin(anew=anew)
        if self._attempt is not None:
            await asyncio.wait((self._attempt,), timeout=self._wait_seconds)

    def _is_past(self, seconds: float) -> bool:
        """Return whether the last attempt is so long ago, or the clock was set back since."""
        return not 0 <= self._clock() - self._ended_at < seconds

    def _begin(self, *, anew: bool = False) -> None:
        if self._attempt is None and not self._closed:
            if self._refresh_timer is not None:
                self._refresh_timer.cancel()
            self._attempt = asyncio.get_running_loop().create_task(self._refresh(anew=anew))

    async def _refresh(self, *, anew: bool) -> None:
        """Make one attempt, and set the timer of the next."""
        self.fetches += 1
        try:
            credential = await self._fetched(anew=anew)
        except Exception as error:  # noqa: BLE001  whatever the library raises: it is logged, and repeated
            self._failed(error)
        else:
            self._keep(credential)
        finally:
            self._ended_at = self._clock()
            self._attempt = None

    async def _fetched(self, *, anew: bool) -> Credential[T]:
        if self._hanging is None:
            work = self._run(lambda: self._source.fetch(anew=anew))
            self._hanging = asyncio.ensure_future(work)
        await asyncio.wait((self._hanging,), timeout=ATTEMPT_SECONDS)
        if not self._hanging.done():
            raise SignInError(f"no answer within {ATTEMPT_SECONDS:g} s")
        done, self._hanging = self._hanging, None
        credential = done.result()
        if credential.expires_at is not None and credential.expires_at <= self._clock():
            raise SignInError("the credential that was issued has expired already", "check the clock of this machine")
        return credential

    def _keep(self, credential: Credential[T]) -> None:
        if self._failures:
            _logger.warning("%s succeeded after %d failures", self._where, self._failures)
        self.current, self.problem, self._failures = credential, "", 0
        for redactor in (self._redact, *self._redactors):
            redactor.remember(*self._source.secrets, *credential.secrets)
        self._set_expiry(credential)
        if credential.expires_at is not None:
            self._refresh_in(refresh_delay(credential.expires_at, self._clock()))

    def _failed(self, error: Exception) -> None:
        self._failures += 1
        self._redact.remember(*self._source.secrets)
        text = f"{type(error).__name__}: {error}" if not isinstance(error, SignInError) else str(error)
        words = for_log(self._redact(" ".join(text.split())), LONGEST_PROBLEM)
        remedy = getattr(error, "remedy", "") or LATER
        self.problem = f"{self._where} failed: {words}; {remedy}"
        delay = backoff_delay(self._failures)
        state = "without a credential" if self.current is None else "the credential so far is still valid"
        _logger.warning("%s (%s; next attempt in %g s)", self.problem, state, delay)
        self._refresh_in(delay)

    def _refresh_in(self, delay: float) -> None:
        if not self._closed:
            self._refresh_timer = asyncio.get_running_loop().call_later(delay, self._begin)

    def _set_expiry(self, credential: Credential[T]) -> None:
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
            self._expiry_timer = None
        if credential.expires_at is not None:
            delay = credential.expires_at - self._clock()
            self._expiry_timer = asyncio.get_running_loop().call_later(delay, self._expire)

    def _expire(self) -> None:
        if self.current is not None:
            self.current = None
            _logger.warning("%s: the credential expired before another one was issued", self._where)
