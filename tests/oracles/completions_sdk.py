"""OpenAI's SDK as a reader of legacy completions. It has no accumulator for them: the texts are added up here."""

from typing import Any

import openai

from tests.oracles.wire import OPENAI, WIRE, to_json
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.model.json import JSON, JSONObject


def read_completions(body: JSONObject, status: int = 200) -> JSON:
    """Return a whole answer as `completions.create` gives it."""
    WIRE.whole(body, status)
    return to_json(OPENAI.completions.create(model="m", prompt="p"))


def read_completions_stream(events: list[ServerSentEvent]) -> JSON:
    """Return a streamed answer as `completions.create` gives it, its choices put together by their index."""
    WIRE.stream(events)
    answer: JSONObject = {}
    choices: dict[int, JSONObject] = {}
    for chunk in OPENAI.completions.create(model="m", prompt="p", stream=True):
        assert isinstance(chunk, openai.types.Completion)
        data: dict[str, Any] = to_json(chunk)
        for choice in data.pop("choices"):
            _add(choices.setdefault(choice["index"], {"text": ""}), choice)
        answer |= {key: value for key, value in data.items() if value is not None}
    return answer | {"choices": [choices[index] for index in sorted(choices)]}


def _add(choice: JSONObject, more: JSONObject) -> None:
    more["text"] = choice["text"] + more["text"]
    columns = more.pop("logprobs", None)
    choice |= {key: value for key, value in more.items() if value is not None}
    if columns is not None:
        so_far = choice.setdefault("logprobs", {})
        for key, values in columns.items():
            so_far[key] = [*(so_far.get(key) or []), *(values or [])]
