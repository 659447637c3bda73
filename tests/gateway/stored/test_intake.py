"""Answers and conversations that are kept, as OpenAI's SDK asks for them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from openai import BadRequestError, NotFoundError, OpenAI

from tests.gateway.running_gateway import config_for
from tests.gateway.scripted_backends import HELLO
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.config.file_permissions import Secrets
from xenoglot.gateway.config.settings import KeySettings
from xenoglot.model.content import Reasoning, Text, ToolCall
from xenoglot.model.response import Candidate, Finish

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from openai import BaseModel

    from tests.gateway.running_gateway import RunningGateway
    from xenoglot.model.json import JSON
    from xenoglot.model.request import Request

CALLING = replace(
    HELLO,
    candidates=(
        Candidate(
            content=(
                Reasoning(text="They want the time."),
                Text(text="Let me look."),
                ToolCall(id="call_1", name="clock", arguments='{"zone":"UTC"}'),
            ),
            finish=Finish(reason="tool_calls"),
        ),
    ),
)
CLOCK: JSON = {"type": "function_call_output", "call_id": "call_1", "output": "12:00"}


HI: JSON = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


def client_of(running: RunningGateway, key: str = "nobody's") -> OpenAI:
    return OpenAI(base_url=f"{running.url}/v1", api_key=key, max_retries=0)


def turns_of(request: Request) -> list[tuple[str, list[str]]]:
    """Return who said what in a request; a part that is no text by the name of its kind."""
    return [
        (message.role, [part.text if isinstance(part, Text) else type(part).__name__ for part in message.content])
        for message in request.messages
    ]


def user(text: str) -> JSON:
    return {"type": "message", "role": "user", "content": text}


def text_of(item: BaseModel) -> JSON:
    """Return the text of a message with one part."""
    return item.to_dict()["content"][0]["text"]  # type: ignore[index]


def error_of(error: BadRequestError | NotFoundError) -> tuple[int, JSON]:
    return error.status_code, error.body


@pytest.fixture
def scripted() -> Scripted:
    """A backend that says hello."""
    return Scripted(HELLO)


@pytest.fixture
def running(gateway_server: Callable[..., RunningGateway], scripted: Scripted) -> RunningGateway:
    """A gateway in front of it, that keeps things in memory."""
    return gateway_server({"scripted": scripted})


@pytest.fixture
def client(running: RunningGateway) -> Generator[OpenAI]:
    """The SDK, speaking to it."""
    with client_of(running) as made:
        yield made


class TestAnswers:
    """What is kept of an answer."""

    def test_a_kept_answer_is_told_again_as_it_was(self, client: OpenAI) -> None:
        answer = client.responses.create(model="m", input="Hi", metadata={"k": "v"})
        assert (answer.to_dict()["store"], answer.status, answer.output_text) == (True, "completed", "Hello")
        assert client.responses.retrieve(answer.id) == answer

    def test_ids_are_ours_and_cannot_be_guessed(self, client: OpenAI) -> None:
        ids = {client.responses.create(model="m", input="Hi").id for _ in range(3)}
        assert len(ids) == 3
        assert all(len(name) == len("resp_") + 48 and "answer-1" not in name for name in ids)

    def test_a_streamed_answer_is_kept_when_its_last_event_is_seen(self, client: OpenAI) -> None:
        for event in client.responses.create(model="m", input="Hi", stream=True):
            if event.type == "response.completed":
                assert client.responses.retrieve(event.response.id) == event.response
                return
        pytest.fail("the stream did not end")

    def test_every_event_of_a_stream_names_the_kept_answer(self, client: OpenAI) -> None:
        events = list(client.responses.create(model="m", input="Hi", stream=True))
        assert [event.sequence_number for event in events] == list(range(len(events)))
        ids = {event.response.id for event in events if hasattr(event, "response")}
        assert ids == {client.responses.retrieve(ids.copy().pop()).id}

    def test_pitfall_61_what_is_not_to_be_kept_is_not(self, client: OpenAI) -> None:
        answer = client.responses.create(model="m", input="Hi", store=False)
        with pytest.raises(NotFoundError) as caught:
            client.responses.retrieve(answer.id)
        message = f"Response with id '{answer.id}' not found."
        body = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
        assert error_of(caught.value) == (404, body)

    def test_deleted_is_gone(self, client: OpenAI) -> None:
        answer = client.responses.create(model="m", input="Hi")
        client.responses.delete(answer.id)
        for ask in (client.responses.retrieve, client.responses.delete, client.responses.input_items.list):
            with pytest.raises(NotFoundError):
                ask(answer.id)

    def test_r16_another_key_has_none_of_it(self, gateway_server: Callable[..., RunningGateway]) -> None:
        keys = Secrets({"KEYS": "alices-key bobs-key"})
        config = config_for("scripted", keys=KeySettings(env=("KEYS",)), secrets=keys)
        running = gateway_server({"scripted": Scripted(HELLO)}, config)
        with client_of(running, "alices-key") as alice, client_of(running, "bobs-key") as bob:
            answer = alice.responses.create(model="m", input="Hi")
            conversation = alice.conversations.create(items=[{"role": "user", "content": "Hi", "type": "message"}])
            refused = []
            for name in (answer.id, f"resp_{'0' * 48}"):
                with pytest.raises(NotFoundError) as caught:
                    bob.responses.retrieve(name)
                refused.append(str(caught.value).replace(name, "ID"))
            assert refused[0] == refused[1]
            with pytest.raises(BadRequestError, match="Previous response with id"):
                bob.responses.create(model="m", input="Hi", previous_response_id=answer.id)
            with pytest.raises(NotFoundError, match="Conversation with id"):
                bob.responses.create(model="m", input="Hi", conversation=conversation.id)
            with pytest.raises(NotFoundError):
                bob.responses.delete(answer.id)
            assert alice.responses.retrieve(answer.id) == answer

    def test_r16_what_is_anothers_is_told_as_what_nobody_has(
        self, gateway_server: Callable[..., RunningGateway]
    ) -> None:
        keys = Secrets({"KEYS": "alices-key bobs-key"})
        config = config_for("scripted", keys=KeySettings(env=("KEYS",)), secrets=keys)
        running = gateway_server({"scripted": Scripted(HELLO)}, config)
        with client_of(running, "alices-key") as alice:
            conversation = alice.conversations.create(items=[user("Hi")])
            (item,) = alice.conversations.items.list(conversation.id)
            last = list(alice.responses.create(model="m", input="Hi", background=True, stream=True))[-1]
            assert last.type == "response.completed"
            theirs = {
                "RESPONSE": last.response.id,
                "CONVERSATION": conversation.id,
                "ITEM": str(item.id),
                "CHAT": alice.chat.completions.create(**HI, store=True).id,
            }
        nobodys = {kind: name[:-8] + "0" * 8 for kind, name in theirs.items()}

        def told(method: str, path: str, body: JSON, ids: dict[str, str]) -> tuple[int, str]:
            text = json.dumps(body)
            for kind, name in ids.items():
                path, text = path.replace(kind, name), text.replace(kind, name)
            data = None if body is None else text.encode()
            answer = running.request(method, path, data, {"authorization": "Bearer bobs-key"})
            said = answer.body.decode()
            for kind, name in ids.items():
                said = said.replace(name, kind)
            return answer.status, said

        ask = {"model": "m", "input": "Hi"}
        asked: list[tuple[str, str, JSON]] = [
            ("GET", "/v1/responses/RESPONSE", None),
            ("GET", "/v1/responses/RESPONSE?stream=true", None),
            ("GET", "/v1/responses/RESPONSE/input_items", None),
            ("POST", "/v1/responses/RESPONSE/cancel", {}),
            ("DELETE", "/v1/responses/RESPONSE", None),
            ("POST", "/v1/responses", {**ask, "previous_response_id": "RESPONSE"}),
            ("POST", "/v1/responses", {**ask, "conversation": "CONVERSATION"}),
            ("POST", "/v1/responses", {**ask, "input": [{"type": "item_reference", "id": "ITEM"}]}),
            ("GET", "/v1/conversations/CONVERSATION", None),
            ("POST", "/v1/conversations/CONVERSATION", {"metadata": {}}),
            ("GET", "/v1/conversations/CONVERSATION/items", None),
            ("POST", "/v1/conversations/CONVERSATION/items", {"items": []}),
            ("GET", "/v1/conversations/CONVERSATION/items/ITEM", None),
            ("DELETE", "/v1/conversations/CONVERSATION/items/ITEM", None),
            ("DELETE", "/v1/conversations/CONVERSATION", None),
            ("GET", "/v1/chat/completions/CHAT", None),
            ("GET", "/v1/chat/completions/CHAT/messages", None),
            ("POST", "/v1/chat/completions/CHAT", {"metadata": {}}),
            ("DELETE", "/v1/chat/completions/CHAT", None),
        ]
        found = [told(*request, theirs) for request in asked]
        assert found == [told(*request, nobodys) for request in asked]
        assert {status for status, _ in found} == {400, 404}
        assert json.loads(told("GET", "/v1/chat/completions", None, {})[1])["data"] == []

    @pytest.mark.parametrize("name", ["resp_", "resp_%C3%A9", "resp_%00", "x" * 5000, "conv_1", "a/b"])
    def test_odd_ids_are_unknown_ones(self, running: RunningGateway, name: str) -> None:
        answer = running.request("GET", f"/v1/responses/{name}")
        assert (answer.status, answer.json["error"]["type"]) == (404, "invalid_request_error")


class TestHistory:
    """What an answer goes on from."""

    def test_pitfall_60_items_go_on_and_instructions_do_not(self, client: OpenAI, scripted: Scripted) -> None:
        first = client.responses.create(model="m", input="Hi", instructions="Be brief.")
        second = client.responses.create(model="m", input=[user("And?")], previous_response_id=first.id)
        client.responses.create(model="m", input="So?", previous_response_id=second.id, instructions="Be kind.")
        assert second.previous_response_id == first.id
        hi, hello, go_on = ("user", ["Hi"]), ("assistant", ["Hello"]), ("user", ["And?"])
        assert [turns_of(request) for request in scripted.requests] == [
            [("system", ["Be brief."]), hi],
            [hi, hello, go_on],
            [("system", ["Be kind."]), hi, hello, go_on, hello, ("user", ["So?"])],
        ]
        assert [request.previous for request in scripted.requests] == [None] * 3

    def test_pitfall_59_calls_and_their_results_go_on(self, gateway_server: Callable[..., RunningGateway]) -> None:
        scripted = Scripted(CALLING, HELLO, HELLO)
        with client_of(gateway_server({"scripted": scripted})) as client:
            asked = client.responses.create(model="m", input="What time is it?")
            told = client.responses.create(model="m", input=[CLOCK], previous_response_id=asked.id)
            client.responses.create(model="m", input="Thanks", previous_response_id=told.id)
        assert turns_of(scripted.requests[2]) == [
            ("user", ["What time is it?"]),
            ("assistant", ["Reasoning", "Let me look.", "ToolCall"]),
            ("tool", ["ToolResult"]),
            ("assistant", ["Hello"]),
            ("user", ["Thanks"]),
        ]

    def test_pitfall_59_references_are_resolved(self, gateway_server: Callable[..., RunningGateway]) -> None:
        scripted = Scripted(CALLING, HELLO)
        with client_of(gateway_server({"scripted": scripted})) as client:
            asked = client.responses.create(model="m", input="What time is it?")
            call = next(item.id for item in asked.output if item.type == "function_call")
            items = [user("Again"), {"type": "item_reference", "id": call}, CLOCK]
            client.responses.create(model="m", input=items)
            assert turns_of(scripted.requests[1]) == [
                ("user", ["Again"]),
                ("assistant", ["Reasoning", "ToolCall"]),  # what the client left out comes back
                ("tool", ["ToolResult"]),
            ]
            with pytest.raises(NotFoundError, match="Item with id 'fc_none' not found"):
                client.responses.create(model="m", input=[{"type": "item_reference", "id": "fc_none"}])

    def test_pitfall_59_an_unknown_previous_answer(self, client: OpenAI, scripted: Scripted) -> None:
        with pytest.raises(BadRequestError) as caught:
            client.responses.create(model="m", input="Hi", previous_response_id="resp_none")
        assert error_of(caught.value) == (
            400,
            {
                "message": "Previous response with id 'resp_none' not found.",
                "type": "invalid_request_error",
                "param": "previous_response_id",
                "code": "previous_response_not_found",
            },
        )
        assert scripted.requests == []

    def test_what_is_not_kept_can_still_go_on(self, client: OpenAI, scripted: Scripted) -> None:
        first = client.responses.create(model="m", input="Hi")
        second = client.responses.create(model="m", input="And?", previous_response_id=first.id, store=False)
        assert (second.previous_response_id, second.to_dict()["store"]) == (first.id, False)
        assert turns_of(scripted.requests[1]) == [("user", ["Hi"]), ("assistant", ["Hello"]), ("user", ["And?"])]
        with pytest.raises(NotFoundError):
            client.responses.retrieve(second.id)

    def test_two_ways_to_go_on_contradict_each_other(self, client: OpenAI) -> None:
        with pytest.raises(BadRequestError, match="cannot be given together with `conversation`"):
            client.responses.create(model="m", input="Hi", previous_response_id="resp_1", conversation="conv_1")

    def test_input_items_are_all_that_the_model_was_given_page_by_page(self, client: OpenAI) -> None:
        first = client.responses.create(model="m", input="Hi")
        second = client.responses.create(model="m", input="And?", previous_response_id=first.id)
        read = {
            order: [
                (item.to_dict()["role"], text_of(item))
                for item in client.responses.input_items.list(second.id, order=order, limit=2)
            ]
            for order in ("asc", "desc")
        }
        turns = [("user", "Hi"), ("assistant", "Hello"), ("user", "And?")]
        assert read == {"asc": turns, "desc": turns[::-1]}
        assert client.responses.input_items.list(second.id).has_more is False

    @pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x", "order=up", "after=%00"])
    def test_a_page_that_is_none(self, client: OpenAI, running: RunningGateway, query: str) -> None:
        answer = client.responses.create(model="m", input="Hi")
        refused = running.request("GET", f"/v1/responses/{answer.id}/input_items?{query}")
        assert (refused.status, refused.json["error"]["param"]) == (400, query.partition("=")[0])


class TestConversations:
    """Lists of items that answers add to."""

    def test_a_conversation_from_its_beginning_to_its_end(self, client: OpenAI) -> None:
        made = client.conversations.create(metadata={"topic": "demo"})
        assert (made.object, made.metadata) == ("conversation", {"topic": "demo"})
        assert client.conversations.retrieve(made.id) == made
        changed = client.conversations.update(made.id, metadata={"topic": "else"})
        assert changed.metadata == client.conversations.retrieve(made.id).metadata == {"topic": "else"}
        gone = client.conversations.delete(made.id)
        assert (gone.id, gone.object, gone.deleted) == (made.id, "conversation.deleted", True)
        with pytest.raises(NotFoundError, match=f"Conversation with id '{made.id}' not found."):
            client.conversations.retrieve(made.id)

    def test_items_one_by_one(self, client: OpenAI) -> None:
        conversation = client.conversations.create(items=[user("one")])
        added = client.conversations.items.create(conversation.id, items=[user("two"), CLOCK])
        listed = list(client.conversations.items.list(conversation.id, order="asc", limit=1))
        assert [item.type for item in listed] == ["message", "message", "function_call_output"]
        assert listed[1:] == added.data
        name = str(added.data[0].id)
        assert client.conversations.items.retrieve(name, conversation_id=conversation.id) == added.data[0]
        assert client.conversations.items.delete(name, conversation_id=conversation.id) == conversation
        with pytest.raises(NotFoundError, match=f"Item with id '{name}' not found in conversation"):
            client.conversations.items.retrieve(name, conversation_id=conversation.id)
        assert list(client.conversations.items.list(conversation.id)) == [listed[2], listed[0]]

    @pytest.mark.parametrize("stream", [False, True])
    def test_answers_add_to_it_and_go_on_from_it(self, client: OpenAI, scripted: Scripted, stream: bool) -> None:  # noqa: FBT001  a case
        conversation = client.conversations.create(items=[user("My name is Ada.")])
        for text in ("Hi", "Who am I?"):
            answer = client.responses.create(model="m", input=text, conversation=conversation.id, stream=stream)
            for event in answer if stream else ():
                assert event is not None
        name, hi, hello = ("user", ["My name is Ada."]), ("user", ["Hi"]), ("assistant", ["Hello"])
        assert [turns_of(request) for request in scripted.requests] == [
            [name, hi],
            [name, hi, hello, ("user", ["Who am I?"])],
        ]
        texts = [text_of(item) for item in client.conversations.items.list(conversation.id, order="asc")]
        assert texts == ["My name is Ada.", "Hi", "Hello", "Who am I?", "Hello"]

    def test_an_answer_says_which_it_belongs_to(self, client: OpenAI) -> None:
        conversation = client.conversations.create()
        answer = client.responses.create(model="m", input="Hi", conversation={"id": conversation.id})
        assert answer.conversation is not None
        assert answer.conversation.id == conversation.id
        assert client.responses.retrieve(answer.id) == answer

    def test_what_is_not_kept_does_not_add_to_it(self, client: OpenAI, scripted: Scripted) -> None:
        conversation = client.conversations.create(items=[user("one")])
        client.responses.create(model="m", input="two", conversation=conversation.id, store=False)
        assert turns_of(scripted.requests[0]) == [("user", ["one"]), ("user", ["two"])]
        assert len(list(client.conversations.items.list(conversation.id))) == 1

    def test_ids_that_repeat_hide_nothing(self, client: OpenAI, scripted: Scripted) -> None:
        conversation = client.conversations.create()
        for number in range(250):
            client.conversations.items.create(conversation.id, items=[user(str(number)) | {"id": "msg_same"}])
        client.responses.create(model="m", input="last", conversation=conversation.id)
        turns = [("user", [str(number)]) for number in range(250)]
        assert turns_of(scripted.requests[0]) == [*turns, ("user", ["last"])]

    def test_an_item_that_is_referred_to_has_one_id_in_each_place(self, client: OpenAI) -> None:
        conversation = client.conversations.create(items=[user("one")])
        (first,) = client.conversations.items.list(conversation.id)
        client.responses.create(
            model="m", input=[{"type": "item_reference", "id": str(first.id)}], conversation=conversation.id
        )
        listed = list(client.conversations.items.list(conversation.id, order="asc", limit=1))
        assert [text_of(item) for item in listed] == ["one", "one", "Hello"]
        assert len({item.id for item in listed}) == 3

    @pytest.mark.parametrize(
        ("item", "status"),
        [
            pytest.param({"type": {}}, 400, id="no-kind"),
            pytest.param({"role": [], "content": "x"}, 200, id="no-role"),
            pytest.param({"role": "user", "content": "x", "id": "a\0b"}, 200, id="an-id-of-no-use"),
            pytest.param({"role": "user", "content": "x", "id": "x" * 300}, 200, id="a-long-id"),
        ],
    )
    def test_odd_items(self, running: RunningGateway, item: JSON, status: int) -> None:
        made = running.request("POST", "/v1/conversations", {"items": [item]})
        assert made.status == status
        if status == 200:
            listed = running.request("GET", f"/v1/conversations/{made.json['id']}/items").json["data"]
            name = listed[0]["id"]
            assert running.request("GET", f"/v1/conversations/{made.json['id']}/items/{name}").json == listed[0]

    def test_an_unknown_one(self, client: OpenAI, scripted: Scripted) -> None:
        with pytest.raises(NotFoundError) as caught:
            client.responses.create(model="m", input="Hi", conversation="conv_none")
        body = {
            "message": "Conversation with id 'conv_none' not found.",
            "type": "invalid_request_error",
            "param": None,
            "code": None,
        }
        assert error_of(caught.value) == (404, body)
        assert scripted.requests == []


class TestChatCompletions:
    """Chat completions with `store: true`."""

    @pytest.mark.parametrize("stream", [False, True])
    def test_one_is_told_listed_labelled_and_deleted(self, client: OpenAI, stream: bool) -> None:  # noqa: FBT001  a case
        made: JSON = client.chat.completions.create(**HI, store=True, metadata={"run": "1"}, stream=stream)
        name = {chunk.id for chunk in made}.pop() if stream else made.id
        told = client.chat.completions.retrieve(name)
        assert (told.id, told.choices[0].message.content, told.object) == (name, "Hello", "chat.completion")
        assert told.usage is not None
        assert told.usage.completion_tokens == 2
        assert [listed.id for listed in client.chat.completions.list()] == [name]
        changed = client.chat.completions.update(name, metadata={"run": "2"})
        assert changed.to_dict()["metadata"] == {"run": "2"}
        assert client.chat.completions.retrieve(name) == changed
        messages = [(m.role, m.content, m.id) for m in client.chat.completions.messages.list(name)]
        assert messages == [("user", "Hi", f"{name}-0")]
        gone = client.chat.completions.delete(name)
        assert (gone.id, gone.deleted, gone.object) == (name, True, "chat.completion.deleted")
        with pytest.raises(NotFoundError, match=f"Chat completion with id '{name}' not found."):
            client.chat.completions.retrieve(name)

    def test_who_says_nothing_has_nothing_kept(self, client: OpenAI) -> None:
        client.chat.completions.create(**HI)
        assert list(client.chat.completions.list()) == []

    def test_a_list_is_narrowed_to_a_model_and_to_labels(self, client: OpenAI) -> None:
        made = [client.chat.completions.create(**HI, store=True, metadata={"run": run}).id for run in ("1", "2", "2")]
        found = [
            [listed.id for listed in client.chat.completions.list(limit=1, **narrow)]
            for narrow in ({}, {"order": "desc"}, {"metadata": {"run": "2"}}, {"model": "m"}, {"model": "other"})
        ]
        assert found == [made, made[::-1], made[1:], made, []]

    def test_answers_of_one_dialect_are_none_of_anothers(self, client: OpenAI) -> None:
        kept = client.chat.completions.create(**HI, store=True).id
        with pytest.raises(NotFoundError):
            client.responses.retrieve(kept)
