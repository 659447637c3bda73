"""W3C Trace Context of a client's request: the ids of its trace, as they are passed on to upstreams.

https://www.w3.org/TR/trace-context/ (headers `traceparent` and `tracestate`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"

LONGEST_STATE: Final = 512
"""Characters of `tracestate` that are passed on (section 3.3.1.5); a longer one is left out."""

_TRACEPARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_LATER: Final = re.compile(r"(?!ff|00)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}-[!-~]*")
"""A version after 00 may have further fields (section 4.3)."""
_STATE: Final = re.compile(r"[ -~]+")
_IDS: Final = 55
"""Characters of the fields that every version has."""


class TraceContext(Struct, frozen=True):
    """The context of a trace: `parent` is a valid `traceparent`, `state` its `tracestate`, if there is one."""

    parent: str
    state: str | None = None

    @property
    def trace_id(self) -> str:
        """The id of the trace: 32 hexadecimal digits."""
        return self.parent[3:35]

    @property
    def span_id(self) -> str:
        """The id of the client's span: 16 hexadecimal digits."""
        return self.parent[36:52]

    @property
    def flags(self) -> int:
        """The flags of the trace; bit 0 is whether the client samples it."""
        return int(self.parent[53:55], 16)

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """The headers for an upstream."""
        parent = (TRACEPARENT, self.parent)
        return (parent,) if self.state is None else (parent, (TRACESTATE, self.state))


def read_trace_context(headers: Sequence[tuple[str, str]]) -> TraceContext | None:
    """Return the context in `headers` (lower-case names); `None` if there is none, or not one that is valid."""
    parents: list[str] = []
    states: list[str] = []
    for name, value in headers:
        if name == TRACEPARENT:
            parents.append(value.strip(" \t"))
        elif name == TRACESTATE:
            states.append(value.strip(" \t"))
    if len(parents) != 1:  # several: none of them counts (section 3.2)
        return None
    parent = parents[0]
    if _TRACEPARENT.fullmatch(parent) is None:
        if _LATER.fullmatch(parent) is None:
            return None
        parent = f"00{parent[2:_IDS]}"  # a version that we do not know is written as the one that we know (section 4.3)
    state = ",".join(states)
    return TraceContext(parent, state if len(state) <= LONGEST_STATE and _STATE.fullmatch(state) else None)
