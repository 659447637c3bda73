"""Lists of models: what one dialect's server lists, in the list of every other dialect."""

from __future__ import annotations

from typing import Final

import pytest
from anthropic.types import ModelInfo as AnthropicModel
from google.genai import types as google
from ollama import ShowResponse

from xenoglot import dialect_registry as dialects
from xenoglot.dialects.ollama.models import capabilities, show
from xenoglot.model.catalog import ModelInfo, TokenPrice
from xenoglot.model.json import JSONObject

WHOLE: Final = ModelInfo(
    id="m",
    display_name="M",
    created=1_700_000_000,
    owned_by="us",
    max_input_tokens=200_000,
    max_output_tokens=64_000,
    input_modalities=("text", "image"),
    output_modalities=("text",),
    tools=True,
    reasoning=True,
    price=TokenPrice(input="0.000003", output="0.000015", cache_read="0.0000003"),
)

OPENROUTER: Final[JSONObject] = {
    "id": "m",
    "name": "M",
    "created": 1_700_000_000,
    "description": "A model",
    "context_length": 200_000,
    "architecture": {
        "modality": "text+image->text",
        "input_modalities": ["image", "text", "smell"],
        "output_modalities": ["text"],
        "tokenizer": "Claude",
        "instruct_type": None,
    },
    "pricing": {"prompt": "0.000003", "completion": "0.000015", "request": "0", "input_cache_read": "0.0000003"},
    "top_provider": {"context_length": 200_000, "max_completion_tokens": 64_000, "is_moderated": False},
    "per_request_limits": None,
    "supported_parameters": ["max_tokens", "temperature", "tools", "reasoning"],
}

CAPABILITIES: Final[JSONObject] = {
    "batch": {"supported": True},
    "citations": {"supported": True},
    "code_execution": {"supported": True},
    "context_management": {"supported": False},
    "effort": {level: {"supported": True} for level in ("high", "low", "max", "medium")} | {"supported": True},
    "image_input": {"supported": True},
    "pdf_input": {"supported": True},
    "server_tools": {"supported": True, "code_execution": {"supported": True}, "web_search": {"supported": True}},
    "structured_outputs": {"supported": True},
    "thinking": {
        "supported": True,
        "types": {kind: {"supported": True} for kind in ("adaptive", "between_tools", "disabled", "enabled")},
    },
}

ANTHROPIC: Final[JSONObject] = {
    "type": "model",
    "id": "m",
    "display_name": "M",
    "created_at": "2023-11-14T22:13:20Z",
    "lifecycle": "deprecated",
    "deprecated_at": "2026-08-01T00:00:00Z",
    "retires_at": "2027-02-01T00:00:00Z",
    "line": "opus",
    "max_input_tokens": 200_000,
    "max_tokens": 64_000,
    "capabilities": CAPABILITIES,
}

GEMINI: Final[JSONObject] = {
    "name": "models/m",
    "version": "001",
    "displayName": "M",
    "description": "A model",
    "inputTokenLimit": 200_000,
    "outputTokenLimit": 64_000,
    "supportedGenerationMethods": ["generateContent", "countTokens", "createCachedContent"],
    "thinking": True,
    "temperature": 1,
    "maxTemperature": 2,
    "topP": 0.95,
    "topK": 64,
}

OLLAMA: Final[JSONObject] = {
    "name": "m:latest",
    "model": "m:latest",
    "modified_at": "2023-11-14T22:13:20Z",
    "size": 1,
    "digest": "0",
    "details": {"context_length": 200_000},
    "capabilities": ["completion", "vision", "thinking"],
}


def one(dialect: str, entry: JSONObject) -> ModelInfo:
    key = "data" if dialect in ("chat", "messages") else "models"
    (model,) = dialects.get(dialect).decode_models({key: [entry]})
    return model


def test_openrouters_list_is_understood() -> None:
    found = one("chat", OPENROUTER)
    assert found == ModelInfo(
        id="m",
        display_name="M",
        created=1_700_000_000,
        max_input_tokens=200_000,
        max_output_tokens=64_000,
        input_modalities=("text", "image"),
        output_modalities=("text",),
        tools=True,
        reasoning=True,
        price=TokenPrice(input="0.000003", output="0.000015", cache_read="0.0000003"),
    )


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        pytest.param({"max_completion_tokens": 8}, 8, id="groq"),
        pytest.param({"max_output_tokens": 8}, 8, id="litellm"),
        pytest.param({"top_provider": {"max_completion_tokens": 8}}, 8, id="openrouter"),
        pytest.param({"top_provider": {"max_completion_tokens": None}}, None, id="openrouter-null"),
    ],
)
def test_the_longest_answer_under_each_name(fields: JSONObject, limit: int | None) -> None:
    assert one("chat", {"id": "m", **fields}).max_output_tokens == limit


@pytest.mark.parametrize(
    ("pricing", "price"),
    [
        pytest.param({"prompt": "0", "completion": "0"}, TokenPrice(input="0", output="0"), id="free-is-known"),
        pytest.param({"prompt": "-1", "completion": "-1"}, TokenPrice(), id="openrouters-router-depends"),
        pytest.param(
            {"prompt": "1e-7", "completion": 2e-7}, TokenPrice(input="0.0000001", output="0.0000002"), id="exponents"
        ),
        pytest.param({"prompt": "cheap", "completion": None}, TokenPrice(), id="garbage"),
        pytest.param({"input": 0.2, "output": 0.2}, None, id="togethers-is-for-a-million"),
    ],
)
def test_prices_of_a_list(pricing: JSONObject, price: TokenPrice | None) -> None:
    assert one("chat", {"id": "m", "pricing": pricing}).price == price


