"""What belongs to one client is not there for another; names of files and templates name none (S09, S10, S13, S15)."""

from __future__ import annotations

import re
import sys
from contextlib import aclosing
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.server.test_bert import checkpoint
from tests.engine.shared_engine import Running
from tests.faults.direct_exchange import DirectExchange, handle
from tests.faults.test_security_ranges import REQUESTS
from tests.gateway.running_gateway import config_for, endpoint_rows
from tests.gateway.scripted_backends import HELLO
from xenoglot.backends.backend import Call, EventAnswer
from xenoglot.backends.http.client import Transport
from xenoglot.backends.scripted import Scripted
from xenoglot.codec.loss import Losses
from xenoglot.engine.backend import Engine
from xenoglot.engine.errors import EngineError
from xenoglot.engine.server.bert import make
from xenoglot.engine.server.lifecycle import EngineProcess
from xenoglot.engine.server.server_process import EngineEndpoint, Settings
from xenoglot.engine.server.weights import Weights, from_path
from xenoglot.gateway.app import Gateway
from xenoglot.gateway.config.file_permissions import Secrets
from xenoglot.gateway.config.local_models import Embedded, EmbeddedModel
from xenoglot.gateway.config.settings import KeySettings
from xenoglot.gateway.config.tenants import Tenant
from xenoglot.gateway.process.build import with_private_caches
from xenoglot.model.content import Text
from xenoglot.model.events import UsageReported
from xenoglot.model.request import Message, Request, Sampling

if TYPE_CHECKING:
    from pathlib import Path

    from xenoglot.model.json import JSON, JSONObject

LAB, LAB_TOO, SHOP, ALONE, ALONE_TOO = "key-lab-1", "key-lab-2", "key-shop", "key-alone-1", "key-alone-2"
CONFIG = config_for(
    "own",
    keys=KeySettings(env=("ALONE",)),
    tenants={"lab": Tenant(key_env="LAB"), "shop": Tenant(key_sha256=(sha256(SHOP.encode()).hexdigest(),))},
    secrets=Secrets({"ALONE": f"{ALONE} {ALONE_TOO}", "LAB": f"{LAB} {LAB_TOO}"}),
)
STRANGERS = {"another-tenant": SHOP, "a-key-without-tenant": ALONE, "one-byte-less": ALONE_TOO}


async def request_as(key: str, gateway: Gateway, method: str, path: str, body: JSON = None) -> DirectExchange:
    """What the holder of a key gets."""
    return await handle(gateway, method, path, body, [("x-api-key", key)])


FORM = b"".join(
    b"--b\r\ncontent-disposition: form-data; %b\r\n\r\n%b\r\n" % part
    for part in ((b'name="purpose"', b"batch"), (b'name="file"; filename="in.jsonl"', b"{}"))
) + b"--b--\r\n"  # fmt: skip
BATCH: JSONObject = {"endpoint": "/v1/chat/completions", "completion_window": "24h"}


async def stored_objects(gateway: Gateway) -> dict[str, str]:
    """Have the lab keep one of each thing; return their ids by the word that their paths have."""
    answer = await request_as(LAB, gateway, "POST", "/v1/responses", {"model": "m", "input": "Hi", "store": True})
    talk = await request_as(LAB, gateway, "POST", "/v1/conversations", {"items": [{"role": "user", "content": "Hi"}]})
    interaction = await request_as(LAB, gateway, "POST", "/v1beta/interactions", {"model": "m", "input": "Hi"})
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "store": True}
    completion = await request_as(LAB, gateway, "POST", "/v1/chat/completions", body)
    headers = [("x-api-key", LAB), ("content-type", "multipart/form-data; boundary=b")]
    file = await handle(gateway, "POST", "/v1/files", FORM, headers)
    batch = await request_as(LAB, gateway, "POST", "/v1/batches", {**BATCH, "input_file_id": file.json["id"]})
    requests = [{"custom_id": "one", "params": {"model": "m", "max_tokens": 9, "messages": body["messages"]}}]
    messages = await request_as(LAB, gateway, "POST", "/v1/messages/batches", {"requests": requests})
    part = {"bytes": 1, "filename": "a", "mime_type": "text/plain", "purpose": "batch"}
    upload = await request_as(LAB, gateway, "POST", "/v1/uploads", part)
    return {
        "uploads": upload.json["id"],
        "messages/batches": messages.json["id"],
        "batches": batch.json["id"],
        "files": file.json["id"],
        "responses": answer.json["id"],
        "interactions": interaction.json["id"],
        "conversations": talk.json["id"],
        "completions": completion.json["id"],
    }


