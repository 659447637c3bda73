"""Batches on the gateway, by the official SDKs: made, answered, told, cancelled, expired; and what is refused."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING

import pytest
from anthropic import Anthropic
from anthropic import NotFoundError as MissingError
from msgspec.structs import replace
from openai import BadRequestError, NotFoundError, OpenAI

from tests.gateway.api.test_operations import Embedding
from tests.gateway.batches.batch_requests import (
    CHAT,
    FINISHED,
    PartlyAnsweringBackend,
    body,
    create_batch,
    input_line,
    jsonl,
    message,
    output_lines,
    wait_for_status,
    wait_until_ended,
)
from tests.gateway.running_gateway import TIMEOUT, config_for
from tests.gateway.scripted_backends import HELLO, Backend
from tests.gateway.stored.test_intake import client_of
from xenoglot.backends.scripted import Scripted
from xenoglot.errors import FailureError
from xenoglot.gateway.auth.file_keys import build_keyring
from xenoglot.gateway.batches.worker import TRIES
from xenoglot.gateway.config.file_permissions import Secrets
from xenoglot.gateway.config.limits import LimitSettings
from xenoglot.gateway.config.settings import BatchSettings, KeySettings, ServerSettings
from xenoglot.gateway.config.tenants import Tenant
from xenoglot.gateway.limits.limiter import MemoryLimiter
from xenoglot.model.failure import Failure
from xenoglot.policy.target_health import BreakerSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from tests.gateway.running_gateway import RunningGateway
    from xenoglot.backends.backend import Answer, Call
    from xenoglot.model.failure import FailureKind
    from xenoglot.model.json import JSON, JSONObject

CONFIG = config_for("scripted")
DAY = 86_400


@pytest.fixture
def client(gateway_server: Callable[..., RunningGateway]) -> Generator[OpenAI]:
    """The SDK, speaking to a gateway that says hello."""
    with client_of(gateway_server({"scripted": Scripted(HELLO)}, CONFIG)) as made:
        yield made


def anthropic_of(running: RunningGateway, key: str = "nobody's") -> Anthropic:
    return Anthropic(base_url=running.url, api_key=key, max_retries=0)


def now_of(running: RunningGateway, seconds: float) -> None:
    """Have it be so many seconds later, and the gateway look."""
    keeper = running.gateway.keeper
    assert keeper is not None
    keeper.now = lambda: time.time() + seconds
    running.gateway.runner().keeper.now = keeper.now


def waiting(running: RunningGateway) -> list[float]:
    """Have the gateway's waits pass at once; return how long they were."""
    dispatcher, waits = running.gateway.dispatcher, [0.0]
    limiter = running.gateway.limiter

    def clock() -> float:
        return time.monotonic() + sum(waits)

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await asyncio.sleep(0)

    assert isinstance(limiter, MemoryLimiter)
    dispatcher.sleep, dispatcher.clock, limiter.clock = sleep, clock, clock
    return waits


