"""Files uploaded in parts, by the SDK of OpenAI."""

from __future__ import annotations

import hashlib
from typing import Any

import openai
import pytest

DATA = b"%PDF-1.7 " + bytes(range(256)) * 4_000


def begin(client: openai.OpenAI, size: int = len(DATA), **more: Any) -> str:  # noqa: ANN401  as the SDK has them
    """Create an upload; return its id."""
    kind: dict[str, Any] = {"mime_type": "application/pdf", "purpose": "user_data", **more}
    upload = client.uploads.create(bytes=size, filename="a.pdf", **kind)
    assert (upload.status, upload.bytes, upload.file) == ("pending", size, None)
    assert upload.expires_at == upload.created_at + 3600
    return upload.id


def test_parts_are_joined_in_the_order_wanted(alice: openai.OpenAI) -> None:
    name = begin(alice, expires_after={"anchor": "created_at", "seconds": 3600})
    half = len(DATA) // 2
    last = alice.uploads.parts.create(name, data=DATA[half:])
    first = alice.uploads.parts.create(name, data=DATA[:half])
    assert (last.object, last.upload_id) == ("upload.part", name)
    done = alice.uploads.complete(name, part_ids=[first.id, last.id], md5=hashlib.md5(DATA).hexdigest())  # noqa: S324
    assert done.status == "completed"
    assert done.file is not None
    assert alice.files.retrieve(done.file.id) == done.file
    assert (done.file.filename, done.file.bytes, done.file.purpose) == ("a.pdf", len(DATA), "user_data")
    assert alice.files.content(done.file.id).read() == DATA
    assert done.file.expires_at is not None
    with pytest.raises(openai.NotFoundError):
        alice.uploads.complete(name, part_ids=[first.id])
    alice.files.delete(done.file.id)


def test_a_large_file_by_the_helper_of_the_sdk(alice: openai.OpenAI) -> None:
    kind: dict[str, Any] = {"mime_type": "application/pdf", "purpose": "user_data", "part_size": 300_000}
    done = alice.uploads.upload_file_chunked(file=DATA, filename="a.pdf", bytes=len(DATA), **kind)
    assert done.file is not None
    assert alice.files.content(done.file.id).read() == DATA
    alice.files.delete(done.file.id)


def test_parts_and_uploads_of_others(alice: openai.OpenAI, bob: openai.OpenAI) -> None:
    name, other = begin(alice, 3), begin(alice, 3)
    part = alice.uploads.parts.create(name, data=b"abc")
    for act in (
        lambda: bob.uploads.parts.create(name, data=b"abc"),
        lambda: bob.uploads.complete(name, part_ids=[part.id]),
        lambda: bob.uploads.cancel(name),
        lambda: alice.uploads.complete(other, part_ids=[part.id]),
        lambda: alice.uploads.complete(name, part_ids=[other]),
        lambda: alice.uploads.cancel(part.id),
        lambda: alice.files.retrieve(name),
    ):
        with pytest.raises(openai.NotFoundError):
            act()
    assert alice.uploads.cancel(name).status == "cancelled"
    with pytest.raises(openai.NotFoundError):
        alice.uploads.complete(name, part_ids=[part.id])
    alice.uploads.cancel(other)


@pytest.mark.parametrize(
    ("completion", "problem"),
    [
        ({}, "part_ids: the parts have 3 bytes, and the upload was created for 4"),
        ({"md5": "0" * 32}, "part_ids: the parts have 3 bytes, and the upload was created for 4"),
        ({"md5": "x"}, "md5: expected 32 hexadecimal digits"),
        ({"part_ids": []}, "part_ids: expected 1 to 4096 ids, each once"),
        ({"part_ids": [1]}, "part_ids[0]: expected str, got int"),
        ({"part_ids": ["a\0"]}, "part_ids[0]: expected an id: up to 256 printable ASCII characters without spaces"),
    ],
)
def test_what_cannot_be_completed(alice: openai.OpenAI, completion: dict[str, Any], problem: str) -> None:
    name = begin(alice, 4)
    part = alice.uploads.parts.create(name, data=b"abc")
    with pytest.raises(openai.BadRequestError) as caught:
        alice.uploads.complete(name, **{"part_ids": [part.id], **completion})
    body: Any = caught.value.body
    assert problem in body["message"]
    alice.uploads.cancel(name)


def test_another_checksum_is_refused(alice: openai.OpenAI) -> None:
    name = begin(alice, 3)
    part = alice.uploads.parts.create(name, data=b"abc")
    with pytest.raises(openai.BadRequestError, match="md5: the checksum of the parts is another"):
        alice.uploads.complete(name, part_ids=[part.id], md5="0" * 32)
    alice.uploads.cancel(name)


def test_an_upload_larger_than_a_file_may_be(alice: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="bytes: expected at most 20000000"):
        alice.uploads.create(bytes=20_000_001, filename="a", mime_type="text/plain", purpose="user_data")


def test_too_many_incomplete_uploads(alice: openai.OpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    name = begin(alice, 3)
    monkeypatch.setattr("xenoglot.store.files.MOST_UNFINISHED", 1)
    for act in (
        lambda: begin(alice, 3),
        lambda: alice.uploads.parts.create(name, data=b"abc"),
        lambda: alice.files.create(file=("a", b"x"), purpose="user_data"),
    ):
        with pytest.raises(openai.RateLimitError, match="incomplete uploads and parts: complete or cancel"):
            act()
    alice.uploads.cancel(name)
