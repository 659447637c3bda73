"""What an endpoint knows of its request: context, client, admission, decoded body.

Theory of operation. Admission, route and client of a request depend on its head, on its connection
and on the configuration: not on its body. A connection mostly brings the same head again and again, so a server may
keep a `HeadState` with a head. What was found is put there when the request was let in, never when it was refused, and
counts only for the gateway that found it: with another configuration everything is checked again. What depends on time
as well, the patience with wrong keys, is checked each time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias
from urllib.parse import parse_qsl

from msgspec import Struct

from xenoglot.backends.offload import LARGE, offload
from xenoglot.backends.remote.sign_in.client_credential import ClientCredential
from xenoglot.codec.dialect import Dialect
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.requests.checks import check_lists
from xenoglot.gateway.auth.keys import KEY_HEADERS, WRONG, Principal
from xenoglot.gateway.http.application import Exchange
from xenoglot.gateway.observability.request_log import RequestLog
from xenoglot.gateway.observability.trace_context import TraceContext
from xenoglot.model.failure import Failure
from xenoglot.policy.auth_throttle import AuthThrottle, source_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.gateway.auth.keys import Keyring, Policy
    from xenoglot.gateway.auth.stored_keys import StoredKeys
    from xenoglot.model.json import JSON


class RequestContext(Struct):
    """A request that is being answered in `dialect`, and its line in the log, which names its client and its route.

    `hops` is how many gateways it has come through, `credential` the client's own sign-in, if upstreams want it.
    """

    exchange: Exchange
    dialect: Dialect
    record: RequestLog
    hops: int = 0
    credential: ClientCredential | None = None

    @property
    def client(self) -> Principal:
        """The client that sent it."""
        return self.record.client

    @property
    def route(self) -> str:
        """The path in the route table; empty if there is none."""
        return self.record.route or ""


Handler: TypeAlias = Callable[[RequestContext], Awaitable[None]]


class Admission(Struct, frozen=True, kw_only=True):
    """A request that was let in by the gateway whose `leave` it is, to the `route` that `handler` serves.

    `generates` is whether the handler does nothing but have a model answer, so that it may be left out.
    `source` is where wrong keys would be counted, `hops` how many gateways it has come through, `passed`
    which of its headers a server of the dialect may see, `trace` the context of its trace, `tags` the tags in
    its head, `credential` the client's own sign-in, if upstreams want it.
    """

    leave: object
    route: str
    handler: Handler
    generates: bool
    variables: Mapping[str, str]
    dialect: Dialect
    client: Principal
    origin: str | None
    source: str | None
    hops: int
    passed: tuple[tuple[str, str], ...]
    trace: TraceContext | None
    tags: Mapping[str, str] | None
    credential: ClientCredential | None = None


KEY_PARAMETERS = frozenset({*KEY_HEADERS, "access_token", "api_key", "apikey", "authorization", "key", "token"})
"""Parameters of a query in which some clients send a key, in lower case."""

IN_URL = Failure(
    kind="authentication",
    message="an API key does not stand in a URL, which logs keep: send it as `Authorization: Bearer KEY`, `x-api-key: "
    "KEY` or `x-goog-api-key: KEY`, and have the one that was sent replaced",
)
TOO_MANY = "rate limit: too many wrong API keys came from this address"


class RequestCredentials(Protocol):
    """The parts of a request that have its credentials; `peer` is the address of its sender, without the port."""

    @property
    def headers(self) -> Sequence[tuple[str, str]]:
        """Names in lower case."""
        ...

    @property
    def peer(self) -> str:
        """Empty where there is none."""
        ...

    @property
    def query(self) -> str:
        """The query of its URL."""
        ...


def no_credential(_: Sequence[tuple[str, str]]) -> ClientCredential | None:
    """Return no credential: no upstream wants one."""
    return None


class AuthService:
    """Identifies clients by their keys, and slows down sources of wrong ones. `clock` gives seconds."""

    def __init__(
        self,
        keyring: Keyring,
        clock: Callable[[], float],
        stored: StoredKeys | None = None,
        *,
        clients_sign_in: bool = False,
    ) -> None:
        self.keyring = keyring
        self.credential_of = keyring.client_credential if clients_sign_in else no_credential
        """Returns the client's own sign-in in the headers of a request that was let in."""
        self.stored = stored
        self.throttle = AuthThrottle()
        self.clock = clock

    def admitted(self, exchange: RequestCredentials, policy: Policy) -> Principal | Failure:
        """Return who sent the request, or why it may not pass a route of this `policy`. It changes only counts."""
        keyring = self.keyring
        if not keyring.needs_key(policy):
            return keyring.admit(exchange.headers, policy)
        if shows_key(exchange.query):
            return IN_URL
        found = keyring.admit(exchange.headers, policy)
        source, now, wait = source_of(exchange.peer), self.clock(), 0.0
        if source is not None and isinstance(found, Principal):
            wait = self.throttle.accepted(source, found.owner, now)
        elif source is not None and found == WRONG:
            wait = self.throttle.refused(source, now)
        return Failure(kind="rate_limit", message=TOO_MANY, retry_after=wait) if wait else found

    async def learn(self, exchange: RequestCredentials) -> None:
        """Have a key that is not known looked up in the store, unless its source sends too many wrong ones.

        Raises:
            FailureError: that cannot be found out now.
        """
        source = source_of(exchange.peer)
        if source is None or not self.throttle.is_exhausted(source, self.clock()):
            await self.keyring.learn(exchange.headers)

    def is_let_in_again(self, entry: Admission) -> bool:
        """Return whether a request with the head of one that was let in may come in as that did, counting it too."""
        source = entry.source
        return source is None or not self.throttle.accepted(source, entry.client.owner, self.clock())


def shows_key(query: str) -> bool:
    """Return whether a query has a parameter of the name that keys go by."""
    if not query:
        return False
    return any(name.lower() in KEY_PARAMETERS for name, _ in parse_qsl(query.replace("+", "%2B")))


class BodyReader(Struct, frozen=True):
    """Reads bodies of at most `limit` bytes, whose JSON holds at most `most_values` values."""

    limit: int
    most_values: int

    async def read(self, exchange: Exchange) -> bytes:
        """Return the body of a request.

        Raises:
            BodyTooLargeError: it is longer than `limit` bytes.
            InvalidBodyError: it is malformed, or comes too slowly.
            ClientDisconnectedError: the client disconnected before it was complete.
        """
        return await exchange.read_body(self.limit)

    async def json(self, data: bytes) -> JSON:
        """Return the JSON of a body.

        Raises:
            FailureError: too many large bodies are ahead of it.
            WireError: it is no JSON, or holds too many values.
        """
        return await offload(len(data), lambda: decode_json(data, most=self.most_values))

    async def request(self, data: bytes) -> JSON:
        """Return the JSON of a request for a model: as above, and with no more turns than are taken.

        Raises:
            FailureError: too many large bodies are ahead of it.
            WireError: it is no JSON, holds too many values, or too many turns.
        """
        return await offload(len(data), lambda: self.small_request(data))

    def small_request(self, data: bytes) -> JSON:
        """Return the same, at once.

        Raises:
            WireError: as above.
        """
        value = decode_json(data, most=self.most_values)
        if len(data) >= LARGE:  # a small one has no room for them
            check_lists(value)
        return value
