"""Every provider's way to say that a prompt is too long."""

import pytest

from xenoglot.codec.responses.error_text import Overflow, find_overflow


@pytest.mark.parametrize(
    ("message", "overflow"),
    [
        pytest.param("prompt is too long: 208310 tokens > 200000 maximum", Overflow(208310, 200000), id="anthropic"),
        pytest.param("prompt is too long", Overflow(), id="anthropic-bare"),
        pytest.param(
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length",
            Overflow(188240, 200000),
            id="anthropic-no-room",
        ),
        pytest.param(
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130005 tokens."
            " Please reduce the length of the messages.",
            Overflow(130005, 128000),
            id="openai",
        ),
        pytest.param(
            "This model's maximum context length is 4097 tokens, however you requested 4927 tokens (3927 in your"
            " prompt; 1000 for the completion).",
            Overflow(4927, 4097),
            id="openai-completions",
        ),
        pytest.param(
            "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the"
            " messages, 1000 in the completion). Please reduce the length of the messages or completion.",
            Overflow(4000, 4096),
            id="vllm",
        ),
        pytest.param(
            "'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's maximum context length is 8192"
            " tokens and your request has 12 input tokens (9000 > 8192 - 12).",
            Overflow(12, 8192),
            id="vllm-no-room",
        ),
        pytest.param(
            "This endpoint's maximum context length is 32768 tokens. However, you requested about 40001 tokens"
            " (39001 of text input, 1000 in the output).",
            Overflow(39001, 32768),
            id="openrouter",
        ),
        pytest.param(
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            Overflow(40000, 32768),
            id="mistral",
        ),
        pytest.param(
            "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
            Overflow(1048577, 1048576),
            id="gemini",
        ),
        pytest.param(
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4000 `inputs`"
            " tokens and 1000 `max_new_tokens`",
            Overflow(4000, 4097),
            id="together",
        ),
        pytest.param(
            "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
            Overflow(9000, 8192),
            id="llama-cpp",
        ),
        pytest.param(
            "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
            Overflow(140000, 131072),
            id="xai",
        ),
        pytest.param("prompt too long; exceeded max context length by 12 tokens", Overflow(), id="ollama"),
        pytest.param("the input length exceeds the context length", Overflow(), id="ollama-embedding"),
        pytest.param("Input is too long for requested model.", Overflow(), id="bedrock"),
        pytest.param("Your input exceeds the context window of this model.", Overflow(), id="openai-responses"),
        pytest.param("messages.0.content: Field required", None, id="another-error"),
        pytest.param(
            "max_tokens: 99999 > 64000, which is the maximum allowed number of output tokens", None, id="limit"
        ),
    ],
)
def test_the_words_of_each_provider(message: str, overflow: Overflow | None) -> None:
    """pitfall-123."""
    assert find_overflow(message) == overflow


@pytest.mark.parametrize(
    ("codes", "overflow"),
    [
        pytest.param(("context_length_exceeded", None), Overflow(9, None), id="openai"),
        pytest.param((400, "exceed_context_size_error"), Overflow(9, None), id="llama-cpp"),
        pytest.param((None, "invalid_request_error"), None, id="another-error"),
    ],
)
def test_the_codes(codes: tuple[object, ...], overflow: Overflow | None) -> None:
    """pitfall-123: numbers in fields of their own count where the words have none."""
    assert find_overflow("No.", *codes, tokens=9, limit="8") == overflow
