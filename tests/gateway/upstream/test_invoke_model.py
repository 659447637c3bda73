"""InvokeModel of Bedrock: a gateway in front of it, and a gateway that its clients (Anthropic's SDK, boto3) use."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

import boto3
import httpx2
import pytest
from anthropic import Anthropic, AnthropicBedrock, BadRequestError, RateLimitError
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError, EventStreamError

from tests.backends.remote.sign_in.signature_check import refusal
from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.codec.framing.binary_events import EXCEPTION, encode_message
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.stage import through
from xenoglot.dialect_registry import get, hosted_by
from xenoglot.testing.canned import answers
from xenoglot.testing.script import Body, End, RequestMatcher, Respond, ResponseHead, ScriptRule, WaitEvent
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.json import JSONObject
    from xenoglot.testing.raw_http import Received

KEYS = {"AKIDEXAMPLE": ("the-secret-key", "the-session-token")}
SCOPE = ("eu-central-1", "bedrock")
MODEL = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"
PATH = "/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0"
TURNS: Any = [{"role": "user", "content": "Hi"}]
TOOLS: Any = [{"name": "f", "description": "d", "input_schema": {"type": "object", "properties": {}}}]
ASKED: Any = {"model": MODEL, "max_tokens": 100, "messages": TURNS, "tools": TOOLS}
JSON_TYPE = (("content-type", "application/json"),)
STREAM_TYPE = (("content-type", "application/vnd.amazon.eventstream"),)
INVOKE, MESSAGES = hosted_by("converse", "messages"), get("messages")
CANNED = answers("messages", text=("Hel", "lo."))
COUNTED = ScriptRule(when=RequestMatcher(path="*/count-tokens"), steps=(Respond(200, JSON_TYPE, b'{"inputTokens":3}'),))


def as_chunks(frames: tuple[bytes, ...]) -> bytes:
    """Return a stream of the Messages API as Bedrock frames it."""
    encoder = INVOKE.framing.encoder()
    return b"".join(through(through(frames, MESSAGES.framing.decoder()), encoder))


def bedrock_rules() -> tuple[ScriptRule, ...]:
    """Return what a server of InvokeModel answers."""
    streamed = Respond(200, STREAM_TYPE, as_chunks(CANNED.frames), split=11)
    return (
        COUNTED,
        ScriptRule(when=RequestMatcher(path="/model/*/invoke"), steps=(Respond(200, JSON_TYPE, CANNED.body),)),
        ScriptRule(when=RequestMatcher(path="/model/*/invoke-with-response-stream"), steps=(streamed,)),
    )


@pytest.fixture(scope="module", name="bedrock")
def bedrock_server() -> Iterator[Upstream]:
    """A server of InvokeModel."""
    with Upstream(*bedrock_rules()) as server:
        yield server


@pytest.fixture(scope="module", name="signing")
def signing_gateway(bedrock: Upstream) -> Iterator[DialectGateway]:
    """A gateway in front of it, with keys of AWS in its environment."""
    aws: JSONObject = {
        "hosted_by": "converse",
        "auth": "aws",
        "sign_in": {"region": SCOPE[0], "service": SCOPE[1]},
        "retry": {"attempts": 1},
    }
    with pytest.MonkeyPatch.context() as environ:
        environ.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        environ.setenv("AWS_SECRET_ACCESS_KEY", "the-secret-key")
        environ.setenv("AWS_SESSION_TOKEN", "the-session-token")
        with DialectGateway(bedrock, "messages", {}, upstream=aws) as running:
            yield running


@pytest.fixture(scope="module", name="plain")
def plain_server() -> Iterator[Upstream]:
    """A server of the Messages API."""
    with Upstream(*CANNED.rules()) as server:
        yield server


@pytest.fixture(scope="module", name="face")
def face_gateway(plain: Upstream) -> Iterator[DialectGateway]:
    """A gateway in front of that, for clients of Bedrock."""
    with DialectGateway(plain, "messages", {}, upstream={"retry": {"attempts": 1}}) as running:
        yield running


def bedrock_sdk(url: str) -> AnthropicBedrock:
    return AnthropicBedrock(
        base_url=url,
        aws_region=SCOPE[0],
        aws_access_key="AKIDEXAMPLE",
        aws_secret_key="the-secret-key",
        aws_session_token="the-session-token",
        max_retries=0,
    )


def boto(url: str) -> Any:  # noqa: ANN401  made of the service's model
    config = Config(signature_version=UNSIGNED, retries={"total_max_attempts": 1})
    return boto3.client("bedrock-runtime", region_name=SCOPE[0], endpoint_url=url, config=config)


def refused(request: Received) -> str | None:
    """Return how a server of AWS judges the signature of a request."""
    headers = dict(request.headers)
    return refusal(request.method, request.target, headers, request.body, keys=KEYS, scope=SCOPE)


def quoted(target: str) -> str:
    """Return a path as boto3 writes it; Anthropic's SDK leaves the colon as it is."""
    return target.replace(":", "%3A")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("betas", [None, "context-1m-2025-08-07,a-1"], ids=["plain", "betas"])
