"""What passes on of a client's own bytes: all of them, but for the fields that a fact about the server concerns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.laws.vectors import each
from xenoglot.backends.backend import Call
from xenoglot.backends.http.client import Transport
from xenoglot.backends.remote.backend import Remote
from xenoglot.backends.remote.passthrough import PassthroughRequest, passthrough_request
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.url_params import addressed
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.errors import LossError

if TYPE_CHECKING:
    from tests.laws.vectors import Case
    from xenoglot.model.json import JSONObject

NOTHING = Target(default_max_tokens=4097)
"""Facts that concern no field of any request that has come in the server's own dialect."""

CHAT = get("chat")
ASKED: JSONObject = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


def call(body: bytes, dialect: str, *, strict: bool = False) -> Call:
    """What a client of a dialect asks."""
    request = get(dialect).decode_request(msgspec.json.decode(body))
    return Call(request=request, losses=Losses(strict=strict), dialect=dialect, body=body)


@each("request.json")
def test_where_no_fact_concerns_it_every_byte_passes(case: Case) -> None:
    """What the model gives back is what the client wrote, so nothing is found to be changed."""
    dialect = case.dialect
    _, _, said = addressed(dict(case.request), dialect)
    body = (case.folder / "request.json").read_bytes()
    asked = call(body, dialect.name)
    made = passthrough_request(asked, dialect, NOTHING)
    assert made is not None
    assert msgspec.json.decode(made.body) == said
    if said == case.request:
        assert made.body == body


def test_values_keep_their_bytes_and_fields_their_order() -> None:
    body = b'{"x": [1.0, 2],"user":"u","messages":[ {"role":"user","content":"Hi"} ] ,"model":"m","top_p":0.50}'
    made = passthrough_request(call(body, "chat"), CHAT, Target(lacks=("user",)))
    kept = b'{"x":[1.0, 2],"messages":[ {"role":"user","content":"Hi"} ],"model":"m","top_p":0.50}'
    assert made == PassthroughRequest("/v1/chat/completions", "", kept)


def test_another_model_is_one_of_the_fields() -> None:
    asked = call(msgspec.json.encode(ASKED), "chat")
    renamed = msgspec.structs.replace(asked, request=msgspec.structs.replace(asked.request, model="n"))
    made = passthrough_request(renamed, CHAT, NOTHING)
    assert made == PassthroughRequest("/v1/chat/completions", "", msgspec.json.encode(ASKED | {"model": "n"}))


@pytest.mark.parametrize("target", [Target(), NOTHING])
def test_findings_f_a_model_that_the_client_left_out_is_added(target: Target) -> None:
    asked = call(msgspec.json.encode(ASKED), "chat")
    without = msgspec.json.encode({"messages": ASKED["messages"]})
    made = passthrough_request(msgspec.structs.replace(asked, body=without), CHAT, target)
    assert made is not None
    assert msgspec.json.decode(made.body) == ASKED


@pytest.mark.parametrize(
    ("tool", "target", "renamed"),
    [
        pytest.param({"type": "function", "function": {"name": "f"}}, Target(custom_tools=False), False, id="as-it-is"),
        pytest.param({"type": "custom", "custom": {"name": "f"}}, Target(custom_tools=False), True, id="wrapped"),
        pytest.param(
            {"type": "function", "function": {"name": "f" * 70}}, Target(tool_name_limit=64), True, id="short"
        ),
    ],
)
def test_tools_that_the_server_knows_otherwise_are_told(tool: JSONObject, target: Target, renamed: bool) -> None:  # noqa: FBT001  a case
    made = passthrough_request(call(msgspec.json.encode(ASKED | {"tools": [tool]}), "chat"), CHAT, target)
    assert made is not None
    assert made.renamed is renamed


def test_a_loss_that_must_not_be() -> None:
    asked = call(msgspec.json.encode(ASKED | {"seed": 7}), "chat", strict=True)
    with pytest.raises(LossError):
        passthrough_request(asked, CHAT, Target(lacks=("seed",)))


@pytest.mark.parametrize("dialect", ["messages", "chat"])
def test_what_does_not_pass(dialect: str) -> None:
    asked = call(msgspec.json.encode(ASKED | {"max_tokens": 9}), dialect)
    stripped = msgspec.structs.replace(asked, body=None)
    assert [passthrough_request(one, CHAT, Target()) is None for one in (asked, stripped)] == [dialect != "chat", True]


LONG = "Answer in the style of the house. " * 300
TURNS = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello."},
    {"role": "user", "content": "And now?"},
]
EPHEMERAL = {"type": "ephemeral"}


def encoded(dialect: str, body: JSONObject, upstream: str, target: Target = NOTHING) -> tuple[bytes, JSONObject]:
    """What a client sends, and what a server gets of which prompts are marked."""
    data = msgspec.json.encode(body)
    remote = Remote(
        "lab", get(upstream), "http://server.invalid", transport=Transport(), target=target, marks_prompts=True
    )
    return data, msgspec.json.decode(remote.encode_call(call(data, dialect)).body)


def test_marks_are_added_to_bytes_that_pass() -> None:
    """Only the fields with marks change."""
    body: JSONObject = {"model": "m", "max_tokens": 9, "x": 1, "system": LONG, "messages": TURNS}
    _, sent = encoded("messages", body, "messages")
    system = [{"type": "text", "text": LONG, "cache_control": EPHEMERAL}]
    first = {"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": EPHEMERAL}]}
    last = {"role": "user", "content": [{"type": "text", "text": "And now?", "cache_control": EPHEMERAL}]}
    assert sent == body | {"system": system, "messages": [first, TURNS[1], last]}


def test_marks_are_added_to_a_translated_request() -> None:
    body: JSONObject = {"model": "m", "messages": [{"role": "system", "content": LONG}, *TURNS]}
    _, sent = encoded("chat", body, "messages")
    assert sent["system"] == [{"type": "text", "text": LONG, "cache_control": EPHEMERAL}]


@pytest.mark.parametrize(
    ("body", "target"),
    [
        pytest.param({"messages": TURNS}, Target(), id="short"),
        pytest.param(
            {"system": LONG, "messages": TURNS}, Target(cache_minimum=1_000_000), id="server-caches-more-only"
        ),
        pytest.param(
            {"system": [{"type": "text", "text": LONG, "cache_control": EPHEMERAL}], "messages": TURNS},
            Target(),
            id="marks-of-the-client",
        ),
    ],
)
def test_bytes_without_a_place_for_marks_pass_unchanged(body: JSONObject, target: Target) -> None:
    asked = {"model": "m", "max_tokens": 9, **body}
    assert encoded("messages", asked, "messages", target) == (msgspec.json.encode(asked), asked)


def test_a_server_that_caches_by_itself_gets_no_marks() -> None:
    asked = {"model": "m", "messages": [{"role": "system", "content": LONG}, *TURNS]}
    assert encoded("chat", asked, "chat")[1] == asked


def test_a_server_of_a_dialect_without_marks_gets_them_if_it_takes_them() -> None:
    asked = {"model": "m", "messages": [{"role": "system", "content": LONG}, *TURNS]}
    _, sent = encoded("chat", asked, "chat", Target(cache_marks=True))
    assert sent["messages"][0]["content"][0].keys() > {"type", "text"}
