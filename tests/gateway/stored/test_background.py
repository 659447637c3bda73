"""Answers made in the background: polled, followed, cancelled, and left behind by a gateway that is gone."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from openai import BadRequestError, NotFoundError, OpenAI

from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.scripted_backends import FIRST_EVENTS, HELLO, BlockingBackend, FailingBackend
from tests.gateway.stored.test_intake import client_of, text_of, turns_of, user
from tests.store.postgresql import running as running_server
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.stored.background import BackgroundJob
from xenoglot.model.events import BlockEnded, Failed, Finished, TextDelta
from xenoglot.model.failure import Failure
from xenoglot.model.response import Finish
from xenoglot.store.postgres import Postgres
from xenoglot.store.sqlite import SQLite

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from openai.types.responses import Response

    from tests.gateway.running_gateway import AccessLines, RunningGateway
    from xenoglot.backends.backend import Answer, Backend, Call
    from xenoglot.store.store import Store

ENDING = (TextDelta(text="lo"), BlockEnded(), Finished(finish=Finish(reason="stop")))
LIFE = [
    "response.created",
    "response.queued",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
]


@pytest.fixture
def hanging() -> BlockingBackend:
    """A backend that says "Hel", and the rest when it is told to go on."""
    return BlockingBackend(FIRST_EVENTS, ENDING)


@pytest.fixture
def client(gateway_server: Callable[..., RunningGateway], hanging: BlockingBackend) -> Generator[OpenAI]:
    """The SDK, speaking to a gateway in front of it."""
    with client_of(gateway_server({"scripted": hanging})) as made:
        yield made


def until(client: OpenAI, name: str, *statuses: str) -> Response:
    """Ask for an answer until it has one of the statuses."""
    end = time.monotonic() + TIMEOUT
    while True:
        answer = client.responses.retrieve(name)
        if answer.status in statuses:
            return answer
        assert time.monotonic() < end, answer.status


def test_one_is_polled_until_it_is_done(client: OpenAI, hanging: BlockingBackend) -> None:
    queued = client.responses.create(model="m", input="Hi", background=True)
    assert (queued.status, queued.background, queued.output, queued.model) == ("queued", True, [], "m")
    assert hanging.called.wait(TIMEOUT)
    working = until(client, queued.id, "in_progress")
    assert (working.id, working.output) == (queued.id, [])
    hanging.resume()
    done = until(client, queued.id, "completed")
    assert (done.id, done.output_text, done.background, done.created_at) == (
        queued.id,
        "Hello",
        True,
        queued.created_at,
    )


def test_one_is_followed_from_the_beginning_and_from_anywhere(client: OpenAI, hanging: BlockingBackend) -> None:
    stream = client.responses.create(model="m", input="Hi", background=True, stream=True)
    first = next(stream)
    assert first.type == "response.created"
    assert first.response.status == "queued"
    assert hanging.called.wait(TIMEOUT)
    hanging.resume()
    events = [first, *stream]
    assert [(event.sequence_number, event.type) for event in events] == list(enumerate(LIFE))
    for after in (0, 5, len(LIFE) - 1):
        again = client.responses.retrieve(first.response.id, stream=True, starting_after=after)
        assert list(again) == events[after + 1 :]
    assert list(client.responses.retrieve(first.response.id, stream=True)) == events


LOST = "$ none dropped (the dialect has no such field)"


class Losing(BlockingBackend):
    """A backend that loses something before it answers."""

    async def answer(self, call: Call) -> Answer:
        """Answer, with a loss."""
        call.losses.dropped("$", "none", "the dialect has no such field")
        return await super().answer(call)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
def test_what_was_lost_is_told_to_who_asks_for_it(
    gateway_server: Callable[..., RunningGateway], *, streamed: bool
) -> None:
    """Whoever began it had gone by then; the answer itself cannot say it."""
    losing = Losing(FIRST_EVENTS, ENDING)
    with client_of(gateway_server({"scripted": losing})) as client:
        made: Any = client.responses.create(model="m", input="Hi", background=True, stream=streamed)
        name = next(made).response.id if streamed else made.id
        assert losing.called.wait(TIMEOUT)
        assert "x-xenoglot-losses" not in client.responses.with_raw_response.retrieve(name).headers
        losing.resume()
        until(client, name, "completed")
        lost = client.responses.with_raw_response.retrieve(name).headers["x-xenoglot-losses"]
        assert lost.startswith(f"{LOST}; $ usage approximated")
        if streamed:
            again = client.responses.with_raw_response.retrieve(name, stream=True)
            assert again.http_response.read().decode().endswith(f": x-xenoglot-losses: {lost}\n\n")
            assert [event.type for event in client.responses.retrieve(name, stream=True)] == LIFE


def test_what_a_failed_one_lost_is_told(gateway_server: Callable[..., RunningGateway]) -> None:
    losing = Losing(FIRST_EVENTS, (Failed(failure=Failure(kind="upstream", message="broken")),))
    with client_of(gateway_server({"scripted": losing})) as client:
        name = client.responses.create(model="m", input="Hi", background=True).id
        assert losing.called.wait(TIMEOUT)
        losing.resume()
        until(client, name, "failed")
        assert client.responses.with_raw_response.retrieve(name).headers["x-xenoglot-losses"] == LOST


def test_several_follow_while_it_is_made(client: OpenAI, hanging: BlockingBackend) -> None:
    stream = client.responses.create(model="m", input="Hi", background=True, stream=True)
    first = next(stream)
    assert first.type == "response.created"
    other = client.responses.retrieve(first.response.id, stream=True, starting_after=2)
    begun = next(other)
    assert begun.sequence_number == 3
    hanging.resume()
    assert [event.type for event in (first, *stream)] == LIFE
    assert [event.type for event in (begun, *other)] == LIFE[3:]


def test_a_client_that_leaves_does_not_stop_it(client: OpenAI, hanging: BlockingBackend) -> None:
    stream = client.responses.create(model="m", input="Hi", background=True, stream=True)
    first = next(stream)
    assert first.type == "response.created"
    assert hanging.called.wait(TIMEOUT)
    stream.close()
    hanging.resume()
    events = list(client.responses.retrieve(first.response.id, stream=True, starting_after=0))
    assert [event.type for event in events] == LIFE[1:]
    assert client.responses.retrieve(first.response.id).output_text == "Hello"


def test_to_cancel_one_closes_the_upstream(client: OpenAI, hanging: BlockingBackend, access_lines: AccessLines) -> None:
    stream = client.responses.create(model="m", input="Hi", background=True, stream=True)
    first = next(stream)
    assert first.type == "response.created"
    assert hanging.called.wait(TIMEOUT)
    cancelled = client.responses.cancel(first.response.id)
    assert (cancelled.status, cancelled.id) == ("cancelled", first.response.id)
    assert hanging.cancelled.wait(TIMEOUT)
    assert [event.type for event in stream] == LIFE[1:6]
    assert client.responses.cancel(first.response.id) == cancelled == client.responses.retrieve(first.response.id)
    lines = [access_lines.next() for _ in range(5)]
    assert sorted((line["route"], line["method"]) for line in lines) == [
        ("/v1/responses", "POST"),
        ("/v1/responses", "POST"),
        ("/v1/responses/{id}", "GET"),
        ("/v1/responses/{id}/cancel", "POST"),
        ("/v1/responses/{id}/cancel", "POST"),
    ]


def test_one_that_is_stopped_before_it_begins_is_forgotten(
    gateway_server: Callable[..., RunningGateway], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = BackgroundJob.run

    def begin_and_cancel(job: BackgroundJob, *arguments: Any) -> None:  # noqa: ANN401  those of what it stands for
        begin(job, *arguments)
        job.cancel()

    monkeypatch.setattr(BackgroundJob, "run", begin_and_cancel)
    running = gateway_server({"scripted": BlockingBackend()})
    keeper = running.gateway.keeper
    assert keeper is not None
    with client_of(running) as client:
        queued = client.responses.create(model="m", input="Hi", background=True)
        keeper.now = lambda: time.time() + 60
        assert client.responses.retrieve(queued.id).status == "failed"
    assert keeper.jobs == {}


def test_to_delete_one_stops_it(client: OpenAI, hanging: BlockingBackend) -> None:
    queued = client.responses.create(model="m", input="Hi", background=True)
    assert hanging.called.wait(TIMEOUT)
    client.responses.delete(queued.id)
    assert hanging.cancelled.wait(TIMEOUT)
    with pytest.raises(NotFoundError):
        client.responses.retrieve(queued.id)


def test_an_answer_in_the_making_is_not_gone_on_from(client: OpenAI, hanging: BlockingBackend) -> None:
    queued = client.responses.create(model="m", input="Hi", background=True)
    assert hanging.called.wait(TIMEOUT)
    with pytest.raises(BadRequestError, match="Previous response with id"):
        client.responses.create(model="m", input="And?", previous_response_id=queued.id)


def test_a_synchronous_answer_cannot_be_cancelled(gateway_server: Callable[..., RunningGateway]) -> None:
    with client_of(gateway_server({"scripted": Scripted(HELLO)})) as client:
        answer = client.responses.create(model="m", input="Hi")
        with pytest.raises(BadRequestError, match=r"Cannot cancel a synchronous response\."):
            client.responses.cancel(answer.id)
        with pytest.raises(BadRequestError, match="cannot be streamed"):
            client.responses.retrieve(answer.id, stream=True)


def test_what_is_not_kept_is_not_made_in_the_background(client: OpenAI) -> None:
    with pytest.raises(BadRequestError, match="`store` must not be false"):
        client.responses.create(model="m", input="Hi", background=True, store=False)


@pytest.mark.parametrize(
    ("backend", "code", "message"),
    [
        pytest.param(
            Scripted(Failure(kind="rate_limit", message="too many")), "rate_limit_exceeded", "too many", id="refused"
        ),
        pytest.param(
            Scripted((*FIRST_EVENTS, Failed(failure=Failure(kind="upstream", message="the upstream broke off")))),
            "upstream_error",
            "the upstream broke off",
            id="broken-off",
        ),
        pytest.param(
            Scripted(FIRST_EVENTS),
            "upstream_error",
            "connection lost: the answer ended without being complete",
            id="ended-early",
        ),
        pytest.param(
            FailingBackend(),
            "internal_error",
            "internal error: the gateway failed; search its log for the request's id",
            id="a-bug",
        ),
    ],
)
def test_one_that_fails_says_why(
    gateway_server: Callable[..., RunningGateway], backend: Backend, code: str, message: str
) -> None:
    with client_of(gateway_server({"scripted": backend})) as client:
        events = list(client.responses.create(model="m", input="Hi", background=True, stream=True))
        last = events[-1]
        assert last.type == "response.failed"
        assert [event.sequence_number for event in events] == list(range(len(events)))
        assert last.response.error is not None
        assert (last.response.status, last.response.error.code, last.response.error.message) == (
            "failed",
            code,
            message,
        )
        assert client.responses.retrieve(last.response.id) == last.response


def test_a_wrong_request_is_refused_at_once(client: OpenAI, gateway_server: Callable[..., RunningGateway]) -> None:
    with pytest.raises(BadRequestError, match="temperature"):
        client.responses.create(model="m", input="Hi", background=True, extra_body={"temperature": "hot"})
    running = gateway_server({"one": BlockingBackend()}, embedded_model="only")
    assert running.request("POST", "/v1/responses", {"model": "", "input": "Hi", "background": True}).status == 404


class TestConversations:
    """Jobs that belong to a conversation."""

    def test_one_at_a_time(self, client: OpenAI, hanging: BlockingBackend) -> None:
        conversation = client.conversations.create(items=[user("one")])
        queued = client.responses.create(model="m", input="two", conversation=conversation.id, background=True)
        assert hanging.called.wait(TIMEOUT)
        with pytest.raises(BadRequestError) as caught:
            client.responses.create(model="m", input="three", conversation=conversation.id)
        assert caught.value.body == {
            "message": "Another process is currently operating on this conversation. Please retry in a few seconds.",
            "type": "invalid_request_error",
            "param": "conversation",
            "code": "conversation_locked",
        }
        hanging.resume()
        until(client, queued.id, "completed")
        texts = [text_of(item) for item in client.conversations.items.list(conversation.id, order="asc")]
        assert texts == ["one", "two", "Hello"]
        client.responses.create(model="m", input="three", conversation=conversation.id, background=True)

    def test_the_next_can_begin_when_one_is_seen_to_end(self, gateway_server: Callable[..., RunningGateway]) -> None:
        scripted = Scripted(HELLO)
        with client_of(gateway_server({"scripted": scripted})) as client:
            conversation = client.conversations.create()
            for number in range(5):
                for event in client.responses.create(
                    model="m", input=str(number), conversation=conversation.id, stream=True
                ):
                    if event.type == "response.completed":
                        break
            assert len(turns_of(scripted.requests[-1])) == 9


class TestSeveralGateways:
    """Gateways that share a store, one after the other or at once."""

    @pytest.fixture(params=["sqlite", "postgresql"])
    def shared(self, request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Callable[[], Store]]:
        """Give a function that gives stores, all in one place."""
        if request.param == "sqlite":
            yield lambda: SQLite(tmp_path / "state.db")
            return
        with running_server() as server:
            yield lambda: Postgres(server.url())

    def test_one_that_is_gone_has_failed(
        self, shared: Callable[[], Store], gateway_server: Callable[..., RunningGateway]
    ) -> None:
        hanging = BlockingBackend(FIRST_EVENTS, ENDING)
        one = gateway_server({"scripted": hanging}, store=shared())
        other = gateway_server({"scripted": BlockingBackend()}, store=shared())
        with client_of(one) as before, client_of(other) as after:
            stream = before.responses.create(model="m", input="Hi", background=True, stream=True)
            first = next(stream)
            assert first.type == "response.created"
            assert hanging.called.wait(TIMEOUT)
            assert until(after, first.response.id, "in_progress").error is None
            assert other.gateway.keeper is not None
            other.gateway.keeper.now = lambda: time.time() + 1000
            told = list(after.responses.retrieve(first.response.id, stream=True))
            assert [event.type for event in told] == [*LIFE[:6], "response.failed"]
            assert [event.sequence_number for event in told] == list(range(7))
            failed = after.responses.retrieve(first.response.id)
            assert failed.error is not None
            assert (failed.status, failed.error.code) == ("failed", "internal_error")
            assert after.responses.retrieve(first.response.id) == failed == before.responses.retrieve(failed.id)

    def test_one_follows_and_cancels_what_another_makes(
        self,
        shared: Callable[[], Store],
        gateway_server: Callable[..., RunningGateway],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("xenoglot.gateway.store_service.LEASE", 0.3)
        monkeypatch.setattr("xenoglot.gateway.stored.background.LEASE", 30.0)
        monkeypatch.setattr("xenoglot.gateway.stored.background.LOOK_SECONDS", 0.01)
        hanging = BlockingBackend(FIRST_EVENTS, ENDING)
        one = gateway_server({"scripted": hanging}, store=shared())
        other = gateway_server({"scripted": BlockingBackend()}, store=shared())
        with client_of(one) as maker, client_of(other) as watcher:
            stream = maker.responses.create(model="m", input="Hi", background=True, stream=True)
            first = next(stream)
            assert first.type == "response.created"
            assert hanging.called.wait(TIMEOUT)
            following = watcher.responses.retrieve(first.response.id, stream=True)
            assert next(following) == first
            assert watcher.responses.cancel(first.response.id).status == "cancelled"
            assert hanging.cancelled.wait(TIMEOUT)
            assert [event.type for event in following] == [event.type for event in stream] == LIFE[1:6]

    def test_one_that_is_stopped_says_so(
        self, shared: Callable[[], Store], gateway_server: Callable[..., RunningGateway]
    ) -> None:
        hanging = BlockingBackend(FIRST_EVENTS, ENDING)
        one = gateway_server({"scripted": hanging}, store=shared())
        with client_of(one) as client:
            queued = client.responses.create(model="m", input="Hi", background=True)
            assert hanging.called.wait(TIMEOUT)
        one.stop()
        assert hanging.cancelled.is_set()
        with client_of(gateway_server({"scripted": BlockingBackend()}, store=shared())) as client:
            failed = client.responses.retrieve(queued.id)
        assert failed.error is not None
        assert (failed.status, failed.error.code) == ("failed", "service_unavailable")
