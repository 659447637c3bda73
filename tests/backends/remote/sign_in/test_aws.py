"""Signatures of AWS: those of its published examples, and recomputed by a server of our own."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING

import pytest

from tests.backends.remote.sign_in.signature_check import refusal
from xenoglot.backends.remote.sign_in.aws import UNSIGNED, AwsCredentials, AwsKeys, AwsSigner, signing_scope
from xenoglot.backends.remote.sign_in.credential import SignInError
from xenoglot.backends.remote.sign_in.strategy import SignedRequest
from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLE = AwsKeys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
"""The keys of the published examples, which are none of an account."""
MOMENT = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)
SESSION = AwsKeys("ASIAEXAMPLE", "secret", "session-token")
BODY = json.dumps({"messages": []}).encode()


@pytest.fixture
def at_the_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock of botocore at the moment of the published examples."""
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: MOMENT)


@pytest.mark.usefixtures("at_the_moment")
@pytest.mark.parametrize(
    ("method", "target", "signature"),
    [
        pytest.param("GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31", id="get-vanilla"),
        pytest.param(
            "POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b", id="post-vanilla"
        ),
        pytest.param(
            "GET",
            "/?Param2=value2&Param1=value1",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            id="get-vanilla-query-order-key-case",
        ),
    ],
)
def test_the_published_examples(method: str, target: str, signature: str) -> None:
    """Source: `aws-sig-v4-test-suite`, which AWS published with the specification."""
    request = SignedRequest(method, f"https://example.amazonaws.com{target}", (("host", "example.amazonaws.com"),), b"")
    fields = dict(AwsSigner("us-east-1", "service")(EXAMPLE, request))
    assert fields == {
        "x-amz-date": "20150830T123600Z",
        "authorization": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        f"SignedHeaders=host;x-amz-date, Signature={signature}",
    }


TARGETS = [
    "/model/anthropic.claude-sonnet-5-v1%3A0/converse",
    "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A111122223333%3Ainference-profile%2Fus.a-b/converse-stream",
    "/model/m/converse?b=2&a=1",
]


def checked(
    request: SignedRequest, keys: AwsKeys, body: bytes = BODY, signer: AwsSigner | None = None, **expected: object
) -> str | None:
    """Return why a server refuses the request as it is signed."""
    signer = signer or AwsSigner("us-east-1", "bedrock")
    headers = dict((*request.headers, *signer(keys, request)))
    target = request.url.removeprefix("https://bedrock.test")
    usual = {"keys": {"AKIDEXAMPLE": (EXAMPLE.secret_key, None), "ASIAEXAMPLE": ("secret", "session-token")}}
    return refusal(request.method, target, headers, body, **{"scope": ("us-east-1", "bedrock"), **usual, **expected})  # type: ignore[arg-type]


def request_to(target: str, body: bytes | None = BODY) -> SignedRequest:
    headers = (("host", "bedrock.test"), ("content-type", "application/json"), ("user-agent", "x"), ("accept", "*/*"))
    return SignedRequest("POST", f"https://bedrock.test{target}", headers, body)


