"""What a hook is: an object with some of three methods, and what they get and may raise.

    class Hook:
        def before_request(self, request, context): ...     # a changed `Request`, or None
        def on_event(self, event, context): ...             # events in its place, or None
        def after_response(self, response, context): ...    # a changed `Response`, or None

Each method may be `async`. `None` leaves things as they are. `RejectedError` refuses the request or the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta, Struct, field

from xenoglot.errors import XenoglotError
from xenoglot.model.failure import Failure, FailureKind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from xenoglot.model.events import Event
    from xenoglot.model.request import Request
    from xenoglot.model.response import Response

MOST_TAGS: Final = 16
LONGEST_NAME: Final = 64
LONGEST_VALUE: Final = 200

BEFORE_REQUEST: Final = "before_request"
ON_EVENT: Final = "on_event"
AFTER_RESPONSE: Final = "after_response"
METHODS: Final = (BEFORE_REQUEST, ON_EVENT, AFTER_RESPONSE)

Changed: TypeAlias = "Event | Sequence[Event] | None"
BeforeRequest: TypeAlias = "Callable[[Request, HookContext], Request | Awaitable[Request | None] | None]"
OnEvent: TypeAlias = "Callable[[Event, HookContext], Changed | Awaitable[Changed]]"
AfterResponse: TypeAlias = "Callable[[Response, HookContext], Response | Awaitable[Response | None] | None]"


class HookSettings(Struct, frozen=True, kw_only=True):
    """A hook: what it is, and what happens if it is slow or fails.

    `use` is the name of an entry point, or `module:object`. `timeout_seconds` bounds each call. A hook that fails or
    is too slow refuses the request, or lets it `pass`. `models` are patterns of names that clients ask for; none: all.
    """

    use: str
    timeout_seconds: Annotated[float, Meta(gt=0, le=300)] = 2.0
    on_failure: Literal["refuse", "pass"] = "refuse"
    models: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


class RejectedError(XenoglotError):
    """Raised by a hook: the client gets `message` as an error of its dialect, with the status of `kind`."""

    def __init__(self, message: str, *, kind: FailureKind = "permission", code: str | None = None) -> None:
        super().__init__(message)
        self.failure = Failure(kind=kind, message=message, code=code)


class HookContext(Struct, kw_only=True):
    """What a hook knows of a request apart from its content.

    `dialect` is the client's, `model` the name in its request, `tenant` and `key` those of the ledger.
    `state` is for what the hook keeps from one call to the next: it belongs to this hook and this request alone. `tags`
    are in the log and the ledger; hooks share them.
    """

    request_id: str
    dialect: str
    model: str
    stream: bool
    tenant: str | None = None
    key: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)

    def tag(self, name: str, value: str) -> None:
        """Add a tag to the request; long ones are cut, and of more than 16 the first count."""
        if len(self.tags) < MOST_TAGS or name in self.tags:
            self.tags[name[:LONGEST_NAME]] = value[:LONGEST_VALUE]
