"""Token counting: requests and responses of `POST /v1/responses/input_tokens`.

Source: `openai/types/responses/input_token_count_params.py` and `input_token_count_response.py` of the official SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.reader import Reader
from xenoglot.dialects.responses.request.encoder import encode_request

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.target import Target
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request

_ASKED = frozenset(
    {
        "conversation",
        "input",
        "instructions",
        "model",
        "parallel_tool_calls",
        "personality",
        "previous_response_id",
        "reasoning",
        "text",
        "tool_choice",
        "tools",
        "truncation",
    }
)
"""The fields of a request that such a question has; no other has a part in the prompt."""


def encode_count_request(request: Request, losses: Losses, target: Target) -> JSONObject:
    """Return the question how many tokens the prompt of `request` has."""
    return {key: value for key, value in encode_request(request, losses, target).items() if key in _ASKED}


def decode_counted(body: JSON) -> int | None:
    """Return the number in an answer to such a question."""
    return Reader(body).count("input_tokens")


def encode_count(input_tokens: int) -> JSONObject:
    """Return the answer to such a question."""
    return {"object": "response.input_tokens", "input_tokens": input_tokens}
