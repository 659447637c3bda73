"""The parts of an answer by field: text, images, tool calls. The dialect has no field for anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.dialects.llama_stack.extras import NAME, own_fields
from xenoglot.dialects.llama_stack.logprobs import encode_logprobs
from xenoglot.dialects.llama_stack.parts import encode_item, in_words
from xenoglot.model.content import Image, Opaque, Reasoning, Refusal, Text, ToolCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSONObject
    from xenoglot.model.response import Response

WHERE = "$.candidates[0]"
"""An answer of the dialect is one."""


def note_unsaid(response: Response, losses: Losses) -> None:
    """Record what the dialect cannot express about an answer as a whole."""
    for field in ("id", "model", "service_tier"):
        if getattr(response, field) is not None:
            losses.dropped("$", field, "an answer of the dialect has no such field")
    for index in range(1, len(response.candidates)):
        losses.dropped(f"$.candidates[{index}]", "candidate", "an answer of the dialect is one")


def answer_items(parts: Sequence[Part], losses: Losses) -> list[JSONObject]:
    """Return an answer's content without its calls, as items."""
    items: list[JSONObject] = []
    for index, part in enumerate(parts):
        where = f"{WHERE}.content[{index}]"
        if isinstance(part, ToolCall):
            continue
        if isinstance(part, Text | Image) or (isinstance(part, Opaque) and part.dialect == NAME):
            item = encode_item(part, where, losses)
            items += [] if item is None else [item]
        elif text := answer_text(part, where, losses):
            items.append({"type": "text", "text": text})
    return items


def answer_text(part: Part, where: str, losses: Losses) -> str | None:
    """Return a part of an answer in words; `None` (and a loss) where it has none. Reasoning is not words (L-W12)."""
    if getattr(part, "cache", None) is not None:
        losses.dropped(where, "cache", "the dialect marks no caches")
    match part:
        case Text():
            for name in own_fields(part.extra, where, losses):
                losses.dropped(where, name, "an answer holds text only")
            if part.citations:
                losses.dropped(where, "citations", "the dialect cites nothing")
            return part.text
        case Reasoning():
            own_fields(part.extra, where, losses)
            losses.dropped(where, "reasoning", "the dialect has no field for reasoning")
            return None
        case _:
            text = in_words(part, where, losses)
            if text:
                losses.approximated(WHERE, "content", "its other content is written as text")
            if isinstance(part, Refusal):
                losses.approximated(f"{WHERE}.finish", "reason", "only the text shows that the model refused")
            return text


def all_logprobs(parts: Sequence[Part], losses: Losses) -> JSONObject:
    """Return the field that holds the probabilities of all words, in order."""
    places: list[JSONObject] = []
    for index, part in enumerate(parts):
        if isinstance(part, Text | Refusal):
            places += encode_logprobs(part.logprobs, f"{WHERE}.content[{index}]", losses).get("logprobs", [])
    return {"logprobs": places} if places else {}


def note_order(parts: Sequence[Part], losses: Losses) -> None:
    """Record that calls stood before something else: a whole answer has them last."""
    calls = [isinstance(part, ToolCall) for part in parts]
    if calls != sorted(calls):
        losses.approximated(WHERE, "order", "calls come last")