PLACES = [(row.method, row.path) for row in endpoint_rows() if "{id}" in row.path and not row.raw]


def without_id(asked: DirectExchange, name: str) -> tuple[int, str]:
    """What was answered, but for the id that was asked for and that of the request."""
    return asked.status, re.sub(r"req_\w+", "req", asked.body.decode()).replace(name, "ID")


@pytest.mark.parametrize("stranger", STRANGERS)
@pytest.mark.parametrize(("method", "path"), PLACES)
async def test_s09_r16_what_is_anothers_is_told_as_what_nobody_has(method: str, path: str, stranger: str) -> None:
    async with aclosing(Gateway(CONFIG, {"own": Scripted(HELLO)})) as gateway:
        ids = await stored_objects(gateway)
        name = next(name for word, name in ids.items() if f"/{word}/" in path)
        made_up = name[:-4] + ("aaaa" if not name.endswith("aaaa") else "bbbb")
        body: JSON = {"metadata": {}, "items": []} if method == "POST" else None
        told = []
        for one in (name, made_up):
            there = path.replace("{id}", one).replace("{item}", "msg_0")
            told.append(without_id(await request_as(STRANGERS[stranger], gateway, method, there, body), one))
        assert told[0] == told[1]
        assert told[0][0] == 404
        there = re.split("/(?:cancel|items|results)|:", path.replace("{id}", name))[0]
        own = ("POST", f"/v1/uploads/{name}/cancel") if "/uploads/" in path else ("GET", there)
        assert (await request_as(LAB_TOO, gateway, *own)).status == 200


@pytest.mark.parametrize("stranger", STRANGERS)
@pytest.mark.parametrize("field", ["previous_response_id", "conversation"])
async def test_s09_r16_what_is_anothers_cannot_be_gone_on_with(field: str, stranger: str) -> None:
    gateway = Gateway(CONFIG, {"own": Scripted(HELLO)})
    ids = await stored_objects(gateway)
    name = ids["responses" if field == "previous_response_id" else "conversations"]
    told = []
    for one in (name, name[:-4] + "aaaa"):
        asked = await request_as(
            STRANGERS[stranger], gateway, "POST", "/v1/responses", {"model": "m", "input": "?", field: one}
        )
        told.append(without_id(asked, one))
    assert told[0] == told[1]
    assert told[0][0] in {400, 404}
    own = await request_as(LAB_TOO, gateway, "POST", "/v1/responses", {"model": "m", "input": "?", field: name})
    assert own.status == 200


# -- S10: what one client's prompt left in memory


def prompts(text: str) -> Call:
    """A request that is not answered at length."""
    said = Message(role="user", content=(Text(text=text),))
    return Call(
        request=Request(model="m", messages=(said,), sampling=Sampling(max_tokens=1, temperature=0)), losses=Losses()
    )


async def cached(engine: Engine, text: str) -> int:
    """How much of the prompt was in memory, by the usage."""
    answer = await engine.answer(prompts(text))
    assert isinstance(answer, EventAnswer)
    told = [
        event.usage.cache_read or 0
        async for batch in answer.batches
        for event in batch
        if isinstance(event, UsageReported)
    ]
    await answer.aclose()
    return max(told)


@pytest.mark.parametrize("remembers", [True, False])
async def test_s10_a_prompt_tells_nothing_of_one_before_it(
    weights: Weights, running_engine: EngineEndpoint, *, remembers: bool
) -> None:
    transport = Transport()
    shape = Settings(slots=4, context=512, remembers=remembers)
    engine = Engine(weights, shape, transport=transport, process=Running(running_engine))
    text = f"The password of the {remembers} vault is otter, and nobody else may know that it is."
    told = [await cached(engine, text) for _ in range(3)]
    await transport.aclose()
    assert (told[-1] > 10) is remembers
    assert remembers or told[1:] == [0, 0]