def test_bedrock_gets_what_the_sdk_sends(
    bedrock: Upstream,
    signing: DialectGateway,
    betas: str | None,
    stream: bool,  # noqa: FBT001  a case
) -> None:
    bedrock.forget()
    headers = {"anthropic-beta": betas} if betas else {}
    made: list[Any] = []
    for sdk in (Anthropic(base_url=signing.url, api_key="k", max_retries=0), bedrock_sdk(bedrock.url)):
        with sdk:
            answer: Any = sdk.messages.create(**ASKED, stream=stream, extra_headers=headers)
            made.append([event.to_dict() for event in answer] if stream else answer.to_dict())
    ours, theirs = bedrock.requests
    assert ours.target == quoted(theirs.target) == f"{PATH}/invoke{'-with-response-stream' if stream else ''}"
    assert json.loads(ours.body) == json.loads(theirs.body)
    assert (refused(ours), refused(theirs)) == (None, None)
    assert not {name for name, _ in ours.headers} & {"anthropic-version", "anthropic-beta", "x-api-key"}
    if stream:
        made[1][-1].pop("amazon-bedrock-invocationMetrics")
    assert made[0] == made[1]


def test_clients_of_other_dialects(bedrock: Upstream, signing: DialectGateway) -> None:
    bedrock.forget()
    body = {"model": MODEL, "max_tokens": 100, "messages": TURNS, "stream": True}
    answer = httpx2.post(f"{signing.url}/v1/chat/completions", json=body, timeout=TIMEOUT)
    assert '"content":"Hel"' in answer.text.replace(" ", "")
    sent = json.loads(bedrock.requests[0].body)
    assert sent["anthropic_version"] == "bedrock-2023-05-31"
    assert not sent.keys() & {"model", "stream"}
    assert refused(bedrock.requests[0]) is None


def test_tokens_are_counted_by_bedrock(bedrock: Upstream, signing: DialectGateway) -> None:
    bedrock.forget()
    with Anthropic(base_url=signing.url, api_key="k") as sdk:
        assert sdk.messages.count_tokens(model=MODEL, messages=TURNS).input_tokens == 3
    assert bedrock.requests[0].target == f"{PATH}/count-tokens"
    assert [*json.loads(bedrock.requests[0].body)["input"]] == ["invokeModel"]
    assert refused(bedrock.requests[0]) is None


def test_errors_of_bedrock(bedrock: Upstream, signing: DialectGateway) -> None:
    headers = (*JSON_TYPE, ("x-amzn-errortype", "ThrottlingException:http://internal.amazon.com/"))
    slow = encode_message(ServerSentEvent(b'{"message":"slow down"}', "throttlingException", EXCEPTION))
    cut = as_chunks(CANNED.frames[:2]) + slow
    bedrock.script(
        ScriptRule(steps=(Respond(429, headers, b'{"message":"Too many tokens"}'),), times=1),
        ScriptRule(steps=(Respond(200, STREAM_TYPE, cut),), times=1),
        *bedrock_rules(),
    )
    with Anthropic(base_url=signing.url, api_key="k", max_retries=0) as sdk:
        with pytest.raises(RateLimitError, match="Too many tokens"):
            sdk.messages.create(**ASKED)
        with pytest.raises(RateLimitError, match="slow down"):
            list(sdk.messages.create(**ASKED, stream=True))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_the_sdk_for_bedrock_is_a_client(plain: Upstream, face: DialectGateway, stream: bool) -> None:  # noqa: FBT001  a case
    """Its signatures are not looked at, for this gateway has no keys."""
    plain.forget()
    headers = {"anthropic-beta": "a-1,b-2"}
    made: list[Any] = []
    for sdk in (bedrock_sdk(face.url), Anthropic(base_url=plain.url, api_key="k", max_retries=0)):
        with sdk:
            answer: Any = sdk.messages.create(**ASKED, stream=stream, extra_headers=headers)
            made.append([event.to_dict() for event in answer] if stream else answer.to_dict())
    ours, theirs = plain.requests
    assert {"stream": False} | json.loads(theirs.body) == json.loads(ours.body)
    wanted = ("anthropic-version", "anthropic-beta")
    assert [dict(ours.headers)[name] for name in wanted] == [dict(theirs.headers)[name] for name in wanted]
    assert "authorization" not in dict(ours.headers)
    if stream:
        assert made[0][-1].pop("amazon-bedrock-invocationMetrics") == {"inputTokenCount": 7, "outputTokenCount": 3}
    assert made[0] == made[1]


