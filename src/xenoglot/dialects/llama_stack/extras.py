"""Constants shared by the chat and text completion records: names, the key's header, the list of models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.reader import Reader, left
from xenoglot.model.catalog import ModelInfo

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.codec.dialect import Headers
    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Extra
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.limits import RateLimits

NAME = "llama_stack"
"""What the chat record is called, and what both call the things they share: parts, counts, errors, words of an end."""

COMPLETION = "llama_stack_completion"
"""What the record for texts to be continued is called: in the extras of its requests and answers."""

MARKS = ("x-llamastack-client-version", "x-llamastack-provider-data")
"""Headers that `llama_stack_client/_client.py` sends. The second holds keys of the client's: it is never forwarded."""


def own_fields(extra: Extra | None, where: str, losses: Losses, name: str = NAME) -> JSONObject:
    """Return a copy of this dialect's own fields of `extra`; another's are losses."""
    return dict(losses.carry(extra, where, name))


def rest_of(own: JSONObject, form: JSONObject, key: str) -> JSONObject:
    """Return what was left of the object `key`; a null in its place stays in `own`."""
    return {} if key in own and own[key] is None else left(own, form, key)


def authorize(key: str | None) -> Headers:
    """Return the header that carries the key, if there is one."""
    return () if key is None else (("authorization", f"Bearer {key}"),)


def decode_limits(headers: Mapping[str, str], now: float) -> RateLimits | None:  # noqa: ARG001  it has no such headers
    """Return nothing: the server reports no limits."""
    return None


def encode_limits(limits: RateLimits, now: float) -> Headers:  # noqa: ARG001  there are no headers to write them to
    """Return nothing: the dialect has no headers for limits."""
    return ()


def decode_models(body: JSON) -> tuple[ModelInfo, ...]:
    """Return the models of a list that can generate (`types/model.py` of the SDK); those for embeddings cannot.

    Raises:
        WireError: it is no list of objects.
    """
    return tuple(
        ModelInfo(id=name, owned_by=item.take_if("provider_id", str) or None)
        for item in Reader(body).objects("data")
        if (name := item.take_if("identifier", str)) is not None and item.peek("model_type") != "embedding"
    )


def encode_model(model: ModelInfo) -> JSONObject:
    """Return one entry of the list of models; every field is required by the wire."""
    return {
        "identifier": model.id,
        "provider_resource_id": model.id,
        "provider_id": model.owned_by or "",
        "type": "model",
        "metadata": {},
        "model_type": "llm",
    }


def encode_models(models: Sequence[ModelInfo]) -> JSONObject:
    """Return the list of models."""
    return {"data": [encode_model(model) for model in models]}
