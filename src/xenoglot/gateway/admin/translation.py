"""`/admin/v1/translate`: a request, response or stream in another dialect, and what is lost; no model is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from xenoglot.backends.offload import offload
from xenoglot.codec.invalid_request import refused
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.loss import Loss, Losses
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.errors import ConfigurationError, FailureError, WireError
from xenoglot.gateway.admin.route import AdminRequest, AdminRoute, decoded
from xenoglot.gateway.admin.services import AdminServices
from xenoglot.model.failure import Failure
from xenoglot.model.json import JSONObject
from xenoglot.translate import translate

if TYPE_CHECKING:
    from xenoglot.gateway.admin.route import AdminResult
    from xenoglot.model.json import JSON


class TranslationRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"from_": "from"}):
    """What to translate: the JSON `body` of a request, response or error, or the text of an event `stream`.

    Which of them a body is, is detected. `target` has facts about the server that gets a request, as a configuration
    file has them for an upstream.
    """

    from_: str
    to: str
    body: JSONObject | None = None
    stream: str | None = None
    target: JSONObject = field(default_factory=dict)


class Translation(Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """The same in the other dialect, and each feature that could not be translated."""

    object: Literal["translation"] = "translation"
    from_: str
    to: str
    body: JSONObject | None
    stream: str | None
    losses: list[Loss]


class TranslationRoutes(Struct, frozen=True):
    """The route for translations."""

    services: AdminServices

    def routes(self) -> tuple[AdminRoute, ...]:
        """Return the row of the table."""
        return (
            AdminRoute(
                method="POST",
                path="/translate",
                handler=self.translate,
                summary="Translate a request, response, error or stream, and list what is lost; no model is used.",
                takes=TranslationRequest,
                returns=Translation,
            ),
        )

    async def translate(self, request: AdminRequest) -> AdminResult:
        """Translate.

        Raises:
            FailureError: a dialect is unknown, or nothing to translate was sent.
            WireError: the body is not one of the dialect, or cannot be written in the other; the error has the path.
        """
        asked = request.body(TranslationRequest)
        source, target = _dialect("$.from", asked.from_), _dialect("$.to", asked.to)
        if (asked.body is None) == (asked.stream is None):
            raise WireError("$.body", "expected either `body` or `stream`")
        data = encode_json(asked.body) if asked.stream is None else asked.stream.encode()
        losses, server = Losses(), _facts(asked.target)
        try:
            made = await offload(len(data), lambda: translate(data, source, target, losses, server))
        except WireError as error:
            part = "$.body" if asked.stream is None else "$.stream"
            raise WireError(part + error.path.removeprefix("$"), error.problem) from None
        except FailureError as error:
            message = f"this cannot be translated: {error.failure.message}"
            raise FailureError(Failure(kind="invalid_request", message=message)) from None
        body, stream = _parsed(made) if asked.stream is None else (None, made.decode())
        return Translation(from_=source, to=target, body=body, stream=stream, losses=list(losses))


def _parsed(data: bytes) -> tuple[JSONObject | None, str | None]:
    value: JSON = decode_json(data)
    return (value, None) if isinstance(value, dict) else (None, data.decode())


def _dialect(path: str, name: str) -> str:
    """Return the name of a dialect.

    Raises:
        FailureError: there is no such dialect.
    """
    try:
        return get(name).name
    except ConfigurationError as error:
        raise refused(path, str(error)) from None


def _facts(target: JSONObject) -> Target:
    """Return the facts about a server.

    Raises:
        WireError: one of them is unknown, or invalid; the error has the path.
    """
    unknown = next((name for name in target if name not in Target.__struct_fields__), None)
    if unknown is not None:
        raise WireError(f"$.target.{unknown}", "unknown field; remove it")
    try:
        return decoded(target, Target)
    except WireError as error:
        raise WireError("$.target" + error.path.removeprefix("$"), error.problem) from None
