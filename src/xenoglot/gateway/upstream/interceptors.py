"""What stands between a request and its targets: the hooks of the operator.

With interceptors every request is served in a task, and its answer is translated, also between equal dialects, if a
hook looks at answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from xenoglot.backends.backend import Answer
    from xenoglot.codec.dialect import Dialect
    from xenoglot.gateway.config.load import Config
    from xenoglot.gateway.observability.request_log import RequestLog
    from xenoglot.hooks.runner import Hooks, RequestHooks
    from xenoglot.model.request import Request


class InterceptedCall(Protocol):
    """A call, as interceptors see it."""

    dialect: Dialect
    record: RequestLog
    request: Request

    def change(self, request: Request) -> None:
        """Send `request` in place of the client's."""
        ...


class Interceptors:
    """Change requests and answers; `hooks` are those of the operator."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks

    async def answer(self, call: InterceptedCall, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return the answer to `call`, which `ask` gives as it begins.

        Raises:
            FailureError: a hook rejects the request, or fails; or there is no answer.
        """
        hooks = self._of_request(call.record, call.dialect, call.request)
        changed = await hooks.before(call.request)
        if changed is not call.request:
            call.change(changed)
        return hooks.answer(await ask())

    async def before(self, record: RequestLog, dialect: Dialect, request: Request) -> Request:
        """Return a request whose tokens are to be counted, as the hooks change it.

        Raises:
            FailureError: a hook rejects it, or fails.
        """
        return await self._of_request(record, dialect, request).before(request)

    def _of_request(self, record: RequestLog, dialect: Dialect, request: Request) -> RequestHooks:
        """Return the hooks of a request; the tags that they set are in its `record`."""
        from xenoglot.hooks.hook import HookContext  # noqa: PLC0415  most gateways have no hooks

        record.tags = tags = dict(record.tags or {})
        return self._hooks.of_request(
            HookContext(
                request_id=record.request_id,
                dialect=dialect.name,
                model=request.model,
                stream=request.stream,
                tenant=record.client.tenant,
                key=record.client.key,
                tags=tags,
            )
        )

    async def aclose(self) -> None:
        """Release what the hooks hold."""
        await self._hooks.aclose()


def interceptors_of(config: Config) -> Interceptors | None:
    """Return the interceptors of a configuration, `None` if it has none. Modules of hooks are imported.

    Raises:
        ConfigurationError: a hook cannot be loaded.
    """
    if not config.hooks:
        return None
    from xenoglot.hooks.load import load_hooks  # noqa: PLC0415  as above
    from xenoglot.hooks.runner import Hooks  # noqa: PLC0415  as above

    return Interceptors(Hooks(load_hooks(config.hooks)))