def wait(condition: Callable[[], object]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


class TestWithFiles:
    """OpenAI's: a file in, files out."""

    def test_one_is_answered_line_by_line(self, client: OpenAI) -> None:
        lines = [input_line("a"), b"", input_line("b", body(frequency_penalty="much")), input_line("ü\u2028\x00")]
        batch = create_batch(client, b"\xef\xbb\xbf" + b"\r\n".join(lines))
        assert (batch.object, batch.endpoint, batch.completion_window) == ("batch", CHAT, "24h")
        assert (batch.expires_at or 0) - batch.created_at == DAY
        done = wait_for_status(client, batch.id, *FINISHED)
        counts = done.request_counts
        assert counts is not None
        assert (done.status, counts.total, counts.completed, counts.failed) == ("completed", 3, 2, 1)
        assert None not in (done.in_progress_at, done.finalizing_at, done.completed_at)
        assert done.usage is not None
        assert (done.usage.input_tokens, done.usage.output_tokens, done.usage.total_tokens) == (10, 4, 14)
        answers, errors = output_lines(client, done.output_file_id), output_lines(client, done.error_file_id)
        assert (set(answers), set(errors)) == ({"a", "ü\u2028\x00"}, {"b"})
        response = answers["a"]["response"]
        assert (response["status_code"], answers["a"]["error"]) == (200, None)
        assert response["body"]["choices"][0]["message"]["content"] == "Hello"
        assert response["request_id"].startswith("req_")
        wrong = errors["b"]["response"]
        assert (wrong["status_code"], wrong["body"]["error"]["param"]) == (400, "frequency_penalty")

    @pytest.mark.parametrize(
        ("url", "said", "found"),
        [
            pytest.param("/v1/responses", {"model": "m", "input": "Hi"}, "response", id="responses"),
            pytest.param("/v1/completions", {"model": "m", "prompt": "Hi"}, "text_completion", id="completions"),
            pytest.param("/v1/messages", body(), None, id="messages"),
        ],
    )
    def test_one_is_for_any_endpoint(self, client: OpenAI, url: str, said: JSONObject, found: str | None) -> None:
        done = wait_for_status(client, create_batch(client, jsonl(input_line("a", said, url)), url).id, *FINISHED)
        assert done.status == "completed", done
        answer = output_lines(client, done.output_file_id)["a"]["response"]["body"]
        assert (answer.get("object"), "Hello" in json.dumps(answer)) == (found, True)

    def test_one_is_for_embeddings(self, gateway_server: Callable[..., RunningGateway]) -> None:
        with client_of(gateway_server({"scripted": Embedding()}, CONFIG)) as client:
            url, said = "/v1/embeddings", {"model": "m", "input": "Hi"}
            done = wait_for_status(
                client,
                create_batch(client, jsonl(input_line("a", said, url), input_line("b", {}, url)), url).id,
                *FINISHED,
            )
            answer = output_lines(client, done.output_file_id)["a"]["response"]["body"]
            assert (answer["object"], answer["data"][0]["object"]) == ("list", "embedding")
            assert output_lines(client, done.error_file_id)["b"]["response"]["status_code"] == 400

    def test_an_answer_of_one_is_kept_for_its_client(self, gateway_server: Callable[..., RunningGateway]) -> None:
        config = replace(CONFIG, keys=KeySettings(env=("CLIENTS",)), secrets=Secrets({"CLIENTS": "alice bob"}))
        running = gateway_server({"scripted": Scripted(HELLO)}, config)
        with client_of(running, "alice") as alice, client_of(running, "bob") as bob:
            said = {"model": "m", "input": "Hi"}
            batch = create_batch(alice, jsonl(input_line("a", said, "/v1/responses")), "/v1/responses")
            done = wait_for_status(alice, batch.id, *FINISHED)
            answer = output_lines(alice, done.output_file_id)["a"]["response"]["body"]["id"]
            assert alice.responses.retrieve(answer).output_text == "Hello"
            for act in (
                lambda: bob.responses.retrieve(answer),
                lambda: bob.batches.retrieve(batch.id),
                lambda: bob.batches.cancel(batch.id),
                lambda: bob.files.content(done.output_file_id or ""),
            ):
                with pytest.raises(NotFoundError):
                    act()
            assert list(bob.batches.list()) == []

    @pytest.mark.parametrize(
        ("data", "expected"),
        [
            pytest.param(b"", [("empty_file", None)], id="empty"),
            pytest.param(b"\n\r\n  \n", [("empty_file", None)], id="blank"),
            pytest.param(
                jsonl(input_line("a"), b"{", b"[]", input_line("b")),
                [("invalid_json_line", 2), ("invalid_json_line", 3)],
                id="no-json",
            ),
            pytest.param(
                jsonl(input_line("a"), input_line("b"), input_line("a")), [("duplicate_custom_id", 3)], id="twice"
            ),
            pytest.param(jsonl(input_line("a", url="/v1/embeddings")), [("url_mismatch", 1)], id="another-endpoint"),
            pytest.param(jsonl(input_line("a", url="/v1/files")), [("invalid_url", 1)], id="no-endpoint"),
            pytest.param(jsonl(b'{"custom_id": "a"}'), [("invalid_request", 1)], id="no-body"),
            pytest.param(jsonl(json.dumps(body()).encode()), [("missing_required_parameter", 1)], id="plain-body"),
            pytest.param(
                jsonl(*(input_line(str(number)) for number in range(9))), [("too_many_tasks", None)], id="too-many"
            ),
            pytest.param(b"\n" * 99, [("too_many_tasks", None)], id="blank-without-end"),
            pytest.param(
                jsonl(*[b"{"] * 9),
                [("invalid_json_line", 1 + one) for one in range(8)] + [("too_many_tasks", None)],
                id="all-wrong",
            ),
            pytest.param(jsonl(input_line("a" * 4_000), input_line("b")), [("line_too_long", 1)], id="long-line"),
            pytest.param(b"[" * 3_000, [("invalid_json_line", 1)], id="deep"),
        ],
    )
    def test_a_file_that_is_none_fails_by_its_lines(
        self, gateway_server: Callable[..., RunningGateway], data: bytes, expected: list[tuple[str, int | None]]
    ) -> None:
        config = replace(
            CONFIG, batches=BatchSettings(max_requests=8), server=ServerSettings(body_limit=4_000, drain_seconds=0.0)
        )
        with client_of(gateway_server({"scripted": Scripted(HELLO)}, config)) as client:
            done = wait_for_status(client, create_batch(client, data).id, *FINISHED)
            assert done.errors is not None
            assert [(error.code, error.line) for error in done.errors.data or ()] == expected
            counts = done.request_counts
            assert counts is not None
            assert (done.status, counts.total, done.output_file_id, done.error_file_id) == ("failed", 0, None, None)
            assert done.failed_at is not None

    def test_a_million_lines_end_soon(self, client: OpenAI) -> None:
        done = wait_for_status(client, create_batch(client, b"{}\n" * 1_000_000).id, *FINISHED)
        assert done.errors is not None
        assert len(done.errors.data or ()) == 100

    @pytest.mark.parametrize(
        ("changes", "param"),
        [
            pytest.param({"completion_window": "soon"}, "completion_window", id="window"),
            pytest.param({"completion_window": "999h"}, "completion_window", id="long-window"),
            pytest.param({"endpoint": "/v1/batches"}, "endpoint", id="endpoint"),
            pytest.param({"endpoint": "/v1/models/{model}:generateContent"}, "endpoint", id="template"),
            pytest.param({"input_file_id": "file-none"}, "input_file_id", id="unknown-file"),
            pytest.param({"input_file_id": "file-\x00"}, "input_file_id", id="no-id"),
            pytest.param({"input_file_id": 7}, "input_file_id", id="number"),
            pytest.param({"metadata": {"a": 1}}, "metadata", id="labels"),
            pytest.param({"metadata": dict.fromkeys(map(str, range(17)), "x")}, "metadata", id="many-labels"),
            pytest.param(
                {"output_expires_after": {"anchor": "created_at", "seconds": 1}}, "output_expires", id="brief"
            ),
        ],
    )
    def test_what_cannot_be_one_is_refused(self, client: OpenAI, changes: dict[str, JSON], param: str) -> None:
        file = client.files.create(file=("in.jsonl", jsonl(input_line("a"))), purpose="batch")
        usual = {"input_file_id": file.id, "endpoint": CHAT, "completion_window": "24h"}
        with pytest.raises(BadRequestError) as caught:
            client.post("/batches", body=usual | changes, cast_to=object)
        assert (caught.value.param or "").startswith(param)
        assert list(client.batches.list()) == []

    def test_what_no_batch_can_wait_for_fails_by_itself(self, client: OpenAI) -> None:
        done = wait_for_status(
            client, create_batch(client, jsonl(input_line("a", body(stream=True)), input_line("b"))).id, *FINISHED
        )
        wrong = output_lines(client, done.error_file_id)["a"]["response"]
        assert (wrong["status_code"], wrong["body"]["error"]["param"]) == (400, "stream")
        assert set(output_lines(client, done.output_file_id)) == {"b"}

    def test_output_goes_when_it_was_to(self, gateway_server: Callable[..., RunningGateway]) -> None:
        running = gateway_server({"scripted": Scripted(HELLO)}, CONFIG)
        with client_of(running) as client:
            file = client.files.create(file=("in.jsonl", jsonl(input_line("a"))), purpose="batch")
            batch = client.batches.create(
                input_file_id=file.id,
                endpoint="/v1/chat/completions",
                completion_window="24h",
                metadata={"job": "7"},
                output_expires_after={"anchor": "created_at", "seconds": 3600},
            )
            done = wait_for_status(client, batch.id, *FINISHED)
            assert (done.metadata, client.files.retrieve(done.output_file_id or "").purpose) == (
                {"job": "7"},
                "batch_output",
            )
            now_of(running, 3601)
            with pytest.raises(NotFoundError):
                client.files.content(done.output_file_id or "")
            assert client.batches.retrieve(batch.id).output_file_id == done.output_file_id

    def test_they_are_listed(self, client: OpenAI) -> None:
        names = [create_batch(client, jsonl(input_line("a"))).id for _ in range(3)]
        assert [batch.id for batch in client.batches.list(limit=2)] == names[::-1]
        for name in names:
            wait_for_status(client, name, *FINISHED)
        with pytest.raises(BadRequestError, match="Cannot cancel"):
            client.batches.cancel(names[0])
        with pytest.raises(NotFoundError):
            client.batches.retrieve("batch_none")

    def test_sent_twice_with_one_key_it_is_made_once(self, client: OpenAI) -> None:
        file = client.files.create(file=("in.jsonl", jsonl(input_line("a"))), purpose="batch")
        usual = {"input_file_id": file.id, "endpoint": CHAT, "completion_window": "24h"}
        for _ in range(2):
            client.post("/batches", body=usual, cast_to=object, options={"headers": {"idempotency-key": "k"}})
        assert len(list(client.batches.list())) == 1


class TestWithoutFiles:
    """Anthropic's: requests in, lines out."""

    def test_one_is_answered_request_by_request(self, gateway_server: Callable[..., RunningGateway]) -> None:
        running = gateway_server({"scripted": Scripted(HELLO)}, CONFIG)
        with anthropic_of(running) as client:
            requests = [message("a"), message("b"), message("c", {"model": "m"})]
            batch = client.messages.batches.create(requests=requests)
            assert (batch.type, batch.results_url, batch.request_counts.processing) == ("message_batch", None, 3)
            assert (batch.expires_at - batch.created_at).total_seconds() == DAY
            done = wait_until_ended(client, batch.id)
            counts = done.request_counts
            assert (counts.processing, counts.succeeded, counts.errored) == (0, 2, 1)
            results = {found.custom_id: found.result for found in client.messages.batches.results(batch.id)}
            assert results["a"].type == "succeeded"
            assert [part.to_dict()["text"] for part in results["a"].message.content] == ["Hello"]
            assert results["c"].type == "errored"
            assert results["c"].error.error.type == "invalid_request_error"
            assert client.messages.batches.delete(batch.id).type == "message_batch_deleted"
            assert list(client.messages.batches.list()) == []

    def test_they_are_listed_both_ways(self, gateway_server: Callable[..., RunningGateway]) -> None:
        with anthropic_of(gateway_server({"scripted": Scripted(HELLO)}, CONFIG)) as client:
            names = [client.messages.batches.create(requests=[message("a")]).id for _ in range(4)]
            first = client.messages.batches.list(limit=2)
            assert ([batch.id for batch in first.data], first.has_more) == (names[:1:-1], True)
            assert [batch.id for batch in client.messages.batches.list(after_id=names[2]).data] == names[1::-1]
            back = client.messages.batches.list(before_id=names[0], limit=2)
            assert ([batch.id for batch in back.data], back.has_more) == ([names[2], names[1]], True)

    @pytest.mark.parametrize(
        ("requests", "problem"),
        [
            pytest.param([], "at least one", id="none"),
            pytest.param([{"custom_id": "a", "params": {}}] * 2, "requests.1.custom_id", id="twice"),
            pytest.param([{"custom_id": "", "params": {}}], "1 to 512", id="no-name"),
            pytest.param([{"custom_id": "a"}], "requests.0.params", id="no-params"),
            pytest.param([{"custom_id": "a", "params": 7}], "object", id="number"),
            pytest.param([7], "object", id="no-request"),
            pytest.param([{"custom_id": str(one), "params": {}} for one in range(9)], "at most 8", id="too-many"),
        ],
    )
    def test_what_cannot_be_one_is_refused(
        self, gateway_server: Callable[..., RunningGateway], requests: JSON, problem: str
    ) -> None:
        running = gateway_server({"scripted": Scripted(HELLO)}, replace(CONFIG, batches=BatchSettings(max_requests=8)))
        answer = running.request("POST", "/v1/messages/batches", {"requests": requests})
        assert (answer.status, answer.json["error"]["type"]) == (400, "invalid_request_error")
        assert problem in answer.json["error"]["message"]
        assert running.request("GET", "/v1/messages/batches").json["data"] == []

    def test_results_are_there_at_the_end(self, gateway_server: Callable[..., RunningGateway]) -> None:
        running = gateway_server({"scripted": PartlyAnsweringBackend(0)}, CONFIG)
        with anthropic_of(running) as client:
            batch = client.messages.batches.create(requests=[message("a")])
            assert running.request("GET", f"/v1/messages/batches/{batch.id}/results").status == 400
            assert running.request("DELETE", f"/v1/messages/batches/{batch.id}").status == 400
            assert client.messages.batches.cancel(batch.id).processing_status in ("canceling", "ended")
            done = wait_until_ended(client, batch.id)
            assert (done.request_counts.canceled, done.cancel_initiated_at is not None) == (1, True)
            assert [found.result.type for found in client.messages.batches.results(batch.id)] == ["canceled"]


class TestEnds:
    """What ends a batch before all of it is answered, and what only holds it up."""

    def test_a_cancelled_one_ends_soon(self, gateway_server: Callable[..., RunningGateway]) -> None:
        backend = PartlyAnsweringBackend(3)
        running = gateway_server({"scripted": backend}, CONFIG)
        with client_of(running) as client:
            batch = create_batch(client, jsonl(*(input_line(str(number)) for number in range(20))))
            wait(lambda: len(backend.received) == 7)  # three are answered, and as many wait as may be under way
            client.batches.cancel(batch.id)
            done = wait_for_status(client, batch.id, *FINISHED)
            counts = done.request_counts
            assert counts is not None
            assert (done.status, counts.total, counts.completed, backend.cancelled) == ("cancelled", 20, 3, 4)
            assert None not in (done.cancelling_at, done.cancelled_at)
            answers, rest = output_lines(client, done.output_file_id), output_lines(client, done.error_file_id)
            assert (len(answers), len(rest), len({*answers, *rest})) == (3, 17, 20)
            assert {found["error"]["code"] for found in rest.values()} == {"batch_cancelled"}

    def test_one_that_is_late_expires(self, gateway_server: Callable[..., RunningGateway]) -> None:
        backend = PartlyAnsweringBackend(1)
        running = gateway_server({"scripted": backend}, CONFIG)
        with client_of(running) as client:
            batch = create_batch(client, jsonl(*(input_line(str(number)) for number in range(6))), window="1h")
            wait(lambda: len(backend.received) == 5)
            now_of(running, 3601)
            create_batch(client, b"")  # which has the gateway look
            done = wait_for_status(client, batch.id, *FINISHED)
            assert (done.status, done.expired_at is not None) == ("expired", True)
            assert len(output_lines(client, done.output_file_id)) == 1
            rest = output_lines(client, done.error_file_id)
            assert {found["error"]["code"] for found in rest.values()} == {"batch_expired"}

    def test_one_whose_key_is_taken_away_is_asked_nothing_more(
        self, gateway_server: Callable[..., RunningGateway]
    ) -> None:
        config = replace(CONFIG, keys=KeySettings(env=("CLIENTS",)), secrets=Secrets({"CLIENTS": "alice bob"}))
        backend = PartlyAnsweringBackend(0)
        running = gateway_server({"scripted": backend}, replace(config, batches=BatchSettings(concurrency=1)))
        with client_of(running, "alice") as client:
            batch = create_batch(client, jsonl(input_line("a"), input_line("b")))
            wait(lambda: len(backend.received) == 1)
            auth, gateway = running.gateway.auth, running.gateway
            keys = auth.keyring
            auth.keyring = build_keyring(replace(config, secrets=Secrets({"CLIENTS": "bob"})))
            backend.remaining = 99
            backend.resume()
            wait(lambda: not gateway.runner().works)
            auth.keyring = keys
            done = wait_for_status(client, batch.id, *FINISHED)
            assert output_lines(client, done.error_file_id)["b"]["response"]["status_code"] == 401
            assert len(backend.received) == 1

    def test_a_tenants_models_are_those_of_its_batches(self, gateway_server: Callable[..., RunningGateway]) -> None:
        tenants = {"t": Tenant(key_env="T", models=("other",))}
        config = replace(CONFIG, tenants=tenants, secrets=Secrets({"T": "secret"}))
        with client_of(gateway_server({"scripted": Scripted(HELLO)}, config), "secret") as client:
            said = body() | {"model": "other"}
            done = wait_for_status(
                client, create_batch(client, jsonl(input_line("a"), input_line("b", said))).id, *FINISHED
            )
            assert output_lines(client, done.error_file_id)["a"]["response"]["status_code"] == 404
            assert set(output_lines(client, done.output_file_id)) == {"b"}

    def test_what_is_limited_waits(self, gateway_server: Callable[..., RunningGateway]) -> None:
        limits = LimitSettings(requests=("2/1s",), queue=0)
        running = gateway_server({"scripted": Scripted(HELLO)}, replace(CONFIG, keys=KeySettings(limits=limits)))
        waits = waiting(running)
        with client_of(running) as client:
            done = wait_for_status(
                client, create_batch(client, jsonl(*(input_line(str(number)) for number in range(5)))).id, *FINISHED
            )
            assert (done.status, len(output_lines(client, done.output_file_id)), len(waits) > 1) == (
                "completed",
                5,
                True,
            )

    @pytest.mark.parametrize(
        ("kind", "times", "status"),
        [
            pytest.param("overloaded", 7, None, id="overloaded-for-a-while"),
            pytest.param("overloaded", 99, 503, id="overloaded-for-good"),
            pytest.param("rate_limit", 7, None, id="limited-upstream"),
            pytest.param("upstream", 2, None, id="broken-for-a-while"),
            pytest.param("timeout", 99, 504, id="silent-for-good"),
            pytest.param("invalid_request", 99, 400, id="wrong"),
        ],
    )
    def test_what_may_pass_is_asked_again_so_often(
        self, gateway_server: Callable[..., RunningGateway], kind: FailureKind, times: int, status: int | None
    ) -> None:
        backend = Failing(kind, times)
        running = gateway_server({"scripted": backend}, CONFIG)
        waits = waiting(running)
        with client_of(running) as client:
            done = wait_for_status(client, create_batch(client, jsonl(input_line("a"))).id, *FINISHED)
            told_so = output_lines(client, done.error_file_id or done.output_file_id)["a"]["response"]["status_code"]
            expected = TRIES.get(kind, 1) if status else times + 1
            assert (told_so, backend.tries) == (status or 200, expected)
            assert max(waits) <= 60

    def test_a_model_that_rests_holds_no_other_up(self, gateway_server: Callable[..., RunningGateway]) -> None:
        with client_of(gateway_server({"scripted": Resting()}, CONFIG)) as client:
            lines = [
                input_line(f"{model}{number}", body() | {"model": model}) for number in range(9) for model in ("r", "m")
            ]
            batch = create_batch(client, jsonl(*lines))
            wait(
                lambda: (
                    client.batches.retrieve(batch.id).to_dict()["request_counts"]
                    == {"completed": 9, "failed": 0, "total": 18}
                )
            )
            client.batches.cancel(batch.id)
            done = wait_for_status(client, batch.id, *FINISHED)
            assert set(output_lines(client, done.output_file_id)) == {f"m{number}" for number in range(9)}

    def test_an_outage_holds_a_batch_up(self, gateway_server: Callable[..., RunningGateway]) -> None:
        backend = Failing("upstream", 2)
        upstream = CONFIG.upstreams["scripted"]
        breaker = BreakerSettings(failures=2, window=60.0, open_seconds=30.0)
        config = replace(CONFIG, upstreams={"scripted": replace(upstream, breaker=breaker)})
        running = gateway_server({"scripted": backend}, replace(config, batches=BatchSettings(concurrency=1)))
        waits = waiting(running)
        with client_of(running) as client:
            done = wait_for_status(
                client, create_batch(client, jsonl(*(input_line(str(number)) for number in range(9)))).id, *FINISHED
            )
            assert (done.status, len(output_lines(client, done.output_file_id)), backend.tries) == ("completed", 9, 11)
            assert sum(waits) >= 25

    def test_a_bug_of_ours_is_an_error_of_its_line(self, gateway_server: Callable[..., RunningGateway]) -> None:
        running = gateway_server({"scripted": Buggy()}, CONFIG)
        with client_of(running) as client:
            done = wait_for_status(client, create_batch(client, jsonl(input_line("a"))).id, *FINISHED)
            assert output_lines(client, done.error_file_id)["a"]["response"]["status_code"] == 500
            assert "canary" not in client.files.content(done.error_file_id or "").text

    def test_live_requests_are_answered_beside_it(self, gateway_server: Callable[..., RunningGateway]) -> None:
        backend = PartlyAnsweringBackend(0)
        running = gateway_server({"scripted": backend}, replace(CONFIG, batches=BatchSettings(concurrency=1)))
        with client_of(running) as client:
            batches = [create_batch(client, jsonl(*(input_line(str(number)) for number in range(3)))) for _ in range(2)]
            wait(lambda: len(backend.received) == 1)
            backend.remaining = 1
            answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "live"}])
            assert answer.choices[0].message.content == "Hello"
            assert len(backend.received) == 2
            for batch in batches:
                client.batches.cancel(batch.id)
                wait_for_status(client, batch.id, "cancelled")


