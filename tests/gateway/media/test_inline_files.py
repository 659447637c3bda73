"""Files that the gateway stores are read by every upstream: their content replaces their ids (D2)."""

from __future__ import annotations

import json
from base64 import b64encode
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest
from openai.types import BatchRequestCounts

from tests.gateway.batches.batch_requests import FINISHED, create_batch, input_line, jsonl, wait_for_status
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from tests.shortcuts import switched
from xenoglot.codec.features.batch import StoredFile
from xenoglot.codec.loss import Losses
from xenoglot.dialect_registry import get
from xenoglot.errors import FailureError
from xenoglot.gateway.api.fast_path import FastPath
from xenoglot.gateway.media.file_content import media_type_of
from xenoglot.gateway.media.inline_files import InlineFiles, names_file, own_id
from xenoglot.gateway.store_service import StoreService
from xenoglot.model.content import File, Stored
from xenoglot.model.request import Message, Request
from xenoglot.store.records import Retention
from xenoglot.store.sqlite import Memory
from xenoglot.testing import Upstream, polyglot

if TYPE_CHECKING:
    from collections.abc import Generator

    from xenoglot.gateway.relay.push_driver import PushRelay
    from xenoglot.model.json import JSON, JSONObject

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))
PDF = b"%PDF-1.7\n" + bytes(range(256)) * 2_000
WAV = b"RIFF\0\0\0\0WAVEfmt " + bytes(32)
NOTES = "Müsli: 3 bowls"
DATA = {"png": PNG, "pdf": PDF, "wav": WAV, "txt": NOTES.encode()}
UPSTREAMS = ("chat", "messages", "gemini", "responses")
KEYS = {"env": ["CLIENTS"]}
ELSEWHERE = "file-" + "0" * 32


class Files:
    """A gateway in front of a server of each dialect, with a file of each kind, uploaded by `alice`."""

    def __init__(self, upstream: Upstream, gateway: DialectGateway) -> None:
        self.upstream = upstream
        self.url = gateway.url
        self.sdk = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="alice", max_retries=0)
        self.ids = {
            ending: self.sdk.files.create(file=(f"a.{ending}", data), purpose="user_data").id
            for ending, data in DATA.items()
        }

    def post(self, path: str, body: JSONObject, key: str = "alice", **headers: str) -> tuple[int, JSON]:
        """Post a request; return the status, and what the upstream got, or the error."""
        before = len(self.upstream.requests)
        answer = self.sdk._client.post(
            f"{self.url}{path}",
            content=json.dumps(body),
            headers={"authorization": f"Bearer {key}", "content-type": "application/json", **headers},
        )
        if answer.status_code != 200:
            assert len(self.upstream.requests) == before
            return answer.status_code, answer.json()
        return 200, self.upstream.requests[-1].json


@pytest.fixture(scope="module")
def files() -> Generator[Files]:
    """Give the gateway."""
    with ExitStack() as stack:
        upstream = stack.enter_context(Upstream(*polyglot(text="Seen.")))
        named = {name: {"dialect": name, "base_url": upstream.url} for name in UPSTREAMS}
        more: dict[str, Any] = {
            "upstreams": named,
            "keys": KEYS,
            "models": [{"name": name, "upstream": name, "model": "m"} for name in UPSTREAMS],
            "server": {"port": 0, "drain_seconds": 0.0, "body_limit": 2_000_000},
        }
        gateway = DialectGateway(upstream, environ={"CLIENTS": "alice bob"}, **more)
        found = Files(upstream, stack.enter_context(gateway))
        stack.enter_context(found.sdk)
        yield found


def asked(client: str, model: str, file: str, ending: str) -> tuple[str, JSONObject]:
    """Return the path and the body of a request of a client of a dialect that names a file."""
    if client == "chat":
        part: JSONObject = {"type": "file", "file": {"file_id": file}}
        turns: JSON = [{"role": "user", "content": [part, {"type": "text", "text": "Read."}]}]
        return "/v1/chat/completions", {"model": model, "messages": turns}
    if client == "responses":
        part = {"type": "input_file", "file_id": file}
        if ending == "png":
            part = {"type": "input_image", "file_id": file, "detail": "auto"}
        content = [part, {"type": "input_text", "text": "Read."}]
        return "/v1/responses", {"model": model, "input": [{"role": "user", "content": content}], "store": False}
    if client == "messages":
        source: JSONObject = {"type": "file", "file_id": file}
        block: JSONObject = {"type": "image" if ending == "png" else "document", "source": source}
        if ending == "wav":
            block = {"type": "container_upload", "file_id": file}
        turns = [{"role": "user", "content": [block, {"type": "text", "text": "Read."}]}]
        return "/v1/messages", {"model": model, "max_tokens": 9, "messages": turns}
    data = {"fileUri": f"http://127.0.0.1/v1beta/files/{file}", "mimeType": "image/png"}
    contents = [{"role": "user", "parts": [{"fileData": data}, {"text": "Read."}]}]
    return f"/v1beta/models/{model}:generateContent", {"contents": contents}


