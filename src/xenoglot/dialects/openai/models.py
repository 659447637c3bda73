"""Encodes and decodes the list of models of OpenAI's dialects, with the fields that other servers add.

Sources: `openai/types/model.py`; OpenRouter (https://openrouter.ai/docs/models): `name`, `context_length`,
`architecture`, `top_provider`, `pricing`, `supported_parameters`; vLLM and SGLang (`ModelCard`): `max_model_len`; Groq:
`context_window`, `max_completion_tokens`; LiteLLM: `max_output_tokens`. Clients read one or another of them: Cline
`max_model_len` (cline#13564), OpenCode `context_length` (opencode#40908).
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final

from xenoglot.codec.reader import Reader
from xenoglot.model.catalog import ModelInfo, TokenPrice, modalities_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.json import JSON, JSONObject

_WINDOWS: Final = ("context_length", "max_model_len", "context_window", "max_context_length")
"""What servers call the context window: OpenRouter and Together, vLLM and SGLang, Groq, Mistral and LM Studio."""

_LIMITS: Final = ("max_completion_tokens", "max_output_tokens")
"""What servers call the longest answer: Groq, LiteLLM."""


def decode_models(body: JSON) -> tuple[ModelInfo, ...]:
    """Return the models of a list; see `encode_model` for its fields.

    Raises:
        WireError: it is no list of objects.
    """
    return tuple(
        _model(name, item) for item in Reader(body).objects("data") if (name := item.take_if("id", str)) is not None
    )


def _model(name: str, item: Reader) -> ModelInfo:
    kinds, provider, pricing = (_inner(item, key) for key in ("architecture", "top_provider", "pricing"))
    taken = item.take_if("supported_parameters", list)
    limits = (*map(item.count, _LIMITS), provider.count("max_completion_tokens"))
    return ModelInfo(
        id=name,
        display_name=item.take_if("name", str),
        created=item.count("created") or None,
        owned_by=item.take_if("owned_by", str) or None,
        max_input_tokens=next(filter(None, map(item.count, _WINDOWS)), None),
        max_output_tokens=next(filter(None, limits), None),
        input_modalities=modalities_of(kinds.take_if("input_modalities", list)),
        output_modalities=modalities_of(kinds.take_if("output_modalities", list)),
        tools=None if taken is None else "tools" in taken,
        reasoning=None if taken is None else "reasoning" in taken,
        price=_price(pricing) if "prompt" in pricing else None,
    )


def _inner(item: Reader, key: str) -> Reader:
    return Reader(item.take_if(key, dict) or {}, item.at(key))


def _price(pricing: Reader) -> TokenPrice:
    """Return the prices of OpenRouter's form, in dollars for a token; without `prompt` it is another one."""
    return TokenPrice(
        input=_amount(pricing.peek("prompt")),
        output=_amount(pricing.peek("completion")),
        cache_read=_amount(pricing.peek("input_cache_read")),
        cache_write=_amount(pricing.peek("input_cache_write")),
    )


def _amount(value: JSON) -> str | None:
    """Return an amount of at least 0; OpenRouter writes -1 where a price depends on which model answers."""
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return None
    return format(amount, "f") if amount.is_finite() and 0 <= amount <= _MOST else None


_MOST: Final = 1_000_000
"""Dollars for a token: a larger amount is a mistake."""


def encode_model(model: ModelInfo) -> JSONObject:
    """Return one entry of the list of models; the wire requires `created` and `owned_by`, so unknown is 0 and empty.

    Fields that OpenAI does not have are those that clients read, absent if they are unknown.
    """
    window, limit = model.max_input_tokens, model.max_output_tokens
    kinds = {"input_modalities": model.input_modalities, "output_modalities": model.output_modalities}
    required: JSONObject = {"id": model.id, "object": "model"}
    required |= {"created": model.created or 0, "owned_by": model.owned_by or ""}
    return required | _known(
        name=model.display_name,
        context_length=window,
        context_window=window,
        max_model_len=window,
        max_completion_tokens=limit,
        architecture=_known(**{key: value and list(value) for key, value in kinds.items()}),
        top_provider=_known(context_length=window, max_completion_tokens=limit),
        pricing=_pricing(model.price or TokenPrice()),
        supported_parameters=_parameters(model),
    )


def encode_models(models: Sequence[ModelInfo]) -> JSONObject:
    """Return the list of models."""
    return {"object": "list", "data": [encode_model(model) for model in models]}


def _known(**fields: JSON) -> JSONObject:
    return {key: value for key, value in fields.items() if value not in (None, {})}


def _pricing(price: TokenPrice) -> JSONObject:
    cached = {"input_cache_read": price.cache_read, "input_cache_write": price.cache_write}
    return _known(prompt=price.input, completion=price.output, **cached)


def _parameters(model: ModelInfo) -> list[JSON] | None:
    """Return the parameters that show clients whether a model calls tools and reasons.

    What is not in the list is taken for unsupported, so there is none unless tools are known about.
    """
    if model.tools is None:
        return None
    return [*(("tools", "tool_choice") if model.tools else ()), *(("reasoning",) if model.reasoning else ())]
