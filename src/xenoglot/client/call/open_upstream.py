"""Upstreams of a client: the embedded model, a provider's name, a server's URL, or a backend in this process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from msgspec import Struct

from xenoglot.backends.backend import Backend
from xenoglot.backends.http.timeouts import Deadlines
from xenoglot.backends.operation import handler_of
from xenoglot.backends.wrappers.emulation_settings import Emulation
from xenoglot.client.call.options import headers_of
from xenoglot.client.call.sign_in import ClientSignIn, sign_in_of
from xenoglot.codec.dialect import Dialect, Headers
from xenoglot.codec.glob import matches
from xenoglot.codec.target import Target, TargetRule, Targets
from xenoglot.dialect_registry import get
from xenoglot.errors import ConfigurationError, WireError
from xenoglot.providers import catalog
from xenoglot.providers.provider import authorizer, base_url, dialect_of, endpoint_of, required_settings, value_of
from xenoglot.text.registry import OFF

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from xenoglot.backends.http.client import Transport
    from xenoglot.backends.operation import OperationHandler
    from xenoglot.backends.remote.sign_in.strategy import SignIn
    from xenoglot.codec.features.operation import AnyOperation
    from xenoglot.engine.backend import Engine
    from xenoglot.engine.embedding import EmbeddingEngine
    from xenoglot.model.catalog import ModelInfo
    from xenoglot.providers.provider import Provider, ProviderEndpoint

BackendOpener: TypeAlias = Callable[[], AbstractAsyncContextManager[Backend]]
"""Opens a backend, and closes it on exit."""

Upstream: TypeAlias = str | Backend | BackendOpener | None
"""A provider's name, a base URL, `embedded`, a backend, a function that opens one; `None`: that of the commands."""

EMBEDDED = "embedded"
"""Name of the embedded model as an upstream."""

NO_KEY = "no key was sent; pass `key=` or `key_env=`"
"""Advice about a 401 without a key."""

REFUSED = "the credential of `auth` was refused; may it use the model?"
"""The same where requests are signed in."""

UNIX = "unix://"
"""Prefix of the path of a unix socket."""

T = TypeVar("T")


class Address(Struct, frozen=True, kw_only=True):
    """Address and facts of a server, before a connection exists.

    `syntaxes` (of calls in text) and `contexts` (tokens) are by pattern of model names.
    """

    name: str
    dialect: Dialect
    base_url: str
    socket_path: str | None = None
    keys: tuple[str, ...] = ()
    sign_in: ClientSignIn | None = None
    key_source: str = ""
    headers: dict[str, str] = {}
    rules: tuple[TargetRule, ...] = ()
    target: Target = Target()
    authorize: Callable[[str | None], Headers] | None = None
    provider: str | None = None
    syntax: str = OFF
    syntaxes: tuple[tuple[tuple[str, ...], str], ...] = ()
    contexts: tuple[tuple[tuple[str, ...], int], ...] = ()

    def __repr__(self) -> str:
        """Omit keys and headers, because a traceback may show this."""
        return f"Address(name={self.name!r}, dialect={self.dialect.name!r})"

    def syntax_of(self, model: str) -> str:
        """Return the syntax in which `model` writes calls and reasoning in its text."""
        return _first(self.syntaxes, model) or self.syntax

    def context_of(self, model: str) -> int | None:
        """Return the context window of `model`, in tokens."""
        return _first(self.contexts, model)

    def remote(self, transport: Transport, sign_in: SignIn[Any] | None = None) -> Backend:
        """Return the backend that calls it over `transport`, signed in by `sign_in`."""
        from xenoglot.backends.remote.backend import Remote  # noqa: PLC0415  a client of a backend in process needs none

        return Remote(
            self.name,
            self.dialect,
            self.base_url,
            transport=transport,
            keys=self.keys,
            headers=self.headers,
            target=Targets(self.target, self.rules),
            authorize=self.authorize,
            candid=True,
            socket_path=self.socket_path,
            key_source=self.key_source,
            no_key=NO_KEY if sign_in is None else REFUSED,
            sign_in=sign_in,
        )


