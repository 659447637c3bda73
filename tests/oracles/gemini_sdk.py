"""Google's SDK as a reader. It has no accumulator: pieces are put together as its guides tell to.

Words go on with words and thoughts with thoughts; a part with a signature is not joined with what comes after it
(https://ai.google.dev/gemini-api/docs/thought-signatures). Of all else a chunk says, the last counts.
"""

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import httpx2
from google import genai
from google.genai import errors, types

from tests.oracles.wire import WIRE
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.model.json import JSON, JSONObject

Error = errors.APIError

GEMINI = genai.Client(
    api_key="k",
    http_options=types.HttpOptions(
        base_url="http://oracle.test",
        httpx_client=httpx2.Client(transport=httpx2.MockTransport(WIRE)),
        retry_options=types.HttpRetryOptions(attempts=1),
    ),
)

JOINED = ({"text"}, {"text", "thought"}, {"text", "thought", "thought_signature"})
"""What may be said of a text that goes on with the one before."""


def to_json(answer: types.GenerateContentResponse) -> JSONObject:
    """Return the answer as JSON, without what was not said and how it was sent."""
    found: JSONObject = answer.model_dump(mode="json", exclude_none=True)
    found.pop("sdk_http_response", None)
    return found


def read_gemini(body: JSONObject, status: int = 200) -> JSON:
    """Return a whole answer as `models.generate_content` gives it."""
    WIRE.whole(body, status)
    with _new_words():
        return _settled(to_json(GEMINI.models.generate_content(model="m", contents="Hi")))


def read_gemini_stream(events: list[ServerSentEvent]) -> JSON:
    """Return a streamed answer as `models.generate_content_stream` gives it, its chunks put together."""
    WIRE.stream(events)
    with _new_words():
        chunks = GEMINI.models.generate_content_stream(model="m", contents="Hi")
        return _settled(_together(map(to_json, chunks)))


@contextmanager
def _new_words() -> Iterator[None]:
    """Let words pass that the SDK does not know yet: it takes them, with a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* is not a valid ", UserWarning)
        yield


def _together(chunks: Iterable[JSONObject]) -> JSONObject:
    whole: JSONObject = {}
    candidates: dict[int, JSONObject] = {}
    for chunk in chunks:
        for candidate in chunk.pop("candidates", ()):
            known = candidates.setdefault(candidate["index"], {"content": {"parts": []}})
            content = candidate.pop("content", {})
            parts = known["content"]["parts"]
            known["content"] |= content | {"parts": parts}
            for part in content.get("parts", ()):
                _join(parts, part)
            logprobs = {"logprobs_result": _more(known, candidate)} if "logprobs_result" in candidate else {}
            known |= candidate | logprobs
        whole |= chunk
    return whole | ({"candidates": [candidates[index] for index in sorted(candidates)]} if candidates else {})


def _join(parts: list[JSONObject], part: JSONObject) -> None:
    last = parts[-1] if parts else {}
    if part == {"text": ""}:
        return
    goes_on = last.keys() in JOINED[:2] and part.keys() in JOINED and last.get("thought") == part.get("thought")
    if goes_on and (part["text"] or "thought_signature" not in part):
        parts[-1] = {**part, "text": last["text"] + part["text"]}
    else:
        parts.append(part)


def _more(known: JSONObject, candidate: JSONObject) -> JSONObject:
    """Return the probabilities of all tokens so far."""
    before: JSONObject = known.get("logprobs_result", {})
    more: JSONObject = candidate["logprobs_result"]
    return before | {key: before.get(key, []) + item if isinstance(item, list) else item for key, item in more.items()}


def _settled(answer: JSONObject) -> JSONObject:
    """Return the answer without the empty text that stands where nothing was said."""
    for candidate in answer.get("candidates", ()):
        content = candidate.get("content", {})
        content["parts"] = [part for part in content.get("parts", ()) if part != {"text": ""}]
    return answer
