"""Anthropic's Files API by its SDK: the same files as OpenAI's, at the same path (D3)."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import anthropic
import pytest

from tests.gateway.running_gateway import config_for, run_gateway
from tests.gateway.scripted_backends import HELLO
from tests.gateway.stored.test_intake import client_of
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.config.settings import BatchSettings

if TYPE_CHECKING:
    from collections.abc import Generator

    from openai import OpenAI

    from tests.gateway.running_gateway import RunningGateway

CONFIG = config_for("scripted", batches=BatchSettings(max_bytes=1_000_000))
DATA = b"%PDF-1.7 " + bytes(range(256)) * 2_000


@pytest.fixture(scope="module")
def running() -> Generator[RunningGateway]:
    """A gateway that takes files of a megabyte."""
    with run_gateway({"scripted": Scripted(HELLO)}, CONFIG) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def clients(running: RunningGateway) -> Generator[tuple[anthropic.Anthropic, OpenAI]]:
    """Both SDKs."""
    with ExitStack() as stack:
        one = stack.enter_context(anthropic.Anthropic(base_url=running.url, api_key="none", max_retries=0))
        yield one, stack.enter_context(client_of(running))


def test_a_file_is_uploaded_found_and_deleted(clients: tuple[anthropic.Anthropic, OpenAI]) -> None:
    client, other = clients
    file = client.files.upload(file=("../a.pdf", DATA, "application/pdf"), expires_in_seconds=3600)
    assert (file.type, file.filename, file.mime_type, file.size_bytes) == (
        "file",
        "a.pdf",
        "application/pdf",
        len(DATA),
    )
    assert file.expires_at is not None
    assert (file.expires_at - file.created_at).total_seconds() == 3600
    assert client.files.retrieve_metadata(file.id) == file
    assert client.beta.files.retrieve_metadata(file.id).id == file.id
    assert client.files.download(file.id).read() == DATA
    assert other.files.retrieve(file.id).purpose == "user_data"
    deleted = client.files.delete(file.id)
    assert (deleted.id, deleted.type) == (file.id, "file_deleted")
    with pytest.raises(anthropic.NotFoundError) as caught:
        client.files.retrieve_metadata(file.id)
    body: Any = caught.value.body
    assert (body["type"], body["error"]["type"]) == ("error", "not_found_error")


def test_files_of_the_other_sdk_are_seen(clients: tuple[anthropic.Anthropic, OpenAI]) -> None:
    client, other = clients
    file = other.files.create(file=("a.txt", b"x"), purpose="user_data")
    seen = client.files.retrieve_metadata(file.id)
    assert (seen.filename, seen.size_bytes, seen.expires_at) == ("a.txt", 1, None)
    client.files.delete(file.id)


def test_lists_in_pages(clients: tuple[anthropic.Anthropic, OpenAI]) -> None:
    client, _ = clients
    made = [client.files.upload(file=(f"{number}", b"x")).id for number in range(5)]
    page = client.files.list(limit=2)
    assert page.next_page is not None
    assert sorted(file.id for file in client.files.list(limit=2)) == sorted(made)
    assert [file.id for file in client.files.list(ids=[made[3], made[0], "file-none"])] == [made[3], made[0]]
    newest = [file.id for file in client.files.list()]
    by_id = client.files.list(extra_query={"before_id": newest[3], "limit": 2})
    assert [file.id for file in by_id.data] == newest[1:3]
    assert [file.id for file in client.files.list(extra_query={"after_id": newest[3]}).data] == newest[4:]
    for name in made:
        client.files.delete(name)


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ({"limit": 0}, "limit: expected 1 to 1000"),
        ({"page": "2"}, "page: expected the `next_page` of an earlier list"),
        ({"ids": [str(number) for number in range(101)]}, "ids: expected at most 100 ids, got 101"),
        ({"ids": ["a\0"]}, "ids: expected an id: up to 256 printable ASCII characters without spaces"),
    ],
)
def test_lists_that_do_not_exist(
    clients: tuple[anthropic.Anthropic, OpenAI], query: dict[str, object], problem: str
) -> None:
    with pytest.raises(anthropic.BadRequestError) as caught:
        clients[0].files.list(extra_query=query)
    body: Any = caught.value.body
    assert body["error"]["message"] == problem


@pytest.mark.parametrize("seconds", [59, 7_776_001, "000007776000999", "1e5", "-3600"])
def test_a_lifetime_is_checked(clients: tuple[anthropic.Anthropic, OpenAI], seconds: Any) -> None:  # noqa: ANN401
    with pytest.raises(anthropic.BadRequestError, match="expires_in_seconds: expected 3600 to 7776000"):
        clients[0].files.upload(file=("a", b"x"), expires_in_seconds=seconds)


def test_too_large_is_refused_in_its_form(clients: tuple[anthropic.Anthropic, OpenAI]) -> None:
    with pytest.raises(anthropic.APIStatusError) as caught:
        clients[0].files.upload(file=("a", bytes(1_000_001)))
    body: Any = caught.value.body
    assert (caught.value.status_code, body["error"]["type"]) == (413, "request_too_large")


def test_without_a_mark_it_is_openais_form(running: RunningGateway) -> None:
    assert running.request("GET", "/v1/files").json["object"] == "list"
    marked = running.request("GET", "/v1/files", None, {"anthropic-version": "2023-06-01"}).json
    assert marked.keys() == {"data", "next_page", "has_more", "first_id", "last_id"}
