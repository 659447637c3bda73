"""Files that clients keep: brought by the SDK and by whoever means no good."""

from __future__ import annotations

import socket
import sys
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from openai import BadRequestError, NotFoundError, OpenAI, RateLimitError

from tests.gateway.batches.batch_requests import (
    FINISHED,
    PartlyAnsweringBackend,
    body,
    create_batch,
    input_line,
    jsonl,
    wait_for_status,
)
from tests.gateway.running_gateway import SERVERS, TIMEOUT, config_for, read_all, read_until
from tests.gateway.scripted_backends import HELLO
from tests.gateway.stored.test_intake import client_of
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.config.file_permissions import Secrets
from xenoglot.gateway.config.settings import BatchSettings, KeySettings, StoreSettings
from xenoglot.gateway.http import asgi_exchange, write_side
from xenoglot.gateway.observability.access_log import ACCESS
from xenoglot.store.sqlite import Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from tests.gateway.running_gateway import RunningGateway

pytestmark = pytest.mark.parametrize("gateway_server", SERVERS, indirect=True)

SMALL = config_for("scripted", batches=BatchSettings(max_bytes=1_000_000))


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read what is refused to its end, however long a busy machine takes to send it: else its sender sees no answer."""
    for module in (asgi_exchange, write_side):
        monkeypatch.setattr(module, "LINGER_SECONDS", TIMEOUT)


@pytest.fixture
def running(gateway_server: Callable[..., RunningGateway]) -> RunningGateway:
    """A gateway that takes files of a megabyte."""
    return gateway_server({"scripted": Scripted(HELLO)}, SMALL)


@pytest.fixture
def client(running: RunningGateway) -> Generator[OpenAI]:
    """The SDK."""
    with client_of(running) as made:
        yield made


def form(*parts: tuple[str, bytes], boundary: str = "b") -> bytes:
    """Return a form of parts: their disposition, and what is in them."""
    said = b"".join(
        b"--%b\r\ncontent-disposition: form-data; %b\r\n\r\n%b\r\n" % (boundary.encode(), disposition.encode(), data)
        for disposition, data in parts
    )
    return said + b"--%b--\r\n" % boundary.encode()


FILE = ('name="file"; filename="in.jsonl"', b"{}")
PURPOSE = ('name="purpose"', b"batch")


def post(
    running: RunningGateway, data: bytes, content_type: str = "multipart/form-data; boundary=b"
) -> tuple[int, str]:
    """Post a form; return the status, and the message of the error."""
    answer = running.request("POST", "/v1/files", data, {"content-type": content_type})
    return answer.status, answer.json.get("error", {}).get("message", "")


def test_what_is_brought_is_told_and_given_again(client: OpenAI) -> None:
    data = bytes(range(256)) * 3_000
    file = client.files.create(
        file=("../../etc/passwd", data), purpose="batch", expires_after={"anchor": "created_at", "seconds": 3600}
    )
    assert (file.bytes, file.filename, file.purpose, file.status) == (len(data), "passwd", "batch", "processed")
    assert file.expires_at == file.created_at + 3600
    assert client.files.retrieve(file.id) == file
    assert client.files.content(file.id).read() == data
    assert client.files.delete(file.id).deleted
    with pytest.raises(NotFoundError):
        client.files.content(file.id)


def test_they_are_listed(client: OpenAI) -> None:
    made = [
        client.files.create(file=("a", b"x"), purpose="batch"),
        client.files.create(file=("b", b"x"), purpose="user_data"),
        client.files.create(file=("c", b"x"), purpose="batch"),
    ]
    names = [file.id for file in made]
    assert [file.id for file in client.files.list(order="asc", limit=2)] == names
    assert [file.id for file in client.files.list(purpose="batch")] == [names[2], names[0]]
    page = client.files.list(limit=1)
    assert (page.has_more, page.data[0].id) == (True, names[2])


def test_an_empty_one_is_one(client: OpenAI) -> None:
    file = client.files.create(file=("empty", b""), purpose="batch")
    assert (file.bytes, client.files.content(file.id).read()) == (0, b"")


def test_another_clients_is_not_there(gateway_server: Callable[..., RunningGateway]) -> None:
    config = replace(SMALL, keys=KeySettings(env=("CLIENTS",)), secrets=Secrets({"CLIENTS": "alice bob"}))
    running = gateway_server({"scripted": Scripted(HELLO)}, config)
    with client_of(running, "alice") as alice, client_of(running, "bob") as bob:
        file = alice.files.create(file=("a", b"secret"), purpose="batch")
        assert list(bob.files.list()) == []
        for act in (bob.files.retrieve, bob.files.content, bob.files.delete):
            with pytest.raises(NotFoundError):
                act(file.id)
        with pytest.raises(BadRequestError) as caught:
            bob.batches.create(input_file_id=file.id, endpoint="/v1/embeddings", completion_window="24h")
        assert caught.value.code == "invalid_file"
        assert alice.files.content(file.id).read() == b"secret"


@pytest.mark.parametrize(
    ("data", "content_type", "status", "problem"),
    [
        pytest.param(form(FILE, PURPOSE), "application/json", 415, "must be a form", id="no-form"),
        pytest.param(form(FILE, PURPOSE), "multipart/form-data", 400, "no `boundary`", id="no-boundary"),
        pytest.param(form(FILE, PURPOSE), "multipart/form-data; boundary=other", 400, "not valid", id="another"),
        pytest.param(
            form(FILE, PURPOSE), f"multipart/form-data; boundary={'b' * 300}", 400, "too long", id="long-boundary"
        ),
        pytest.param(form(PURPOSE), "", 400, "expected a file", id="no-file"),
        pytest.param(form(FILE), "", 400, "purpose: required", id="no-purpose"),
        pytest.param(form(FILE, ('name="purpose"', b"batch_output")), "", 400, "what comes of", id="ours-to-make"),
        pytest.param(form(FILE, FILE, PURPOSE), "", 400, "two files", id="two-files"),
        pytest.param(form(FILE, PURPOSE)[:-8], "", 400, "ends before", id="cut-off"),
        pytest.param(form(("", b"x")), "", 400, "no name", id="nameless-part"),
        pytest.param(form((f'name="{"x" * 5_000}"', b"x")), "", 400, "not valid", id="huge-header"),
        pytest.param(form(('name="purpose"', b"x" * 5_000)), "", 400, "longer than 4096", id="huge-field"),
        pytest.param(
            form(*((f'name="{number}"', b"x") for number in range(40))), "", 400, "more than 32", id="many-fields"
        ),
        pytest.param(form(*[PURPOSE] * 40), "", 400, "more than 32", id="one-field-many-times"),
        pytest.param(
            form(FILE, PURPOSE, ('name="expires_after"', b"{}")), "", 400, "spell its members", id="lifetime-as-json"
        ),
        pytest.param(form((FILE[0], b"x" * 1_000_001), PURPOSE), "", 413, "larger than", id="too-large"),
        pytest.param(form((FILE[0], b"x" * 1_100_000), PURPOSE), "", 413, "larger than", id="much-too-large"),
        pytest.param(
            form(FILE, PURPOSE, ('name="expires_after[seconds]"', b"-1")), "", 400, "created_at", id="no-lifetime"
        ),
    ],
)
def test_what_is_no_file_is_refused_and_leaves_nothing(
    running: RunningGateway, data: bytes, content_type: str, status: int, problem: str
) -> None:
    found, message = post(running, data, content_type or "multipart/form-data; boundary=b")
    assert (found, problem in message) == (status, True), message
    assert running.request("GET", "/v1/files").json["data"] == []
    assert running.request("GET", "/health").status == 200


@pytest.mark.parametrize("path", ["/v1/files/%00", "/v1/files/a%2F..%2Fb", f"/v1/files/{'x' * 400}"])
def test_an_id_that_nothing_can_have_is_unknown(running: RunningGateway, path: str) -> None:
    assert running.request("GET", path).status == 404
    assert running.request("DELETE", path).status == 404


def test_a_list_that_cannot_be_is_refused(running: RunningGateway) -> None:
    for query in ("limit=0", "limit=99999", "order=up", "after=%00", "purpose=%00"):
        assert running.request("GET", f"/v1/files?{query}").status == 400


def test_a_form_that_is_none_writes_nothing_to_the_log(
    running: RunningGateway, caplog: pytest.LogCaptureFixture
) -> None:
    post(running, b"no form")
    assert [record.name for record in caplog.records if record.name != ACCESS.name] == []


def test_one_client_cannot_fill_the_store_with_what_never_ends(gateway_server: Callable[..., RunningGateway]) -> None:
    config = replace(SMALL, store=StoreSettings(max_bytes=2_000_000))
    running = gateway_server({"scripted": PartlyAnsweringBackend(0)}, config)
    many = jsonl(*(input_line(str(number), body("x" * 10_000)) for number in range(60)))
    with client_of(running) as client:
        batch = create_batch(client, many)
        with pytest.raises(RateLimitError, match="unfinished files and batches"):
            create_batch(client, many)
        request = {"requests": [{"custom_id": "a", "params": body("x" * 700_000)}]}
        assert running.request("POST", "/v1/messages/batches", request).status == 429
        with pytest.raises(RateLimitError):
            client.files.create(file=("a", b"x" * 700_000), purpose="batch")
        client.batches.cancel(batch.id)
        wait_for_status(client, batch.id, *FINISHED)
        assert create_batch(client, many).status == "validating"


def test_without_the_extra_that_is_said(running: RunningGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xenoglot.gateway.batches.multipart", None)
    found, message = post(running, form(FILE, PURPOSE))
    assert (found, "xenoglot[gateway]" in message) == (400, True)


def test_who_waits_for_leave_gets_it(running: RunningGateway) -> None:
    data = form(FILE, PURPOSE)
    head = (
        "POST /v1/files HTTP/1.1\r\nhost: localhost\r\ncontent-type: multipart/form-data; boundary=b\r\n"
        f"expect: 100-continue\r\nconnection: close\r\ncontent-length: {len(data)}\r\n\r\n"
    )
    with running.connect() as connection:
        connection.sendall(head.encode())
        assert b" 100 " in read_until(connection, b"\r\n\r\n")
        connection.sendall(data)
        assert b'"filename":"in.jsonl"' in read_all(connection)


def test_one_in_chunks_is_taken_as_it_comes(running: RunningGateway) -> None:
    data = form((FILE[0], bytes(range(256)) * 3_000), PURPOSE)
    head = b"POST /v1/files HTTP/1.1\r\nhost: localhost\r\ncontent-type: multipart/form-data; boundary=b\r\n"
    with running.connect() as connection:
        connection.sendall(head + b"connection: close\r\ntransfer-encoding: chunked\r\n\r\n")
        for at in range(0, len(data), 70_000):
            piece = data[at : at + 70_000]
            connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
        connection.sendall(b"0\r\n\r\n")
        assert b'"bytes":768000' in read_all(connection)


def test_of_one_whose_client_left_nothing_stays(running: RunningGateway) -> None:
    head = b"POST /v1/files HTTP/1.1\r\nhost: localhost\r\ncontent-type: multipart/form-data; boundary=b\r\n"
    with running.connect() as connection:
        connection.sendall(
            head + b"content-length: 999999\r\n\r\n" + form((FILE[0], b"x" * 400_000), PURPOSE)[:390_000]
        )
        connection.shutdown(socket.SHUT_WR)
        read_all(connection)
    assert running.request("GET", "/v1/files").json["data"] == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        pytest.param({"store": StoreSettings(url="off")}, "store is off", id="no-store"),
        pytest.param({"batches": BatchSettings(enabled=False)}, "[batches]", id="disabled"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/files", "/v1/batches", "/v1/messages/batches"])
def test_where_nothing_is_kept_that_is_said(
    gateway_server: Callable[..., RunningGateway], path: str, changes: dict[str, object], problem: str
) -> None:
    running = gateway_server({"scripted": Scripted(HELLO)}, replace(SMALL, **changes), store=Memory())
    answer = running.request("GET", path)
    assert (answer.status, problem in answer.json["error"]["message"]) == (404, True)
