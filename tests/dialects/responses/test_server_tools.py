"""Items of tools that the server runs are calls and results, and go home as they came (wire-D4)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from openai.types.responses import Response as OpenAIResponse
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.model.content import (
    CodeOutput,
    HostedCall,
    HostedKind,
    HostedResult,
    Image,
    Inline,
    Opaque,
    Part,
    Remote,
    SearchResult,
    Text,
)
from xenoglot.model.events import BlockEnded, BlockStarted, Event, Finished, HostedProgress, Started
from xenoglot.model.fold import fold, unfold, unfold_part
from xenoglot.model.request import Request
from xenoglot.model.response import Candidate, Finish, Response

if TYPE_CHECKING:
    from collections.abc import Iterable

    from msgspec import Struct

    from xenoglot.model.json import JSON, JSONObject

RESPONSES = get("responses")
EVENT: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)
ASKED = Request(model="m")

ITEMS: dict[str, tuple[JSONObject, tuple[HostedKind, str | None, str], tuple[object, ...] | None]] = {
    "search": (
        {"type": "web_search_call", "action": {"type": "search", "query": "q", "queries": ["q"]}},
        ("web_search", None, '{"query":"q","queries":["q"]}'),
        None,
    ),
    "search-sources": (
        {
            "type": "web_search_call",
            "action": {"type": "search", "query": "q", "sources": [{"type": "url", "url": "u"}, {"url": "v", "x": 1}]},
        },
        ("web_search", None, '{"query":"q"}'),
        (SearchResult(url="u"), SearchResult(url="v")),
    ),
    "page": (
        {"type": "web_search_call", "action": {"type": "open_page", "url": "u"}},
        ("web_fetch", "open_page", '{"url":"u"}'),
        None,
    ),
    "find": (
        {"type": "web_search_call", "action": {"type": "find_in_page", "url": "u", "pattern": "p"}},
        ("web_fetch", "find_in_page", '{"url":"u","pattern":"p"}'),
        None,
    ),
    "search-without-action": ({"type": "web_search_call"}, ("web_search", None, ""), None),
    "search-failed": (
        {"type": "web_search_call", "status": "failed", "action": {"type": "search", "query": "q"}},
        ("web_search", None, '{"query":"q"}'),
        (),
    ),
    "files": (
        {
            "type": "file_search_call",
            "queries": ["q"],
            "results": [{"file_id": "f", "filename": "a.txt", "score": 0.5, "text": "t", "attributes": {"x": 1}}],
        },
        ("file_search", None, '{"queries":["q"]}'),
        (SearchResult(title="a.txt", file_id="f", score=0.5, text="t"),),
    ),
    "files-untold": (
        {"type": "file_search_call", "queries": [], "results": None},
        ("file_search", None, ""),
        None,
    ),
    "code": (
        {
            "type": "code_interpreter_call",
            "container_id": "c",
            "code": "print('\n\u00e9')",
            "outputs": [
                {"type": "logs", "logs": "2"},
                {"type": "image", "url": "data:image/png;base64,AAAA"},
                {"type": "image", "url": "https://example.com/a.png"},
            ],
        },
        ("code_execution", None, '{"code":"print(\'\\n\u00e9\')"}'),
        (
            CodeOutput(stdout="2"),
            Image(source=Inline(data="AAAA", media_type="image/png")),
            Image(source=Remote(url="https://example.com/a.png")),
        ),
    ),
    "code-without": (
        {"type": "code_interpreter_call", "container_id": "c", "code": None, "outputs": None},
        ("code_execution", None, ""),
        None,
    ),
    "mcp": (
        {
            "type": "mcp_call",
            "server_label": "s",
            "name": "f",
            "arguments": '{"a": 1}',
            "output": "r",
            "error": None,
            "approval_request_id": "a",
        },
        ("mcp", "f", '{"a": 1}'),
        (Text(text="r"),),
    ),
    "mcp-failed": (
        {
            "type": "mcp_call",
            "status": "failed",
            "server_label": "s",
            "name": "f",
            "arguments": "{}",
            "error": {"type": "http_error", "code": 500, "message": "down"},
        },
        ("mcp", "f", "{}"),
        (),
    ),
    "image": (
        {
            "type": "image_generation_call",
            "result": "AAAA",
            "revised_prompt": "a cat",
            "output_format": "webp",
            "size": "1024x1024",
        },
        ("image_generation", None, '{"prompt":"a cat"}'),
        (Image(source=Inline(data="AAAA", media_type="image/webp")),),
    ),
    "image-begun": (
        {"type": "image_generation_call", "result": None, "status": "generating"},
        ("image_generation", None, ""),
        None,
    ),
}


def whole(item: JSONObject) -> JSONObject:
    return {"id": "x_1", "status": "completed", **item}


def answer(*items: JSONObject) -> JSONObject:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": [*items],
    }


def bare(found: Iterable[Struct]) -> tuple[object, ...]:
    """Return what was found, without what only this dialect says of it."""
    return tuple(replace(one, extra=None) for one in found)


def frames(events: Iterable[Event]) -> list[JSONObject]:
    """Return what a stream writes; the official SDK reads each event of a kind that it has."""
    made = through(events, RESPONSES.stream_encoder(ASKED, Losses()))
    return [json.loads(frame.data) for frame in made]


def told(events: Iterable[Event]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in frames(events)]


def streamed(response: Response) -> JSON:
    written = Pipeline(RESPONSES.stream_encoder(ASKED, Losses()), RESPONSES.framing.encoder())
    data = b"".join(through(unfold(response), written))
    folded = fold(through([data], Pipeline(RESPONSES.framing.decoder(), RESPONSES.stream_decoder())))
    assert isinstance(folded, Response)
    return RESPONSES.encode_response(folded, ASKED, Losses())["output"]


@pytest.mark.parametrize("name", ITEMS)
def test_an_item_is_read_and_goes_home_as_it_came(name: str) -> None:
    item, (kind, tool, arguments), found = ITEMS[name]
    item = whole(item)
    response, losses = RESPONSES.decode_response(answer(item)), Losses()
    call, *results = response.candidates[0].content
    assert isinstance(call, HostedCall)
    assert (call.kind, call.name, call.arguments) == (kind, tool, arguments)
    if found is None:
        assert results == []
    else:
        (result,) = results
        assert isinstance(result, HostedResult)
        assert (result.call_id, result.kind, bare(result.content)) == (call.id, kind, found)
        assert (result.error is not None) == (item["status"] == "failed")
    assert RESPONSES.encode_response(response, ASKED, losses)["output"] == [item]
    assert streamed(response) == [item]
    body = {"model": "m", "input": [{"role": "user", "content": "Hi"}, item, {"role": "user", "content": "And"}]}
    assert RESPONSES.encode_request(RESPONSES.decode_request(body), losses, Target()) == body
    assert [*losses] == []


@pytest.mark.parametrize(
    "item",
    [
        {"type": "web_search_call", "action": "new"},
        {"type": "web_search_call", "action": {"type": "search", "sources": [{"type": "api", "name": "weather"}]}},
        {"type": "file_search_call", "results": ["new"]},
        {"type": "code_interpreter_call", "outputs": [{"type": "new"}]},
        {"type": "mcp_call", "output": {"new": 1}},
        {"type": "image_generation_call", "result": {"new": 1}},
    ],
)
def test_what_is_not_known_stays_as_it_came(item: JSONObject) -> None:
    response = RESPONSES.decode_response(answer(whole(item)))
    assert response.candidates[0].content == (Opaque(dialect="responses", data=whole(item)),)
    assert streamed(response) == [whole(item)]


SEARCH = HostedCall(id="srvtoolu_1", kind="web_search", arguments='{"query":"q"}')
FOUND = HostedResult(call_id="srvtoolu_1", kind="web_search", content=(SearchResult(url="u", title="T", text="t"),))
OTHERS: dict[str, tuple[Part, ...]] = {
    "search": (SEARCH, FOUND),
    "search-only": (SEARCH,),
    "page": (
        HostedCall(id="1", kind="web_fetch", arguments='{"url":"u"}'),
        HostedResult(call_id="1", kind="web_fetch", content=(SearchResult(url="u"), Text(text="Words"))),
    ),
    "code": (
        HostedCall(id="1", kind="code_execution", name="bash_code_execution", arguments='{"command":"ls"}'),
        HostedResult(call_id="1", kind="code_execution", content=(CodeOutput(stdout="a", stderr="b", exit_code=1),)),
    ),
    "mcp": (
        HostedCall(id="1", kind="mcp", name="f", server="s"),
        HostedResult(call_id="1", kind="mcp", content=(Text(text="r"),)),
    ),
    "mcp-failed": (
        HostedCall(id="1", kind="mcp", name="f", server="s", arguments='{"a":1}'),
        HostedResult(call_id="1", kind="mcp", error="down"),
    ),
    "files": (
        HostedCall(id="1", kind="file_search", arguments='{"query":"q"}'),
        HostedResult(call_id="1", kind="file_search", content=(SearchResult(title="a", text="t"),)),
    ),
    "image": (
        HostedCall(id="1", kind="image_generation"),
        HostedResult(call_id="1", kind="image_generation", content=(Image(source=Inline(data="AAAA")),)),
    ),
    "side-by-side": (
        SEARCH,
        HostedCall(id="srvtoolu_2", kind="web_search", arguments='{"query":"r"}'),
        FOUND,
        HostedResult(call_id="srvtoolu_2", kind="web_search", content=(SearchResult(url="v"),)),
    ),
    "side-by-side-and-one-untold": (SEARCH, HostedCall(id="2", kind="web_search", arguments='{"query":"r"}'), FOUND),
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_official_sdk_reads_what_other_providers_ran(name: str) -> None:
    parts = (*OTHERS[name], Text(text="It is new."))
    response = Response(
        id="1", model="m", created=1, candidates=(Candidate(content=parts, finish=Finish(reason="stop")),)
    )
    body = RESPONSES.encode_response(response, ASKED, Losses())
    read = OpenAIResponse.model_validate(body, strict=True)
    calls = [part for part in parts if isinstance(part, HostedCall)]
    assert len(read.output) == len(calls) + 1
    assert read.output_text == "It is new."
    assert streamed(response) == body["output"]
    for event in frames(unfold(response)):
        EVENT.validate_python(event, strict=True)


PROGRESS = {
    "search": ("web_search_call", ["in_progress", "searching", "completed"], []),
    "page": ("web_search_call", ["in_progress", "searching", "completed"], []),
    "code": ("code_interpreter_call", ["in_progress", "interpreting", "completed"], ["delta", "done"]),
    "mcp": ("mcp_call", ["in_progress", "completed"], ["done"]),
    "mcp-failed": ("mcp_call", ["in_progress", "failed"], ["delta", "done"]),
    "files": ("file_search_call", ["in_progress", "searching", "completed"], []),
    "image": ("image_generation_call", ["in_progress", "generating", "completed"], []),
}


@pytest.mark.parametrize("name", PROGRESS)
def test_a_stream_tells_the_progress_of_a_call(name: str) -> None:
    """wire-2026: the stream of a bridged search shows `response.web_search_call.searching`."""
    kind, steps, more = PROGRESS[name]
    response = Response(id="1", candidates=(Candidate(content=OTHERS[name], finish=Finish(reason="stop")),))
    events = told(unfold(response))
    first, last = events.index("output_item.added"), events.index("output_item.done")
    between = events[first + 1 : last]
    assert [event.removeprefix(f"{kind}.") for event in between if event.startswith(f"{kind}.")] == steps
    assert [event.rpartition(".")[2] for event in between if not event.startswith(f"{kind}.")] == more


def test_a_call_is_told_before_its_result_is_there() -> None:
    encoder = RESPONSES.stream_encoder(ASKED, Losses())
    begun = [Started(id="1"), *unfold_part(SEARCH)]
    events = [json.loads(frame.data)["type"] for event in begun for frame in encoder.feed(event)]
    assert events[2:] == [
        "response.output_item.added",
        "response.web_search_call.in_progress",
        "response.web_search_call.searching",
    ]


def test_previews_of_a_picture_cross() -> None:
    events: list[Event] = [
        Started(id="1"),
        BlockStarted(part=HostedCall(id="1", kind="image_generation")),
        HostedProgress(preview=Inline(data="AAAA"), index=1),
        BlockEnded(),
        Finished(finish=Finish(reason="stop")),
    ]
    (preview,) = [event for event in frames(events) if event["type"].endswith("partial_image")]
    assert (preview["partial_image_b64"], preview["partial_image_index"]) == ("AAAA", 1)
    data = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in frames(events))
    read = through([data], Pipeline(RESPONSES.framing.decoder(), RESPONSES.stream_decoder()))
    assert HostedProgress(preview=Inline(data="AAAA"), index=1) in [*read]
