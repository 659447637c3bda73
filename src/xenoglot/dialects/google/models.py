"""Encodes and decodes the list of models, and the details of one model.

Source: `Model` (https://ai.google.dev/api/models).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.reader import Reader
from xenoglot.dialects.google.shared import FAMILY, with_said
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.content import Extra

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.catalog import Modality
    from xenoglot.model.json import JSON, JSONObject

PREFIX = "models/"

_METHODS = ("generateContent", "countTokens")
_EMBEDDING_METHODS = ("embedContent", "countTokens")

_LISTED = ("version", "description", "temperature", "maxTemperature", "topP", "topK")
"""Fields of a model that only this dialect lists."""


def decode_models(body: JSON) -> tuple[ModelInfo, ...]:
    """Return the models of one page.

    Raises:
        WireError: it is no page of objects.
    """
    return tuple(
        ModelInfo(
            id=name.removeprefix(PREFIX),
            display_name=item.take_if("displayName", str),
            max_input_tokens=item.count("inputTokenLimit"),
            max_output_tokens=item.count("outputTokenLimit"),
            output_modalities=_outputs(item.take_if("supportedGenerationMethods", list)),
            reasoning=item.take_if("thinking", bool),
            extra=_listed(item),
        )
        for item in Reader(body).objects("models")
        if (name := item.take_if("name", str)) is not None
    )


def _outputs(methods: Sequence[JSON] | None) -> tuple[Modality, ...] | None:
    """Return that a model makes embeddings if its methods have that and no other kind of answer."""
    embeds = methods is not None and "embedContent" in methods and "generateContent" not in methods
    return ("embeddings",) if embeds else None


def _listed(item: Reader) -> Extra | None:
    fields = {name: item.peek(name) for name in _LISTED if name in item}
    return Extra(dialect=FAMILY, fields=fields) if fields else None


def encode_model(model: ModelInfo) -> JSONObject:
    """Return one model."""
    body = with_said(
        {"name": PREFIX + model.id, "displayName": model.display_name or model.id},
        inputTokenLimit=model.max_input_tokens,
        outputTokenLimit=model.max_output_tokens,
        supportedGenerationMethods=list(_METHODS if model.writes_text() else _EMBEDDING_METHODS),
        thinking=model.reasoning,
    )
    return body | (model.extra.fields if model.extra is not None and model.extra.dialect == FAMILY else {})


def encode_models(models: Sequence[ModelInfo]) -> JSONObject:
    """Return all models as one page."""
    return {"models": [encode_model(model) for model in models]}


def describe(asked: JSONObject, models: Sequence[ModelInfo]) -> JSON:
    """Return the model that a path names, or `None` if there is none of that name."""
    return next((encode_model(model) for model in models if model.id == asked.get("model")), None)
