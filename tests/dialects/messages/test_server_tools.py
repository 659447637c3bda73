"""Blocks of tools that the server runs are calls and results of the model, and go home as they came (wire-D4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from anthropic.types.beta import BetaMessage

from xenoglot import translate_response
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.dialects.messages.hosted.decoder import sealed_text
from xenoglot.model.content import (
    CodeOutput,
    Extra,
    File,
    HostedCall,
    HostedContent,
    HostedKind,
    HostedResult,
    Image,
    Opaque,
    Part,
    Plain,
    Remote,
    SearchResult,
    Text,
)
from xenoglot.model.fold import fold, unfold
from xenoglot.model.request import Message, Request
from xenoglot.model.response import Candidate, Finish, Response

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

MESSAGES = get("messages")
CALLER: JSONObject = {"type": "code_execution_20260120", "tool_id": "srvtoolu_0"}


def called(name: str, given: JSONObject, **more: JSON) -> JSONObject:
    return {"type": "server_tool_use", "id": "srvtoolu_1", "name": name, "input": given, **more}


def came(kind: str, content: JSON, **more: JSON) -> JSONObject:
    return {"type": f"{kind}_tool_result", "tool_use_id": "srvtoolu_1", "content": content, **more}


def printed(kind: str, **more: JSON) -> JSONObject:
    files = [{"type": f"{kind}_output", "file_id": "file_1"}]
    return {"type": f"{kind}_result", "stdout": "2", "stderr": "", "return_code": 0, "content": files, **more}


PAGE: JSONObject = {
    "type": "document",
    "source": {"type": "text", "media_type": "text/plain", "data": "Words"},
    "title": "Title",
    "citations": {"enabled": True},
}
FOUND: JSONObject = {
    "type": "web_search_result",
    "url": "https://example.com",
    "title": "Title",
    "page_age": "2 days",
    "encrypted_content": "e",
}
BLOCKS: dict[str, tuple[JSONObject, Part]] = {
    "search": (
        called("web_search", {"query": "q"}),
        HostedCall(id="srvtoolu_1", kind="web_search", arguments='{"query":"q"}'),
    ),
    "search-by-code": (
        called("web_search", {}, caller=CALLER),
        HostedCall(id="srvtoolu_1", kind="web_search", extra=Extra(dialect="messages", fields={"caller": CALLER})),
    ),
    "bash": (
        called("bash_code_execution", {"command": "ls"}),
        HostedCall(id="srvtoolu_1", kind="code_execution", name="bash_code_execution", arguments='{"command":"ls"}'),
    ),
    "mcp": (
        {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "f", "server_name": "s", "input": {"a": 1}},
        HostedCall(id="mcptoolu_1", kind="mcp", name="f", server="s", arguments='{"a":1}'),
    ),
    "found": (
        came("web_search", [FOUND], cache_control={"type": "ephemeral"}),
        HostedResult(call_id="srvtoolu_1", kind="web_search", content=()),
    ),
    "found-nothing": (came("web_search", []), HostedResult(call_id="srvtoolu_1", kind="web_search")),
    "search-failed": (
        came("web_search", {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}),
        HostedResult(call_id="srvtoolu_1", kind="web_search", error="max_uses_exceeded"),
    ),
    "fetched": (
        came("web_fetch", {"type": "web_fetch_result", "url": "u", "retrieved_at": "t", "content": PAGE}),
        HostedResult(call_id="srvtoolu_1", kind="web_fetch"),
    ),
    "fetch-failed": (
        came("web_fetch", {"type": "web_fetch_tool_result_error", "error_code": "url_not_allowed"}),
        HostedResult(call_id="srvtoolu_1", kind="web_fetch", error="url_not_allowed"),
    ),
    "code": (
        came("code_execution", printed("code_execution")),
        HostedResult(call_id="srvtoolu_1", kind="code_execution"),
    ),
    "code-encrypted": (
        came(
            "code_execution",
            {
                "type": "encrypted_code_execution_result",
                "encrypted_stdout": "e",
                "stderr": "",
                "return_code": 0,
                "content": [],
            },
        ),
        HostedResult(call_id="srvtoolu_1", kind="code_execution"),
    ),
    "bash-code": (
        came("bash_code_execution", printed("bash_code_execution")),
        HostedResult(call_id="srvtoolu_1", kind="code_execution", name="bash_code_execution"),
    ),
    "edit-failed": (
        came(
            "text_editor_code_execution",
            {
                "type": "text_editor_code_execution_tool_result_error",
                "error_code": "file_not_found",
                "error_message": "no such file",
            },
        ),
        HostedResult(
            call_id="srvtoolu_1", kind="code_execution", name="text_editor_code_execution", error="file_not_found"
        ),
    ),
    "viewed": (
        came(
            "text_editor_code_execution",
            {
                "type": "text_editor_code_execution_view_result",
                "file_type": "text",
                "content": "Words",
                "num_lines": 1,
                "start_line": None,
                "total_lines": 1,
            },
        ),
        HostedResult(call_id="srvtoolu_1", kind="code_execution", name="text_editor_code_execution"),
    ),
    "created": (
        came(
            "text_editor_code_execution",
            {"type": "text_editor_code_execution_create_result", "is_file_update": False},
        ),
        HostedResult(call_id="srvtoolu_1", kind="code_execution", name="text_editor_code_execution"),
    ),
    "mcp-said": (
        came("mcp", [{"type": "text", "text": "Words"}], is_error=False),
        HostedResult(call_id="srvtoolu_1", kind="mcp"),
    ),
    "mcp-failed": (
        came("mcp", "Words", is_error=True),
        HostedResult(call_id="srvtoolu_1", kind="mcp", error="error"),
    ),
}
CONTENT: dict[str, tuple[object, ...]] = {
    "found": (
        SearchResult(
            url="https://example.com",
            title="Title",
            age="2 days",
            extra=Extra(dialect="messages", fields={"encrypted_content": "e"}),
        ),
    ),
    "fetched": (
        SearchResult(url="u"),
        File(source=Plain(text="Words", media_type="text/plain"), name="Title", citable=True),
    ),
    "code": (CodeOutput(stdout="2", exit_code=0, file_ids=("file_1",)),),
    "code-encrypted": (CodeOutput(exit_code=0, extra=Extra(dialect="messages", form={"absent": ["stdout"]})),),
    "bash-code": (CodeOutput(stdout="2", exit_code=0, file_ids=("file_1",)),),
    "viewed": (Text(text="Words"),),
    "mcp-said": (Text(text="Words"),),
    "mcp-failed": (Text(text="Words"),),
}


def answer(*blocks: JSONObject) -> JSONObject:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [*blocks],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def streamed(response: Response) -> JSON:
    """Return the answer that a stream of `response` makes, as an official accumulator would put it together."""
    frames = through(
        unfold(response), Pipeline(MESSAGES.stream_encoder(Request(model="m"), Losses()), MESSAGES.framing.encoder())
    )
    folded = fold(through([b"".join(frames)], Pipeline(MESSAGES.framing.decoder(), MESSAGES.stream_decoder())))
    assert isinstance(folded, Response)
    return MESSAGES.encode_response(folded, Request(model="m"), Losses())


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_is_read_and_goes_home_as_it_came(name: str) -> None:
    block, wanted = BLOCKS[name]
    response, losses = MESSAGES.decode_response(answer(block)), Losses()
    (part,) = response.candidates[0].content
    assert isinstance(part, HostedCall | HostedResult)
    kept = [getattr(part, field) for field in ("kind", "name", "error", "arguments", "server") if hasattr(part, field)]
    assert kept == [
        getattr(wanted, field) for field in ("kind", "name", "error", "arguments", "server") if hasattr(part, field)
    ]
    assert getattr(part, "content", ()) == CONTENT.get(name, ())
    assert MESSAGES.encode_response(response, Request(model="m"), losses) == answer(block)
    assert streamed(response) == answer(block)
    user = {"role": "user", "content": "Hi"}
    body = {"model": "m", "max_tokens": 9, "messages": [user, {"role": "assistant", "content": [block]}, user]}
    assert MESSAGES.encode_request(MESSAGES.decode_request(body), losses, Target()) == body
    assert [*losses] == []


@pytest.mark.parametrize(
    "block",
    [
        called("advisor", {}),
        came("tool_search", []),
        came("web_search", [{"type": "new"}]),
        came("web_fetch", {"type": "new"}),
        came("code_execution", {"type": "code_execution_result", "content": [{"type": "new"}]}),
        came("mcp", None),
    ],
)
def test_what_is_not_known_stays_as_it_came(block: JSONObject) -> None:
    response = MESSAGES.decode_response(answer(block))
    assert isinstance(response.candidates[0].content[0], Opaque)
    assert MESSAGES.encode_response(response, Request(model="m"), Losses()) == answer(block)


OTHERS: list[tuple[HostedKind, tuple[HostedContent, ...], str | None]] = [
    ("web_search", (SearchResult(url="u", title="T", text="found"), Text(text="odd")), None),
    ("web_search", (SearchResult(url="u"),), None),
    ("web_search", (), "failed"),
    ("web_fetch", (SearchResult(url="u", title="T", text="Words"),), None),
    ("web_fetch", (), None),
    ("web_fetch", (), "url_not_allowed"),
    ("code_execution", (CodeOutput(stdout="2"), Image(source=Remote(url="u"))), None),
    ("code_execution", (Text(text="2"),), None),
    ("mcp", (Text(text="Words"),), None),
    ("mcp", (), "timed out"),
    ("mcp", (SearchResult(url="u"),), None),
]


@pytest.mark.parametrize(("kind", "content", "error"), OTHERS)
def test_the_official_sdk_reads_what_other_providers_ran(
    kind: HostedKind, content: tuple[HostedContent, ...], error: str | None
) -> None:
    parts: tuple[Part, ...] = (
        HostedCall(id="ws_1", kind=kind, name="f", server="s" if kind == "mcp" else None, arguments='{"query":"q"}'),
        HostedResult(call_id="ws_1", kind=kind, content=content, error=error),
        Text(text="It is new."),
    )
    response = Response(id="1", model="m", candidates=(Candidate(content=parts, finish=Finish(reason="stop")),))
    body = MESSAGES.encode_response(response, Request(model="m"), Losses())
    message = BetaMessage.model_validate(body, strict=True)
    call, result, text = message.content
    assert [call.type, text.type] == ["mcp_tool_use" if kind == "mcp" else "server_tool_use", "text"]
    assert result.type == f"{kind}_tool_result"
    assert streamed(response) == body


def test_a_history_of_another_dialect_is_told_in_words() -> None:
    """The server takes back only results that it sealed itself."""
    parts = (
        HostedCall(id="ws_1", kind="web_search", arguments='{"query":"q"}'),
        HostedResult(call_id="ws_1", kind="web_search", content=(SearchResult(url="u", title="T"),)),
        Text(text="It is new."),
    )
    user = Message(role="user", content=(Text(text="Hi"),))
    request = Request(model="m", messages=(user, Message(role="assistant", content=parts), user))
    sent = MESSAGES.encode_request(request, Losses(), Target())
    texts = [block["text"] for block in sent["messages"][1]["content"]]
    assert texts == ["Searched for: q\n", "T\nu\n", "It is new."]


def test_a_search_is_no_text_of_a_chat_answer() -> None:
    """wire-D4: title and URL of the result were the begin of the content."""
    losses = Losses()
    body = answer(called("web_search", {"query": "q"}), came("web_search", [FOUND]), {"type": "text", "text": "Hi"})
    written = translate_response(body, "messages", "chat", losses)
    assert written["choices"][0]["message"] == {"role": "assistant", "content": "Hi", "refusal": None}
    assert {(loss.what, loss.how) for loss in losses} >= {("hosted_call", "dropped"), ("hosted_result", "dropped")}


@pytest.mark.parametrize("text", ["First text", "", "é\n\N{GRINNING FACE}"])
def test_the_text_of_what_others_found_comes_back_from_the_client(text: str) -> None:
    found = HostedResult(
        call_id="c1", kind="web_search", content=(SearchResult(url="https://a.example", title="A", text=text),)
    )
    call = HostedCall(id="c1", kind="web_search", arguments='{"query":"q"}')
    answered = Response(candidates=(Candidate(content=(call, found), finish=Finish(reason="stop")),))
    losses = Losses()
    body = MESSAGES.encode_response(answered, Request(model="m"), losses)
    assert {loss.where for loss in losses} <= {"$.usage"}
    asked: JSON = {"model": "m", "max_tokens": 9, "messages": [{"role": "assistant", "content": body["content"]}]}
    ((_, result),) = [message.content for message in MESSAGES.decode_request(asked).messages]
    assert isinstance(result, HostedResult)
    (one,) = result.content
    assert isinstance(one, SearchResult)
    assert (one.url, one.title, one.text) == ("https://a.example", "A", text)
    again = MESSAGES.encode_request(MESSAGES.decode_request(asked), Losses(), Target())
    assert again["messages"][0]["content"] == body["content"]


def test_an_encrypted_content_that_only_looks_like_ours_stays_as_it_came() -> None:
    block = {"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "xenoglot.text.??"}
    asked: JSON = {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "assistant", "content": [called("web_search", {}), came("web_search", [block])]}],
    }
    again = MESSAGES.encode_request(MESSAGES.decode_request(asked), Losses(), Target())
    assert again["messages"][0]["content"][1]["content"] == [block]


def moved(call_id: str) -> JSONObject:
    """Return a request with a search in its history, as the gateway answered it for a model that has none."""
    found: JSONObject = {"type": "web_search_result", "url": "https://a.example", "title": "A", "page_age": None}
    cited: JSONObject = {"type": "web_search_result_location", "url": "https://a.example", "title": "A"}
    turn: list[JSONObject] = [
        {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {"query": "q"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": call_id,
            "content": [{**found, "encrypted_content": sealed_text("FOUND")}],
        },
        {"type": "text", "text": "Yes [1].", "citations": [{**cited, "encrypted_index": "", "cited_text": ""}]},
    ]
    return {
        "model": "m",
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": "q?"},
            {"role": "assistant", "content": turn},
            {"role": "user", "content": "Sure?"},
        ],
    }


def test_a_search_of_the_gateway_is_words_for_a_server_that_seals_results() -> None:
    """Anthropic refuses ids that are not `srvtoolu_*`, and an `encrypted_content` or `encrypted_index` of others."""
    codec, losses, body = get("messages"), Losses(), moved("call_1")
    written = codec.encode_request(codec.decode_request(body), losses, Target(sealed_results=True))
    assert written["messages"][1]["content"] == [
        {"type": "text", "text": "Searched for: q\n"},
        {"type": "text", "text": "A\nhttps://a.example\nFOUND\n"},
        {"type": "text", "text": "Yes [1]."},
    ]
    assert [(loss.where, loss.what, loss.how) for loss in losses] == [
        ("$.messages[1].content[0]", "hosted_call", "approximated"),
        ("$.messages[1].content[1]", "hosted_result", "approximated"),
        ("$.messages[1].content[2].citations[0]", "citation", "dropped"),
    ]


def test_a_server_that_may_have_searched_itself_gets_its_search_back() -> None:
    codec, losses, body = get("messages"), Losses(), moved("call_1")
    assert codec.encode_request(codec.decode_request(body), losses, Target()) == body
    assert not [*losses]


def test_a_search_of_the_server_is_sent_back_to_it() -> None:
    codec, losses, body = get("messages"), Losses(), moved("srvtoolu_1")
    body["messages"][1]["content"][2]["citations"][0]["encrypted_index"] = "e"
    assert codec.encode_request(codec.decode_request(body), losses, Target(sealed_results=True)) == body
    assert not [*losses]
