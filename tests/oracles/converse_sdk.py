"""boto3 as a reader: its own client, serializer, parser and event stream, given our bytes instead of a server's.

It has no accumulator: the pieces of a stream are put together as in the guide
(https://docs.aws.amazon.com/bedrock/latest/userguide/conversation-inference-call.html).
"""

from __future__ import annotations

from base64 import b64encode
from io import BytesIO
from typing import TYPE_CHECKING

import boto3
from botocore import UNSIGNED
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ClientError, EventStreamError

from xenoglot.codec.framing.binary_events import BinaryEventEncoder
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.codec.stage import through
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from botocore.awsrequest import AWSPreparedRequest

    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.model.json import JSON, JSONObject

Error = (ClientError, EventStreamError)
STREAM = "application/vnd.amazon.eventstream"


class _Body(BytesIO):
    """A body as urllib3 gives it out: in pieces."""

    def stream(self, *_: object, **__: object) -> Iterator[bytes]:
        while piece := self.read(1000):
            yield piece


class _Wire:
    """What the next request is answered with."""

    def __init__(self) -> None:
        self.answer = AWSResponse("http://oracle.test", 500, {}, _Body())

    def __call__(self, request: AWSPreparedRequest, **_: object) -> AWSResponse:
        assert request.url.startswith("http://oracle.test/model/arn%3Aaws%3Abedrock%3Am%2F1/converse")
        return self.answer

    def set(self, body: bytes, media_type: str, status: int = 200) -> None:
        headers = {"content-type": media_type, "content-length": str(len(body))}
        self.answer = AWSResponse("http://oracle.test", status, headers, _Body(body))


WIRE = _Wire()
CLIENT = boto3.client(
    "bedrock-runtime",
    region_name="us-east-1",
    endpoint_url="http://oracle.test",
    config=Config(signature_version=UNSIGNED, retries={"total_max_attempts": 1}),
)
CLIENT.meta.events.register("before-send.bedrock-runtime", WIRE)
MODEL = "arn:aws:bedrock:m/1"


def to_json(value: JSON) -> JSON:
    """Return a value of the SDK as JSON: bytes in base64."""
    match value:
        case bytes():
            return b64encode(value).decode()
        case dict():
            return {key: to_json(item) for key, item in value.items() if key != "ResponseMetadata"}
        case list():
            return [to_json(item) for item in value]
        case _:
            return value


def read_converse(body: JSONObject, status: int = 200) -> JSON:
    """Return a whole answer as `converse` gives it."""
    WIRE.set(encode_json(body), "application/json", status)
    return to_json(CLIENT.converse(modelId=MODEL, messages=[]))


def read_converse_stream(events: list[ServerSentEvent]) -> JSON:
    """Return a streamed answer as `converse_stream` gives it, its pieces put together."""
    WIRE.set(b"".join(through(events, BinaryEventEncoder())), STREAM)
    whole: JSONObject = {"output": {"message": {"role": None, "content": []}}}
    message = whole["output"]["message"]
    block: JSONObject = {}
    for event in map(to_json, CLIENT.converse_stream(modelId=MODEL, messages=[])["stream"]):
        match event:
            case {"messageStart": {"role": role}}:
                message["role"] = role
            case {"contentBlockStart": {"start": start}}:
                block = start
            case {"contentBlockDelta": {"delta": delta}}:
                _grow(block, delta)
            case {"contentBlockStop": _}:
                message["content"].append(_settled(block))
                block = {}
            case {"messageStop": end} | {"metadata": end}:
                whole |= end
            case _:
                raise AssertionError(event)
    return whole


def _grow(block: JSONObject, delta: JSONObject) -> None:
    for kind, value in delta.items():
        match value:
            case str():
                block[kind] = block.get(kind, "") + value
            case list():
                block.setdefault(kind, {}).setdefault("content", []).extend(value)
            case _ if kind == "citation":
                block.setdefault("citations", []).append(value)
            case _:
                inner = block.setdefault(kind, {})
                for name, item in value.items():
                    inner[name] = inner.get(name, "") + item if isinstance(item, str) else item


def _arguments(text: str) -> JSON:
    """Return the arguments of a call; those that are no JSON as an answer in one piece has them."""
    try:
        return decode_json(text)
    except WireError:
        return {"_raw": text}


def _settled(block: JSONObject) -> JSONObject:
    """Return a block that is whole as it stands in an answer."""
    match block:
        case {"toolUse": call}:
            return {"toolUse": call | {"input": _arguments(call.get("input") or "{}")}}
        case {"text": text, "citations": citations}:
            return {"citationsContent": {"content": [{"text": text}], "citations": citations}}
        case {"citations": citations}:
            return {"citationsContent": {"content": [{"text": ""}], "citations": citations}}
        case {"reasoningContent": {"redactedContent": _}}:
            return block
        case {"reasoningContent": {**inner}}:
            return {"reasoningContent": {"reasoningText": {"text": "", **inner}}}
        case _:
            return block


def read_error(error: Exception) -> tuple[int, JSON]:
    """Return the status and the body that the SDK's exception carries."""
    assert isinstance(error, ClientError)
    told = error.response["Error"]
    return error.response["ResponseMetadata"]["HTTPStatusCode"], {"__type": told["Code"], "message": told["Message"]}
