"""The exceptions of Xenoglot.

XenoglotError
+-- WireError           what came over the wire is not what its dialect allows
+-- GrammarError        a stream of events is out of order: a bug of ours, or of a backend
+-- LossError           strict mode: the target cannot express what was asked
+-- FailureError        a `Failure` raised: the answer did not come
|   +-- InvalidRequestError      the request is wrong; `failure.param` may name the field
|   |   +-- ContextOverflowError     prompt and answer are longer than the model's context
|   |   +-- TooLargeError            the body of the request is larger than the server takes
|   |   +-- UnsupportedError         nobody there can do it
|   +-- AuthenticationError      the key is missing or wrong
|   +-- BillingError             the account has to be paid for
|   +-- PermissionDeniedError    the key may not do this
|   +-- NotFoundError            there is no such model, or no such endpoint
|   +-- ConflictError            something else is under way
|   +-- RateLimitError           too many requests or tokens; `retry_after` may say how long to wait
|   +-- RequestCancelledError    nobody waits for the answer any more
|   +-- UpstreamError            the server failed
|       +-- OverloadedError          it has too much to do
|       +-- DeadlineError            it did not answer in time
|       +-- ConnectionFailedError    there is no connection to it, or it broke
|       +-- IncompleteError          the answer broke off before its end
+-- ConfigurationError  a setting is wrong; the text names it and what is allowed
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.model.short_repr import described

if TYPE_CHECKING:
    import types

    from xenoglot.model.failure import Failure, FailureKind
    from xenoglot.model.limits import RateLimits


_LONGEST_CHAIN = 20


class XenoglotError(Exception):
    """Everything that Xenoglot raises on purpose."""

    def __repr__(self) -> str:
        return described(self, message=str(self))

    def __reduce__(self) -> tuple[object, ...]:
        """Errors of work that is done in another process come home whole."""
        return _rebuild, (type(self), self.args), self.__dict__


def _rebuild(kind: type[XenoglotError], args: tuple[object, ...]) -> XenoglotError:
    return kind.__new__(kind, *args)


class WireError(XenoglotError):
    """Wire data is malformed: `path` says where (`$.messages[0].content`), `problem` what is wrong with it."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


class GrammarError(XenoglotError):
    """An event came where `model.events.GRAMMAR` allows none of its kind."""


class LossError(XenoglotError):
    """A crossing would lose something, and the policy is to refuse. `losses` names each.

    `unknown` are the paths of fields among them that only their own dialect knows. They are named at first in the words
    of Anthropic's API: there are clients that read these, and leave the field out.
    """

    def __init__(self, losses: tuple[str, ...], unknown: tuple[str, ...] = ()) -> None:
        extra = [ascii(f"{path.removeprefix('$.')}: Extra inputs are not permitted")[1:-1] for path in unknown]
        super().__init__("; ".join([*extra, f"the target cannot express: {'; '.join(losses)}"]))
        self.losses = losses
        self.unknown = unknown


class FailureError(XenoglotError):
    """There is no answer; `failure` says why, in words every dialect can write, `limits` what an upstream allows.

    Clients raise one of the classes below, which `failure_error` picks.
    """

    def __init__(self, failure: Failure, limits: RateLimits | None = None) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.limits = limits

    def __repr__(self) -> str:
        facts = {"status": self.status, "code": self.code, "retry_after": self.retry_after}
        return described(self, message=str(self), kind=self.kind, **facts)

    @property
    def kind(self) -> FailureKind:
        """What went wrong, in a word that is the same for every server."""
        return self.failure.kind

    @property
    def status(self) -> int | None:
        """The server's HTTP status, where it gave one."""
        return self.failure.status

    @property
    def code(self) -> str | None:
        """The server's own word for it, where it gave one."""
        return self.failure.code or self.failure.raw_type

    @property
    def request_id(self) -> str | None:
        """What the server calls the request."""
        return self.failure.request_id

    @property
    def retry_after(self) -> float | None:
        """Seconds that the server asks to wait."""
        return self.failure.retry_after

    @property
    def retryable(self) -> bool:
        """Whether the same request, sent again, may be answered."""
        failure = self.failure
        return not failure.non_retryable and failure.cause not in _PERMANENT and failure.kind in _RETRYABLE


class InvalidRequestError(FailureError):
    """The request is wrong; `failure.param` may name the field."""


