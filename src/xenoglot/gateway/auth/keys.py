"""The clients' keys: kept as digests, looked for in one way, compared in constant time; and who each of them is.

Theory of operation. A key that is shown is digested whole. Its place among ours is found by a digest of that digest,
made with a secret of this process, so what a look-up takes reveals nothing about a key; what stands there, or a
stand-in where nothing does, is compared in constant time. The work is the same for every key, however many there are.
"""

from __future__ import annotations

import secrets
from hashlib import blake2b, sha256
from hmac import compare_digest
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from msgspec import Struct

from xenoglot.backends.remote.sign_in.client_credential import ClientCredential, client_credential
from xenoglot.codec.glob import matches
from xenoglot.gateway.config.limits import LimitSettings
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Policy: TypeAlias = Literal["open", "key", "admin", "view", "manage"]
"""The clients that may use a route; see `routes.EndpointRow`."""

BLANKS = " \t"
"""What may surround a header's value (RFC 9110 section 5.6.3); other bytes, decoded, only look like white space."""

GATEWAY_KEY_HEADERS = ("x-xenoglot-key", "x-litellm-api-key")
"""Headers for the gateway's key alone: with one of them, every other credential is the client's own. The second is
LiteLLM's (`litellm/proxy/_types.py`, `SpecialHeaders.custom_litellm_api_key`)."""

KEY_HEADERS = ("x-api-key", "api-key", "x-goog-api-key")
"""Headers whose value is a key; `authorization` has it after the word `Bearer` (RFC 6750 section 2.1)."""

SIGNATURE = "authorization: AWS4-HMAC-SHA256 "
"""How Signature Version 4 begins (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-authentication-methods.html)."""

MISSING = Failure(
    kind="authentication",
    message="an API key is required: send it as `Authorization: Bearer KEY` or as `x-api-key: KEY`",
)
SIGNED = Failure(
    kind="authentication",
    message="the request is signed with AWS credentials, which are no key of this gateway: set "
    "AWS_BEARER_TOKEN_BEDROCK to a key of the gateway, which the client sends instead (boto3 over https alone), or add "
    "it to each request as the header `x-xenoglot-key`",
)
WRONG = Failure(kind="authentication", message="the API key is not one of this gateway's")
AMBIGUOUS = Failure(kind="invalid_request", message="the request shows two different API keys: send one")
NO_ADMIN = Failure(kind="permission", message="this API key is not for the administration of the gateway")
NO_VIEWER = Failure(kind="permission", message="this API key has neither the role admin nor the role viewer")
NO_MANAGER = Failure(
    kind="permission", message="this API key does not have the role admin, which is needed to change the gateway"
)
NO_USER = Failure(kind="permission", message="this API key is for the administration of the gateway alone")

NOBODYS = bytes(32)
"""What is compared where no key of ours stands: no digest is known that is like it."""


class Principal(Struct, frozen=True, kw_only=True):
    """The client that a key belongs to, and what that key may do.

    `owner` owns stored data, the same for all keys of a `tenant`; `models` are the allowed names, or patterns of them;
    without any, all are allowed. `uses` allows requests to models, `admin` administration, `viewer` reading what
    administrators see. `key` is the id of the key and `name` its name: both are the same after a rotation.
    """

    owner: str = ""
    tenant: str | None = None
    models: tuple[str, ...] = ()
    uses: bool = True
    admin: bool = False
    viewer: bool = False
    key: str | None = None
    name: str | None = None
    limits: LimitSettings | None = None
    """Limits of this key alone."""

    def allows(self, model: str) -> bool:
        """Return whether the client may ask for `model`."""
        return not self.models or any(matches(pattern, model) for pattern in self.models)


EVERYBODY = Principal()
"""The client of a gateway without keys."""


class KeySource(Protocol):
    """Keys that are not of the configuration."""

    def find(self, digest: bytes) -> Principal | Failure | None:
        """Return the client of a key that is known, or why it may not be used; `None` if it is not known."""
        ...

    async def learn(self, credential: str, digest: bytes) -> None:
        """Look a credential up if it may be a key that is not known.

        Raises:
            FailureError: that cannot be found out now.
        """
        ...

    async def look_up(self, digest: bytes) -> None:
        """Look the key with this digest up if it is not known.

        Raises:
            FailureError: that cannot be found out now.
        """
        ...


