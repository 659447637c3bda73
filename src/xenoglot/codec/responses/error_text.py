"""Error texts of providers: "prompt too long" with its numbers, and the delay before a retry.

Clients shorten the conversation when they get an error text that they know, so such texts must be recognised first
(pitfall-123). A comment at each row has the servers that use it; of its groups `tokens` is the size of the
prompt, `limit` what the model can hold.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.json import JSON


CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "model_context_window_exceeded"})
"""Codes and types of errors that mean it without a text (OpenAI and most who follow it; llama.cpp)."""

_NUMBERED = (
    # Anthropic
    r"prompt is too long(?:: (?P<tokens>\d+) tokens > (?P<limit>\d+) maximum)?",
    r"input length and `max_tokens` exceed context limit: (?P<tokens>\d+) \+ \d+ > (?P<limit>\d+)",
    # OpenAI; vLLM, SGLang, DeepSeek and OpenRouter after it
    (
        r"maximum context length (?:is|of) (?P<limit>\d+) tokens?\b.{0,80}?\((?P<tokens>\d+) (?:in|of) (?:the )?"
        r"(?:messages|text input|prompt)"
    ),
    (
        r"maximum context length (?:is|of) (?P<limit>\d+) tokens?\b.{0,80}?"
        r"(?:resulted in|requested|request has|contains at least|passed|contains)(?: about)? (?P<tokens>\d+)"
    ),
    # Mistral
    r"prompt contains (?P<tokens>\d+) tokens.{0,80}?too large for model with (?P<limit>\d+) maximum context length",
    # Gemini
    (
        r"input token count(?: is)? \(?(?P<tokens>\d+)\)?.{0,20}exceeds? the maximum number of tokens allowed"
        r" \(?(?P<limit>\d+)"
    ),
    # Together, Text Generation Inference
    r"`?inputs`? tokens \+ `?max_new_tokens`? must be <= (?P<limit>\d+)\. Given: (?P<tokens>\d+) `?inputs`?",
    # llama.cpp
    r"request \((?P<tokens>\d+) tokens\) exceeds the available context size \((?P<limit>\d+) tokens\)",
    # xAI
    r"maximum prompt length is (?P<limit>\d+) but the request contains (?P<tokens>\d+) tokens",
)

_BARE = (
    r"exceeds? the available context size",  # llama.cpp
    r"maximum context length",  # OpenAI's, in other sentences
    r"input token count exceeds the maximum number of tokens allowed",  # Gemini's, where nobody counted
    r"max(?:imum)? context length by \d+ tokens",  # Ollama
    r"input length exceeds the (?:maximum )?context length",  # Ollama
    r"input is too long for requested model",  # Bedrock
    r"exceeds? (?:the |this )?(?:model'?s? )?(?:context window|context length|context size)",
    r"context[ _]length[ _]exceeded",
)


@cache
def _wordings() -> Sequence[re.Pattern[str]]:
    """Return the wordings. The first that is found counts, so those with numbers come first."""
    return [re.compile(wording, re.IGNORECASE | re.DOTALL) for wording in (*_NUMBERED, *_BARE)]


class Overflow(Struct, frozen=True):
    """A prompt of `tokens` exceeded a context window of `limit`; `None` if the error does not contain it."""

    tokens: int | None = None
    limit: int | None = None


def find_overflow(message: str, *codes: JSON, tokens: JSON = None, limit: JSON = None) -> Overflow | None:
    """Return the overflow that an error reports, or `None` if it is another error.

    `codes` are the error's code and type; `tokens` and `limit` its own fields for them.
    """
    said = Overflow(tokens if type(tokens) is int else None, limit if type(limit) is int else None)
    for wording in _wordings():
        if found := wording.search(message[:4096]):
            numbers = {name: int(text) for name, text in found.groupdict().items() if text}
            return Overflow(numbers.get("tokens", said.tokens), numbers.get("limit", said.limit))
    return said if any(isinstance(code, str) and code in CODES for code in codes) else None


RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
"""The `@type` of the detail (https://cloud.google.com/apis/design/errors#error_details)."""

_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s", re.ASCII)


def retry_delay(details: JSON) -> float | None:
    """Return the seconds of the `RetryInfo` among `details`, which are written as a text: `22s`, `0.5s`."""
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict) and detail.get("@type") == RETRY_INFO:
            said = detail.get("retryDelay")
            found = _DURATION.fullmatch(said) if isinstance(said, str) else None
            if found:
                return float(found[1])
    return None
