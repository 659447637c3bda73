"""Scripts of a server as data: the steps of an answer, and the rules that select them for a request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct
from msgspec.json import encode

from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.requests.url_params import informed
from xenoglot.dialect_registry import get
from xenoglot.errors import WireError, XenoglotError

if TYPE_CHECKING:
    from xenoglot.testing.raw_http import Received

Headers: TypeAlias = tuple[tuple[str, str], ...]
Split: TypeAlias = int | tuple[int, ...]
"""Where bytes are split, each piece in a TCP segment of its own: every so many bytes (0: nowhere), or at offsets."""


class Respond(Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="respond"):
    """A complete response with its length. `length` overrides the true one; `coding` compresses the body."""

    status: int = 200
    headers: Headers = ()
    body: bytes = b""
    length: int | None = None
    coding: Literal["gzip", "deflate"] | None = None
    split: Split = 0


class ResponseHead(Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="head"):
    """The head of a response whose body the next steps write.

    The body is `chunked`, or of the given `length`, or neither: then the end of the connection ends it. `reason` is the
    reason phrase; `coding` compresses what `Body` writes, each piece flushed.
    """

    status: int = 200
    headers: Headers = ()
    chunked: bool = True
    length: int | None = None
    reason: str | None = None
    coding: Literal["gzip", "deflate"] | None = None


class Body(Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="body"):
    """A piece of the body, in the framing of the head; each piece of a split is a chunk."""

    data: bytes
    split: Split = 0


class End(Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="end"):
    """The end of the body: the final chunk, or the end of the connection if that ends it."""


class Send(Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="send"):
    """Bytes, exactly these."""

    data: bytes
    split: Split = 0


class Drip(Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="drip"):
    """Bytes, exactly these, `step` of them every `interval` seconds; `framed` writes them as `Body` does."""

    data: bytes
    interval: float = 1.0
    step: int = 1
    framed: bool = False


class Pause(Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="pause"):
    """A pause of so many seconds of the event loop's clock."""

    seconds: float


class WaitEvent(Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="until"):
    """A pause until `release(event)` is called on the server."""

    event: str


class Receive(Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="receive"):
    """A wait for so many bytes on this connection that belong to no request yet."""

    count: int = 1


class StopRead(Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="deaf"):
    """Stop reading: what the client sends stays in the kernel's buffers, until they are full."""


class Hang(Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="hang"):
    """Nothing, until the client closes the connection."""


class Close(Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="close"):
    """Send FIN after all data."""


class Reset(Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="reset"):
    """Send RST at once."""


class Repeat(Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="repeat"):
    """Repeat steps so many `times`; without `times` until the client closes the connection."""

    steps: tuple[Step, ...]
    times: int | None = None


Step: TypeAlias = (
    Respond
    | ResponseHead
    | Body
    | End
    | Send
    | Drip
    | Pause
    | WaitEvent
    | Receive
    | StopRead
    | Hang
    | Close
    | Reset
    | Repeat
)
Steps: TypeAlias = tuple[Step, ...]
StepFunction: TypeAlias = Callable[["Received"], Sequence[Step]]
"""Steps that depend on the request."""


class RequestMatcher(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Matches requests that meet all the given conditions.

    `path` may have shell wildcards. `contains` is a part of the body; `body` is all of it in its `canonical` form, so
    that equal JSON values match. `stream` is whether the client requests a stream, in `dialect`.
    """

    method: str | None = None
    path: str | None = None
    contains: bytes | None = None
    body: bytes | None = None
    dialect: str | None = None
    stream: bool | None = None

    @property
    def by_head(self) -> bool:
        """Whether the head of a request is enough to know."""
        return self.contains is None and self.body is None and self.stream is None

    def meets(self, request: Received) -> bool:
        """Whether `request` is one of them."""
        return (
            self.method in (None, request.method)
            and (self.path is None or fnmatchcase(request.path, self.path))
            and (self.contains is None or self.contains in request.body)
            and (self.body is None or self.body == canonical(request.body))
            and (self.stream is None or self.dialect is None or self.stream == wants_stream(self.dialect, request))
        )


class ScriptRule(Struct, frozen=True, kw_only=True):
    """Steps for the requests that `when` matches, so many `times` (`None`: always).

    The first matching rule that is not used up applies. With `reads` at `head` the steps start after the head of the
    request, and its body is not read.
    """

    steps: Steps | StepFunction
    when: RequestMatcher = RequestMatcher()
    times: int | None = None
    reads: Literal["all", "head"] = "all"


def canonical(body: bytes) -> bytes:
    """Return JSON in its canonical form: compact, keys sorted; other text is returned unchanged."""
    try:
        return encode(decode_json(body), order="sorted")
    except WireError:
        return body


def wants_stream(dialect: str, request: Received) -> bool:
    """Whether `request`, of that dialect, requests a stream; an unreadable one does not."""
    spoken = get(dialect)
    streams = spoken.stream_path is not None and fnmatchcase(request.path, anywhere(spoken.stream_path))
    template = spoken.stream_path if streams and spoken.stream_path else spoken.path
    try:
        return bool(spoken.decode_request(informed(request.json, template, {"model": ""}, spoken)).stream)
    except XenoglotError:
        return False


def anywhere(path: str) -> str:
    """Return a dialect's path as a pattern: with any prefix before its version, and any model."""
    head, version, rest = path.replace("{model}", "*").partition("/v1")
    return f"*{rest}" if not head and rest.startswith("/") else f"*{head}{version}{rest}"


def pieces(data: bytes, split: Split) -> list[bytes]:
    """Return `data` split by `split`; offsets beyond its end are ignored."""
    if isinstance(split, int):
        return [data[at : at + split] for at in range(0, len(data), split)] if split > 0 else [data]
    offsets = sorted({at for at in split if 0 < at < len(data)})
    return [data[start:end] for start, end in zip([0, *offsets], [*offsets, len(data)], strict=True)]