@pytest.mark.parametrize(
    ("changes", "shared"),
    [
        pytest.param({"keys": KeySettings(), "tenants": {}}, True, id="S10-nobody-needs-a-key"),
        pytest.param({"keys": KeySettings(), "tenants": {"lab": CONFIG.tenants["lab"]}}, True, id="S10-one-tenant"),
        pytest.param({}, False, id="S10-several-clients"),
        pytest.param({"embedded": Embedded(share_cache=True)}, True, id="S10-several-that-trust-each-other"),
    ],
)
def test_memory_is_shared_where_there_is_nobody_to_share_it_with_or_it_is_said(
    changes: dict[str, object],
    shared: bool,  # noqa: FBT001  a case
) -> None:
    base = config_for(keys=CONFIG.keys, tenants=CONFIG.tenants, secrets=CONFIG.secrets)
    config = with_private_caches(
        config_for(**{**{name: getattr(base, name) for name in ("keys", "tenants", "secrets")}, **changes})
    )
    assert ((config.embedded or Embedded()).share_cache is not False) is shared


def test_s10_each_embedded_model_is_asked_for_itself() -> None:
    models = {"a": EmbeddedModel(gguf="a.gguf", share_cache=True), "b": EmbeddedModel(gguf="b.gguf")}
    config = with_private_caches(
        config_for("own", keys=CONFIG.keys, secrets=CONFIG.secrets, embedded=Embedded(models=models))
    )
    assert config.embedded is not None
    assert {name: model.share_cache for name, model in config.embedded.models.items()} == {"a": True, "b": False}


# -- S13: names that are paths

PATHS = [
    "../../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "%2e%2e/%2e%2e/etc/passwd",
    "..\\..\\windows\\win.ini",
    "/etc/passwd",
    "file:///etc/passwd",
    "....//....//etc/passwd",
    "..;/etc/passwd",
    "%00",
    "a%00.json",
    "~/.ssh/id_rsa",
    "/proc/self/environ",
    "con",
    "C:\\",
    "\\\\host\\share",
]
OPENED: list[object] = []
WATCHING = [False]
FILES = {"open", "os.listdir", "os.scandir", "os.remove", "os.rename", "os.mkdir"}


def _hook(event: str, args: tuple[object, ...]) -> None:
    if WATCHING[0] and event in FILES:
        OPENED.append((event, args[0]))


@pytest.fixture
def watched() -> list[object]:
    """Give what files are opened or listed while the gateway serves."""
    if not OPENED and not getattr(sys, "_xenoglot_watched", False):
        sys.addaudithook(_hook)
        sys._xenoglot_watched = True  # type: ignore[attr-defined]  # a hook stays for ever: one is enough
    OPENED.clear()
    return OPENED


@pytest.mark.parametrize("name", PATHS)
async def test_s13_c21_a_name_that_is_a_path_opens_nothing(name: str, watched: list[object]) -> None:
    config = config_for(upstreams=CONFIG.upstreams | {"two": CONFIG.upstreams["own"]})
    gateway = Gateway(config, {"own": Scripted(HELLO), "two": Scripted(HELLO)})
    statuses = set()
    WATCHING[0] = True
    try:
        for path in (
            "/v1/models/",
            "/v1/responses/",
            "/v1/conversations/",
            "/v1/chat/completions/",
            "/static/",
            "/",
            "/v1beta/models/",
        ):
            statuses.add((await handle(gateway, "GET", path + name)).status)
        for path, body in REQUESTS.values():
            said: JSONObject = body | dict.fromkeys({"model", "model_id"} & set(body), name)
            said |= {"chat_template": name, "template": name, "lora": name, "grammar_file": name, "file": name}
            statuses.add((await handle(gateway, "POST", path.replace("/m:", f"/{name}:"), said)).status)
    finally:
        WATCHING[0] = False
    assert watched == []
    assert statuses <= {400, 404}


# -- S15 and R53: words and fields that are templates

TEMPLATES = [
    "{{ 7 * 7 }}",
    "{% for i in range(100000) %}x{% endfor %}",
    "{{ ''.__class__.__mro__ }}",
    "${7*7}",
    "<%= 7*7 %>",
    "#{7*7}",
    "{{config}}",
]


@pytest.mark.parametrize("template", TEMPLATES)
async def test_s15_r53_words_that_are_a_template_stay_words(template: str, engine: Engine) -> None:
    plain = Message(role="user", content=(Text(text="Hi"),))
    said = Message(role="user", content=(Text(text=template),), name=template)
    answered = Message(role="assistant", content=(Text(text=template),))
    request = Request(model="m", messages=(said, answered, plain))
    count = await engine.count(Call(request=request, losses=Losses()))
    nothing = await engine.count(Call(request=Request(model="m", messages=(plain,)), losses=Losses()))
    assert count is not None
    assert nothing is not None
    assert 0 < count - nothing < 200


