"""One official SDK for each dialect, all asked the same: words whole, words streamed, and a tool, call and answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol

import anthropic
import boto3
import httpx2
import ollama
import openai
from botocore import UNSIGNED
from botocore.config import Config
from google import genai
from google.genai import types
from msgspec import Struct

from xenoglot.model.json import JSON

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.model.json import JSONObject

TOOL = "weather"
ABOUT = "Says how the weather is."
SCHEMA: JSONObject = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
QUESTION = "How is the weather in Oslo?"
RESULT = "It rains."


class ReceivedText(Struct, frozen=True):
    """What a client heard: the words, and the tokens that were counted."""

    text: str
    tokens: tuple[int, int]


class ReceivedToolAnswer(Struct, frozen=True):
    """What a client was asked to call."""

    name: str
    arguments: JSON


class TextClient(Protocol):
    """An SDK that asks for words, as the tests use it."""

    def ask(self, model: str) -> ReceivedText:
        """Ask the question, and have the whole answer."""
        ...

    def stream(self, model: str) -> ReceivedText:
        """Ask the question, and gather the answer as it comes."""
        ...

    def close(self) -> None:
        """Let go of the connections."""
        ...


class Client(TextClient, Protocol):
    """One that holds a conversation with tools in it."""

    def call(self, model: str) -> tuple[ReceivedToolAnswer, ReceivedText]:
        """Ask with the tool at hand, send back what it says, and have the answer."""
        ...


class ChatClient:
    """openai, `chat.completions`."""

    def __init__(self, url: str) -> None:
        self._sdk: JSON = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)

    def close(self) -> None:
        """See `Client`."""
        self._sdk.close()

    def ask(self, model: str) -> ReceivedText:
        """See `Client`."""
        return self._heard(self._sdk.chat.completions.create(model=model, messages=[_user()]))

    def stream(self, model: str) -> ReceivedText:
        """See `Client`."""
        options = {"include_usage": True}
        with self._sdk.chat.completions.stream(model=model, messages=[_user()], stream_options=options) as stream:
            return self._heard(stream.get_final_completion())

    def call(self, model: str) -> tuple[ReceivedToolAnswer, ReceivedText]:
        """See `Client`."""
        tools = [{"type": "function", "function": {"name": TOOL, "description": ABOUT, "parameters": SCHEMA}}]
        messages: list[JSON] = [_user()]
        first = self._sdk.chat.completions.create(model=model, messages=messages, tools=tools)
        (call,) = first.choices[0].message.tool_calls
        messages += [first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": RESULT}]
        answer = self._sdk.chat.completions.create(model=model, messages=messages, tools=tools)
        return ReceivedToolAnswer(call.function.name, json.loads(call.function.arguments)), self._heard(answer)

    @staticmethod
    def _heard(answer: JSON) -> ReceivedText:
        usage = answer.usage
        return ReceivedText(answer.choices[0].message.content, (usage.prompt_tokens, usage.completion_tokens))


class ResponsesClient:
    """openai, `responses`."""

    def __init__(self, url: str) -> None:
        self._sdk: JSON = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)

    def close(self) -> None:
        """See `Client`."""
        self._sdk.close()

    def ask(self, model: str) -> ReceivedText:
        """See `Client`."""
        return self._heard(self._sdk.responses.create(model=model, input=QUESTION, store=False))

    def stream(self, model: str) -> ReceivedText:
        """See `Client`."""
        with self._sdk.responses.stream(model=model, input=QUESTION, store=False) as stream:
            return self._heard(stream.get_final_response())

    def call(self, model: str) -> tuple[ReceivedToolAnswer, ReceivedText]:
        """See `Client`."""
        tools = [{"type": "function", "name": TOOL, "description": ABOUT, "parameters": SCHEMA, "strict": False}]
        items: list[JSON] = [_user()]
        first = self._sdk.responses.create(model=model, input=items, tools=tools, store=False)
        (call,) = (item for item in first.output if item.type == "function_call")
        items += [*first.output, {"type": "function_call_output", "call_id": call.call_id, "output": RESULT}]
        answer = self._sdk.responses.create(model=model, input=items, tools=tools, store=False)
        return ReceivedToolAnswer(call.name, json.loads(call.arguments)), self._heard(answer)

    @staticmethod
    def _heard(answer: JSON) -> ReceivedText:
        return ReceivedText(answer.output_text, (answer.usage.input_tokens, answer.usage.output_tokens))


class CompletionsClient:
    """openai, `completions`."""

    def __init__(self, url: str) -> None:
        self._sdk: JSON = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)

    def close(self) -> None:
        """See `Client`."""
        self._sdk.close()

    def ask(self, model: str) -> ReceivedText:
        """See `Client`."""
        answer = self._sdk.completions.create(model=model, prompt=QUESTION)
        return ReceivedText(answer.choices[0].text, (answer.usage.prompt_tokens, answer.usage.completion_tokens))

    def stream(self, model: str) -> ReceivedText:
        """See `Client`."""
        options = {"include_usage": True}
        chunks = list(self._sdk.completions.create(model=model, prompt=QUESTION, stream=True, stream_options=options))
        usage = chunks[-1].usage
        text = "".join(choice.text for chunk in chunks for choice in chunk.choices)
        return ReceivedText(text, (usage.prompt_tokens, usage.completion_tokens))


class MessagesClient:
    """anthropic, `messages`."""

    def __init__(self, url: str) -> None:
        self._sdk: JSON = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)

    def close(self) -> None:
        """See `Client`."""
        self._sdk.close()

    def ask(self, model: str) -> ReceivedText:
        """See `Client`."""
        return self._heard(self._sdk.messages.create(model=model, max_tokens=99, messages=[_user()]))

    def stream(self, model: str) -> ReceivedText:
        """See `Client`."""
        with self._sdk.messages.stream(model=model, max_tokens=99, messages=[_user()]) as stream:
            return self._heard(stream.get_final_message())

    def call(self, model: str) -> tuple[ReceivedToolAnswer, ReceivedText]:
        """See `Client`."""
        tools = [{"name": TOOL, "description": ABOUT, "input_schema": SCHEMA}]
        messages: list[JSON] = [_user()]
        first = self._sdk.messages.create(model=model, max_tokens=99, messages=messages, tools=tools)
        (call,) = (block for block in first.content if block.type == "tool_use")
        result = {"type": "tool_result", "tool_use_id": call.id, "content": RESULT}
        messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
        answer = self._sdk.messages.create(model=model, max_tokens=99, messages=messages, tools=tools)
        return ReceivedToolAnswer(call.name, call.input), self._heard(answer)

    @staticmethod
    def _heard(answer: JSON) -> ReceivedText:
        text = "".join(block.text for block in answer.content if block.type == "text")
        return ReceivedText(text, (answer.usage.input_tokens, answer.usage.output_tokens))


class GeminiClient:
    """google-genai, `models`."""

    def __init__(self, url: str) -> None:
        self._sdk: JSON = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=url))

    def close(self) -> None:
        """See `Client`."""
        self._sdk.close()

    def ask(self, model: str) -> ReceivedText:
        """See `Client`."""
        return self._heard([self._sdk.models.generate_content(model=model, contents=QUESTION)])

    def stream(self, model: str) -> ReceivedText:
        """See `Client`."""
        return self._heard(list(self._sdk.models.generate_content_stream(model=model, contents=QUESTION)))

    def call(self, model: str) -> tuple[ReceivedToolAnswer, ReceivedText]:
        """See `Client`."""
        declared = types.FunctionDeclaration(name=TOOL, description=ABOUT, parameters_json_schema=SCHEMA)
        config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[declared])])
        contents: list[JSON] = [types.UserContent(QUESTION)]
        first = self._sdk.models.generate_content(model=model, contents=contents, config=config)
        (call,) = first.function_calls
        said = types.FunctionResponse(id=call.id, name=call.name, response={"result": RESULT})
        contents += [first.candidates[0].content, types.UserContent([types.Part(function_response=said)])]
        answer = self._sdk.models.generate_content(model=model, contents=contents, config=config)
        return ReceivedToolAnswer(call.name, call.args), self._heard([answer])

    @staticmethod
    def _heard(chunks: list[JSON]) -> ReceivedText:
        usage = chunks[-1].usage_metadata
        text = "".join(chunk.text or "" for chunk in chunks)
        return ReceivedText(text, (usage.prompt_token_count, usage.candidates_token_count))


class InteractionsClient:
    """google-genai, `interactions`."""

    def __init__(self, url: str) -> None:
        self._sdk: JSON = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=url))

    def close(self) -> None:
        """See `Client`."""
        self._sdk.close()

    def ask(self, model: str) -> ReceivedText:
        """See `Client`."""
        answer = self._sdk.interactions.create(model=model, input=QUESTION)
        return self._heard(answer.output_text, answer)

    def stream(self, model: str) -> ReceivedText:
        """See `Client`."""
        events = list(self._sdk.interactions.create(model=model, input=QUESTION, stream=True))
        deltas = [event.delta for event in events if event.event_type == "step.delta"]
        return self._heard("".join(delta.text for delta in deltas if delta.type == "text"), events[-1].interaction)

    def call(self, model: str) -> tuple[ReceivedToolAnswer, ReceivedText]:
        """See `Client`."""
        tools = [{"type": "function", "name": TOOL, "description": ABOUT, "parameters": SCHEMA}]
        first = self._sdk.interactions.create(model=model, input=QUESTION, tools=tools, store=False)
        (call,) = [step for step in first.steps if step.type == "function_call"]
        said = [step.model_dump(exclude_none=True) for step in first.steps]
        result = {"type": "function_result", "call_id": call.id, "name": call.name, "result": RESULT}
        steps = [{"type": "user_input", "content": [{"type": "text", "text": QUESTION}]}, *said, result]
        answer = self._sdk.interactions.create(model=model, input=steps, tools=tools, store=False)
        return ReceivedToolAnswer(call.name, call.arguments), self._heard(answer.output_text, answer)

    @staticmethod
    def _heard(text: str, answer: JSON) -> ReceivedText:
        return ReceivedText(text, (answer.usage.total_input_tokens, answer.usage.total_output_tokens))


class OllamaClient:
    """ollama, `chat`."""

    def __init__(self, url: str) -> None:
        self._sdk: JSON = ollama.Client(host=url)

    def close(self) -> None:
        """See `Client`."""
        self._sdk._client.close()

    def ask(self, model: str) -> ReceivedText:
        """See `Client`."""
        return self._heard([self._sdk.chat(model=model, messages=[_user()])])

    def stream(self, model: str) -> ReceivedText:
        """See `Client`."""
        return self._heard(list(self._sdk.chat(model=model, messages=[_user()], stream=True)))

    def call(self, model: str) -> tuple[ReceivedToolAnswer, ReceivedText]:
        """See `Client`."""
        tools = [{"type": "function", "function": {"name": TOOL, "description": ABOUT, "parameters": SCHEMA}}]
        messages: list[JSON] = [_user()]
        first = self._sdk.chat(model=model, messages=messages, tools=tools)
        (call,) = first.message.tool_calls
        messages += [first.message, {"role": "tool", "tool_name": TOOL, "content": RESULT}]
        answer = self._sdk.chat(model=model, messages=messages, tools=tools)
        return ReceivedToolAnswer(call.function.name, dict(call.function.arguments)), self._heard([answer])

    @staticmethod
    def _heard(chunks: list[JSON]) -> ReceivedText:
        text = "".join(chunk.message.content or "" for chunk in chunks)
        return ReceivedText(text, (chunks[-1].prompt_eval_count, chunks[-1].eval_count))


class GenerateClient:
    """ollama, `generate`."""

    def __init__(self, url: str) -> None:
        self._sdk: JSON = ollama.Client(host=url)

    def close(self) -> None:
        """See `Client`."""
        self._sdk._client.close()

    def ask(self, model: str) -> ReceivedText:
        """See `Client`."""
        return self._heard([self._sdk.generate(model=model, prompt=QUESTION)])

    def stream(self, model: str) -> ReceivedText:
        """See `Client`."""
        return self._heard(list(self._sdk.generate(model=model, prompt=QUESTION, stream=True)))

    @staticmethod
    def _heard(chunks: list[JSON]) -> ReceivedText:
        text = "".join(chunk.response for chunk in chunks)
        return ReceivedText(text, (chunks[-1].prompt_eval_count, chunks[-1].eval_count))


class ConverseClient:
    """boto3, `bedrock-runtime`, with a key of the gateway as its bearer token."""

    def __init__(self, url: str) -> None:
        self._sdk: JSON = boto3.client(
            "bedrock-runtime",
            region_name="us-east-1",
            endpoint_url=url,
            config=Config(signature_version=UNSIGNED, retries={"total_max_attempts": 1}),
        )

    def close(self) -> None:
        """See `Client`."""
        self._sdk.close()

    def ask(self, model: str) -> ReceivedText:
        """See `Client`."""
        return self._heard(self._sdk.converse(modelId=model, messages=[self._turn()]))

    def stream(self, model: str) -> ReceivedText:
        """See `Client`."""
        events = list(self._sdk.converse_stream(modelId=model, messages=[self._turn()])["stream"])
        text = "".join(event["contentBlockDelta"]["delta"]["text"] for event in events if "contentBlockDelta" in event)
        return ReceivedText(text, self._tokens(events[-1]["metadata"]["usage"]))

    def call(self, model: str) -> tuple[ReceivedToolAnswer, ReceivedText]:
        """See `Client`."""
        config = {"tools": [{"toolSpec": {"name": TOOL, "description": ABOUT, "inputSchema": {"json": SCHEMA}}}]}
        messages: list[JSON] = [self._turn()]
        first = self._sdk.converse(modelId=model, messages=messages, toolConfig=config)["output"]["message"]
        (call,) = [block["toolUse"] for block in first["content"] if "toolUse" in block]
        result = {"toolUseId": call["toolUseId"], "content": [{"text": RESULT}]}
        messages += [first, {"role": "user", "content": [{"toolResult": result}]}]
        answer = self._sdk.converse(modelId=model, messages=messages, toolConfig=config)
        return ReceivedToolAnswer(call["name"], call["input"]), self._heard(answer)

    @staticmethod
    def _turn() -> JSONObject:
        return {"role": "user", "content": [{"text": QUESTION}]}

    def _heard(self, answer: JSON) -> ReceivedText:
        text = "".join(block.get("text", "") for block in answer["output"]["message"]["content"])
        return ReceivedText(text, self._tokens(answer["usage"]))

    @staticmethod
    def _tokens(usage: JSONObject) -> tuple[int, int]:
        return usage["inputTokens"], usage["outputTokens"]


class LlamaStackClient:
    """No SDK of that age is kept: its requests, written out (`llama_stack/apis/inference/inference.py`)."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/v1/inference/chat-completion"

    def close(self) -> None:
        """Nothing is held."""

    def ask(self, model: str) -> ReceivedText:
        """See `Client`."""
        answer = self._post({"model_id": model, "messages": [_user()]})
        return ReceivedText(answer["completion_message"]["content"], _metrics(answer))

    def stream(self, model: str) -> ReceivedText:
        """See `Client`."""
        body = {"model_id": model, "messages": [_user()], "stream": True}
        raw = httpx2.post(self._url, json=body).raise_for_status().text
        chunks = [json.loads(line.removeprefix("data: ")) for line in raw.splitlines() if line.startswith("data: ")]
        text = "".join(chunk["event"]["delta"].get("text", "") for chunk in chunks)
        return ReceivedText(text, _metrics(chunks[-1]))

    def call(self, model: str) -> tuple[ReceivedToolAnswer, ReceivedText]:
        """See `Client`."""
        parameters = {"city": {"param_type": "string", "required": True}}
        tools = [{"tool_name": TOOL, "description": ABOUT, "parameters": parameters}]
        messages: list[JSON] = [_user()]
        first = self._post({"model_id": model, "messages": messages, "tools": tools})["completion_message"]
        (call,) = first["tool_calls"]
        messages += [first, {"role": "tool", "call_id": call["call_id"], "content": RESULT}]
        answer = self._post({"model_id": model, "messages": messages, "tools": tools})
        heard = ReceivedText(answer["completion_message"]["content"], _metrics(answer))
        return ReceivedToolAnswer(call["tool_name"], call["arguments"]), heard

    def _post(self, body: JSONObject) -> JSONObject:
        answer: JSONObject = httpx2.post(self._url, json=body).raise_for_status().json()
        return answer