class Keyring:
    """The keys that are let in; with none at all, everybody is. `clients` are by the SHA-256 digests of their keys."""

    __slots__ = ("_by_owner", "_by_place", "_has_admins", "_has_users", "_secret", "stored")

    def __init__(
        self,
        keys: Iterable[str] = (),
        clients: Iterable[tuple[bytes, Principal]] = (),
        stored: KeySource | None = None,
    ) -> None:
        self.stored = stored
        """Further keys, which may be created, changed and deleted at any time; a key is needed even if it has none."""
        self._secret = secrets.token_bytes(32)
        every = [*((digest_of(key), Principal(owner=owner_of(key))) for key in keys), *clients]
        self._by_place = {self._place(digest): (digest, client) for digest, client in every}
        self._by_owner = {client.owner: client for _, client in every if client.uses}
        self._has_users = stored is not None or any(client.uses for _, client in every)
        self._has_admins = stored is not None or any(client.admin or client.viewer for _, client in every)
        if not self._by_owner and stored is None:
            self._by_owner[EVERYBODY.owner] = EVERYBODY

    def __bool__(self) -> bool:
        """Whether a key is needed to ask a model."""
        return self._has_users

    @property
    def has_admins(self) -> bool:
        """Whether a key may have the role admin or viewer."""
        return self._has_admins

    @property
    def several(self) -> bool:
        """Whether there are clients whose things are not each other's."""
        return len({client.owner for client in self.clients if client.uses}) > 1

    @property
    def clients(self) -> Iterable[Principal]:
        """The clients of the configuration, one for each key."""
        return [client for _, client in self._by_place.values()]

    def needs_key(self, policy: Policy) -> bool:
        """Return whether a route of this `policy` is closed to clients without a key."""
        return policy != "open" and (self._has_users or (policy != "key" and self._has_admins))

    def admit(self, headers: Sequence[tuple[str, str]], policy: Policy = "key") -> Principal | Failure:
        """Return who sent `headers` (lower-case names, latin-1 values), or why it may not pass.

        Where no key is for the administration, those of users open the routes of `admin`, but not `view` and `manage`.
        """
        if not self.needs_key(policy):
            return EVERYBODY
        return self._with_role(self._client(headers), policy)

    def admit_digest(self, digest: bytes, policy: Policy) -> Principal | Failure:
        """Return the client whose key has this SHA-256 digest, or why it does not open a route of this `policy`."""
        return self._with_role(self._client_of_digest(digest), policy)

    def identified(self, headers: Sequence[tuple[str, str]]) -> Principal:
        """Return the client whose valid key `headers` show, whatever its roles allow; `EVERYBODY` without one."""
        client = self._client(headers)
        return EVERYBODY if isinstance(client, Failure) else client

    def _client(self, headers: Sequence[tuple[str, str]]) -> Principal | Failure:
        found = credentials(headers)
        if any(credential.startswith(SIGNATURE) for credential in found):
            return SIGNED
        shown = {digest_of_wire(credential) for credential in found}
        if len(shown) != 1:
            return AMBIGUOUS if shown else MISSING
        return self._client_of_digest(shown.pop())

    def _client_of_digest(self, digest: bytes) -> Principal | Failure:
        client: Principal | Failure | None = self._find(digest)
        if client is None and self.stored is not None:
            client = self.stored.find(digest)
        return client or WRONG

    def _with_role(self, client: Principal | Failure, policy: Policy) -> Principal | Failure:
        if isinstance(client, Failure):
            return client
        refusal = self._role_refusal(client, policy)
        return client if refusal is None else refusal

    def _role_refusal(self, client: Principal, policy: Policy) -> Failure | None:
        """Return why the roles of a client do not open a route of this `policy`; `None` if they do."""
        match policy:
            case "view":
                return None if client.admin or client.viewer else NO_VIEWER
            case "manage":
                return None if client.admin else NO_MANAGER
            case "admin" if self._has_admins:
                return None if client.admin or client.viewer else NO_ADMIN
            case _:
                return None if client.uses else NO_USER

    def refusal(self, headers: Sequence[tuple[str, str]]) -> Failure | None:
        """Return why a request with these headers may not ask a model; `None` if it may."""
        found = self.admit(headers)
        return found if isinstance(found, Failure) else None

    def client_of(self, owner: str) -> Principal | None:
        """Return who may ask models and has the things of `owner`; `None` where no key of theirs is known any more."""
        return self._by_owner.get(owner)

    async def learn(self, headers: Sequence[tuple[str, str]]) -> None:
        """Have a key that `headers` show, and that is not known, looked up where further keys are.

        Raises:
            FailureError: that cannot be found out now.
        """
        shown = {digest_of_wire(credential): credential for credential in credentials(headers)}
        if self.stored is not None and len(shown) == 1:
            digest, credential = shown.popitem()
            if self._find(digest) is None:
                await self.stored.learn(credential, digest)

    async def learn_digest(self, digest: bytes) -> None:
        """Have the key with this SHA-256 digest, if it is not known, looked up where further keys are.

        Raises:
            FailureError: that cannot be found out now.
        """
        if self.stored is not None and self._find(digest) is None:
            await self.stored.look_up(digest)

    def client_credential(self, headers: Sequence[tuple[str, str]]) -> ClientCredential | None:
        """Return the client's own sign-in in `headers`; `None` where they have none, or only a key of the gateway."""
        named = any(name in GATEWAY_KEY_HEADERS and _bearer(value) for name, value in headers)
        if self._has_users and not named:
            return None
        return client_credential(headers, self._is_key)

    def _is_key(self, value: str) -> bool:
        """Return whether a header's value is a key of the gateway."""
        digest = digest_of_wire(_bearer(value))
        stored = None if self.stored is None else self.stored.find(digest)
        return self._find(digest) is not None or stored is not None

    def _find(self, digest: bytes) -> Principal | None:
        ours, client = self._by_place.get(self._place(digest), (NOBODYS, None))
        return client if compare_digest(digest, ours) else None

    def _place(self, digest: bytes) -> bytes:
        return blake2b(digest, key=self._secret, digest_size=16).digest()