FIELDS: JSONObject = {
    "chat_template": "{{ 7 * 7 }}" * 1000,
    "chat_template_kwargs": {"x": "{{ 7 * 7 }}"},
    "template": "{{ 7 * 7 }}" * 1000,
    "system_template": "{{ 7 * 7 }}",
    "documents": [{"text": "{{ 7 * 7 }}"}],
    "add_generation_prompt": True,
    "continue_final_message": False,
}


async def test_s15_no_field_of_a_request_is_the_template(engine: Engine) -> None:
    gateway = Gateway(config_for("own"), {"own": engine})
    path, body = REQUESTS["chat"]
    body = {**body, "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]}
    told = [await handle(gateway, "POST", path, one) for one in (body, {**body, **FIELDS})]
    assert [asked.status for asked in told] == [200, 200]
    assert told[0].json["usage"]["prompt_tokens"] == told[1].json["usage"]["prompt_tokens"]
    assert "chat_template" in told[1].response_headers["x-xenoglot-losses"]


ROLES = {
    "template": "{{ 7 * 7 }}",
    "attribute": "__class__",
    "two-lines": "system\nuser",
    "long": "a" * 100_000,
    "number": 7,
    "list": ["user"],
}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("client", ["chat", "messages", "responses", "ollama", "llama_stack", "gemini"])
async def test_s15_c17_a_role_nobody_has_is_refused_or_carried_and_does_nothing(client: str, role: str) -> None:
    gateway = Gateway(config_for("own"), {"own": Scripted(HELLO)})
    path, body = REQUESTS[client]
    turn: JSONObject = {"role": ROLES[role], "content": "Hi", "parts": [{"text": "Hi"}]}
    turns = {"responses": {"input": [turn]}, "gemini": {"contents": [turn]}}.get(client, {"messages": [turn]})
    asked = await handle(gateway, "POST", path, {**body, **turns})
    # Ollama hands its templates whatever role there is: there it is carried, and nowhere else.
    assert asked.status == 400 or (asked.status == 200 and client in {"ollama", "responses"} and role != "number")
    assert len(asked.body) < 3000
    assert not re.search(r"\b49\b|aaaa{1000}", asked.body.decode())


# -- R55: model files


@given(data=st.binary(max_size=64))
def test_r55_any_bytes_are_a_model_file_or_none(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "any.gguf"
    path.write_bytes(data)
    try:
        from_path(path)
    except EngineError:
        return
    assert data[:4] == b"GGUF"


@given(place=st.integers(0, 400), value=st.integers(0, 255), cut=st.integers(0, 500))
def test_r55_a_checkpoint_with_any_byte_changed_is_read_or_refused(
    place: int, value: int, cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp()
    files = checkpoint(folder)
    data = bytearray(files[0].read_bytes())
    data[place % len(data)] = value
    files[0].write_bytes(bytes(data[: len(data) - cut % len(data)]))
    try:
        make(files, folder / "made.gguf")
    except ValueError:
        return
    assert (folder / "made.gguf").stat().st_size < 100_000


@pytest.mark.parametrize(
    "head",
    [
        pytest.param((2**63).to_bytes(8, "little"), id="R55-head-beyond-the-file"),
        pytest.param((2).to_bytes(8, "little") + b"[]", id="R55-head-is-a-list"),
        pytest.param(b"", id="R55-empty"),
        pytest.param((60_000).to_bytes(8, "little") + b'{"a":' + b"[" * 60_000, id="R55-deep"),
    ],
)
def test_a_checkpoint_whose_head_is_none(head: bytes, tmp_path: Path) -> None:
    files = checkpoint(tmp_path)
    files[0].write_bytes(head)
    with pytest.raises(ValueError, match="the checkpoint"):
        make(files, tmp_path / "made.gguf")


def gguf(tensors: int, fields: int, rest: bytes) -> bytes:
    """A model file with those counts in its head."""
    return b"GGUF" + (3).to_bytes(4, "little") + tensors.to_bytes(8, "little") + fields.to_bytes(8, "little") + rest


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(gguf(2**63, 0, b""), id="R55-tensors-without-number"),
        pytest.param(gguf(1, 1, (2**62).to_bytes(8, "little") + b"name"), id="R55-a-name-beyond-the-file"),
        pytest.param(gguf(0, 0, bytes(100)), id="R55-nothing-in-it"),
    ],
)
async def test_a_model_file_that_lies_ends_in_an_error(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(data)
    process = EngineProcess(Weights(path=path, name="broken"), Settings(slots=1, context=256, load_seconds=30))
    with pytest.raises(EngineError):
        await process.ready()
    await process.stop()