class ContextOverflowError(InvalidRequestError):
    """Prompt and answer are longer than the model's context; `failure.tokens` and `failure.limit` may say how long."""


class TooLargeError(InvalidRequestError):
    """The body of the request is larger than the server takes."""


class UnsupportedError(InvalidRequestError):
    """The request asks what nobody there can do."""


class AuthenticationError(FailureError):
    """The key is missing or wrong."""


class BillingError(FailureError):
    """The account has to be paid for."""


class PermissionDeniedError(FailureError):
    """The key may not do this."""


class NotFoundError(FailureError):
    """There is no such model, or no such endpoint."""


class ConflictError(FailureError):
    """Something else is under way."""


class RateLimitError(FailureError):
    """There were too many requests or tokens; `retry_after` may say how long to wait."""


class RequestCancelledError(FailureError):
    """Nobody waits for the answer any more."""


class UpstreamError(FailureError):
    """The server failed."""


class OverloadedError(UpstreamError):
    """The server has too much to do."""


class DeadlineError(UpstreamError):
    """The server did not answer in time."""


class ConnectionFailedError(UpstreamError):
    """There is no connection to the server, or it broke."""


class IncompleteError(UpstreamError):
    """The answer broke off before its end: what came of it is not an answer."""


_KINDS: dict[FailureKind, type[FailureError]] = {
    "invalid_request": InvalidRequestError,
    "context_overflow": ContextOverflowError,
    "authentication": AuthenticationError,
    "billing": BillingError,
    "permission": PermissionDeniedError,
    "not_found": NotFoundError,
    "conflict": ConflictError,
    "too_large": TooLargeError,
    "unsupported": UnsupportedError,
    "rate_limit": RateLimitError,
    "cancelled": RequestCancelledError,
    "internal": UpstreamError,
    "upstream": UpstreamError,
    "overloaded": OverloadedError,
    "timeout": DeadlineError,
}

_CONNECTION = frozenset({"connect", "tls", "closed"})
_PERMANENT = frozenset({"tls", "protocol", "too_large", "credentials", "forbidden"})
"""Causes that another try meets again."""
_RETRYABLE = frozenset({"conflict", "rate_limit", "internal", "upstream", "overloaded", "timeout"})


QUOTING = frozenset({"invalid_request", "context_overflow", "too_large", "unsupported"})
"""Kinds whose `operator_message` leaves the server's own text out, because it may quote the request."""


def failure_error(
    failure: Failure, limits: RateLimits | None = None, kind: type[FailureError] | None = None
) -> FailureError:
    """Return the error of the class that `failure` is of, or of this `kind`. It names a failed server."""
    if kind is None:
        kind = ConnectionFailedError if failure.cause in _CONNECTION else _KINDS[failure.kind]
    error = kind(failure, limits)
    told = failure.operator_message
    if told is not None:
        error.args = (f"{told}: {failure.message}" if failure.kind in QUOTING else told,)
    return error


class ConfigurationError(XenoglotError):
    """A setting is wrong."""


EXTRAS = {
    "asyncpg": "postgres",
    "genai_prices": "prices",
    "json_repair": "structured",
    "jsonschema_rs": "structured",
    "mcp": "mcp",
    "prompt_toolkit": "terminal",
    "python_multipart": "gateway",
    "ray": "ray",
    "redis": "redis",
    "rich": "terminal",
    "shtab": "terminal",
    "tomlkit": "terminal",
    "transformers": "transformers",
    "uvloop": "gateway",
    "xllamacpp": "local",
}
"""Optional package -> the extra of xenoglot that installs it."""


def missing_extra(package: str) -> str:
    """Return the message for an optional package that is not installed; it ends with the command to paste."""
    return f"{package} is not installed: pip install 'xenoglot[{EXTRAS[package]}]'"


def whereabouts(error: BaseException) -> str:
    """Return where `error` came from and of which class it is. Its text is left out: it may quote what was said."""
    links: list[str] = []
    link: BaseException | None = error
    while link is not None and len(links) < _LONGEST_CHAIN:
        links.append(f"{type(link).__module__}.{type(link).__qualname__} at {_frames(link.__traceback__)}")
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return "; from ".join(links)


def _frames(traceback: types.TracebackType | None) -> str:
    frames: list[str] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frames.append(f"{traceback.tb_frame.f_globals.get('__name__', '?')}.{code.co_name}:{traceback.tb_lineno}")
        traceback = traceback.tb_next
    return " > ".join(frames)
