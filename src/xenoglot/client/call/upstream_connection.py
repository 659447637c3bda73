"""Connection of a client to its upstream: opened at the first call, with the deadlines of each call."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from xenoglot.backends.backend import Backend
from xenoglot.backends.http.proxies import proxy_for
from xenoglot.backends.http.timeouts import Deadlines
from xenoglot.backends.wrappers.emulate import read_as
from xenoglot.backends.wrappers.emulation_settings import Emulation
from xenoglot.client.call.open_upstream import EMBEDDED, Address, address_of, embedded
from xenoglot.errors import ConfigurationError, WireError
from xenoglot.text.registry import AUTO, OFF, names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.backends.http.client import Transport
    from xenoglot.backends.remote.sign_in.strategy import SignIn
    from xenoglot.client.call.open_upstream import BackendOpener, Upstream, UpstreamOptions


_TYPES: Mapping[str, type] = {"deadlines": Deadlines, "proxy": str, "emulate": Emulation}
"""Options whose types are checked; `None` is allowed."""


class ClientUpstream:
    """The upstream of a client.

    `text_syntax` and `emulate` of its options control how its answers are parsed; `None` selects the defaults of the
    upstream and model.
    """

    def __init__(self, upstream: Upstream, options: UpstreamOptions) -> None:
        """Raise `ConfigurationError` for an upstream that cannot be called."""
        _check(upstream, options)
        if upstream is None:
            from xenoglot.python_gateway import default_upstream  # noqa: PLC0415  a named upstream needs no gateway

            upstream, model = default_upstream(options.model)
            options = replace(options, model=model)
        elif upstream == EMBEDDED:
            upstream = None
        self.address: Address | None = address_of(upstream, options) if isinstance(upstream, str) else None
        if self.address is None and any(value is not None for value in _server_options(options)):
            raise ConfigurationError(
                "`dialect`, keys, `auth`, `headers` and `settings` are of servers: name one, or its URL"
            )
        if options.text_syntax not in (None, AUTO, OFF, *names()):
            raise ConfigurationError(
                f"`text_syntax`: found `{options.text_syntax}`; expected one of auto, off, {', '.join(names())}"
            )
        self._upstream = upstream
        self.default_model = options.model
        self._deadlines = options.deadlines
        self._proxy = (
            None
            if self.address is None or self.address.socket_path
            else proxy_for(self.address.base_url, options.proxy, os.environ)
        )
        self._syntax = options.text_syntax
        self._emulate = options.emulate or Emulation()
        self._stack = AsyncExitStack()
        self._lock = asyncio.Lock()
        self._transport: Transport | None = None
        self._sign_in: SignIn[Any] | None = None
        self._backend: Backend | None = None
        self._closed = False

    @property
    def dialect(self) -> str:
        """The dialect of the upstream; `chat` if unknown."""
        return "chat" if self.address is None else self.address.dialect.name

    @property
    def provider(self) -> str | None:
        """The name of the provider in the catalogue."""
        return None if self.address is None else self.address.provider

    def context(self, model: str | None) -> int | None:
        """Return the context window of `model`, or of the default model, in tokens; `None` if unknown."""
        name = model or self.default_model
        return None if self.address is None or name is None else self.address.context_of(name)

    async def backend(self) -> Backend:
        """Return the backend, opened at the first call.

        Raises:
            ConfigurationError: it cannot be created.
            EngineError: the embedded model cannot be started.
        """
        if self._closed:
            raise RuntimeError("the client was closed")
        if self._backend is None:
            async with self._lock:
                if self._backend is None:
                    self._backend = await self._open()
        return self._backend

    def model(self, asked: str | None, backend: Backend) -> str:
        """Return the name of the model to call.

        Raises:
            WireError: neither the call nor the client sets a model.
        """
        name = asked or self.default_model
        if name:
            return name
        if self.address is None:
            return backend.name
        raise WireError("$.model", "required: pass `model=` to the call or to the client")

    async def with_deadlines(self, deadlines: Deadlines | None) -> Backend:
        """Return the backend with other deadlines."""
        backend = await self.backend()
        if deadlines is None or self.address is None or self._transport is None:
            return backend
        return self.address.remote(self._transport.with_deadlines(deadlines), self._sign_in)

    async def backend_for(self, model: str, deadlines: Deadlines | None = None) -> Backend:
        """Return the backend for `model` with other deadlines, its text parsed and features emulated as configured."""
        backend = await self.with_deadlines(deadlines)
        usual = OFF if self.address is None else self.address.syntax_of(model)
        return read_as(backend, self._syntax or usual, self._emulate)

    async def aclose(self) -> None:
        """Close what was opened here; a backend that was passed in belongs to the caller."""
        self._closed = True
        async with self._lock:
            self._backend = None
            await self._stack.aclose()

    async def _open(self) -> Backend:
        if self.address is not None:
            from xenoglot.backends.http.client import Transport  # noqa: PLC0415  a backend in process needs none

            self._transport = Transport(deadlines=self._deadlines, proxy=self._proxy)
            self._stack.push_async_callback(self._transport.aclose)
            if self.address.sign_in is not None:
                self._sign_in = await asyncio.to_thread(
                    self.address.sign_in.open, self.address.name, self.address.base_url
                )
            if self._sign_in is not None:
                self._stack.push_async_callback(self._sign_in.aclose)
            return self.address.remote(self._transport, self._sign_in)
        upstream = self._upstream
        if isinstance(upstream, Backend):
            return upstream
        opening = cast("BackendOpener", embedded if upstream is None else upstream)
        return await self._stack.enter_async_context(opening())


def _server_options(options: UpstreamOptions) -> tuple[object, ...]:
    server = (options.dialect, options.key, options.key_env, options.headers, options.settings)
    return (*server, options.auth, options.sign_in)


def _check(upstream: object, options: UpstreamOptions) -> None:
    """Check the types of arguments. Raises `ConfigurationError`."""
    if not (upstream is None or isinstance(upstream, str | Backend) or callable(upstream)):
        found = type(upstream).__name__
        raise ConfigurationError(f"`upstream`: found a `{found}`; expected a name, a URL or a backend")
    for name, kind in _TYPES.items():
        value = getattr(options, name)
        if not isinstance(value, kind | None):
            raise ConfigurationError(f"`{name}`: found a `{type(value).__name__}`; expected a `{kind.__name__}`")