class LlamaStackCompletionClient:
    """The same API, continuing a text."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/v1/inference/completion"

    def close(self) -> None:
        """Nothing is held."""

    def ask(self, model: str) -> ReceivedText:
        """See `Client`."""
        answer = httpx2.post(self._url, json={"model_id": model, "content": QUESTION}).raise_for_status().json()
        return ReceivedText(answer["content"], _metrics(answer))

    def stream(self, model: str) -> ReceivedText:
        """See `Client`."""
        body = {"model_id": model, "content": QUESTION, "stream": True}
        raw = httpx2.post(self._url, json=body).raise_for_status().text
        chunks = [json.loads(line.removeprefix("data: ")) for line in raw.splitlines() if line.startswith("data: ")]
        return ReceivedText("".join(chunk["delta"] for chunk in chunks), _metrics(chunks[-1]))


def _user() -> JSONObject:
    return {"role": "user", "content": QUESTION}


def _metrics(answer: JSONObject) -> tuple[int, int]:
    told = {metric["metric"]: metric["value"] for metric in answer["metrics"]}
    return told["prompt_tokens"], told["completion_tokens"]


TALKERS: dict[str, Callable[[str], Client]] = {
    "chat": ChatClient,
    "converse": ConverseClient,
    "gemini": GeminiClient,
    "interactions": InteractionsClient,
    "llama_stack": LlamaStackClient,
    "messages": MessagesClient,
    "ollama": OllamaClient,
    "responses": ResponsesClient,
}
"""Those that hold a conversation."""

WRITERS: dict[str, Callable[[str], TextClient]] = {
    "completions": CompletionsClient,
    "llama_stack_completion": LlamaStackCompletionClient,
    "ollama_generate": GenerateClient,
}
"""Those that continue a text."""
