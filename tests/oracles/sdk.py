"""The official SDKs as readers: their own client, parser and accumulator, given our bytes instead of a server's."""

from collections.abc import Callable

import anthropic
import httpx2
import openai
import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState

from xenoglot.codec.sse import ServerSentEvent, SSEEncoder
from xenoglot.codec.stage import through
from xenoglot.codec.wire import encode_json
from xenoglot.model.json import JSON, JSONObject


class Wire:
    """What the next request is answered with."""

    def __init__(self) -> None:
        self._answer = httpx2.Response(500)

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self._answer.request = request
        return self._answer

    def stream(self, events: list[ServerSentEvent]) -> None:
        body = b"".join(through(events, SSEEncoder()))
        self._answer = httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body)

    def whole(self, body: JSON, status: int) -> None:
        self._answer = httpx2.Response(status, headers={"content-type": "application/json"}, content=encode_json(body))


WIRE = Wire()
CLIENT = httpx2.Client(transport=httpx2.MockTransport(WIRE))
OPENAI = openai.OpenAI(api_key="k", base_url="http://oracle.test/v1", http_client=CLIENT, max_retries=0)
ANTHROPIC = anthropic.Anthropic(api_key="k", base_url="http://oracle.test", http_client=CLIENT, max_retries=0)


def said(answer: openai.BaseModel | anthropic.BaseModel) -> JSON:
    """Return the answer as JSON; kinds of blocks that the SDK does not know yet are no mistake."""
    return answer.to_dict(mode="json", warnings=False)


def read_chat(body: JSONObject, status: int = 200) -> JSON:
    """Return a whole answer as `chat.completions.create` gives it."""
    WIRE.whole(body, status)
    answer = OPENAI.chat.completions.create(model="m", messages=[])
    return said(answer)


def read_chat_stream(events: list[ServerSentEvent]) -> JSON:
    """Return a streamed answer as the helper behind `chat.completions.stream` accumulates it."""
    WIRE.stream(events)
    state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
    for chunk in OPENAI.chat.completions.create(model="m", messages=[], stream=True):
        state.handle_chunk(chunk)
    return said(state.current_completion_snapshot)


def read_messages(body: JSONObject, status: int = 200) -> JSON:
    """Return a whole answer as `beta.messages.create` gives it."""
    WIRE.whole(body, status)
    return said(ANTHROPIC.beta.messages.create(model="m", messages=[], max_tokens=1))


def read_messages_stream(events: list[ServerSentEvent]) -> JSON:
    """Return a streamed answer as `beta.messages.stream` accumulates it."""
    WIRE.stream(events)
    with ANTHROPIC.beta.messages.stream(model="m", messages=[], max_tokens=1) as stream:
        return said(stream.get_final_message())


def read_stable_stream(events: list[ServerSentEvent]) -> JSON:
    """Return a streamed answer as `messages.stream` accumulates it, which knows no beta blocks."""
    WIRE.stream(events)
    with ANTHROPIC.messages.stream(model="m", messages=[], max_tokens=1) as stream:
        return said(stream.get_final_message())


WHOLE: dict[str, Callable[[JSONObject, int], JSON]] = {"chat": read_chat, "messages": read_messages}
STREAMED: dict[str, Callable[[list[ServerSentEvent]], JSON]] = {
    "chat": read_chat_stream,
    "messages": read_messages_stream,
}
SDK_ERROR: dict[str, type[openai.APIError | anthropic.APIError]] = {
    "chat": openai.APIError,
    "messages": anthropic.APIError,
}


def read_error(name: str, status: int, body: JSONObject) -> tuple[int, JSON]:
    """Return the status and the body that the SDK's exception carries."""
    with pytest.raises(SDK_ERROR[name]) as caught:
        WHOLE[name](body, status)
    if isinstance(caught.value, openai.APIStatusError):  # it has the inside of `error` alone
        return caught.value.status_code, {"error": caught.value.body}
    assert isinstance(caught.value, anthropic.APIStatusError)
    return caught.value.status_code, caught.value.body
