"""`POST /v1/responses/compact`: what it asks, and its answer, in the terms of an ordinary request.

Sources: `openai/types/responses/response_compact_params.py` and `compacted_response.py` of the official SDK;
https://developers.openai.com/api/docs/guides/compaction. Codex installs the `output` as its new history, and keeps the
last 64,000 tokens of the user's messages as OpenAI's server does (`core/src/compact_remote_v2.rs` of openai/codex).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.features.compaction import CompactionForm
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.reader import Reader, expected
from xenoglot.dialects.responses.item_decoder import COMPACTION
from xenoglot.dialects.responses.request.context_management import TRIGGER
from xenoglot.dialects.responses.stored.responses import decode_items

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.json import JSON, JSONObject

PATH: Final = "/v1/responses/compact"

KEPT_BYTES: Final = 256_000
"""Bytes of the user's messages that stay in front of the summary, the last ones: about 64,000 tokens."""

_OF_STREAMS: Final = ("stream", "stream_options", "background", "store")


def ask(body: JSON) -> JSONObject:
    """Return the request for a summary of the conversation in `body`, and for nothing else.

    Raises:
        WireError: `model` is missing, or a field is of a wrong type.
    """
    reader = Reader(body)
    reader.need("model", str)
    if reader.peek("input") is not None and not isinstance(reader.peek("input"), str | list):
        raise expected("$.input", "str or list", reader.peek("input"))
    asked: JSONObject = {key: value for key, value in body.items() if key not in _OF_STREAMS}
    items = [item for item in decode_items(asked) if not is_trigger(item)]
    return asked | {"input": [*items, {"type": TRIGGER}], "stream": False, "store": False}


def is_trigger(item: JSON) -> bool:
    """Whether an item asks for a compaction."""
    return isinstance(item, dict) and item.get("type") == TRIGGER


def show(answer: JSONObject, asked: JSONObject) -> JSONObject:
    """Return the compacted conversation: the user's messages, then the compaction item of the `answer`."""
    output = answer.get("output")
    items = [item for item in output if _is(item, COMPACTION)] if isinstance(output, list) else []
    return {
        "id": answer.get("id"),
        "object": "response.compaction",
        "created_at": answer.get("created_at"),
        "output": [*_kept(decode_items(asked), str(answer.get("id"))), *items],
        "usage": answer.get("usage"),
    }


def _kept(items: Sequence[JSON], answer_id: str) -> list[JSON]:
    """Return the last messages of the user, up to the limit, in order."""
    said = [item for item in items if isinstance(item, dict) and item.get("role") == "user"]
    room, kept = KEPT_BYTES, []
    for at in reversed(range(len(said))):
        room -= len(encode_json(said[at].get("content")))
        if room < 0:
            break
        kept.append(_message(said[at], f"msg_{answer_id.removeprefix('resp_')}_{at}"))
    return kept[::-1]


def _message(item: JSONObject, item_id: str) -> JSONObject:
    content = item.get("content")
    parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
    head = {"id": item.get("id") or item_id, "type": "message", "status": "completed", "role": "user"}
    return {**item, **head, "content": parts}


def _is(item: JSON, kind: str) -> bool:
    return isinstance(item, dict) and item.get("type") == kind


COMPACTION_FORM: Final = CompactionForm(path=PATH, ask=ask, show=show)