def digest_of(key: str) -> bytes:
    """Return by what a key of the configuration is known."""
    return sha256(key.encode("utf-8", "surrogateescape")).digest()


def digest_of_wire(credential: str) -> bytes:
    """Return the same of a credential as a server hands it over, its bytes as latin-1."""
    return sha256(credential.encode("latin-1")).digest()


def credentials(headers: Sequence[tuple[str, str]]) -> list[str]:
    """Return what `headers` show as keys, in each of the three ways; what is empty was not shown.

    With a header for the gateway's key alone, nothing else is one.
    """
    named = [_bearer(value) for name, value in headers if name in GATEWAY_KEY_HEADERS]
    if any(named):
        return [credential for credential in named if credential]
    found = []
    for name, value in headers:
        if name == "authorization":
            scheme, _, credential = value.strip(BLANKS).partition(" ")
            # Another scheme's credential is one too, though never a key of ours, which have no blanks in them.
            found.append(credential.strip(BLANKS) if scheme.lower() == "bearer" else f"{name}: {value.strip(BLANKS)}")
        elif name in KEY_HEADERS:
            found.append(value.strip(BLANKS))
    return [credential for credential in found if credential]


def _bearer(value: str) -> str:
    """Return a key that may have the word `Bearer` before it."""
    scheme, _, credential = value.strip(BLANKS).partition(" ")
    return credential.strip(BLANKS) if scheme.lower() == "bearer" else value.strip(BLANKS)


def owner_of(key: str) -> str:
    """Return the owner of what the client of a key without a tenant stores."""
    # another digest than the one that keys are known by, so that a store does not have that
    return digested(b"owner\0" + key.encode("utf-8", "surrogateescape"))


def digested(text: bytes) -> str:
    """Return the SHA-256 of `text` in hexadecimal digits."""
    return sha256(text).hexdigest()
