"""Encodes and decodes the list of foundation models.

Source: `ListFoundationModels` and `FoundationModelSummary` in `bedrock/2023-04-20/service-2.json` of botocore.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.reader import Reader
from xenoglot.dialects.converse.extras import NAME, with_said
from xenoglot.model.catalog import ModelInfo, modalities_of
from xenoglot.model.content import Extra

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.catalog import Modality
    from xenoglot.model.json import JSON, JSONObject

PATH: Final = "/foundation-models"

_LISTED: Final = (
    "modelArn",
    "providerName",
    "outputModalities",
    "responseStreamingSupported",
    "customizationsSupported",
    "inferenceTypesSupported",
    "modelLifecycle",
)
"""Fields of a model that only this dialect lists."""


def decode_models(body: JSON) -> tuple[ModelInfo, ...]:
    """Return the models of a list.

    Raises:
        WireError: it is no list of objects.
    """
    return tuple(
        ModelInfo(
            id=name,
            display_name=item.take_if("modelName", str),
            input_modalities=_modalities(item.peek("inputModalities")),
            extra=_listed(item),
        )
        for item in Reader(body).objects("modelSummaries")
        if (name := item.take_if("modelId", str)) is not None
    )


def _modalities(words: JSON) -> tuple[Modality, ...] | None:
    if not isinstance(words, list) or not words:
        return None
    return modalities_of(word.lower() for word in words if isinstance(word, str))


def _listed(item: Reader) -> Extra | None:
    fields = {name: item.peek(name) for name in _LISTED if name in item}
    return Extra(dialect=NAME, fields=fields) if fields else None


def encode_model(model: ModelInfo) -> JSONObject:
    """Return one model."""
    modalities = None if model.input_modalities is None else [word.upper() for word in model.input_modalities]
    body = with_said(
        {"modelArn": model.id, "modelId": model.id, "modelName": model.display_name or model.id},
        inputModalities=modalities,
        responseStreamingSupported=True,
    )
    return body | (model.extra.fields if model.extra is not None and model.extra.dialect == NAME else {})


def encode_models(models: Sequence[ModelInfo]) -> JSONObject:
    """Return all models as one list."""
    return {"modelSummaries": [encode_model(model) for model in models]}
