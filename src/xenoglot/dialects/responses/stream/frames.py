"""The type and the answer of an event that is still bytes, for those who read few of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.json.json_io import decode_answer
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.model.json import JSONObject


def kind_of(event: ServerSentEvent) -> str:
    """Return the type of an event that came without a name."""
    try:
        frame = decode_answer(event.data)
    except WireError:
        return ""
    kind = frame.get("type") if isinstance(frame, dict) else None
    return kind if isinstance(kind, str) else ""


def answer_of(event: ServerSentEvent) -> JSONObject:
    """Return the answer in an event; empty if there is none."""
    try:
        frame = decode_answer(event.data)
    except WireError:
        return {}
    answer = frame.get("response") if isinstance(frame, dict) else None
    return answer if isinstance(answer, dict) else {}