def coded(data: bytes) -> str:
    """Return bytes in base64."""
    return b64encode(data).decode()


def expected(upstream: str, ending: str) -> JSON:
    """Return the part of a file as each upstream reads it; `None` where it has no place for one."""
    data, png = coded(DATA[ending]), coded(PNG)
    return {
        ("chat", "png"): {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{png}"}},
        ("chat", "pdf"): {
            "type": "file",
            "file": {"file_data": f"data:application/pdf;base64,{data}", "filename": "a.pdf"},
        },
        ("chat", "wav"): {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}},
        ("chat", "txt"): {"type": "text", "text": f"a.txt\n{NOTES}"},
        ("responses", "png"): {"type": "input_image", "image_url": f"data:image/png;base64,{png}", "detail": "auto"},
        ("responses", "pdf"): {
            "type": "input_file",
            "file_data": f"data:application/pdf;base64,{data}",
            "filename": "a.pdf",
        },
        ("responses", "wav"): {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}},
        ("responses", "txt"): {"type": "input_text", "text": f"a.txt\n{NOTES}"},
        ("messages", "png"): {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": png},
        },
        ("messages", "pdf"): {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": data},
            "title": "a.pdf",
        },
        ("messages", "txt"): {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": NOTES},
            "title": "a.txt",
        },
        ("gemini", "png"): {"inlineData": {"mimeType": "image/png", "data": png}},
        ("gemini", "pdf"): {"inlineData": {"mimeType": "application/pdf", "data": data}},
        ("gemini", "wav"): {"inlineData": {"mimeType": "audio/wav", "data": data}},
        ("gemini", "txt"): {"inlineData": {"mimeType": "text/plain", "data": data}},
    }.get((upstream, ending))


def parts_of(upstream: str, body: JSON) -> list[JSON]:
    """Return the parts of the first turn that an upstream got."""
    match upstream:
        case "gemini":
            return list(body["contents"][0]["parts"])
        case "responses":
            return list(body["input"][0]["content"])
        case _:
            content = body["messages"][0]["content"]
            return [content] if isinstance(content, str) else list(content)


@pytest.mark.parametrize("ending", DATA)
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("client", UPSTREAMS)
def test_every_upstream_reads_it(files: Files, client: str, upstream: str, ending: str) -> None:
    status, got = files.post(*asked(client, upstream, files.ids[ending], ending))
    wanted = expected(upstream, ending)
    if (client, upstream, ending) == ("responses", "chat", "png"):
        wanted["image_url"]["detail"] = "auto"
    parts = parts_of(upstream, got)
    assert status == 200
    assert parts[:-1] == ([] if wanted is None else [wanted])
    assert files.ids[ending] not in json.dumps(got)


@pytest.mark.parametrize("client", UPSTREAMS)
@pytest.mark.parametrize(("key", "file"), [("bob", "png"), ("alice", ELSEWHERE)], ids=["another-keys", "unknown"])
def test_a_file_that_the_client_has_not(files: Files, client: str, key: str, file: str) -> None:
    path, body = asked(client, client, files.ids.get(file, file), "png")
    status, error = files.post(path, body, key)
    assert status == 404
    assert "No such File object" in error["error"]["message"]


def test_ids_of_a_provider_reach_it_untouched(files: Files) -> None:
    path, body = asked("responses", "responses", "file-6F2ksmvXxt4VdoqmHRw6kL", "png")
    assert files.post(path, body) == (200, {**body, "model": "m"})
    status, error = files.post(*asked("chat", "messages", "file-6F2ksmvXxt4VdoqmHRw6kL", "pdf"))
    assert status == 200, error
    assert parts_of("messages", error) == ["Read."]


def test_a_prompt_of_a_providers_file_alone_is_refused(files: Files) -> None:
    part = {"type": "input_file", "file_id": "file-6F2ksmvXxt4VdoqmHRw6kL"}
    body: JSONObject = {"model": "chat", "store": False, "input": [{"role": "user", "content": [part]}]}
    status, error = files.post("/v1/responses", body)
    assert (status, error["error"]["param"]) == (400, "messages[0].content[0]")
    assert error["error"]["message"].endswith("the id of a file means something to its own provider only")


def test_more_than_a_body_may_be_is_refused(files: Files) -> None:
    path, body = asked("chat", "chat", files.ids["pdf"], "pdf")
    body["messages"][0]["content"] *= 4
    status, error = files.post(path, body)
    assert (status, error["error"]["message"][:40]) == (413, "the prompt with its files is larger than")


def test_a_stored_response_is_continued_with_its_file(files: Files) -> None:
    _, body = asked("responses", "chat", files.ids["txt"], "txt")
    first = files.sdk.responses.create(model="chat", input=body["input"])
    files.sdk.responses.create(model="chat", input="And?", previous_response_id=first.id)
    sent = files.upstream.requests[-1].json["messages"]
    assert sent[0]["content"][0] == expected("chat", "txt")
    kept = files.sdk.responses.input_items.list(first.id).data[0].to_dict()
    assert files.ids["txt"] in json.dumps(kept)
    assert NOTES not in json.dumps(kept)


