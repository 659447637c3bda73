"""Scripts for a Redis-compatible server, and the form of scopes in them. Pure.

A script runs alone on the server, so all scopes of a request are decided at once, by the server's clock. Kept for each
window are a sorted set (when each use was) and a hash (how much each was, and their sum in `used`); for each scope with
places a sorted set of leases by when they lapse. All names begin with one hash tag: a cluster keeps them together.
Times are whole microseconds. As in `policy.limits.usage_ledger`, a large window joins uses that are close together.

A server's clock can be set back. Uses that would then lie in the future are moved to now, so they count for longer, and
at most for one window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, json

from xenoglot.policy.limits.usage_ledger import MOST_ENTRIES, Shortage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.policy.limits.admission_queue import QueueEntry
    from xenoglot.policy.limits.usage_ledger import Scope, Window

PREFIX = "{xenoglot}"
MICROSECONDS = 1_000_000

_PRELUDE = """
local asked = cjson.decode(ARGV[1])
local now = asked.now
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local function exact(number)
  return string.format('%.0f', number)
end
local function add(uses, amounts, id, amount, span)
  redis.call('ZADD', uses, exact(now), id)
  redis.call('HINCRBY', amounts, id, exact(amount))
  redis.call('HINCRBY', amounts, 'used', exact(amount))
  local kept = exact(math.ceil(span / 1000) + 60000)
  redis.call('PEXPIRE', uses, kept)
  redis.call('PEXPIRE', amounts, kept)
end
local function slot(id, grain)
  return grain == 0 and id or 's' .. exact(math.floor(now / grain))
end
"""

ENTER = (
    _PRELUDE
    + """