@pytest.mark.parametrize("keys", [EXAMPLE, SESSION], ids=["keys", "session"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_server_recomputes_the_signature(target: str, keys: AwsKeys) -> None:
    assert checked(request_to(target), keys) is None


def test_a_server_refuses_what_was_changed_or_is_old() -> None:
    request = request_to(TARGETS[0])
    assert checked(request, EXAMPLE, b"{}") == "InvalidSignatureException"
    assert checked(request, EXAMPLE, scope=("eu-west-1", "bedrock")) == "InvalidSignatureException"
    assert checked(request, EXAMPLE, now=datetime.now(UTC) + timedelta(minutes=6)) == "InvalidSignatureException"
    assert checked(request, AwsKeys("AKIDEXAMPLE", "other")) == "InvalidSignatureException"
    assert checked(request, AwsKeys("ASIAEXAMPLE", "secret", "old")) == "UnrecognizedClientException"


def test_a_streamed_body_is_not_signed() -> None:
    fields = dict(AwsSigner("us-east-1", "bedrock")(EXAMPLE, request_to("/", None)))
    assert fields["x-amz-content-sha256"] == UNSIGNED
    assert checked(request_to("/", None), EXAMPLE, b"anything") is None


@pytest.mark.parametrize(
    ("host", "region", "scope"),
    [
        ("bedrock-runtime.eu-central-1.amazonaws.com", None, ("eu-central-1", "bedrock")),
        ("bedrock-runtime-fips.us-gov-west-1.amazonaws.com", None, ("us-gov-west-1", "bedrock")),
        ("bedrock-mantle.us-east-1.api.aws", None, ("us-east-1", "bedrock-mantle")),
        ("localhost:8080", "us-west-2", ("us-west-2", "bedrock")),
    ],
)
def test_the_scope_of_a_host(host: str, region: str | None, scope: tuple[str, str]) -> None:
    assert signing_scope(host, region, "bedrock") == scope


def test_each_host_of_an_upstream_has_its_own_scope() -> None:
    """The Messages API of Bedrock is another service than its runtime."""
    signer = AwsSigner()
    hosts = ("bedrock-runtime.eu-west-1.amazonaws.com", "bedrock-mantle.eu-west-1.api.aws")
    urls = [f"https://{host}/" for host in hosts]
    signed = [dict(signer(EXAMPLE, SignedRequest("GET", url, (), b"")))["authorization"] for url in urls]
    assert [text.split("/")[3] for text in signed] == ["bedrock", "bedrock-mantle"]


def test_a_host_without_a_region() -> None:
    with pytest.raises(ConfigurationError, match="names no AWS region and service; set `region` and `service`"):
        signing_scope("gateway.example.com")


@pytest.fixture
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Hide all credentials of this machine; return an empty folder for files with some."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name, file in (("AWS_CONFIG_FILE", "config"), ("AWS_SHARED_CREDENTIALS_FILE", "credentials")):
        monkeypatch.setenv(name, str(tmp_path / file))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return tmp_path


@pytest.mark.usefixtures("no_credentials")
def test_without_credentials() -> None:
    with pytest.raises(SignInError, match="AWS credentials were not found"):
        AwsCredentials().fetch(anew=False)


@pytest.mark.usefixtures("no_credentials")
def test_credentials_of_the_environment_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "A")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s1")
    source = AwsCredentials()
    found = source.fetch(anew=False)
    assert (found.value, found.expires_at, found.secrets) == (AwsKeys("A", "s1"), None, ("s1",))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s2")
    assert source.fetch(anew=False).value.secret_key == "s1"
    assert source.fetch(anew=True).value.secret_key == "s2"


def test_credentials_of_a_process_expire(no_credentials: Path) -> None:
    """Those of single sign-on, roles and instances are refreshed by the same class of botocore."""
    expiry = (datetime.now(UTC) + timedelta(hours=1)).replace(microsecond=0)
    keys = {
        "Version": 1,
        "AccessKeyId": "A",
        "SecretAccessKey": "s",
        "SessionToken": "t",
        "Expiration": expiry.isoformat(),
    }
    (no_credentials / "keys.json").write_text(json.dumps(keys))
    (no_credentials / "config").write_text(f"[profile p]\ncredential_process = cat {no_credentials}/keys.json\n")
    found = AwsCredentials("p").fetch(anew=False)
    assert (found.value, found.secrets) == (AwsKeys("A", "s", "t"), ("s", "t"))
    assert found.expires_at == expiry.timestamp()
    assert "s" not in repr(found.value).removeprefix("AwsKeys")


def test_nothing_of_a_signature_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        AwsSigner("us-east-1", "bedrock")(SESSION, request_to("/"))
    assert caplog.text == ""


@pytest.mark.parametrize("skew", [-3600, -301, 301, 3600], ids=["an-hour-slow", "slow", "fast", "an-hour-fast"])
@pytest.mark.parametrize("keys", [EXAMPLE, SESSION], ids=["keys", "session"])
def test_a_wrong_clock_is_corrected_by_that_of_the_server(keys: AwsKeys, skew: int) -> None:
    """What a server says that is `skew` seconds from this machine; botocore signs by the clock of the machine."""
    now = datetime.now(UTC) + timedelta(seconds=skew)
    signer = AwsSigner("us-east-1", "bedrock")
    assert checked(request_to(TARGETS[0]), keys, now=now, signer=signer) == "InvalidSignatureException"
    assert signer.corrected(format_datetime(now, usegmt=True))
    assert checked(request_to(TARGETS[0]), keys, now=now, signer=signer) is None
    assert checked(request_to(TARGETS[1], None), keys, b"any", now=now, signer=signer) is None


@pytest.mark.parametrize(
    "date",
    [
        pytest.param(None, id="none"),
        pytest.param("soon", id="no-date"),
        pytest.param("Thu, 01 Jan 1970 00:00:00 GMT", id="years-ago"),
        pytest.param("Fri, 01 Jan 9999 00:00:00 GMT", id="far-ahead"),
        pytest.param("Sun, 30 Aug 2015 12:39:00 GMT", id="within-what-a-signature-allows"),
    ],
)
def test_a_clock_that_is_not_corrected(date: str | None) -> None:
    signer = AwsSigner("us-east-1", "bedrock", clock=MOMENT.timestamp)
    assert not signer.corrected(date)
    assert checked(request_to(TARGETS[0]), EXAMPLE, signer=signer) is None
