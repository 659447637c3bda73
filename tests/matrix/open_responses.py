"""What upstreams answer to the cases of Open Responses, and how a gateway is asked."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING
from urllib.error import HTTPError

from tests.gateway.running_gateway import TIMEOUT
from xenoglot.model.content import Text, ToolCall
from xenoglot.model.request import Tool
from xenoglot.model.response import Candidate, Finish, Response, Usage

if TYPE_CHECKING:
    from xenoglot.model.request import Request
    from xenoglot.model.response import FinishReason

TEXT_ONLY = ("completions", "llama_stack_completion", "ollama_generate")
"""Dialects that continue a text: tools are emulated there."""

REFUSED = {
    ("completions", "image-input"): "holds text only, and no image",
    ("llama_stack_completion", "image-input"): "holds text only, and no image",
    ("ollama_generate", "assistant-phase"): "takes one prompt, and no conversation",
    ("ollama_generate", "multi-turn"): "takes one prompt, and no conversation",
    ("ollama_generate", "compact-response"): "takes one prompt, and no conversation",
    ("ollama_generate", "websocket-compact-new-chain"): "takes one prompt, and no conversation",
    ("ollama_generate", "websocket-continuation"): "takes one prompt, and no conversation",
    ("ollama_generate", "websocket-generate-false"): "takes one prompt, and no conversation",
}
"""Dialect and case -> why an endpoint for one text cannot be asked at all."""

USAGE = Usage(input_tokens=11, output_tokens=5)
WRITTEN_CALL = '<tool_call>\n{"name": "NAME", "arguments": {"location": "Oslo"}}\n</tool_call>'
"""A call as a model of the family `hermes` writes it."""


def answer(request: Request) -> Response:
    """Return a call of the request's first tool, in text if the tool is only in its text; else words."""
    words = "".join(part.text for turn in request.messages for part in turn.content if isinstance(part, Text))
    words += "".join(text for text in (request.prompt.texts if request.prompt else ()) if isinstance(text, str))
    for tool in request.tools:
        if isinstance(tool, Tool):
            return _response(ToolCall(id="call_1", name=tool.name, arguments='{"location":"Oslo"}'), "tool_calls")
    for name in ("get_weather", "weather"):
        if f'"name": "{name}"' in words or f'"name":"{name}"' in words:
            return _response(Text(text=WRITTEN_CALL.replace("NAME", name)), "stop")
    return _response(Text(text="It is raining, mostly."), "stop")


def _response(part: Text | ToolCall, reason: FinishReason) -> Response:
    candidate = Candidate(content=(part,), finish=Finish(reason=reason))
    return Response(id="a1", created=1, candidates=(candidate,), usage=USAGE)


def post(url: str, body: object) -> tuple[int, bytes]:
    """Return status and body of the answer to what is posted as JSON."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})  # noqa: S310  ours
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:  # noqa: S310  the same
            return response.status, response.read()
    except HTTPError as error:
        return error.code, error.read()
