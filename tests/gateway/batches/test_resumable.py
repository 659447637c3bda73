"""Google's Files API and its resumable uploads, by the SDK and by hand."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest
from google import genai
from google.genai import errors, types
from msgspec.structs import replace

from tests.gateway.batches.test_uploads import CONFIG, DATA
from tests.gateway.running_gateway import run_gateway
from tests.gateway.scripted_backends import HELLO
from tests.gateway.stored.test_intake import client_of
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.config.settings import BatchSettings

if TYPE_CHECKING:
    from collections.abc import Generator

    import openai

    from tests.gateway.running_gateway import RunningGateway

UPLOAD: dict[str, str] = {"x-goog-upload-protocol": "resumable", "x-goog-upload-command": "start"}


@pytest.fixture(scope="module")
def running() -> Generator[RunningGateway]:
    """A gateway with two keys."""
    with run_gateway({"scripted": Scripted(HELLO)}, CONFIG) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def alice(running: RunningGateway) -> Generator[openai.OpenAI]:
    """The SDK of OpenAI with one of the keys."""
    with client_of(running, "alice") as client:
        yield client


@pytest.fixture(scope="module")
def google(running: RunningGateway) -> Generator[genai.Client]:
    """The SDK of Google with the first key."""
    client = genai.Client(api_key="alice", http_options=types.HttpOptions(base_url=running.url))
    yield client
    client.close()


def test_googles_sdk_uploads_finds_and_deletes(google: genai.Client, alice: openai.OpenAI) -> None:
    data = DATA * 9
    config = types.UploadFileConfig(mime_type="application/pdf", display_name="a.pdf")
    file = google.files.upload(file=io.BytesIO(data), config=config)
    assert (file.display_name, file.mime_type, file.size_bytes) == ("a.pdf", "application/pdf", len(data))
    assert file.state == types.FileState.ACTIVE
    assert file.name is not None
    assert file.uri is not None
    found = google.files.get(name=file.name)
    assert (found.name, found.uri, found.create_time) == (file.name, file.uri, file.create_time)
    assert file.uri.endswith(f"/v1beta/{file.name}")
    assert alice.files.content(file.name.removeprefix("files/")).read() == data
    google.files.delete(name=file.name)
    with pytest.raises(errors.ClientError) as caught:
        google.files.get(name=file.name)
    assert (caught.value.code, caught.value.status) == (404, "NOT_FOUND")


def test_googles_sdk_lists_in_pages(google: genai.Client, alice: openai.OpenAI) -> None:
    made = [alice.files.create(file=(f"{number}.txt", b"x"), purpose="user_data").id for number in range(5)]
    found = [file.name or "" for file in google.files.list(config={"page_size": 2})]
    assert sorted(found) == sorted(f"files/{name}" for name in made)
    for name in made:
        alice.files.delete(name)


def start(running: RunningGateway, size: int, **headers: str) -> str:
    """Begin a resumable upload; return its path."""
    said = {**UPLOAD, "x-goog-api-key": "alice", "x-goog-upload-header-content-length": str(size), **headers}
    answer = running.request("POST", "/upload/v1beta/files", {"file": {"displayName": "a.txt"}}, said)
    assert answer.status == 200, answer.body
    return answer.headers["x-goog-upload-url"].partition(f":{running.port}")[2]


def send(running: RunningGateway, path: str, command: str, data: bytes = b"", offset: int = 0) -> tuple[int, str, str]:
    """Send one request of an upload, without a key; return status, the upload's status, and the bytes received."""
    headers = {"x-goog-upload-command": command, "x-goog-upload-offset": str(offset), "content-type": "text/plain"}
    answer = running.request("POST", path, data, headers)
    status, received = (answer.headers.get(f"x-goog-upload-{name}", "") for name in ("status", "size-received"))
    return answer.status, status, received


def test_an_upload_goes_on_where_it_stopped(running: RunningGateway, alice: openai.OpenAI) -> None:
    path = start(running, 6)
    assert send(running, path, "upload", b"abc") == (200, "active", "3")
    assert send(running, path, "query") == (200, "active", "3")
    assert send(running, path, "upload", b"bcd", 1) == (200, "active", "4")
    assert send(running, path, "upload", b"x", 5)[0] == 400
    assert send(running, path, "finalize")[0] == 400
    assert send(running, path, "upload, finalize", b"ef", 4) == (200, "final", "6")
    (file,) = alice.files.list()
    assert (alice.files.content(file.id).read(), file.filename) == (b"abcdef", "a.txt")
    assert file.id.removeprefix("file-") not in path
    assert send(running, path, "query")[0] == 404
    alice.files.delete(file.id)


def test_urls_begin_with_the_public_one() -> None:
    config = replace(CONFIG, batches=BatchSettings(public_url="https://llm.example/base/"))
    with run_gateway({"scripted": Scripted(HELLO)}, config) as gateway:
        said = {**UPLOAD, "x-goog-api-key": "alice"}
        answer = gateway.request("POST", "/upload/v1beta/files", {}, said)
    assert answer.headers["x-goog-upload-url"].startswith("https://llm.example/base/upload/v1beta/files/resumable-")


def test_a_cancelled_upload_is_gone(running: RunningGateway) -> None:
    path = start(running, 3)
    assert send(running, path, "cancel") == (200, "cancelled", "0")
    assert send(running, path, "upload, finalize", b"abc")[0] == 404


@pytest.mark.parametrize("command", ["", "start", "upload, cancelled", "delete"])
def test_commands_that_do_not_exist(running: RunningGateway, command: str) -> None:
    path = start(running, 3)
    assert send(running, path, command)[0] == 400
    send(running, path, "cancel")


def test_the_start_needs_a_key_and_an_upload_its_id(running: RunningGateway) -> None:
    assert running.request("POST", "/upload/v1beta/files", {}, UPLOAD).status == 401
    for name in ("resumable-" + "0" * 32, "file-" + "0" * 32):
        assert send(running, f"/upload/v1beta/files/{name}", "upload, finalize", b"x")[0] == 404


@pytest.mark.parametrize(
    ("body", "headers", "problem"),
    [
        ({}, {"x-goog-upload-protocol": "raw"}, "expected `x-goog-upload-protocol: resumable`"),
        ({"file": {"name": "files/mine"}}, {}, "file.name: the gateway gives files their names"),
        ({}, {"x-goog-upload-header-content-length": "-1"}, "expected a number of bytes"),
        ({}, {"x-goog-upload-header-content-length": "20000001"}, "expected at most 20000000"),
    ],
)
def test_what_cannot_be_started(
    running: RunningGateway, body: dict[str, Any], headers: dict[str, str], problem: str
) -> None:
    answer = running.request("POST", "/upload/v1beta/files", body, {**UPLOAD, "x-goog-api-key": "alice", **headers})
    assert answer.status == 400
    assert problem in answer.json["error"]["message"]


def test_an_upload_of_the_other_kind_is_no_capability(running: RunningGateway, alice: openai.OpenAI) -> None:
    name = alice.uploads.create(bytes=3, filename="a", mime_type="text/plain", purpose="user_data").id
    assert send(running, f"/upload/v1beta/files/{name}", "upload, finalize", b"abc")[0] == 404
    alice.uploads.cancel(name)