def _first(known: Sequence[tuple[tuple[str, ...], T]], model: str) -> T | None:
    return next((fact for names, fact in known if any(matches(pattern, model) for pattern in names)), None)


class UpstreamOptions(Struct, frozen=True, kw_only=True):
    """Options of an upstream, except its address; see `AsyncClient`.

    `dialect`, the keys, `headers` and `settings` apply to servers only, the others to every upstream.
    """

    dialect: str | None = None
    key: str | None = None
    key_env: str | None = None
    auth: str | None = None
    sign_in: Mapping[str, object] | None = None
    headers: Mapping[str, str] | None = None
    settings: Mapping[str, str] | None = None
    model: str | None = None
    deadlines: Deadlines | None = None
    proxy: str | None = "environment"
    text_syntax: str | None = None
    emulate: Emulation | None = None

    def __repr__(self) -> str:
        """Omit keys and headers, as above."""
        return f"Naming(dialect={self.dialect!r})"


def address_of(upstream: str, naming: UpstreamOptions, environ: Mapping[str, str] = os.environ) -> Address:
    """Return the address of the provider or server that `upstream` names.

    Raises:
        ConfigurationError: there is no such provider, it does not speak the dialect, or a setting or a key is missing.
    """
    if "://" in upstream:
        if naming.settings:
            raise ConfigurationError("`settings` are of a provider, and a URL has none")
        return _of_url(upstream, naming, environ)
    if ":" in upstream or "/" in upstream:
        raise ConfigurationError("`upstream`: neither the name of a provider nor a URL, which begins with `http://`")
    row = catalog.get(upstream)
    face = endpoint_of(row, naming.dialect, naming.model)
    return _of_row(row, face, naming, environ)


def _of_url(url: str, naming: UpstreamOptions, environ: Mapping[str, str]) -> Address:
    from xenoglot.backends.http.http1 import locate  # noqa: PLC0415  as above
    from xenoglot.backends.http.timeouts import TransportError  # noqa: PLC0415

    socket_path = url.removeprefix(UNIX) if url.startswith(UNIX) else None
    base = url if socket_path is None else "http://localhost"
    try:
        locate(base)
    except TransportError as error:
        raise ConfigurationError(f"`upstream`: {error}") from None
    dialect = get(naming.dialect or "chat")
    return Address(
        name=dialect.name,
        dialect=dialect,
        base_url=base,
        socket_path=socket_path,
        keys=_keys(naming, None, environ, required=False),
        sign_in=_sign_in(naming, None, environ),
        key_source=_key_source(naming, None),
        headers=_headers(naming),
    )


def _of_row(row: Provider, face: ProviderEndpoint, naming: UpstreamOptions, environ: Mapping[str, str]) -> Address:
    settings = naming.settings or {}
    unknown = settings.keys() - row.settings.keys()
    if unknown:
        known = ", ".join(row.settings) or "none"
        raise ConfigurationError(f"`settings`: `{row.name}` has no `{min(unknown)}`; it has: {known}")
    try:
        values = {name: value_of(row, name, settings, environ) for name in required_settings(face)}
    except ConfigurationError as error:
        raise ConfigurationError(f"`settings`: {error}") from None
    dialect = dialect_of(face)
    sign_in = _sign_in(naming, face.auth or row.auth, environ)
    told = [models for models in row.models if face.dialect in (models.dialects or face.dialect)]
    rules = [
        TargetRule(names=models.names, target=catalog.target_of(row.quirks, face.quirks, models.quirks))
        for models in told
    ]
    return Address(
        name=row.name,
        dialect=dialect,
        base_url=base_url(face, values),
        keys=() if sign_in is not None else _keys(naming, row, environ, required=not row.local),
        sign_in=sign_in,
        key_source=_key_source(naming, row.key_env),
        headers={**row.headers, **face.headers, **_headers(naming)},
        rules=tuple(rules),
        target=catalog.target_of(row.quirks, face.quirks),
        authorize=authorizer(face.auth or row.auth if sign_in is None else "none", dialect),
        provider=row.name,
        syntax=row.text_syntax,
        syntaxes=tuple((models.names, models.text_syntax) for models in told if models.text_syntax is not None),
        contexts=tuple((models.names, models.context) for models in told if models.context is not None),
    )


