"""Request fields that an answer repeats, with the defaults of fields that the request did not set.

The fields and their defaults are those of `ResponseResource` of Open Responses
(https://www.openresponses.org/reference) and of `openai/types/responses/response.py` (pitfall-83).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialects.responses.request.encoder import encode_request
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Message, Request

DEFAULTS: JSONObject = {
    "background": False,
    "frequency_penalty": 0.0,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
}
"""Fields that every answer has, as they are where the client said nothing."""

OPTIONAL = frozenset({"conversation", "prompt", "prompt_cache_options", "prompt_cache_retention", "user"})
"""Fields that an answer has where the client said them."""

ECHOED = frozenset(DEFAULTS) | OPTIONAL

_TOOL: JSONObject = {"parameters": None, "strict": True}
"""What a function must say of itself in an answer; where a client says nothing of `strict`, it is (pitfall-65)."""


def echo_of(request: Request) -> JSONObject:
    """Return the fields of an answer that tell its request again, as this dialect would have asked it."""
    asked = _asked(request)
    said = {key: value for key, value in asked.items() if key in ECHOED and value is not None}
    echo = DEFAULTS | said
    for key in ("text", "reasoning"):
        if isinstance(echo[key], dict):
            echo[key] = DEFAULTS[key] | echo[key]
    if isinstance(said.get("conversation"), str):
        echo["conversation"] = {"id": said["conversation"]}
    if isinstance(echo["tools"], list):
        echo["tools"] = [_whole(tool) for tool in echo["tools"]]
    return echo


def _asked(request: Request) -> JSONObject:
    """Return the request without its turns: an answer repeats the instructions alone."""
    bare = replace(request, messages=_leading(request.messages), prompt=None)
    try:
        return encode_request(bare, Losses(), Target(developer_role=True))
    except WireError:  # it cannot be asked in this dialect: nothing of it to repeat
        return {}


def _leading(messages: Sequence[Message]) -> tuple[Message, ...]:
    count = 0
    while count < len(messages) and messages[count].role in ("system", "developer"):
        count += 1
    return tuple(messages[:count])


def _whole(tool: JSON) -> JSON:
    return _TOOL | tool if isinstance(tool, dict) and tool.get("type") == "function" else tool
