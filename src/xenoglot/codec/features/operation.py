"""Operations: what a model does in one piece besides answering, and the endpoints that dialects have for it.

An `Operation` is a row of what holds in every dialect, an `OperationForm` a row of one endpoint and its codecs. The
gateway, the client, batches and the backend of a server read the rows, and name no operation themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.path_template import has_model, in_path
from xenoglot.model.embedding import Input
from xenoglot.model.failure import Failure
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.response import Usage

Asked = TypeVar("Asked")
Made = TypeVar("Made")


def _no_inputs(_request: object) -> tuple[Input, ...]:
    return ()


def _no_usage(_result: object) -> None:
    return None


def _no_size(_result: object, _request: object) -> int:
    return 0


def _fits(_request: object, _result: object) -> None:
    return None


def _always(_request: object) -> bool:
    return True


def _with_model(request: Any, model: str) -> Any:  # noqa: ANN401  a request of any operation: all have a `model`
    return replace(request, model=model)


def _ours_alone(*_: object) -> Any:  # noqa: ANN401  as above
    raise TypeError("no upstream is called at this endpoint")


class Operation(Struct, Generic[Asked, Made], frozen=True, kw_only=True):
    """What a model does in one piece besides answering. Its requests have a `model`.

    `name` is the name of the backend's method, `unable` the error of a model that cannot, with `{model}` in it.
    """

    name: str
    unable: str
    limited: bool = True
    """Whether limits of requests and tokens apply, and a failure is retried, as for answers."""
    embeds: bool = False
    """Whether the embedded embedding model is the default model."""
    inputs: Callable[[Asked], Iterable[Input]] = _no_inputs
    """The inputs that the model reads; the tokens that are reserved are estimated from them."""
    with_model: Callable[[Asked, str], Asked] = _with_model
    """Returns the request for another model."""
    usage: Callable[[Made], Usage | None] = _no_usage
    size: Callable[[Made, Asked], int] = _no_size
    """About how many bytes a result is on the wire, given the request; large ones are encoded in a thread."""
    check: Callable[[Asked, Made], None] = _fits
    """Raises `WireError` for a result that cannot be that of the request."""

    def unsupported(self, model: str) -> Failure:
        """Return the failure of a request to a model that cannot."""
        return Failure(kind="unsupported", message=self.unable.format(model=model))


class OperationForm(Struct, Generic[Asked, Made], frozen=True, kw_only=True):
    """An endpoint of an operation: its paths, and the codecs of its requests and results.

    `name` labels what only it knows. If `path` contains `{model}`, the path names the model; for the codecs it is a
    field of the body. Requests with the method GET have their parameters in the query. Decoders raise `WireError`.
    Without `encode_request` and `decode_response` only clients use it: upstreams are not called there.
    """

    operation: Operation[Asked, Made]
    name: str
    path: str
    aliases: tuple[str, ...] = ()
    method: Literal["GET", "POST"] = "POST"
    optional: bool = False
    """Whether a server has it only if its `Target.operation_paths` say so."""
    decode_request: Callable[[JSON], Asked]
    encode_request: Callable[[Asked, Losses], JSONObject] = _ours_alone
    decode_response: Callable[[JSON], Made] = _ours_alone
    encode_response: Callable[[Made, Asked, Losses], JSON]
    passes: Callable[[Asked], bool] = _always
    """Whether the body of a request can be passed through to a server with the same form."""
    glimpse: Callable[[bytes], Made | None] | None = None
    """Returns what is logged of a result that is passed through as it is; `None` if the body is unusual."""

    @property
    def calls_upstreams(self) -> bool:
        """Whether upstreams can be called there."""
        return self.encode_request is not _ours_alone

    @property
    def names_model(self) -> bool:
        """Whether the body, rather than the path, names the model."""
        return not has_model(self.path)

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths that clients can use."""
        return (self.path, *self.aliases)

    def addressed(self, body: JSONObject) -> tuple[str, JSONObject]:
        """Return the path to post `body` to, and the remaining body.

        Raises:
            WireError: the model's name would lead elsewhere on the server.
        """
        if self.names_model:
            return self.path, body
        rest = dict(body)
        return in_path(self.path, rest.pop("model", "")), rest


AnyOperation: TypeAlias = Operation[Any, Any]
AnyForm: TypeAlias = OperationForm[Any, Any]
