"""The exceptions of Xenoglot.

XenoglotError
+-- WireError           data is not valid in its dialect
+-- GrammarError        the events of a stream are in the wrong order: a bug
+-- LossError           losses are refused, and the target does not support a feature
+-- FailureError        there is no answer
|   +-- InvalidRequestError      the request is wrong; `failure.param` may name the field
|   |   +-- ContextOverflowError     prompt and answer exceed the model's context window
|   |   +-- TooLargeError            the body of the request is too large
|   |   +-- UnsupportedError         the server does not have the feature
|   +-- AuthenticationError      the API key is missing or wrong
|   +-- BillingError             the account has no credit
|   +-- PermissionDeniedError    the API key may not do this
|   +-- NotFoundError            the model or the endpoint does not exist
|   +-- ConflictError            another request is in progress
|   +-- RateLimitError           too many requests or tokens; see `retry_after`
|   +-- RequestCancelledError    the request was cancelled
|   +-- UpstreamError            the server failed
|       +-- OverloadedError          the server is overloaded
|       +-- DeadlineError            the server did not answer in time
|       +-- ConnectionFailedError    no connection, or it broke
|       +-- IncompleteError          the answer was truncated
+-- ConfigurationError  a setting is wrong; the text names it and what is allowed
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.model.short_repr import described

if TYPE_CHECKING:
    import types

    from xenoglot.model.failure import Failure, FailureKind
    from xenoglot.model.limits import RateLimits


_LONGEST_CHAIN = 20


class XenoglotError(Exception):
    """Base class of all errors that Xenoglot raises on purpose.

    Example:
        >>> import xenoglot
        >>> try:
        ...     xenoglot.Client("no-such-provider")
        ... except xenoglot.XenoglotError as error:
        ...     print(type(error).__name__)
        ConfigurationError
    """

    def __repr__(self) -> str:
        return described(self, message=str(self))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle all attributes, for errors from other processes."""
        return _rebuild, (type(self), self.args), self.__dict__


def _rebuild(kind: type[XenoglotError], args: tuple[object, ...]) -> XenoglotError:
    return kind.__new__(kind, *args)


class WireError(XenoglotError):
    """Data is not valid in its dialect.

    Args:
        path: Where: `$.messages[0].content`.
        problem: What is wrong there.

    Example:
        >>> import xenoglot
        >>> try:
        ...     xenoglot.translate({"messages": "Hi"}, "chat", "messages")
        ... except xenoglot.WireError as error:
        ...     print(error.path)
        $
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


class GrammarError(XenoglotError):
    """The events of a stream are in the wrong order (`model.events.GRAMMAR`): a bug in Xenoglot or in a backend."""


class LossError(XenoglotError):
    """A translation would lose something, and the caller refuses losses (`on_loss="refuse"`, `Losses(strict=True)`).

    The text begins with the unknown fields in the words of Anthropic's API, because some clients read these words and
    leave the fields out.

    Args:
        losses: Each loss as text.
        unknown: The paths of fields among them that only their own dialect has.
    """

    def __init__(self, losses: tuple[str, ...], unknown: tuple[str, ...] = ()) -> None:
        extra = [ascii(f"{path.removeprefix('$.')}: Extra inputs are not permitted")[1:-1] for path in unknown]
        super().__init__("; ".join([*extra, f"the target cannot express: {'; '.join(losses)}"]))
        self.losses = losses
        self.unknown = unknown


class FailureError(XenoglotError):
    """There is no answer. The class is the reason; `failure` has all that is known.

    Catch a subclass for one reason (`RateLimitError`), or this class for all. `retryable` is whether the same
    request may succeed later, `retry_after` how many seconds to wait.

    Args:
        failure: The failure in the terms that all dialects share.
        limits: The rate limits that the upstream reported.

    Example:
        >>> import xenoglot
        >>> client = xenoglot.Client("http://127.0.0.1:9", model="m", retry=xenoglot.Retry(attempts=1))
        >>> try:
        ...     client.complete("Hi")
        ... except xenoglot.FailureError as error:
        ...     print(type(error).__name__, error.kind, error.status, error.retryable)
        ConnectionFailedError upstream None True
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
        """The kind of failure, the same word for every server."""
        return self.failure.kind

    @property
    def status(self) -> int | None:
        """The server's HTTP status; `None` if there was no response."""
        return self.failure.status

    @property
    def code(self) -> str | None:
        """The server's own code for the failure; `None` if it sent none."""
        return self.failure.code or self.failure.raw_type

    @property
    def request_id(self) -> str | None:
        """The server's id of the request; `None` if it sent none."""
        return self.failure.request_id

    @property
    def retry_after(self) -> float | None:
        """Seconds to wait before a retry, as the server requests; `None` if it does not."""
        return self.failure.retry_after

    @property
    def retryable(self) -> bool:
        """Whether the same request, sent again, may be answered."""
        failure = self.failure
        return not failure.non_retryable and failure.cause not in _PERMANENT and failure.kind in _RETRYABLE


