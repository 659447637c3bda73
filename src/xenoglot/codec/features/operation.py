"""Operations that are answered in one piece: embeddings, token counts, tokenizers.

An `Operation` is a row of what holds in every dialect, an `OperationForm` a row of one endpoint and its codecs. The
gateway, the client, batches and the backend of a server read the rows, and name no operation themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.codec.loss import Losses
from xenoglot.codec.reader import expected
from xenoglot.codec.requests.path_template import has_model, in_path
from xenoglot.errors import WireError
from xenoglot.model.embedding import EmbeddingRequest, Embeddings, Input
from xenoglot.model.failure import Failure
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.response import Usage
from xenoglot.model.tokens import TextRequest, TokenizerInfo, TokenizerInfoRequest, Tokens, TokensRequest

if TYPE_CHECKING:
    from xenoglot.model.embedding import Vector


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
    """An operation with one result. Its requests have a `model`.

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
    """Whether a server has it only if it is in its `Target.operation_paths`."""
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


NUMBER_BYTES = 8
"""Bytes of a number of a vector in an encoded result, approximately."""


def _check(request: EmbeddingRequest, embeddings: Embeddings) -> None:
    found, wanted = len(embeddings.vectors), len(request.inputs)
    if found != wanted:
        raise WireError("$", f"expected {wanted} vectors, got {found}")


EMBED = Operation[EmbeddingRequest, Embeddings](
    name="embed",
    unable="`{model}` makes no embeddings: ask for another model",
    embeds=True,
    inputs=lambda request: request.inputs,
    usage=lambda embeddings: embeddings.usage,
    size=lambda embeddings, _request: NUMBER_BYTES * sum(map(len, embeddings.vectors)),
    check=_check,
)

EmbeddingForm: TypeAlias = OperationForm[EmbeddingRequest, Embeddings]


def decode_vector(value: JSON, path: str) -> Vector:
    """Return the numbers of the list `value`.

    Raises:
        WireError: it is no list of finite numbers.
    """
    if not isinstance(value, list):
        raise expected(path, "list", value)
    for index, number in enumerate(value):
        if type(number) not in (float, int):
            raise expected(f"{path}[{index}]", "number", number)
    return checked(tuple(map(float, value)), path)


def checked(vector: Vector, path: str) -> Vector:
    """Return `vector`, which JSON has to be able to write.

    Raises:
        WireError: a number in it is none.
    """
    if not all(map(math.isfinite, vector)):
        raise WireError(path, "holds a number that is not finite")
    return vector


def texts_of(request: EmbeddingRequest, why: str) -> list[str]:
    """Return the inputs, which have to be texts; `why` is the reason for that in the error.

    Raises:
        WireError: one is not.
    """
    for index, one in enumerate(request.inputs):
        if not isinstance(one, str):
            raise WireError(f"$.input[{index}]", f"expected a text: {why}")
    return [one for one in request.inputs if isinstance(one, str)]


_UNABLE: Final = "the tokens of `{model}` are not known here: only those of the embedded models are"


def _tokens_with_model(request: TokensRequest, model: str) -> TokensRequest:
    return replace(request, request=replace(request.request, model=model))


TOKENIZE = Operation[TokensRequest, Tokens](
    name="tokenize", unable=_UNABLE, limited=False, with_model=_tokens_with_model
)
DETOKENIZE = Operation[TextRequest, str](name="detokenize", unable=_UNABLE, limited=False)
TOKENIZER_INFO = Operation[TokenizerInfoRequest, TokenizerInfo](name="tokenizer_info", unable=_UNABLE, limited=False)
