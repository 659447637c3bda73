"""The body that models of Anthropic have at InvokeModel: that of the Messages API, its headers as fields.

`anthropic_version` and `anthropic_beta` are what the headers of these names are; model and `stream` are in the path
(https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html;
`anthropic/lib/bedrock/_client.py`, `_prepare_options`).
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Final

from xenoglot.codec.features.hosted import HeaderFields, HostedDialect
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.dialects.converse.invoke.chunk_events import CHUNK_EVENTS
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.json import JSON, JSONObject

VERSION: Final = "bedrock-2023-05-31"
HEADER_VERSION: Final = "2023-06-01"
"""The version of the Messages API that `VERSION` is."""

_VERSION_FIELD, _BETA_FIELD = "anthropic_version", "anthropic_beta"
_VERSION_HEADER, _BETA_HEADER = "anthropic-version", "anthropic-beta"

COUNTED: Final = "$.input.invokeModel.body"

OTHER_FAMILY: Final = (
    "required; InvokeModel takes bodies of Anthropic's Messages API alone here: send those of other models as Converse "
    "(`/model/{model}/converse`), which has every model"
)


def anthropic_body(body: JSON) -> JSON:
    """Return a client's body as the Messages API has it.

    Raises:
        WireError: it is the body of another API.
    """
    if not isinstance(body, dict):
        return body
    if not isinstance(body.get(_VERSION_FIELD), str):
        raise WireError(f"$.{_VERSION_FIELD}", OTHER_FAMILY)
    return {name: value for name, value in body.items() if name not in (_VERSION_FIELD, _BETA_FIELD)}


def headers_of(body: JSON) -> tuple[tuple[str, str], ...]:
    """Return the headers that the fields of a client's body are. Raises `WireError` where they are none."""
    fields = body if isinstance(body, dict) else {}
    version = fields.get(_VERSION_FIELD)
    betas = fields.get(_BETA_FIELD) or []
    if not isinstance(betas, list) or not all(isinstance(beta, str) and _is_token(beta) for beta in betas):
        raise WireError(f"$.{_BETA_FIELD}", "expected a list of names")
    if isinstance(version, str) and not _is_token(version):
        raise WireError(f"$.{_VERSION_FIELD}", "expected a version")
    plain = version if isinstance(version, str) and not version.startswith("bedrock-") else HEADER_VERSION
    found = ((_VERSION_HEADER, plain),)
    return (*found, (_BETA_HEADER, ",".join(betas))) if betas else found


def _is_token(text: str) -> bool:
    """Return whether a value can stand in a header that is a list (RFC 9110 section 5.6)."""
    return text.isascii() and text.isprintable() and not set(text) & set(' ,"')


def fields_of(headers: Sequence[tuple[str, str]]) -> JSONObject:
    """Return the fields of the body that a client's headers are; a version of the API's own stays as it is."""
    told = dict(headers)
    version = told.get(_VERSION_HEADER, HEADER_VERSION)
    fields: JSONObject = {_VERSION_FIELD: VERSION if version == HEADER_VERSION else version}
    betas = [beta for beta in map(str.strip, told.get(_BETA_HEADER, "").split(",")) if beta]
    return fields | {_BETA_FIELD: betas} if betas else fields


def counted_body(value: JSON) -> JSONObject | None:
    """Return the body whose tokens `count-tokens` is to count, with the model; `None` if it is one of Converse.

    Raises:
        WireError: `body` is no JSON in base64, or the body of another API.
    """
    match value:
        case {"input": {"invokeModel": {"body": str() as encoded}}, **rest}:
            try:
                data = b64decode(encoded, validate=True)
            except ValueError:
                raise WireError(COUNTED, "expected base64") from None
            body = decode_json(data)
            if not isinstance(body, dict):
                raise WireError(COUNTED, "expected a JSON object in base64")
            return {**body, "model": rest.get("model")}
        case _:
            return None


def encode_counted(body: JSONObject) -> JSONObject:
    """Return the question for the tokens of a body (`CountTokensInput`); `max_tokens` is required in it."""
    inner = {name: value for name, value in body.items() if name not in ("model", "stream")}
    encoded = b64encode(encode_json({"max_tokens": 1, **inner})).decode()
    return {"model": body.get("model"), "input": {"invokeModel": {"body": encoded}}}


ANTHROPIC: Final = HostedDialect(
    dialect="messages",
    path="/model/{model}/invoke",
    stream_path="/model/{model}/invoke-with-response-stream",
    framing=CHUNK_EVENTS,
    body=anthropic_body,
    counted_body=counted_body,
    encode_counted=encode_counted,
    header_fields=HeaderFields(headers=headers_of, fields=fields_of),
)
"""https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html"""