def test_a_line_of_a_batch_names_it(files: Files) -> None:
    path, asking = asked("chat", "messages", files.ids["txt"], "txt")
    batch = create_batch(files.sdk, jsonl(input_line("one", asking, path)))
    assert wait_for_status(files.sdk, batch.id, *FINISHED).request_counts == BatchRequestCounts(
        total=1, completed=1, failed=0
    )
    assert parts_of("messages", files.upstream.requests[-1].json)[0] == expected("messages", "txt")


def test_tokens_are_counted_with_it(files: Files) -> None:
    source: Any = {"type": "file", "file_id": files.ids["txt"]}
    block: Any = {"type": "document", "source": source}
    words: Any = {"type": "text", "text": "Hi"}
    with anthropic.Anthropic(base_url=files.url, api_key="alice", max_retries=0) as sdk:
        counted = [
            sdk.messages.count_tokens(model="chat", messages=[{"role": "user", "content": content}])
            for content in ([words], [block, words])
        ]
    assert counted[0].input_tokens < counted[1].input_tokens


def test_it_needs_a_task_and_others_do_not(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bool] = []
    passage = FastPath.passage

    def noted(*arguments: object) -> PushRelay | None:
        found = passage(*arguments)  # type: ignore[arg-type]  # as it was called
        made.append(found is not None)
        return found

    monkeypatch.setattr(FastPath, "passage", noted)
    path, body = asked("messages", "chat", files.ids["txt"], "txt")
    text = {"model": "chat", "max_tokens": 9, "messages": [{"role": "user", "content": "file-" + "x" * 32}]}
    with switched(on=True):
        for sent in (text, text, body):
            assert files.post(path, sent)[0] == 200
    assert made[-2:] == [True, False]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ([{"type": "text", "text": ELSEWHERE}], False),
        ([{"type": "document", "source": {"type": "file", "file_id": ELSEWHERE}}], True),
        ([{"type": "document", "source": {"type": "file", "file_id": "file_011CNha8iCJcU1wXNR6q4V8w"}}], False),
        ([{"type": "image", "source": {"type": "url", "url": f"https://a.example/files/{ELSEWHERE}"}}], True),
    ],
)
@pytest.mark.parametrize("nested", [False, True])
def test_which_requests_name_a_file(content: list[JSON], *, nested: bool, found: bool) -> None:
    if nested:
        content = [{"type": "tool_result", "tool_use_id": "a", "content": content}]
    body: JSONObject = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": content}]}
    assert names_file(get("messages").decode_request(body)) is found


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (ELSEWHERE, True),
        (f"files/{ELSEWHERE}", True),
        (f"https://gateway.example/base/v1beta/files/{ELSEWHERE}", True),
        (f"https://gateway.example/v1beta/files/{ELSEWHERE}?alt=media", False),
        (f"https://files.example/?x=/files/{ELSEWHERE}", False),
        (f"{ELSEWHERE}0", False),
        ("file-6F2ksmvXxt4VdoqmHRw6kL", False),
        ("file_011CNha8iCJcU1wXNR6q4V8w", False),
    ],
)
def test_whose_an_id_is(name: str, *, found: bool) -> None:
    assert (own_id(name) == ELSEWHERE) is found


@pytest.mark.parametrize(
    ("head", "declared", "name", "wanted"),
    [
        (PNG, "image/jpeg", "a.jpg", "image/png"),
        (PDF, None, "a", "application/pdf"),
        (b"a,b", "application/octet-stream", "a.CSV", "text/csv"),
        (b"a,b", "text/csv; charset=utf-8", "a", "text/csv"),
        (b"\0\1", None, "a.bin", None),
    ],
)
def test_media_types(head: bytes, declared: str | None, name: str, wanted: str | None) -> None:
    assert media_type_of(head, declared, name) == wanted


async def test_a_file_that_is_deleted_while_it_is_read_is_no_prompt() -> None:
    """A part of it must not pass for all of it."""
    keeper = StoreService(Memory(), Retention(max_age=1e9, max_bytes=10**9), now=lambda: 200.0)
    file = StoredFile(id="file-" + "1" * 32, owner="alice", created=100.0, name="a", purpose="user_data", size=6)
    await keeper.store.files.begin(file)
    await keeper.store.files.add("alice", file.id, 0, b"abc")
    await keeper.store.files.finish(file)
    turn = Message(role="user", content=(File(source=Stored(id=file.id)),))
    with pytest.raises(FailureError) as caught:
        await InlineFiles(keeper, 1_000).inlined(Request(model="m", messages=(turn,)), "alice", "chat", Losses())
    failure = caught.value.failure
    assert (failure.kind, failure.message) == (
        "not_found",
        f"the file {file.id} was deleted while the request was prepared: upload it again",
    )
    await keeper.aclose()
