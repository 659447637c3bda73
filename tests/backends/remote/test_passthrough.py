"""What passes on of a client's own bytes: all of them, but for the fields that a fact about the server concerns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.laws.vectors import each
from xenoglot.backends.backend import Call
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
