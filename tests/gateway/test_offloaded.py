"""Large bodies, requests and answers: what the event loop decodes and encodes itself, and what one call is given (R51).

Sizes are counted, not times: every call of the JSON library while a body passes through a gateway, in which thread it
was made, and of how many bytes and values it was.
"""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.faults.direct_exchange import handle
from xenoglot.backends.offload import LARGE, of_loop
from xenoglot.codec.json import json_io, slices
from xenoglot.gateway.config.load import check
from xenoglot.gateway.process.build import build_gateway
from xenoglot.gateway.relay import answer as answer_relay
from xenoglot.gateway.relay.answer import AnswerRelay
from xenoglot.testing.script import Respond
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.faults.direct_exchange import DirectExchange
    from xenoglot.model.events import Event

SLICE = slices.SLICE_BYTES + 2 * slices.WINDOW
TEXT = b'"' + b"The tide, twice a day: {so} it goes. " * 100 + b'"'
NAMES = re.compile(rb"(req|msg)_[0-9a-zA-Z]+")
LONG = b'"' + b"The tide, twice a day: {so} it goes. " * 100_000 + b'"'


class Given(NamedTuple):
    """A call of the JSON library: whether the loop's thread made it, and of how many bytes and values."""

    in_loop: bool
    size: int
    values: int


def many(one: bytes, times: int) -> bytes:
    return b"[" + b",".join([one] * times) + b"]"


def request(messages: bytes = many(b'{"role":"user","content":"hi"}', 1), more: bytes = b"") -> bytes:
    return b'{"model":"m","max_tokens":9,"messages":' + messages + more + b"}"


def answer(message: bytes = b'{"role":"assistant","content":"hi"}', more: bytes = b"") -> bytes:
    usage = b'"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}'
    choices = b'"choices":[{"index":0,"finish_reason":"stop","message":' + message + b"}]"
    return b'{"id":"c","object":"chat.completion","created":1,"model":"m",' + choices + b"," + usage + more + b"}"


def calls(times: int) -> bytes:
    call = b'{"id":"call_%d","type":"function","function":{"name":"f","arguments":"{\\"a\\":[1,2]}"}}'
    return b'{"role":"assistant","content":null,"tool_calls":[' + b",".join(call % n for n in range(times)) + b"]}"


ROW = b"[" + b",".join([b"0.0123456789"] * 1536) + b"]"
TURN = b'{"role":"user","content":[{"type":"text","text":"hi, you"}]},{"role":"assistant","content":"yes"}'
VECTORS = b",".join(b'{"object":"embedding","index":%d,"embedding":%b}' % (n, ROW) for n in range(100))
KEYS = b"{" + b",".join(b'"key%d":0' % number for number in range(100_000)) + b"}"


class Case(NamedTuple):
    """What is sent where, and what a server of a dialect answers."""

    path: str
    dialect: str
    body: bytes
    answer: bytes


CHAT, MESSAGES, EMBEDDINGS = "/v1/chat/completions", "/v1/messages", "/v1/embeddings"
INPUTS = b'{"model":"m","input":' + many(b'"a"', 100) + b"}"
TEXTS = b'{"model":"m","input":' + many(TEXT, 100) + b"}"
CASES = {
    "findings-3-objects": Case(CHAT, "chat", request(more=b',"x":' + many(b"{}", 90_000)), answer()),
    "findings-3-numbers": Case(CHAT, "chat", request(more=b',"x":' + many(b"0", 400_000)), answer()),
    "findings-3-keys": Case(CHAT, "chat", request(more=b',"x":' + KEYS), answer()),
    "findings-3-keys-translated": Case(MESSAGES, "chat", request(more=b',"metadata":' + KEYS), answer()),
    "findings-5-turns": Case(CHAT, "chat", request(many(TURN, 5000)), answer()),
    "findings-5-turns-translated": Case(MESSAGES, "chat", request(many(TURN, 5000)), answer()),
    "findings-5-text-translated": Case(
        MESSAGES, "chat", request(b'[{"role":"user","content":' + LONG + b"}]"), answer()
    ),
    "findings-5-answer-of-calls": Case(CHAT, "chat", request(), answer(calls(10_000))),
    "findings-5-answer-of-calls-translated": Case(MESSAGES, "chat", request(), answer(calls(10_000))),
    "findings-5-answer-of-objects": Case(MESSAGES, "chat", request(), answer(more=b',"x":' + many(b"{}", 100_000))),
    "findings-5-answer-of-text": Case(
        MESSAGES, "chat", request(), answer(b'{"role":"assistant","content":' + LONG + b"}")
    ),
    "findings-5-embeddings": Case(
        EMBEDDINGS,
        "chat",
        INPUTS,
        b'{"object":"list","model":"m","data":[' + VECTORS + b'],"usage":{"prompt_tokens":3}}',
    ),
    "findings-5-embeddings-translated": Case(
        EMBEDDINGS, "ollama", INPUTS, b'{"model":"m","embeddings":' + many(ROW, 100) + b',"prompt_eval_count":3}'
    ),
    "findings-5-texts-translated": Case(
        EMBEDDINGS, "ollama", TEXTS, b'{"model":"m","embeddings":' + many(b"[1.0]", 100) + b',"prompt_eval_count":3}'
    ),
    "findings-5-texts-renamed": Case(
        EMBEDDINGS,
        "chat",
        TEXTS.replace(b'"m"', b'"other"'),
        b'{"object":"list","model":"m","data":[' + VECTORS + b'],"usage":{"prompt_tokens":3}}',
    ),
}


