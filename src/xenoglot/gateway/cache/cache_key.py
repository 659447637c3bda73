"""Keys of cached answers: digests of all that an answer depends on.

These are the client's tenant or key, its dialect and the headers that are forwarded, the canonical request with the
texts of all turns, and the targets with their settings. Whether the answer is streamed is not part of it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from xenoglot.model.content import Extra, Opaque
from xenoglot.model.hosted import HostedTool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.gateway.config.settings import UpstreamSettings
    from xenoglot.gateway.routing.router import RoutePlan
    from xenoglot.model.request import Request

VERSION: Final = "1"
"""Changed with the form of what is cached."""
MOST_PLANS: Final = 1024
STREAMING: Final = frozenset({"stream", "stream_options", "unstreamed"})
"""Fields of requests, and of their form, that only decide how the answer is sent."""

_encode = msgspec.msgpack.Encoder().encode


class AnswerSource(NamedTuple):
    """What an answer depends on: the `request` of a client, its dialect, the headers that are forwarded, the targets.

    `owner` is the tenant or the key of the client: no answer is returned to another.
    """

    owner: str
    dialect: str
    headers: Sequence[tuple[str, str]]
    plan: RoutePlan
    request: Request


def is_cacheable(request: Request) -> bool:
    """Return whether the answer to `request` is nothing but an answer.

    It is more if the upstream stores it, continues a stored one, or runs tools for it.
    """
    hosted = any(isinstance(tool, HostedTool | Opaque) for tool in request.tools)
    return not hosted and request.previous is None and not request.store


class CacheKeys:
    """Makes the keys of a configuration, whose `upstreams` are by name."""

    def __init__(self, upstreams: Mapping[str, UpstreamSettings]) -> None:
        self._upstreams = upstreams
        self._plans: dict[tuple[str, tuple[str, ...]], bytes] = {}

    def key(self, asked: AnswerSource) -> str:
        """Return the key of the answer that comes of `asked`."""
        extra = _without_streaming(asked.request.extra)
        request = replace(asked.request, stream=False, stream_usage=None, extra=extra)
        parts = (VERSION, asked.owner, asked.dialect, sorted(asked.headers), self._plan(asked.plan), request)
        return hashlib.sha256(_encode(parts)).hexdigest()

    def _plan(self, plan: RoutePlan) -> bytes:
        """Return the digest of the targets of `plan` and their settings."""
        place = (plan.name, tuple(route.name for route in plan.routes))
        found = self._plans.get(place)
        if found is None:
            if len(self._plans) >= MOST_PLANS:
                self._plans.clear()
            settings = [self._upstreams.get(name) for name in plan.backends]
            found = self._plans[place] = hashlib.sha256(_encode((plan, settings))).digest()
        return found


def _without_streaming(extra: Extra | None) -> Extra | None:
    if extra is None:
        return None
    fields = {name: value for name, value in extra.fields.items() if name not in STREAMING}
    form = {name: value for name, value in extra.form.items() if name not in STREAMING}
    return replace(extra, fields=fields, form=form) if fields or form else None