local function used(uses, amounts, span)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', uses, '(' .. exact(now), '+inf')) do
    redis.call('ZADD', uses, exact(now), id)
  end
  local over = exact(now - span)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', uses, '-inf', over)) do
    local amount = tonumber(redis.call('HGET', amounts, id) or '0')
    if amount > 0 then redis.call('HINCRBY', amounts, 'used', exact(-amount)) end
    redis.call('HDEL', amounts, id)
  end
  redis.call('ZREMRANGEBYSCORE', uses, '-inf', over)
  return tonumber(redis.call('HGET', amounts, 'used') or '0')
end
local function wait(uses, amounts, span, surplus)
  local at = now
  local entries = redis.call('ZRANGE', uses, 0, 255, 'WITHSCORES')
  for i = 1, #entries, 2 do
    surplus = surplus - tonumber(redis.call('HGET', amounts, entries[i]) or '0')
    at = tonumber(entries[i + 1])
    if surplus <= 0 then break end
  end
  return at + span - now
end
local answer = {}
local function lack(scope, why, wait)
  answer[#answer + 1] = scope
  answer[#answer + 1] = why
  answer[#answer + 1] = exact(wait)
end
for i, window in ipairs(asked.windows) do
  local uses, amounts = KEYS[2 * i - 1], KEYS[2 * i]
  local surplus = used(uses, amounts, window.span) + window.amount - window.limit
  if surplus > 0 then lack(window.scope, window.why, wait(uses, amounts, window.span, surplus)) end
end
local first = 2 * #asked.windows
for i, place in ipairs(asked.places) do
  local leases = KEYS[first + i]
  redis.call('ZREMRANGEBYSCORE', leases, '-inf', exact(now))
  if redis.call('ZCARD', leases) >= place.limit then lack(place.scope, 'places', 0) end
end
if #answer > 0 then return answer end
for i, window in ipairs(asked.windows) do
  if window.amount > 0 then
    add(KEYS[2 * i - 1], KEYS[2 * i], slot(asked.id, window.grain), window.amount, window.span)
  end
end
for i = 1, #asked.places do
  redis.call('ZADD', KEYS[first + i], exact(now + asked.lasts), asked.id)
  redis.call('PEXPIRE', KEYS[first + i], exact(math.ceil(asked.lasts / 1000) + 1000))
end
return {exact(now)}
"""
)
"""Takes all and gives the time; or takes nothing and gives, three by three, where what is missing, and for how long."""

LEAVE = (
    _PRELUDE
    + """
for i, window in ipairs(asked.windows) do
  local uses, amounts = KEYS[2 * i - 1], KEYS[2 * i]
  if window.owed > 0 then
    add(uses, amounts, slot(asked.id .. '+', window.grain), window.owed, window.span)
  elseif redis.call('ZSCORE', uses, window.entry) then
    local there = tonumber(redis.call('HGET', amounts, window.entry) or '0')
    local back = math.min(-window.owed, there)
    if back > 0 then
      redis.call('HINCRBY', amounts, window.entry, exact(-back))
      redis.call('HINCRBY', amounts, 'used', exact(-back))
    end
    if back == there then
      redis.call('ZREM', uses, window.entry)
      redis.call('HDEL', amounts, window.entry)
    end
  end
end
for i = 2 * #asked.windows + 1, #KEYS do
  redis.call('ZREM', KEYS[i], asked.id)
end
return 1
"""
)
"""Takes back a lease, and what of the windows was not used; what was used beyond that is noted as of now."""

RENEW = (
    _PRELUDE
    + """
for i, leases in ipairs(KEYS) do
  redis.call('ZADD', leases, exact(now + asked.lasts), asked.ids[i])
  redis.call('PEXPIRE', leases, exact(math.ceil(asked.lasts / 1000) + 1000))
end
return 1
"""
)
"""Has leases last longer; those that lapsed, or that the server never had, are added again."""


class WindowRequest(Struct, frozen=True):
    """A window, as `ENTER` wants it; `grain` is 0 where each use is kept by itself."""

    scope: int
    why: str
    limit: int
    amount: int
    span: int
    grain: int

    def entry(self, name: str, now: int) -> str:
        """Return what the use is called that a lease made at `now`."""
        return name if not self.grain else f"s{now // self.grain}"


class SlotRequest(Struct, frozen=True):
    """Places, as `ENTER` wants them."""

    scope: int
    limit: int


class WindowRelease(Struct, frozen=True):
    """A window, as `EXIT_HINT` wants it: `owed` is what was used beyond what was reserved, below 0 what comes back."""

    entry: str
    owed: int
    span: int
    grain: int


class LimitRequest(Struct, frozen=True):
    """What a request wants of a server: the windows and places of its scopes, and the keys of both in that order."""

    windows: tuple[WindowRequest, ...]
    window_keys: tuple[str, ...]
    places: tuple[SlotRequest, ...]
    place_keys: tuple[str, ...]

    def enter(self, name: str, now: int, lasts: int) -> tuple[Sequence[str], bytes]:
        """Return the keys and the argument of `ENTER`."""
        said = {"now": now, "id": name, "lasts": lasts, "windows": self.windows, "places": self.places}
        return (*self.window_keys, *self.place_keys), json.encode(said)

    def leave(self, name: str, now: int, since: int, changed: Iterable[tuple[int, int]]) -> tuple[Sequence[str], bytes]:
        """Return the same of `EXIT_HINT`: of `changed` windows, by their index, what is owed; it began at `since`."""
        keys: list[str] = []
        windows = []
        for index, owed in changed:
            window = self.windows[index]
            keys += self.window_keys[2 * index : 2 * index + 2]
            windows.append(WindowRelease(window.entry(name, since), owed, window.span, window.grain))
        return (*keys, *self.place_keys), json.encode({"now": now, "id": name, "windows": windows})

    def owed(self, reserved: int, used: int | None, *, asked: bool) -> list[tuple[int, int]]:
        """Return which windows change when a request is over, and by how much."""
        spent = reserved if used is None else used
        changes = (
            (index, (0 if asked else -1) if window.why == "requests" else spent - reserved)
            for index, window in enumerate(self.windows)
        )
        return [(index, owed) for index, owed in changes if owed]


def limit_request(scopes: Sequence[Scope], tokens: int) -> LimitRequest:
    """Return what a request of so many tokens wants of a server."""
    windows: list[WindowRequest] = []
    window_keys: list[str] = []
    places: list[SlotRequest] = []
    place_keys: list[str] = []
    for number, scope in enumerate(scopes):
        for why, each, amount in (("requests", scope.requests, 1), ("tokens", scope.tokens, tokens)):
            for window in each:
                windows.append(_window(number, why, amount, window))
                stem = f"{PREFIX}{scope.name}/{why}/{windows[-1].span}"
                window_keys += (stem, f"{stem}/amounts")
        if scope.concurrency is not None:
            places.append(SlotRequest(number, scope.concurrency))
            place_keys.append(f"{PREFIX}{scope.name}/places")
    return LimitRequest(tuple(windows), tuple(window_keys), tuple(places), tuple(place_keys))


def renew(leases: Sequence[tuple[str, str]], now: int, lasts: int) -> tuple[Sequence[str], bytes]:
    """Return the keys and the argument of `RENEW` for leases, each a key and a name."""
    names = [name for _, name in leases]
    return [key for key, _ in leases], json.encode({"now": now, "lasts": lasts, "ids": names})


def read_shortages(answer: Sequence[Any], one: QueueEntry, now: float, poll: float) -> list[Shortage]:
    """Return what `ENTER` reports as missing; `now` is ours. After `poll` seconds others may have released some."""
    found: dict[int, Shortage] = {}
    for index, why, wait in zip(answer[::3], answer[1::3], answer[2::3], strict=True):
        scope, until = one.scopes[int(index)], now + int(wait) / MICROSECONDS
        lack = {
            b"places": Shortage(scope, "places", check_at=now + poll),
            b"tokens": Shortage(
                scope, "window", until, may_end_early=True, check_at=min(until, now + poll), tokens=one.tokens
            ),
            b"requests": Shortage(scope, "window", until),
        }[why]
        found[int(index)] = _worse(lack, found.get(int(index)))
    return list(found.values())


def _worse(lack: Shortage, other: Shortage | None) -> Shortage:
    """Return the one that lasts longer; that of a window is more precise than that of places, and surely ends."""
    if other is None or other.reason == "places":
        return lack
    return other if lack.reason == "places" or (other.ends_at, other.tokens) >= (lack.ends_at, lack.tokens) else lack


def _window(scope: int, why: str, amount: int, window: Window) -> WindowRequest:
    span = round(window.seconds * MICROSECONDS)
    grain = 0 if window.amount <= MOST_ENTRIES else -(-span // MOST_ENTRIES)
    return WindowRequest(scope, why, window.amount, amount, span, grain)