def _sign_in(naming: UpstreamOptions, usual: str | None, environ: Mapping[str, str]) -> ClientSignIn | None:
    keyed = naming.key is not None or naming.key_env is not None
    return sign_in_of(naming.auth, naming.sign_in, environ, usual=usual, keyed=keyed)


def _headers(naming: UpstreamOptions) -> dict[str, str]:
    try:
        return dict(headers_of(naming.headers))
    except WireError as error:
        raise ConfigurationError(f"`{error.path.removeprefix('$.')}`: {error.problem}") from None


def _keys(
    naming: UpstreamOptions, row: Provider | None, environ: Mapping[str, str], *, required: bool
) -> tuple[str, ...]:
    """Return the keys: one, or none. No error contains a key."""
    usual = None if row is None else row.key_env
    name = naming.key_env or usual
    said = naming.key if naming.key is not None else environ.get(name or "", "")
    if not isinstance(said, str):
        raise ConfigurationError(f"`key`: found a `{type(said).__name__}`; expected a string")
    key = said.strip()
    if not key.isascii() or not key.isprintable():
        raise ConfigurationError("the key has characters in it that no key has")
    if not key and naming.key is None and (naming.key_env or (required and usual)):
        also = "" if row is None or row.sign_in is None else f', or `auth="{row.sign_in}"` to sign in without a key'
        raise ConfigurationError(f"no API key: set the environment variable {name}, or pass `key=`{also}")
    return (key,) if key else ()


def _key_source(naming: UpstreamOptions, usual: str | None) -> str:
    """Return where the key comes from, as messages name it."""
    name = naming.key_env or usual
    return "`key=`" if naming.key is not None else f"${name}" if name else ""


@asynccontextmanager
async def embedded() -> AsyncGenerator[Backend]:
    """Open the embedded model in a child process; missing weights are downloaded.

    Raises:
        EngineError: it cannot be started; the message has the remedy.
    """
    from xenoglot.backends.http.client import Transport  # noqa: PLC0415  a client of a server needs none of it
    from xenoglot.engine.backend import Engine  # noqa: PLC0415
    from xenoglot.engine.embedding import EmbeddingEngine  # noqa: PLC0415
    from xenoglot.engine.server import weights  # noqa: PLC0415
    from xenoglot.engine.server.server_process import Settings  # noqa: PLC0415

    found = weights.locate()
    if found is None:
        found = await asyncio.to_thread(weights.fetch)
    made_for_it = Settings(pooling="model")
    async with (
        aclosing(Transport()) as transport,
        aclosing(Engine(found, transport=transport)) as engine,
        aclosing(
            EmbeddingEngine(
                weights.MINILM.name, lambda: weights.fetch(weights.MINILM), made_for_it, transport=transport
            )
        ) as embedding,
    ):
        yield _Embedded(engine, embedding)


class _Embedded:
    """The embedded chat model and the embedded embedding model as one backend."""

    def __init__(self, engine: Engine, embedding: EmbeddingEngine) -> None:
        self.name = engine.name
        self.answer = engine.answer
        self.count = engine.count
        self._models = (engine, embedding)

    def handler(self, operation: AnyOperation) -> OperationHandler | None:
        """Return that of the model for embeddings, or of the other."""
        engine, embedding = self._models
        return handler_of(embedding, operation) or handler_of(engine, operation)

    async def models(self) -> Sequence[ModelInfo]:
        """Return both."""
        return [info for one in self._models for info in await one.models()]

    async def aclose(self) -> None:
        """Do nothing: the engines belong to their owner."""
