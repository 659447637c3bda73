"""Which limits concern a request: its client's and its model's while it lasts, an upstream's while that is asked."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from xenoglot.gateway.config.limits import OUTPUT_TOKENS, LimitSettings, window
from xenoglot.policy.limits.usage_ledger import Scope

if TYPE_CHECKING:
    from xenoglot.gateway.config.load import Config
    from xenoglot.model.request import Request
    from xenoglot.policy.limits.usage_ledger import Window


class Scopes:
    """The limits of a configuration."""

    __slots__ = ("_models", "_owner", "_upstreams", "output_tokens")

    def __init__(self, config: Config) -> None:
        self._owner = config.keys.limits
        self._models = {one.name: scoped(f"model:{one.name}", one.limits) for one in config.models if one.limits}
        self._upstreams = {
            name: (scoped(f"upstream:{name}", one.limits),) for name, one in config.upstreams.items() if one.limits
        }
        self.output_tokens = config.limits.output_tokens

    def of_request(self, alias: str, owner: str) -> tuple[Scope, ...]:
        """Return the limits of a request by `owner` for the model of the row `alias`, each client's own first."""
        model = self._models.get(alias)
        mine = () if self._owner is None else (scoped(f"key:{owner}", self._owner),)
        return mine if model is None else (*mine, model)

    def of_upstream(self, upstream: str) -> tuple[Scope, ...]:
        """Return the limits of an upstream."""
        return self._upstreams.get(upstream, ())


def expected_tokens(request: Request, prompt: int, output: int = OUTPUT_TOKENS) -> int:
    """Return what a request is expected to cost before it is answered, so much being reserved for it.

    That is the prompt, and for each answer the most that it may have, as far as the request says; else `output`. It
    rather is too much than too little: what is not used comes back when the answer is over.
    """
    sampling = request.sampling
    most = output if sampling.max_tokens is None else sampling.max_tokens
    return prompt + most * (sampling.n or 1)


@lru_cache(maxsize=4096)
def scoped(name: str, limits: LimitSettings) -> Scope:
    """Return limits as those of `name`."""
    return Scope(
        name,
        requests=_windows(limits.requests),
        tokens=_windows(limits.tokens),
        concurrency=limits.concurrency,
        queue=limits.queue,
        queue_seconds=limits.queue_seconds,
    )


def _windows(texts: tuple[str, ...]) -> tuple[Window, ...]:
    return tuple(found for text in texts if (found := window(text)) is not None)
