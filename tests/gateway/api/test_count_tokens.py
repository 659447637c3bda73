"""Counts of prompts that refer to something kept, as OpenAI's SDK asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from openai import APIStatusError, BadRequestError, OpenAI

from tests.gateway.running_gateway import TIMEOUT, config_for
from tests.gateway.scripted_backends import HELLO, BlockingBackend
from tests.gateway.stored.test_intake import client_of, turns_of, user
from xenoglot import dialect_registry as dialects
from xenoglot.backends.scripted import Scripted
from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.gateway.api.operations import COUNT
from xenoglot.gateway.config.file_permissions import Secrets
from xenoglot.gateway.config.settings import KeySettings

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from tests.gateway.running_gateway import RunningGateway
    from xenoglot.backends.backend import Call
    from xenoglot.model.request import Request

PATH = "/v1/responses/input_tokens"
HISTORY = [("user", ["Hi"]), ("assistant", ["Hello"]), ("user", ["And what is the time?"])]


class Words(Scripted):
    """Says hello; a token is a word. Every dialect that counts can ask for what is to be counted."""

    def __init__(self) -> None:
        super().__init__(HELLO)
        self.counted: list[Request] = []

    async def count(self, call: Call) -> int | None:
        """Count the words of all turns."""
        self.counted.append(call.request)
        for dialect in map(dialects.get, dialects.names()):
            if dialect.encode_count_request is not None:
                dialect.encode_count_request(call.request, Losses(), Target())
        return sum(len(text.split()) for _, texts in turns_of(call.request) for text in texts)


@pytest.fixture
def words() -> Words:
    """A backend that counts."""
    return Words()


@pytest.fixture
def running(gateway_server: Callable[..., RunningGateway], words: Words) -> RunningGateway:
    """A gateway in front of it, with two clients."""
    keys = Secrets({"KEYS": "alices-key bobs-key"})
    return gateway_server({"scripted": words}, config_for("scripted", keys=KeySettings(env=("KEYS",)), secrets=keys))


@pytest.fixture
def alice(running: RunningGateway) -> Generator[OpenAI]:
    """Give one of them."""
    with client_of(running, "alices-key") as made:
        yield made


def refused(client: OpenAI, way: str, reference: Mapping[str, str]) -> tuple[int, object]:
    """Return how a request with a reference is refused, asked for its count or for its answer."""
    path = "/responses/input_tokens" if way == "count" else "/responses"
    with pytest.raises(APIStatusError) as caught:
        client.post(path, body={"model": "m", "input": "Hi", **reference}, cast_to=object)
    return caught.value.status_code, caught.value.body


def test_findings_8_a_previous_answer_counts(alice: OpenAI, words: Words) -> None:
    first = alice.responses.create(model="m", input="Hi")
    counted = alice.responses.input_tokens.with_raw_response.count(
        model="m", input="And what is the time?", previous_response_id=first.id
    )
    assert (counted.parse().input_tokens, counted.headers[COUNT]) == (7, "exact")
    alice.responses.create(model="m", input="And what is the time?", previous_response_id=first.id)
    assert turns_of(words.counted[0]) == turns_of(words.requests[1]) == HISTORY


def test_findings_a_a_conversation_counts_and_is_not_added_to(alice: OpenAI, words: Words) -> None:
    conversation = alice.conversations.create(items=[user("One two three")])
    for _ in range(2):
        counted = alice.responses.input_tokens.count(model="m", input="Four", conversation=conversation.id)
        assert counted.input_tokens == 4
    assert len(alice.conversations.items.list(conversation.id).data) == 1
    assert words.requests == []


def test_findings_a_items_that_are_referred_to_count(alice: OpenAI) -> None:
    conversation = alice.conversations.create(items=[user("One two three")])
    (item,) = alice.conversations.items.list(conversation.id)
    reference = {"type": "item_reference", "id": str(item.id)}
    counted = alice.responses.input_tokens.count(model="m", input=[reference, user("Four")])  # type: ignore[list-item]
    assert counted.input_tokens == 4


def test_findings_k_chat_counts_as_llama_server_does(running: RunningGateway) -> None:
    turns = [{"role": "user", "content": "One two"}, {"role": "assistant", "content": "three"}]
    body = {"model": "m", "messages": [*turns, turns[0]]}
    key = {"authorization": "Bearer alices-key"}
    answer = running.request("POST", "/v1/chat/completions/input_tokens", body, key)
    assert (answer.status, answer.json) == (200, {"object": "response.input_tokens", "input_tokens": 5})
    assert answer.headers[COUNT] == "exact"
    assert running.request("POST", "/v1/chat/completions/input_tokens", {"messages": turns}, key).status == 400


@pytest.mark.parametrize("kind", ["previous_response_id", "conversation"])
def test_findings_8_what_is_unknown_or_anothers_is_refused_as_for_an_answer(
    running: RunningGateway, alice: OpenAI, words: Words, kind: str
) -> None:
    theirs = {
        "previous_response_id": alice.responses.create(model="m", input="Hi").id,
        "conversation": alice.conversations.create().id,
    }[kind]
    with client_of(running, "bobs-key") as bob:
        for name in (theirs, theirs[:-8] + "0" * 8):
            counted = refused(bob, "count", {kind: name})
            assert counted == refused(bob, "answer", {kind: name})
            assert counted[0] == (400 if kind == "previous_response_id" else 404)
    assert words.counted == []


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (PATH, {"input": "Hi"}, "model"),
        ("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": "Hi"}]}, None),
    ],
)
def test_findings_a_without_a_model_that_is_what_is_missing(
    running: RunningGateway, path: str, body: object, param: str | None
) -> None:
    answer = running.request("POST", path, body, {"authorization": "Bearer alices-key"})
    assert answer.status == 400
    assert answer.json["error"]["message"] == "model: required, expected str"
    assert answer.json["error"].get("param") == param


def test_findings_k_an_answer_in_the_making_is_not_over(gateway_server: Callable[..., RunningGateway]) -> None:
    hanging = BlockingBackend()
    with client_of(gateway_server({"scripted": hanging})) as client:
        queued = client.responses.create(model="m", input="Hi", background=True)
        assert hanging.called.wait(TIMEOUT)
        expected = {
            "message": f"Previous response with id '{queued.id}' is still in progress; it can be continued once it is "
            "completed.",
            "type": "invalid_request_error",
            "param": "previous_response_id",
            "code": "previous_response_not_completed",
        }
        for way in ("count", "answer"):
            assert refused(client, way, {"previous_response_id": queued.id}) == (400, expected)
        client.responses.cancel(queued.id)


@pytest.mark.parametrize(
    "body", [{}, {"input": None}, {"instructions": "Be kind."}, {"store": False}, {"stream": True}]
)
def test_findings_k_pitfall_120_an_answer_needs_an_input(alice: OpenAI, words: Words, body: dict[str, object]) -> None:
    with pytest.raises(BadRequestError) as caught:
        alice.post("/responses", body={"model": "m", **body}, cast_to=object)
    assert caught.value.body == {
        "message": "Missing required parameter: 'input'.",
        "type": "invalid_request_error",
        "param": "input",
        "code": "missing_required_parameter",
    }
    assert words.requests == []


def test_what_stands_in_for_an_input(alice: OpenAI) -> None:
    first = alice.responses.create(model="m", input="Hi")
    assert alice.responses.create(model="m", previous_response_id=first.id).output_text == "Hello"
    assert alice.responses.create(model="m", conversation=alice.conversations.create().id).output_text == "Hello"
