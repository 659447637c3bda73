"""Values that the records of OpenAI's dialects share: API key header, lists of models, marks and headers.

Endpoints that answer in one piece, in every dialect of OpenAI's servers.

Pages and failures of stored objects, which OpenAI's dialects share.

Source: `openai/pagination.py` (`SyncCursorPage`), and the errors that the servers give.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.reader import Reader
from xenoglot.dialects.openai.embeddings import EMBEDDINGS
from xenoglot.dialects.openai.errors import FAMILY
from xenoglot.dialects.openai.rerank import FORMS as RERANK
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.dialect import Headers
    from xenoglot.codec.features.operation import AnyForm
    from xenoglot.model.failure import FailureKind
    from xenoglot.model.json import JSON, JSONObject


MARKS = ("openai-organization", "openai-project", "openai-beta")
FORWARD = ("openai-beta", "x-client-request-id", "http-referer", "x-title")


def authorize(key: str | None) -> Headers:
    """Return the header that carries the key, if there is one."""
    return () if key is None else (("authorization", f"Bearer {key}"),)


_WINDOWS: Final = ("context_length", "max_model_len", "context_window", "max_context_length")
"""What servers call the context window: OpenRouter and Together, vLLM and SGLang, Groq, Mistral and LM Studio."""


def decode_models(body: JSON) -> tuple[ModelInfo, ...]:
    """Return the models of a list; see `encode_model` for its fields.

    Raises:
        WireError: it is no list of objects.
    """
    return tuple(
        ModelInfo(
            id=name,
            display_name=item.take_if("name", str),
            created=item.count("created") or None,
            owned_by=item.take_if("owned_by", str) or None,
            max_input_tokens=next(filter(None, map(item.count, _WINDOWS)), None),
        )
        for item in Reader(body).objects("data")
        if (name := item.take_if("id", str)) is not None
    )


def encode_model(model: ModelInfo) -> JSONObject:
    """Return one entry of the list of models; the wire requires `created` and `owned_by`, so unknown is 0 and empty.

    `name` and `context_length` are OpenRouter's (https://openrouter.ai/docs/api-reference/list-available-models).
    """
    known = {"name": model.display_name, "context_length": model.max_input_tokens}
    return {
        "id": model.id,
        "object": "model",
        "created": model.created or 0,
        "owned_by": model.owned_by or "",
    } | {key: value for key, value in known.items() if value is not None}


def encode_models(models: Sequence[ModelInfo]) -> JSONObject:
    """Return the list of models."""
    return {"object": "list", "data": [encode_model(model) for model in models]}


OPERATIONS: Final[tuple[AnyForm, ...]] = (EMBEDDINGS, *RERANK)


_STATUSES: dict[FailureKind, int] = {"invalid_request": 400, "not_found": 404}


def encode_page(items: Sequence[JSONObject], has_more: bool) -> JSONObject:  # noqa: FBT001  a field of the page
    """Return a page of a list; the id of its last item is where the next page begins."""
    return {
        "object": "list",
        "data": list(items),
        "first_id": items[0]["id"] if items else None,
        "last_id": items[-1]["id"] if items else None,
        "has_more": has_more,
    }


def refusal(kind: FailureKind, message: str, *, param: str | None = None, code: str | None = None) -> Failure:
    """Return the failure that reads as the servers' own."""
    details = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return Failure(
        kind=kind, message=message, status=_STATUSES[kind], dialect=FAMILY, code=code, param=param, details=details
    )
