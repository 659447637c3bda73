"""The two records: where they listen, what they list, how they show a key."""

from xenoglot.dialects.llama_stack import LLAMA_STACK, LLAMA_STACK_COMPLETION
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.limits import RateLimits


def test_records() -> None:
    chat, completion = LLAMA_STACK, LLAMA_STACK_COMPLETION
    assert (chat.name, chat.path) == ("llama_stack", "/v1/inference/chat-completion")
    assert (completion.name, completion.path) == ("llama_stack_completion", "/v1/inference/completion")
    assert chat.marks == ("x-llamastack-client-version", "x-llamastack-provider-data")
    assert chat.forward == ()  # the second of the marks holds keys of the client's
    assert [(inquiry.path, inquiry.answer({}, ())) for inquiry in chat.inquiries] == [
        ("/v1/health", {"status": "OK"}),
        ("/v1/version", {"version": "0.2.12"}),
    ]


def test_models() -> None:
    """L-S4: a model that embeds cannot be asked."""
    body = {
        "data": [
            {"identifier": "a", "provider_id": "ollama", "model_type": "llm", "type": "model", "metadata": {}},
            {"identifier": "b", "provider_id": "ollama", "model_type": "embedding"},
            {"provider_id": "x"},
        ]
    }
    models = LLAMA_STACK.decode_models(body)
    assert models == (ModelInfo(id="a", owned_by="ollama"),)
    assert LLAMA_STACK.encode_models(models) == {
        "data": [
            {
                "identifier": "a",
                "provider_resource_id": "a",
                "provider_id": "ollama",
                "type": "model",
                "metadata": {},
                "model_type": "llm",
            }
        ]
    }


def test_keys_and_limits() -> None:
    assert LLAMA_STACK.authorize("k") == (("authorization", "Bearer k"),)
    assert LLAMA_STACK.authorize(None) == ()
    assert LLAMA_STACK.decode_limits({"x-ratelimit-limit-requests": "5"}, 0) is None
    assert LLAMA_STACK.encode_limits(RateLimits(), 0) == ()
