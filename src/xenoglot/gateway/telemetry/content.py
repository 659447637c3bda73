"""Prompts and answers as attributes of spans, in the JSON form of the conventions; only if the operator asks for them.

Schemas: gen-ai-input-messages.json and gen-ai-output-messages.json of the conventions of generative AI. Bytes of images
and files are left out, and so are signatures and encrypted reasoning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.json.json_io import encode_json
from xenoglot.gateway.telemetry import conventions as names
from xenoglot.model.content import Audio, File, Image, Reasoning, Refusal, Text, ToolCall, ToolResult, Video

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request
    from xenoglot.model.response import Response

LONGEST: Final = 65_536
"""Characters of an attribute; a longer one is left out, and another attribute is set."""

_INSTRUCTIONS: Final = frozenset({"system", "developer"})


def content_attributes(
    request: Request | None, response: Response | None, redact: Callable[[str], str]
) -> dict[str, str | bool]:
    """Return the attributes with the prompt and the answer; `redact` takes keys out of them."""
    values: dict[str, JSON] = {}
    if request is not None:
        turns = [message for message in request.messages if message.role not in _INSTRUCTIONS]
        told = [message for message in request.messages if message.role in _INSTRUCTIONS]
        prompt: list[JSON] = [{"role": "user", "parts": [_text(request.prompt)]}] if request.prompt is not None else []
        values[names.GEN_AI_INPUT_MESSAGES] = [
            *prompt,
            *({"role": turn.role, "parts": _parts(turn.content)} for turn in turns),
        ]
        if told:
            values[names.GEN_AI_SYSTEM_INSTRUCTIONS] = [part for turn in told for part in _parts(turn.content)]
    if response is not None:
        values[names.GEN_AI_OUTPUT_MESSAGES] = [
            {
                "role": "assistant",
                "parts": _parts(candidate.content),
                "finish_reason": "" if candidate.finish is None else candidate.finish.reason,
            }
            for candidate in response.candidates
        ]
    written = {name: redact(encode_json(value).decode()) for name, value in values.items()}
    kept: dict[str, str | bool] = {name: text for name, text in written.items() if len(text) <= LONGEST}
    if len(kept) < len(written):
        kept[names.XENOGLOT_CONTENT_TRUNCATED] = True
    return kept


def _text(prompt: object) -> JSONObject:
    return {"type": "text", "content": prompt if isinstance(prompt, str) else f"{prompt}"}


def _parts(content: Sequence[Part]) -> list[JSON]:
    return [_part(part) for part in content]


def _part(part: Part) -> JSONObject:
    match part:
        case Text() | Refusal():
            return {"type": "text", "content": part.text}
        case Reasoning():
            return {"type": "reasoning", "content": part.text or "\n".join(part.summary or ())}
        case ToolCall():
            return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": part.arguments}
        case ToolResult():
            return {"type": "tool_call_response", "id": part.call_id, "response": _parts(part.content)}
        case Image() | Audio() | Video() | File():
            return {"type": "file", "modality": type(part).__name__.lower()}
        case _:
            return {"type": type(part).__name__.lower()}