def watched(monkeypatch: pytest.MonkeyPatch) -> list[Given]:
    """Note every call of the JSON library by our code."""
    seen: list[Given] = []
    loop_thread = threading.get_ident()

    def noting(call: Callable[..., object]) -> Callable[..., object]:
        def noted(value: object) -> object:
            made = call(value)
            data = made if isinstance(made, bytes) else value
            data = data.encode() if isinstance(data, str) else data
            if isinstance(data, bytes) and len(data) > 1000:
                seen.append(
                    Given(
                        threading.get_ident() == loop_thread, len(data), slices.count_values(data, slices.SLICE_VALUES)
                    )
                )
            return made

        return noted

    plain = json_io.encode_json
    encode, decode = noting(plain), noting(json_io._decode)
    for name, module in list(sys.modules.items()):
        if name.startswith("xenoglot.") and getattr(module, "encode_json", None) is plain:
            monkeypatch.setattr(module, "encode_json", encode)
    monkeypatch.setattr(slices, "_encode", encode)
    for module in (slices, json_io):
        monkeypatch.setattr(module, "_decode", decode)
    return seen


async def passed(case: Case, **server: int) -> tuple[DirectExchange, int]:
    """Return what the client gets, and the most that was decoded at once."""
    async with Upstream((Respond(200, (("content-type", "application/json"),), case.answer),)) as upstream:
        plain = {
            "server": {"port": 0, **server},
            "upstreams": {"u": {"dialect": case.dialect, "base_url": upstream.url}},
            "models": [{"name": "*", "upstream": "u"}, {"name": "other", "upstream": "u", "model": "m"}],
            "store": {"url": "off"},
        }
        async with build_gateway(check(plain, {}, "a test")) as gateway:
            return await handle(gateway, "POST", case.path, case.body), of_loop().most_used_bytes


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_r51_the_loop_does_no_large_work_and_no_call_is_given_more_than_a_slice(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = watched(monkeypatch)
    answered, worst = asyncio.run(passed(case))
    assert answered.status == 200
    large = [given for given in seen if given.in_loop and given.size > LARGE]
    assert large == []
    assert [given for given in seen if given.size > SLICE and given.values > slices.SLICE_VALUES] == []
    assert worst > max(len(case.body), len(case.answer))


def test_a_large_answer_passes_as_it_is() -> None:
    case = CASES["findings-5-embeddings"]
    answered, _ = asyncio.run(passed(case))
    assert answered.body == case.answer


@pytest.mark.usefixtures("with_shortcuts")
def test_findings_5_vectors_that_pass_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watched(monkeypatch)
    asyncio.run(passed(CASES["findings-5-embeddings"]))
    assert [given for given in seen if given.size > 2000] == []


@pytest.mark.parametrize("path", [CHAT, MESSAGES, EMBEDDINGS])
def test_findings_3_an_answer_with_too_many_values_is_the_upstreams_failure(path: str) -> None:
    asked = INPUTS if path == EMBEDDINGS else request()
    more = b"," + many(b"{}", 8_000_001 if path == EMBEDDINGS else 11_000)
    answered, _ = asyncio.run(
        passed(Case(path, "chat", asked, answer(more=b',"x":[1' + more + b"]")), body_values=10_000)
    )
    most = 16_000_000 if path == EMBEDDINGS else 10_000
    told = f"server error: the upstream's answer was not understood: $: the JSON holds more than {most} values"
    assert (answered.status, told in answered.body.decode()) == (502, True)


@pytest.mark.parametrize("most", [1, 7, 1 << 20])
def test_r51_a_whole_answer_is_streamed_a_few_events_at_a_time(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    asked = request(more=b',"stream":true')
    case = Case(MESSAGES, "chat", asked, answer(calls(20)))
    written: list[int] = []
    write = AnswerRelay.write_events

    def counting(relay: AnswerRelay, events: Sequence[Event]) -> bool:
        written.append(len(events))
        return write(relay, events)

    monkeypatch.setattr(AnswerRelay, "write_events", counting)
    usual, _ = asyncio.run(passed(case))
    assert written == [max(written)]
    events = written.pop()
    monkeypatch.setattr(answer_relay, "MOST_EVENTS", most)
    answered, _ = asyncio.run(passed(case))
    assert (answered.status, NAMES.sub(b"", answered.body)) == (200, NAMES.sub(b"", usual.body))
    assert (sum(written), max(written)) == (events, min(most, events))