class InvalidRequestError(FailureError):
    """The request is wrong (400). `failure.param` is the path of the field, if known."""


class ContextOverflowError(InvalidRequestError):
    """Prompt and answer exceed the model's context window. `failure.tokens` and `failure.limit` are set if known."""


class TooLargeError(InvalidRequestError):
    """The body of the request is larger than the server accepts (413)."""


class UnsupportedError(InvalidRequestError):
    """The request needs a feature that the server does not have."""


class AuthenticationError(FailureError):
    """The API key is missing or wrong (401)."""


class BillingError(FailureError):
    """The account has no credit (402)."""


class PermissionDeniedError(FailureError):
    """The API key may not do this (403)."""


class NotFoundError(FailureError):
    """The model or the endpoint does not exist (404)."""


class ConflictError(FailureError):
    """The request conflicts with another one that is in progress (409)."""


class RateLimitError(FailureError):
    """Too many requests or tokens (429). `retry_after` is how long to wait, if known."""


class RequestCancelledError(FailureError):
    """The request was cancelled before it was answered."""


class UpstreamError(FailureError):
    """The server failed (5xx), or its response is not valid."""


class OverloadedError(UpstreamError):
    """The server is overloaded (503, 529)."""


class DeadlineError(UpstreamError):
    """The server did not answer in time; see `Deadlines` and the option `timeout`."""


class ConnectionFailedError(UpstreamError):
    """No connection to the server, or the connection broke before the answer."""


class IncompleteError(UpstreamError):
    """The answer was truncated: the connection broke, or the stream stopped before its end."""


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


class HTTPStatusError(Exception):
    """A server answered with an error status; the `__cause__` of the error that a call raises.

    Args:
        status: The HTTP status.
        url: The URL that was called, without user name, password and query.
    """

    def __init__(self, status: int, url: str) -> None:
        super().__init__(f"HTTP {status} from {url}")
        self.status = status
        self.url = url


class ConfigurationError(XenoglotError):
    """A setting is wrong, or something is not installed. The text names it and what is allowed."""


MISUSE: Final = 2
"""Exit code of the command line: a usage error."""
LOSS: Final = 3
"""Something would be lost that must not be."""
REQUEST_REFUSED: Final = 7
"""A server refused the request: the same request will be refused again."""
UNREACHABLE: Final = 8
"""A server cannot be reached, fails, is busy or gives no valid answer: the same command may succeed later."""
INTERRUPTED: Final = 130


def exit_code(error: XenoglotError) -> int:
    """Return the exit code of a command that ends with `error`."""
    if not isinstance(error, FailureError):
        return MISUSE
    if error.failure.cause in ("credentials", "forbidden"):
        return REQUEST_REFUSED
    return UNREACHABLE if isinstance(error, UpstreamError | RateLimitError) else REQUEST_REFUSED


def failure_code(failure: Failure) -> int:
    """Return the exit code of a command that got no answer because of `failure`."""
    return exit_code(failure_error(failure))


EXTRAS = {
    "asyncpg": "postgres",
    "azure_identity": "azure",
    "botocore": "aws",
    "genai_prices": "prices",
    "google_auth": "google",
    "jinja2": "console",
    "json_repair": "structured",
    "jsonschema_rs": "structured",
    "mcp": "mcp",
    "opentelemetry_exporter_otlp_proto_http": "otel",
    "opentelemetry_sdk": "otel",
    "presidio_analyzer": "pii",
    "prompt_toolkit": "terminal",
    "python_multipart": "gateway",
    "ray": "ray",
    "redis": "redis",
    "rich": "terminal",
    "shtab": "terminal",
    "tomlkit": "terminal",
    "transformers": "transformers",
    "uvloop": "gateway",
    "websockets": "gateway",
    "xllamacpp": "local",
}
"""Optional package -> the extra of xenoglot that installs it."""


def missing_extra(package: str) -> str:
    """Return the message for an optional package that is not installed; it ends with the command to paste."""
    return f"{package} is not installed: pip install 'xenoglot[{EXTRAS[package]}]'"


def whereabouts(error: BaseException) -> str:
    """Return where `error` came from and of which class it is. Its text is left out, because it may quote a prompt."""
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