class Failing(Backend):
    """Fails so many times, and says hello afterwards."""

    def __init__(self, kind: FailureKind, times: int) -> None:
        super().__init__()
        self.tries = 0
        self._failure = Failure(kind=kind, message="not now")
        self._times = times

    async def answer(self, call: Call) -> Answer:
        """Fail, or say hello."""
        self.tries += 1
        if self.tries <= self._times:
            raise FailureError(self._failure)
        return await Scripted(HELLO).answer(call)


class Resting(Backend):
    """Says hello, but for one model, which is always to be asked later."""

    async def answer(self, call: Call) -> Answer:
        """Say hello, or refuse."""
        if call.request.model == "r":
            raise FailureError(Failure(kind="rate_limit", message="later", retry_after=300.0))
        return await Scripted(HELLO).answer(call)


class Buggy(Backend):
    """Breaks."""

    async def answer(self, _call: Call) -> Answer:
        """Break."""
        message = "canary"
        raise RuntimeError(message)


def test_a_batch_of_another_kind_is_unknown(gateway_server: Callable[..., RunningGateway]) -> None:
    running = gateway_server({"scripted": Scripted(HELLO)}, CONFIG)
    with client_of(running) as client, anthropic_of(running) as other:
        name = create_batch(client, jsonl(input_line("a"))).id
        with pytest.raises(MissingError):
            other.messages.batches.retrieve(name)
        assert running.request("DELETE", f"/v1/batches/{name}").status == 405
