"""The official SDKs as readers: their own client, parser and accumulator, given our bytes instead of a server's."""

from collections.abc import Callable

import anthropic
import ollama
import openai
import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState

from tests.oracles import converse_sdk, gemini_sdk, interactions_sdk, llama_stack_sdk, ollama_sdk
from tests.oracles.completions_sdk import read_completions, read_completions_stream
from tests.oracles.responses_sdk import read_responses, read_responses_stream
from tests.oracles.wire import ANTHROPIC, OPENAI, WIRE, to_json
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.model.json import JSON, JSONObject


def read_chat(body: JSONObject, status: int = 200) -> JSON:
    """Return a whole answer as `chat.completions.create` gives it."""
    WIRE.whole(body, status)
    answer = OPENAI.chat.completions.create(model="m", messages=[])
    return to_json(answer)


def read_chat_stream(events: list[ServerSentEvent]) -> JSON:
    """Return a streamed answer as the helper behind `chat.completions.stream` accumulates it."""
    WIRE.stream(events)
    state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
    for chunk in OPENAI.chat.completions.create(model="m", messages=[], stream=True):
        state.handle_chunk(chunk)
    return to_json(state.current_completion_snapshot)


def read_messages(body: JSONObject, status: int = 200) -> JSON:
    """Return a whole answer as `beta.messages.create` gives it."""
    WIRE.whole(body, status)
    return to_json(ANTHROPIC.beta.messages.create(model="m", messages=[], max_tokens=1))


def read_messages_stream(events: list[ServerSentEvent]) -> JSON:
    """Return a streamed answer as `beta.messages.stream` accumulates it."""
    WIRE.stream(events)
    with ANTHROPIC.beta.messages.stream(model="m", messages=[], max_tokens=1) as stream:
        return to_json(stream.get_final_message())


def read_stable_stream(events: list[ServerSentEvent]) -> JSON:
    """Return a streamed answer as `messages.stream` accumulates it, which knows no beta blocks."""
    WIRE.stream(events)
    with ANTHROPIC.messages.stream(model="m", messages=[], max_tokens=1) as stream:
        return to_json(stream.get_final_message())


WHOLE: dict[str, Callable[[JSONObject, int], JSON]] = {
    "chat": read_chat,
    "completions": read_completions,
    "converse": converse_sdk.read_converse,
    "gemini": gemini_sdk.read_gemini,
    "interactions": interactions_sdk.read_interactions,
    "llama_stack": llama_stack_sdk.read_chat,
    "llama_stack_completion": llama_stack_sdk.read_completion,
    "messages": read_messages,
    "ollama": ollama_sdk.read_chat,
    "ollama_generate": ollama_sdk.read_generate,
    "responses": read_responses,
}
STREAMED: dict[str, Callable[[list[ServerSentEvent]], JSON]] = {
    "chat": read_chat_stream,
    "completions": read_completions_stream,
    "converse": converse_sdk.read_converse_stream,
    "gemini": gemini_sdk.read_gemini_stream,
    "interactions": interactions_sdk.read_interactions_stream,
    "llama_stack": llama_stack_sdk.read_chat_stream,
    "llama_stack_completion": llama_stack_sdk.read_completion_stream,
    "messages": read_messages_stream,
    "ollama": ollama_sdk.read_chat_stream,
    "ollama_generate": ollama_sdk.read_generate_stream,
    "responses": read_responses_stream,
}
SDK_ERROR: dict[str, type[Exception] | tuple[type[Exception], ...]] = {
    "chat": openai.APIError,
    "completions": openai.APIError,
    "converse": converse_sdk.Error,
    "gemini": gemini_sdk.Error,
    "interactions": (interactions_sdk.Error, interactions_sdk.StreamError),
    "llama_stack": llama_stack_sdk.StatusError,
    "llama_stack_completion": llama_stack_sdk.StatusError,
    "messages": anthropic.APIError,
    "ollama": (ollama.ResponseError, AttributeError),  # a message that is JSON is taken for an object
    "ollama_generate": (ollama.ResponseError, AttributeError),
    "responses": openai.APIError,
}


def read_error(name: str, status: int, body: JSONObject) -> tuple[int, JSON]:
    """Return the status and the body that the SDK's exception carries."""
    with pytest.raises(SDK_ERROR[name]) as caught:
        WHOLE[name](body, status)
    if isinstance(caught.value, ollama.ResponseError):  # it has the sentence alone
        return caught.value.status_code, {**body, "error": caught.value.error}
    if isinstance(caught.value, openai.APIStatusError):  # it has the inside of `error` alone
        return caught.value.status_code, {"error": caught.value.body}
    if isinstance(caught.value, converse_sdk.Error):
        return converse_sdk.read_error(caught.value)
    if isinstance(caught.value, gemini_sdk.Error):
        return caught.value.code, caught.value.details
    if isinstance(caught.value, interactions_sdk.Error):
        return caught.value.response.status_code, caught.value.body
    assert isinstance(caught.value, anthropic.APIStatusError | llama_stack_sdk.StatusError)
    return caught.value.status_code, caught.value.body
