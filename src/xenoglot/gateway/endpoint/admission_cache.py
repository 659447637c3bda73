"""What is found out of the head of a request before it is served; it holds for the next request with the same head.

Theory of operation. Whether a request may come in, where to, and as whom, goes by its head, by whom it is connected to
and by the configuration: not by its body. A connection mostly brings the same head again and again, so a server may
keep a `Seen` beside a head. What was found is put there when the request was let in, never when it was refused, and
counts only for the gateway that found it: with another configuration everything is looked at anew. What goes by time as
well, the patience with wrong keys, is asked each time.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from xenoglot.codec.dialect import Dialect
from xenoglot.gateway.auth.keys import Principal
from xenoglot.gateway.endpoint.context import Handler


class Admission(Struct, frozen=True, kw_only=True):
    """A request that was let in by the gateway whose `leave` it is, to the `route` that `handler` serves.

    `generates` is whether the handler does nothing but have a model answer, so that it may be left out.
    `source` is where wrong keys would be counted, `hops` how many gateways it has come through, `passed`
    which of its headers a server of the dialect may see.
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