def test_boto3_is_a_client(plain: Upstream, face: DialectGateway) -> None:
    plain.forget()
    body = json.dumps({"anthropic_version": "bedrock-2023-05-31", "anthropic_beta": ["a-1"], **ASKED, "model": "x"})
    with closing(boto(face.url)) as client:
        whole = client.invoke_model(modelId="arn:aws:bedrock:m/1", body=body)
        assert json.loads(whole["body"].read()) == json.loads(CANNED.body)
        assert whole["ResponseMetadata"]["RequestId"].startswith("req_")
        chunks = client.invoke_model_with_response_stream(modelId="m", body=body)["body"]
        events = [json.loads(event["chunk"]["bytes"]) for event in chunks]
    assert [event["type"] for event in events][::6] == ["message_start", "message_stop"]
    sent = [json.loads(request.body) for request in plain.requests]
    assert [(one["model"], one["stream"]) for one in sent] == [("arn:aws:bedrock:m/1", False), ("m", True)]
    assert not any({"anthropic_version", "anthropic_beta"} & one.keys() for one in sent)
    assert [dict(request.headers)["anthropic-beta"] for request in plain.requests] == ["a-1", "a-1"]


def test_boto3_counts_tokens(face: DialectGateway) -> None:
    inner = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 1, "messages": TURNS}
    with closing(boto(face.url)) as client:
        counted = client.count_tokens(modelId="m", input={"invokeModel": {"body": json.dumps(inner)}})
        assert counted["inputTokens"] > 0
        with pytest.raises(client.exceptions.ValidationException, match="InvokeModel takes bodies of Anthropic's"):
            client.count_tokens(modelId="m", input={"invokeModel": {"body": '{"prompt":"Hi"}'}})


def test_bodies_of_other_models_are_refused(face: DialectGateway) -> None:
    with closing(boto(face.url)) as client:
        for ask in (client.invoke_model, client.invoke_model_with_response_stream):
            with pytest.raises(client.exceptions.ValidationException, match="send those of other models as Converse"):
                ask(modelId="meta.llama3-1-8b-instruct-v1:0", body=json.dumps({"prompt": "Hi"}))
    with bedrock_sdk(face.url) as sdk, pytest.raises(BadRequestError, match="temperature"):
        sdk.messages.create(**ASKED, extra_body={"temperature": "hot"})


def test_failures_of_the_upstream(plain: Upstream, face: DialectGateway) -> None:
    busy = b'{"type":"error","error":{"type":"overloaded_error","message":"busy"}}'
    head = ResponseHead(200, (("content-type", "text/event-stream"),))
    error = Body(b"event: error\ndata: " + busy + b"\n\n")
    streamed = (head, Body(b"".join(CANNED.frames[:4])), WaitEvent("read"), error, End())
    plain.script(
        ScriptRule(steps=(Respond(529, JSON_TYPE, busy),), times=1),
        ScriptRule(steps=streamed, times=1),
        *CANNED.rules(),
    )
    body = json.dumps({"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": TURNS})
    with closing(boto(face.url)) as client:
        with pytest.raises(ClientError) as raised:
            client.invoke_model(modelId="m", body=body)
        assert raised.value.response["Error"]["Code"] == "ServiceUnavailableException"
        with closing(client.invoke_model_with_response_stream(modelId="m", body=body)["body"]) as chunks:
            stream = iter(chunks)
            next(stream)
            plain.release("read")
            with pytest.raises(EventStreamError) as broken:
                list(stream)
        assert broken.value.response["Error"]["Code"] == "serviceUnavailableException"
