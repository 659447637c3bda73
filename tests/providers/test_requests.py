"""Every provider is asked at its own address, and shown the key in its own way."""

from __future__ import annotations

import json
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

from tests.backends.raw_server import leakless, respond_with, serving
from xenoglot.backends.backend import Call
from xenoglot.backends.http.client import Transport
from xenoglot.backends.remote.sign_in.client_credential import ClientCredential
from xenoglot.codec.loss import Losses
from xenoglot.errors import FailureError
from xenoglot.gateway.config.load import check
from xenoglot.gateway.process.build import build_remote
from xenoglot.model.content import Text
from xenoglot.model.request import Message, Request
from xenoglot.providers import catalog

if TYPE_CHECKING:
    from xenoglot.gateway.config.load import Config
    from xenoglot.model.json import JSONObject

ASKED = [
    json.loads(line) for line in Path(__file__).with_name("requests.jsonl").read_text(encoding="utf-8").splitlines()
]
OF_ALL = {"host", "content-length", "content-type", "accept", "accept-encoding", "user-agent", "x-xenoglot-hops"}
LOGIN = ClientCredential(headers=(("authorization", "Bearer of the client"),))
REFUSAL = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}"
REQUEST = Request(model="a/model", stream=True, messages=(Message(role="user", content=(Text(text="Hi"),)),))


def configured(case: JSONObject) -> Config:
    row = catalog.get(case["provider"])
    upstream = {name: case[name] for name in ("provider", "dialect", "settings") if name in case}
    return check({"upstreams": {"up": upstream}}, {row.key_env: "KEY"} if row.key_env else {}, "the test")


def seen(request: bytes, origin: str) -> JSONObject:
    line, *fields = request.partition(b"\r\n\r\n")[0].decode().split("\r\n")
    method, path, _ = line.split(" ")
    headers = dict(field.split(": ", 1) for field in fields)
    shown = {name: value for name, value in headers.items() if name not in OF_ALL}
    return {"method": method, "url": origin + path, "headers": shown}


@pytest.mark.parametrize("provider", catalog.names())
@leakless
async def test_what_is_asked(provider: str) -> None:
    cases = [case for case in ASKED if case["provider"] == provider]
    asked = []
    async with serving(respond_with(*[REFUSAL] * len(cases))) as wire, aclosing(Transport()) as transport:
        for case in cases:
            config = configured(case)
            upstream = config.upstreams["up"]
            place = urlsplit(upstream.base_url)
            origin = f"{place.scheme}://{place.netloc}"
            here = replace(upstream, base_url=upstream.base_url.replace(origin, wire.url, 1))
            login = LOGIN.bound_to(here.base_url) if here.auth == "client" else None
            call = Call(request=REQUEST, losses=Losses(), dialect=case["dialect"], credential=login)
            with pytest.raises(FailureError):
                await build_remote("up", here, transport, config).answer(call)
            asked.append(seen(wire.requests[0][-1], origin))
    assert asked == [{"method": "POST", "url": case["url"], "headers": case["headers"]} for case in cases]


def test_every_face_is_asked() -> None:
    faces = [(name, face.dialect) for name in catalog.names() for face in catalog.get(name).faces]
    assert sorted((case["provider"], case["dialect"]) for case in ASKED) == sorted(faces)
