"""Total: each field of a vendor's request type, set alone, changes what every other dialect is sent, or is reported.

The fields are those of the official SDK's types, each word of an enumeration by itself. A field inside of something
that is reported or refused as a whole is covered by that. What changes nothing says nothing, and stands in `NEUTRAL`.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, TypedDict

import pytest
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from google.genai import types as google
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

from tests.laws.wire_fields import Change, Types
from xenoglot.codec.json.json_io import decode_json, encode_json, to_text
from xenoglot.codec.loss import Loss, Losses
from xenoglot.codec.requests.adapt_request import fitted
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get, names
from xenoglot.errors import FailureError, WireError
from xenoglot.model.json import JSON, JSONObject


class GenerateContentRequest(TypedDict, total=False):
    """The body of `generateContent` (https://ai.google.dev/api/generate-content): the SDK has no type for it."""

    contents: list[google.Content]
    systemInstruction: google.Content
    tools: list[google.Tool]
    toolConfig: google.ToolConfig
    safetySettings: list[google.SafetySetting]
    labels: dict[str, str]
    cachedContent: str
    serviceTier: google.ServiceTier
    store: bool
    generationConfig: google.GenerationConfig
    modelArmorConfig: google.ModelArmorConfig


FUNCTION: JSONObject = {"name": "f", "parametersJsonSchema": {"type": "object", "properties": {}}}
IMAGE: JSONObject = {"mimeType": "image/png", "data": "AAAA"}
IMAGE_FILE: JSONObject = {"mimeType": "image/png", "fileUri": "https://a.example/a.png"}
GOOGLE: JSONObject = {"model": "m", "contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
GOOGLE_BASES: dict[str, JSONObject] = {
    "GenerateContentRequest": GOOGLE,
    "GenerateContentRequest.toolConfig": {**GOOGLE, "tools": [{"functionDeclarations": [FUNCTION]}]},
    "Content": {"role": "user", "parts": [{"text": "Hi"}]},
    "FunctionDeclaration": FUNCTION,
    "FunctionDeclaration.parameters": {"name": "f"},
    "FunctionCall": {"name": "f", "args": {}},
    "FunctionResponse": {"name": "f", "response": {"output": "x"}},
    "Blob": IMAGE,
    "FunctionResponseBlob": IMAGE,
    "FileData": IMAGE_FILE,
    "FunctionResponseFileData": IMAGE_FILE,
    "FunctionCallingConfig": {"mode": "AUTO"},
    "Schema": {"type": "OBJECT"},
    "GenerationConfig.responseSchema": {"responseMimeType": "application/json"},
    "GenerationConfig.responseJsonSchema": {"responseMimeType": "application/json"},
    "GenerationConfig.logprobs": {"responseLogprobs": True},
    **{
        f"Part.{field}": {"text": "Hi"}
        for field in (
            "audioMetadata",
            "documentMetadata",
            "mediaProcessing",
            "mediaResolution",
            "partMetadata",
            "speechMetadata",
            "spreadsheetMetadata",
            "thought",
            "thoughtSignature",
            "videoMetadata",
        )
    },
}
GOOGLE_VALUES: dict[str, JSON] = {
    "allowedFunctionNames": ["f"],
    "logprobs": 3,
    "maxOutputTokens": 100,
    "responseMimeType": "application/json",
    "seed": 7,
    "thinkingBudget": 1024,
}

ANTHROPIC: JSONObject = {"model": "m", "max_tokens": 5000, "messages": [{"role": "user", "content": "Hi"}]}
ANTHROPIC_TOOL: JSONObject = {"name": "f", "input_schema": {"type": "object"}}
ANTHROPIC_BASES: dict[str, JSONObject] = {
    "MessageCreateParamsNonStreaming": ANTHROPIC,
    "MessageCreateParamsNonStreaming.tool_choice": {**ANTHROPIC, "tools": [ANTHROPIC_TOOL]},
    "ToolParam": ANTHROPIC_TOOL,
    "InputSchemaTyped": {"type": "object"},
}
ANTHROPIC_VALUES: dict[str, JSON] = {
    "budget_tokens": 1024,
    "data": "AAAA",
    "max_tokens": 5000,
    "model": "m",
    "url": "https://a.example/a.png",
}

OPENAI: JSONObject = {"model": "m", "input": [{"role": "user", "content": "Hi"}]}
OPENAI_TOOL: JSONObject = {
    "type": "function",
    "name": "f",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}
OPENAI_BASES: dict[str, JSONObject] = {
    "ResponseCreateParamsNonStreaming": OPENAI,
    "ResponseCreateParamsNonStreaming.tool_choice": {**OPENAI, "tools": [OPENAI_TOOL]},
    "FunctionToolParam": OPENAI_TOOL,
}
OPENAI_VALUES: dict[str, JSON] = {
    "data": "AAAA",
    "file_data": "data:application/pdf;base64,AAAA",
    "file_url": "https://a.example/a.pdf",
    "image_url": "https://a.example/a.png",
    "model": "m",
}

SOURCES: dict[str, tuple[Any, Types]] = {
    "gemini": (GenerateContentRequest, Types(GOOGLE_BASES, GOOGLE_VALUES)),
    "messages": (MessageCreateParamsNonStreaming, Types(ANTHROPIC_BASES, ANTHROPIC_VALUES)),
    "responses": (ResponseCreateParamsNonStreaming, Types(OPENAI_BASES, OPENAI_VALUES)),
}

NEUTRAL: dict[str, dict[str, str]] = {
    "gemini": {
        r"\.tools\[0\]\.computerUse\.environment=.*": "the browser is the default",
        r"\.tools\[0\]\.computerUse\.excludedPredefinedFunctions=.*": "there is no function of this name",
        r".*\.thought=false": "a part is no thought where nothing is set",
        r"\.systemInstruction\.role=.*": "the instruction has one role only, servers ignore it",
        r".*\.parameters\.(additionalProperties|title|required|nullable|type)=.*": "llama_stack: its tool is reported",
        r"\.toolConfig\.functionCallingConfig=.*": "the mode `AUTO` is the default",
        r"\.store=false": "nothing is stored where the dialect stores nothing",
        r"\.generationConfig\.candidateCount=1": "one is the default",
        r"\.generationConfig\.responseLogprobs=false": "the default",
        r"\.generationConfig\.responseModalities=.*TEXT.*": "text is what every answer is made of",
        r".*\.functionCall\.willContinue=.*": "a call in a history ends where its parts end",
    },
    "messages": {
        r".*\.content=\[.*": "a text in a list of one says the same as a string",
        r".*\.is_error=false": "the default",
        r"\.thinking\.display=.*": "gemini: the default of a request for thinking",
        r"\.tool_choice=.*": "`auto` is the default",
        r"\.tool_choice\.disable_parallel_tool_use=false": "the default",
        r".*\.input_schema\.required=.*": "llama_stack: reported with the tool",
        r"\.tools\[0\]\.allowed_callers=.*direct.*|.*\.defer_loading=false": "the default",
        r"\.tools\[0\]\.configs\.(?!javascript_exec|file_upload)\w+\.enabled=true": "the default",
        r"\.tools\[0\]\.configs\.(javascript_exec|file_upload)\.(enabled=false|.*loading=true)": "it is off by default",
        r"\.tools\[0\]\.strict=false": "responses: written as false where nothing is set",
        r"\.tools\[0\]\.type=.*": "`custom` is the default",
        r"\.stream=false": "the default",
    },
    "responses": {
        r"\.background=false": "the default",
        r".*\.allowed_callers=.*direct.*|.*\.defer_loading=false|.*\.caller=.*direct.*": "the default",
        r".*\.environment=.*local.*": "the default",
        r"\.input\[0\]\.environment\..*": "where a call of the history ran",
        r"\.input\[0\]\.max_output_length=.*": "the limit of an output that is already there",
        r"\.prompt_cache_options\.mode=.*": "`implicit` is the default",
        r"\.include=.*reasoning.encrypted_content.*": "sealed reasoning is returned wherever a dialect has it",
        r".*\.content=\[.*|.*\.output=\[.*": "a text in a list of one says the same as a string",
        r"\.input\[0\]\.type=.*": "`message` is the default",
        r"\.input\[0\]\.status=.*": "the state of an item is the server's note, not the client's wish",
        r"\.input\[0\]\.id=.*": "ids of items refer to nothing on another server",
        r".*\.format\.strict=true": "chat: what it does with a closed schema where nothing is set",
        r".*\.text=.*|\.text\.format=.*": "text is the default",
        r"\.parallel_tool_calls=true": "the default",
        r"\.store=false": "nothing is stored where the dialect stores nothing",
        r"\.stream_options\.include_obfuscation=.*": "padding of a stream, and no stream is asked for",
        r"\.tool_choice=.*": "`auto` is the default",
        r"\.truncation=.*": "`disabled` is the default",
        r"\.stream=false": "the default",
    },
}
"""Fields with their values that change nothing, each with the reason; an empty object is one everywhere."""


@cache
def sent(source: str, target: str, body: bytes) -> tuple[JSON, str, frozenset[Loss]]:
    """Return what a server of `target` is sent for `body` of `source`, why it is refused, and what is lost."""
    losses = Losses()
    try:
        request = get(source).decode_request(decode_json(body))
        written = get(target).encode_request(fitted(request, target, Target(), losses), losses, Target())
    except (WireError, FailureError) as error:
        return None, str(error), frozenset()
    return written, "", frozenset(losses)


def covered(source: str, target: str, change: Change) -> bool:
    """Return whether one of the objects around a field is reported or refused."""
    _, refused, losses = sent(source, target, encode_json(change.after))
    if refused:
        return True
    outer = (sent(source, target, encode_json(body)) for body in change.outer)
    return any(loss.how != "emulated" for _, _, without in outer for loss in losses - without)


def silent(source: str) -> Iterator[str]:
    """Yield each field with its value that some dialect neither writes nor reports."""
    root, types = SOURCES[source]
    for change in types.changes(root):
        before, after = encode_json(change.before), encode_json(change.after)
        for target in names():
            if (
                target != source
                and sent(source, target, before) == sent(source, target, after)
                and not covered(source, target, change)
            ):
                yield f"{change.path}={to_text(value_at(change))} ({target})"


def value_at(change: Change) -> JSON:
    """Return the value that a change sets."""
    value = change.after
    for key in re.findall(r"\.(\w+)|\[0\]", change.path):
        value = value[key] if key else value[0]
    return value


@pytest.mark.parametrize("source", SOURCES)
def test_every_field_is_written_or_reported_findings_b1_b2_b3(source: str) -> None:
    neutral = re.compile("|".join(f"(?:{pattern})" for pattern in NEUTRAL[source]))
    fields = {line.rpartition(" (")[0]: line for line in silent(source)}
    sent.cache_clear()
    left = [line for field, line in fields.items() if not field.endswith("={}") and not neutral.fullmatch(field)]
    assert sorted(left) == []
    unused = [pattern for pattern in NEUTRAL[source] if not any(re.fullmatch(pattern, field) for field in fields)]
    assert unused == []
