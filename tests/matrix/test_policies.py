"""What the configuration says of models: names, defaults, losses that are refused; and what cannot be had at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.matrix.case import HELLO, HI, text, whole_body
from tests.matrix.matrix_gateway import DIALECTS, MatrixGateway, model
from tests.matrix.refusals import anthropic_error, openai_error
from tests.matrix.sdk import MODES, Sdk
from tests.matrix.test_refusals import error_of, raised, without_id
from tests.matrix.upstream import json_reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.model.json import JSON, JSONObject

LOSSY: dict[str, JSONObject] = {"chat": {"seed": 7}, "messages": {"cache_control": {"type": "ephemeral"}}}
LOST = {
    "chat": "the target cannot express: $.sampling seed dropped (the dialect has no such field)",
    "messages": "the target cannot express: $ cache dropped (the server decides what it caches)",
}
MANY = "n: this model gives one answer per request; ask for 1, or send several requests"
NOBODY = "the model `nobody` does not exist here; GET /v1/models says which do"


def refused(client: Sdk, way: str, **kwargs: JSON) -> JSONObject:
    """Return the error of a call."""
    error = raised(lambda: getattr(client, way)(**kwargs))
    return without_id(error_of(error), client.tap.headers["request-id"])


def bad_request(dialect: str, message: str, param: str | None = None) -> JSONObject:
    """Return the error of a request that must not be sent again."""
    kind, name = "invalid_request_error", "BadRequestError"
    if dialect == "chat":
        return openai_error(name, 400, message, kind, None, param, x_should_retry="false")
    return anthropic_error(name, 400, message, kind, x_should_retry="false")


def test_a_model_by_another_name_at_home(matrix_gateway: MatrixGateway, client: Callable[..., Sdk]) -> None:
    """Only the name is replaced; the order of the fields, numbers and unknown fields stay as they were."""
    upstream = matrix_gateway.upstreams["messages"]
    upstream.script(json_reply(whole_body("messages", HELLO["messages"].whole)))
    sdk = client("messages", "sync")
    sdk.create(model="alias", extra_body={"unheard_of": [1.0, 1e100, None]}, **HI["messages"])
    (received,) = upstream.received()
    assert received.body == sdk.tap.sent.replace(b'"alias"', b'"messages-small"')


@pytest.mark.parametrize("speaks", DIALECTS)
def test_a_default_of_the_configuration(speaks: str, matrix_gateway: MatrixGateway, client: Callable[..., Sdk]) -> None:
    """It stands where the client said nothing; then the body cannot pass untouched."""
    upstream = matrix_gateway.upstreams["chat"]
    asked = {"messages": HI[speaks]["messages"]} | ({"max_tokens": 5} if speaks == "messages" else {})
    upstream.script(json_reply(whole_body("chat", HELLO["chat"].whole)))
    client(speaks, "sync").create(model="renamed", **asked)
    (received,) = upstream.received()
    assert received.json == {
        "model": "chat-small",
        "messages": HI["chat"]["messages"],
        "max_tokens": 5 if speaks == "messages" else 77,
    }


@pytest.mark.parametrize("way", ["create", "stream"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("speaks", DIALECTS)
def test_losses_are_refused(
    speaks: str, mode: str, way: str, matrix_gateway: MatrixGateway, client: Callable[..., Sdk]
) -> None:
    (other,) = set(DIALECTS) - {speaks}
    error = refused(client(speaks, mode), way, model=f"strict-{model(other)}", **LOSSY[speaks], **HI[speaks])
    assert error == bad_request(speaks, LOST[speaks])
    assert matrix_gateway.upstreams[other].received() == []


def test_several_answers_pitfall_46(matrix_gateway: MatrixGateway, client: Callable[..., Sdk]) -> None:
    error = refused(client("chat", "sync"), "create", model=model("messages"), n=2, **HI["chat"])
    assert error == bad_request("chat", MANY, "n")
    assert matrix_gateway.upstreams["messages"].received() == []


@pytest.mark.parametrize("speaks", DIALECTS)
def test_a_model_that_is_not_here(speaks: str, client: Callable[..., Sdk]) -> None:
    error = refused(client(speaks, "sync"), "create", model="nobody", **HI[speaks])
    chat = openai_error(
        "NotFoundError", 404, NOBODY, "invalid_request_error", "model_not_found", "model", x_should_retry="false"
    )
    messages = anthropic_error("NotFoundError", 404, NOBODY, "not_found_error", x_should_retry="false")
    assert error == {"chat": chat, "messages": messages}[speaks]


def test_a_mistake_is_told_by_its_path(client: Callable[..., Sdk]) -> None:
    """Each dialect names the place as its own server does, for clients heal themselves by such texts."""
    wrong = [{"role": "user", "content": "Hi"}, {"role": "nobody", "content": [text("Hi")]}]
    chat = refused(client("chat", "sync"), "create", model=model("messages"), messages=wrong)
    messages = refused(client("messages", "sync"), "create", model=model("chat"), max_tokens=5, messages=wrong)
    known = "expected one of system, developer, user, assistant, tool, function"
    assert chat == bad_request("chat", f"messages[1].role: {known}", "messages[1].role")
    said = "messages.1.role: Input should be 'user', 'assistant' or 'system'"
    assert messages == bad_request("messages", said)
