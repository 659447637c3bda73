"""Google's Files API and its resumable uploads, by the SDK and by hand."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest
from google import genai
from google.genai import errors, types
from msgspec.structs import replace

from tests.gateway.batches.test_uploads import DATA
from tests.gateway.running_gateway import read_all, read_until, run_gateway
from tests.gateway.scripted_backends import HELLO
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.config.settings import BatchSettings

if TYPE_CHECKING:
    from collections.abc import Generator

    import openai

    from tests.gateway.running_gateway import RunningGateway
    from xenoglot.gateway.config.load import Config

UPLOAD: dict[str, str] = {"x-goog-upload-protocol": "resumable", "x-goog-upload-command": "start"}


@pytest.fixture(scope="module")
def google(uploading: RunningGateway) -> Generator[genai.Client]:
    """The SDK of Google with the first key."""
    client = genai.Client(api_key="alice", http_options=types.HttpOptions(base_url=uploading.url))
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


def start(gateway: RunningGateway, size: int, **headers: str) -> str:
    """Begin a resumable upload; return its path."""
    said = {**UPLOAD, "x-goog-api-key": "alice", "x-goog-upload-header-content-length": str(size), **headers}
    answer = gateway.request("POST", "/upload/v1beta/files", {"file": {"displayName": "a.txt"}}, said)
    assert answer.status == 200, answer.body
    return answer.headers["x-goog-upload-url"].partition(f":{gateway.port}")[2]


def send(gateway: RunningGateway, path: str, command: str, data: bytes = b"", offset: int = 0) -> tuple[int, str, str]:
    """Send one request of an upload, without a key; return status, the upload's status, and the bytes received."""
    headers = {"x-goog-upload-command": command, "x-goog-upload-offset": str(offset), "content-type": "text/plain"}
    answer = gateway.request("POST", path, data, headers)
    status, received = (answer.headers.get(f"x-goog-upload-{name}", "") for name in ("status", "size-received"))
    return answer.status, status, received


def test_an_upload_goes_on_where_it_stopped(uploading: RunningGateway, alice: openai.OpenAI) -> None:
    path = start(uploading, 6)
    assert send(uploading, path, "upload", b"abc") == (200, "active", "3")
    assert send(uploading, path, "query") == (200, "active", "3")
    assert send(uploading, path, "upload", b"bcd", 1) == (200, "active", "4")
    assert send(uploading, path, "upload", b"x", 5)[0] == 400
    assert send(uploading, path, "finalize")[0] == 400
    assert send(uploading, path, "upload, finalize", b"ef", 4) == (200, "final", "6")
    (file,) = alice.files.list()
    assert (alice.files.content(file.id).read(), file.filename) == (b"abcdef", "a.txt")
    assert file.id.removeprefix("file-") not in path
    assert send(uploading, path, "query")[0] == 404
    alice.files.delete(file.id)


def test_of_two_requests_that_write_at_once_the_second_is_refused(uploading: RunningGateway) -> None:
    """Else one would overwrite the other, or both be answered as if all of their bytes were stored."""
    path = start(uploading, 300_000)
    head = (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 300000\r\n"
        "expect: 100-continue\r\nx-goog-upload-command: upload\r\nx-goog-upload-offset: 0\r\n\r\n"
    )
    with uploading.connect() as slow:
        slow.sendall(head.encode())
        read_until(slow, b" 100 Continue\r\n\r\n")
        assert send(uploading, path, "upload", b"abc") == (200, "active", "3")
        slow.sendall(b"x" * 300_000)
        answer = read_all(slow)
    assert answer.startswith(b"HTTP/1.1 409 ")
    assert b"the upload changed meanwhile: another request writes to it, or ended it" in answer
    assert send(uploading, path, "query") == (200, "active", "3")
    send(uploading, path, "cancel")


def test_bytes_beyond_the_size_of_the_start_are_not_stored(uploading: RunningGateway) -> None:
    path = start(uploading, 3)
    assert send(uploading, path, "upload", b"x" * 300_000)[0] == 413
    assert send(uploading, path, "query") == (200, "active", "0")
    send(uploading, path, "cancel")


def test_urls_begin_with_the_public_one(two_keys: Config) -> None:
    config = replace(two_keys, batches=BatchSettings(public_url="https://llm.example/base/"))
    with run_gateway({"scripted": Scripted(HELLO)}, config) as gateway:
        said = {**UPLOAD, "x-goog-api-key": "alice"}
        answer = gateway.request("POST", "/upload/v1beta/files", {}, said)
    assert answer.headers["x-goog-upload-url"].startswith("https://llm.example/base/upload/v1beta/files/resumable-")


def test_a_cancelled_upload_is_gone(uploading: RunningGateway) -> None:
    path = start(uploading, 3)
    assert send(uploading, path, "cancel") == (200, "cancelled", "0")
    assert send(uploading, path, "upload, finalize", b"abc")[0] == 404


@pytest.mark.parametrize("command", ["", "start", "upload, cancelled", "delete"])
def test_commands_that_do_not_exist(uploading: RunningGateway, command: str) -> None:
    path = start(uploading, 3)
    assert send(uploading, path, command)[0] == 400
    send(uploading, path, "cancel")


@pytest.mark.parametrize("offset", [None, "", "-1", "+0", "1.5", "nan", "\u00b2", "9" * 16, "0, 0"])
def test_an_offset_is_a_number_of_bytes(uploading: RunningGateway, offset: str | None) -> None:
    """Without one, a client that goes on would have its bytes skipped as if they had arrived before."""
    path = start(uploading, 3)
    headers = {"x-goog-upload-command": "upload", "content-type": "text/plain"}
    if offset is not None:
        headers["x-goog-upload-offset"] = offset
    answer = uploading.request("POST", path, b"abc", headers)
    assert (answer.status, answer.json["error"]["message"]) == (400, "x-goog-upload-offset: expected a number of bytes")
    assert send(uploading, path, "query") == (200, "active", "0")
    send(uploading, path, "cancel")


def test_the_start_needs_a_key_and_an_upload_its_id(uploading: RunningGateway) -> None:
    assert uploading.request("POST", "/upload/v1beta/files", {}, UPLOAD).status == 401
    for name in ("resumable-" + "0" * 32, "file-" + "0" * 32):
        assert send(uploading, f"/upload/v1beta/files/{name}", "upload, finalize", b"x")[0] == 404


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
    uploading: RunningGateway, body: dict[str, Any], headers: dict[str, str], problem: str
) -> None:
    answer = uploading.request("POST", "/upload/v1beta/files", body, {**UPLOAD, "x-goog-api-key": "alice", **headers})
    assert answer.status == 400
    assert problem in answer.json["error"]["message"]


def test_an_upload_of_the_other_kind_is_no_capability(uploading: RunningGateway, alice: openai.OpenAI) -> None:
    name = alice.uploads.create(bytes=3, filename="a", mime_type="text/plain", purpose="user_data").id
    assert send(uploading, f"/upload/v1beta/files/{name}", "upload, finalize", b"abc")[0] == 404
    alice.uploads.cancel(name)