def test_an_entry_of_any_form_is_no_failure() -> None:
    """Lists of local servers hold whatever their authors liked."""
    odd = {
        "architecture": "llama",
        "top_provider": [],
        "pricing": 3,
        "supported_parameters": {"tools": True},
        "name": 4,
    }
    assert one("chat", {"id": "m", **odd}) == ModelInfo(id="m")


def test_the_list_of_openais_dialects() -> None:
    assert dialects.get("chat").encode_model(WHOLE) == {
        "id": "m",
        "object": "model",
        "created": 1_700_000_000,
        "owned_by": "us",
        "name": "M",
        "context_length": 200_000,
        "context_window": 200_000,
        "max_model_len": 200_000,
        "max_completion_tokens": 64_000,
        "architecture": {"input_modalities": ["text", "image"], "output_modalities": ["text"]},
        "top_provider": {"context_length": 200_000, "max_completion_tokens": 64_000},
        "pricing": {"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003"},
        "supported_parameters": ["tools", "tool_choice", "reasoning"],
    }


EMBEDS = ModelInfo(id="m", output_modalities=("embeddings",))


@pytest.mark.parametrize(
    ("dialect", "entry"),
    [
        pytest.param("chat", {"id": "m", "architecture": {"output_modalities": ["embeddings"]}}, id="openrouter"),
        pytest.param("gemini", {"name": "models/m", "supportedGenerationMethods": ["embedContent"]}, id="gemini"),
        pytest.param("ollama", {"name": "m", "capabilities": ["embedding"]}, id="ollama"),
    ],
)
def test_a_model_for_embeddings_writes_no_text(dialect: str, entry: JSONObject) -> None:
    found = one(dialect, entry)
    assert (found.output_modalities, found.writes_text()) == (EMBEDS.output_modalities, False)


def test_each_dialect_says_that_a_model_makes_embeddings() -> None:
    assert dialects.get("chat").encode_model(EMBEDS)["architecture"] == {"output_modalities": ["embeddings"]}
    assert dialects.get("gemini").encode_model(EMBEDS)["supportedGenerationMethods"] == ["embedContent", "countTokens"]
    assert capabilities(EMBEDS) == ["embedding"]


def test_what_is_unknown_is_absent() -> None:
    assert dialects.get("chat").encode_model(ModelInfo(id="m", reasoning=True)) == {
        "id": "m",
        "object": "model",
        "created": 0,
        "owned_by": "",
    }


def test_a_list_goes_home_as_it_came() -> None:
    """The SDK's own type reads it strictly: all capabilities are there, or none."""
    found = one("messages", ANTHROPIC)
    assert (found.input_modalities, found.reasoning) == (("text", "image", "file"), True)
    home = dialects.get("messages").encode_model(found)
    assert home == ANTHROPIC
    assert AnthropicModel.model_validate(home).capabilities is not None
    assert AnthropicModel.model_validate(dialects.get("messages").encode_model(WHOLE)).capabilities is None


def test_geminis_list_goes_home_with_what_only_it_has() -> None:
    home = dialects.get("gemini").encode_model(one("gemini", GEMINI))
    assert home == GEMINI | {"supportedGenerationMethods": ["generateContent", "countTokens"]}
    read = google.Model.model_validate({k: v for k, v in home.items() if k != "supportedGenerationMethods"})
    assert (read.thinking, read.output_token_limit, read.top_k) == (True, 64_000, 64)


@pytest.mark.parametrize(
    ("model", "capabilities"),
    [
        pytest.param(ModelInfo(id="m"), ["completion", "tools", "vision"], id="unknown-is-offered"),
        pytest.param(WHOLE, ["completion", "tools", "vision", "thinking"], id="known"),
        pytest.param(
            ModelInfo(id="m", tools=False, reasoning=False, input_modalities=("text",)), ["completion"], id="known-not"
        ),
        pytest.param(
            ModelInfo(id="m", input_modalities=("text", "audio")), ["completion", "tools", "audio"], id="sound"
        ),
    ],
)
def test_what_ollamas_clients_are_offered(model: ModelInfo, capabilities: list[str]) -> None:
    shown = show({"model": "m"}, [model])
    assert shown is not None
    assert ShowResponse.model_validate(shown).capabilities == capabilities


def test_capabilities_of_an_ollama_server() -> None:
    found = one("ollama", OLLAMA)
    assert (found.tools, found.reasoning, found.input_modalities) == (False, True, ("text", "image"))


LISTING = [name for name in dialects.names() if name != "converse" and not name.startswith("llama_stack")]
"""Dialects whose list has a place for the context window."""


@pytest.mark.parametrize("source", ["chat", "messages", "gemini", "ollama"])
@pytest.mark.parametrize("target", LISTING)
def test_every_list_in_every_dialect(source: str, target: str) -> None:
    """What a server lists of its window is in the list of each dialect."""
    entry = {"chat": OPENROUTER, "messages": ANTHROPIC, "gemini": GEMINI, "ollama": OLLAMA}[source]
    found = one(source, entry)
    again = dialects.get(target).decode_models(dialects.get(target).encode_models([found]))
    assert [(model.id, model.max_input_tokens) for model in again] == [(found.id, 200_000)]
