"""Google's SDK as a reader of interactions. It has no accumulator: steps are put together as its types tell to.

A step starts, its deltas are added to it, and it stops. What the last event tells of the interaction counts.
"""

import warnings
from typing import Any

import httpx2
from google import genai
from google.genai import types
from google.genai._gaos.lib.compat_errors import APIStatusError

from tests.oracles.wire import WIRE
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import decode_json
from xenoglot.errors import WireError
from xenoglot.model.json import JSON, JSONObject

CLIENT = genai.Client(
    api_key="k",
    http_options=types.HttpOptions(
        base_url="http://oracle.test",
        httpx_client=httpx2.Client(transport=httpx2.MockTransport(WIRE)),
        retry_options=types.HttpRetryOptions(attempts=1),
    ),
)

Error = APIStatusError


class StreamError(Exception):
    """An event that tells of a failure: the SDK hands it on, and raises nothing."""


_DERIVED = ("continuation_ids", "output_text", "output_image", "output_audio", "output_video")
"""Fields that the SDK works out itself."""


def read_interactions(body: JSONObject, status: int = 200) -> JSON:
    """Return a whole answer as `interactions.create` gives it."""
    WIRE.whole(body, status)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer: Any = CLIENT.interactions.create(model="m", input="Hi")
        return settled(answer.model_dump(mode="json", exclude_none=True, by_alias=True))


def read_interactions_stream(events: list[ServerSentEvent]) -> JSON:
    """Return a streamed answer as `interactions.create` gives it, its steps put together."""
    WIRE.stream(events)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stream: Any = CLIENT.interactions.create(model="m", input="Hi", stream=True)
        return settled(together([event.model_dump(mode="json", exclude_none=True, by_alias=True) for event in stream]))


def settled(answer: JSONObject) -> JSONObject:
    """Return an answer without what the SDK derives."""
    found = {key: value for key, value in answer.items() if key not in _DERIVED}
    if isinstance(found.get("usage"), dict):
        found["usage"] = {key: value for key, value in found["usage"].items() if key != "initial_input_tokens"}
    return found


def together(events: list[JSONObject]) -> JSONObject:
    """Return the interaction that events build."""
    answer: JSONObject = {}
    steps: list[JSONObject] = []
    for event in events:
        match event:
            case {"event_type": "error", "error": {"message": str(message)}}:
                raise StreamError(message)
            case {"interaction": dict(told)}:
                answer |= told
            case {"event_type": "step.start", "step": dict(step)}:
                steps.append(dict(step))
            case {"event_type": "step.delta", "delta": dict(delta)}:
                _grow(steps[-1], delta)
            case _:
                pass  # it adds nothing
    for step in steps:
        if isinstance(step.get("arguments"), str):
            step["arguments"] = _arguments(step["arguments"])
    return answer | {"steps": steps}


def _arguments(text: str) -> JSON:
    """Return the arguments of a call; those that are no JSON as an answer in one piece has them."""
    try:
        return decode_json(text)
    except WireError:
        return {"_raw": text}


def _grow(step: JSONObject, delta: JSONObject) -> None:
    match delta:
        case {"type": "text", "text": str(text)}:
            contents = step.setdefault("content", [])
            if not contents or contents[-1]["type"] != "text":
                contents.append({"type": "text", "text": ""})
            contents[-1]["text"] += text
        case {"type": "text_annotation_delta", "annotations": list(found)}:
            step["content"][-1].setdefault("annotations", []).extend(found)
        case {"type": "thought_summary", "content": dict(content)}:
            summary = step.setdefault("summary", [])
            if not summary:
                summary.append({"type": "text", "text": ""})
            summary[-1]["text"] += content["text"]
        case {"type": "thought_signature", "signature": signature}:
            step["signature"] = signature
        case {"type": "arguments_delta", "arguments": str(arguments)}:
            before = step.get("arguments")
            step["arguments"] = (before if isinstance(before, str) else "") + arguments
        case {"type": "image" | "audio" | "video" | "document"}:
            step.setdefault("content", []).append(delta)
        case _:
            step |= {key: value for key, value in delta.items() if key != "type"}
