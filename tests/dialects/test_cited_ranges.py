"""Citations of a part of a document (characters, pages, blocks) between dialects: issue 18, concept 7."""

from __future__ import annotations

import pytest

from tests.laws.test_crossing import ASKED, CROSSED
from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.model.content import Citation, CitedRange, Text
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Message, Request
from xenoglot.model.response import Candidate, Finish, Response
from xenoglot.translate import translate_response

DOCUMENT: JSONObject = {"document_title": "Report", "file_id": None, "document_index": 1}
CLAUDE: dict[str, JSONObject] = {
    "documentChar": {"type": "char_location", **DOCUMENT, "start_char_index": 3, "end_char_index": 9},
    "documentPage": {"type": "page_location", **DOCUMENT, "start_page_number": 3, "end_page_number": 9},
    "documentChunk": {"type": "content_block_location", **DOCUMENT, "start_block_index": 3, "end_block_index": 9},
    "searchResultLocation": {
        "type": "search_result_location",
        "title": "Report",
        "source": "wiki",
        "search_result_index": 1,
        "start_block_index": 3,
        "end_block_index": 9,
    },
}


def bedrock(kind: str) -> JSONObject:
    found = kind == "searchResultLocation"
    place = {"searchResultIndex" if found else "documentIndex": 1, "start": 3, "end": 9}
    source: JSONObject = {"source": "wiki"} if found else {}
    return {"title": "Report", **source, "sourceContent": [{"text": "It rained."}], "location": {kind: place}}


def of_messages(citation: JSON) -> JSONObject:
    content = [{"type": "text", "text": "Rain.", "citations": [citation]}]
    usage = {"input_tokens": 1, "output_tokens": 1}
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    return {
        "id": "i",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        **ended,
        "usage": usage,
    }


def of_converse(citation: JSON) -> JSONObject:
    block = {"citationsContent": {"content": [{"text": "Rain."}], "citations": [citation]}}
    message = {"role": "assistant", "content": [block]}
    usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    return {"output": {"message": message}, "stopReason": "end_turn", "usage": usage, "metrics": {"latencyMs": 1}}


def about_citations(losses: Losses) -> list[str]:
    return [str(loss) for loss in losses if "citation" in loss.where]


@pytest.mark.parametrize("kind", CLAUDE)
def test_ranges_are_the_same_in_messages_and_converse(kind: str) -> None:
    losses = Losses()
    cited = {**CLAUDE[kind], "cited_text": "It rained."}
    told = translate_response(of_messages(cited), "messages", "converse", losses)
    (block,) = told["output"]["message"]["content"]
    assert block["citationsContent"]["citations"] == [bedrock(kind)]

    told = translate_response(of_converse(bedrock(kind)), "converse", "messages", losses)
    expected = {key: value for key, value in cited.items() if value is not None}
    assert told["content"][0]["citations"] == [expected]
    assert about_citations(losses) == []


def test_a_page_keeps_its_number_where_only_that_can_be_written() -> None:
    losses = Losses()
    cited = {**CLAUDE["documentPage"], "cited_text": "It rained.", "end_page_number": 4}
    told = translate_response(of_messages(cited), "messages", "interactions", losses)
    assert told["steps"][0]["content"][0]["annotations"] == [
        {"type": "file_citation", "file_name": "Report", "source": "It rained.", "page_number": 3}
    ]
    told = translate_response(of_messages(cited), "messages", "gemini", losses)
    assert told["candidates"][0]["groundingMetadata"]["groundingChunks"] == [
        {"retrievedContext": {"title": "Report", "text": "It rained.", "pageNumber": 3}}
    ]
    assert {loss.how for loss in losses} == {"approximated"}


def test_a_document_is_cited_as_a_file_in_responses() -> None:
    losses = Losses()
    cited = {**CLAUDE["documentChar"], "cited_text": "It rained.", "file_id": "file_1"}
    told = translate_response(of_messages(cited), "messages", "responses", losses)
    (annotation,) = told["output"][0]["content"][0]["annotations"]
    assert annotation == {"type": "file_citation", "file_id": "file_1", "filename": "Report", "index": 5}
    reason = "written as a `file_citation`, which has no place in a document"
    assert about_citations(losses) == [f"$.candidates[0].content[0].citations[0] citation approximated ({reason})"]


CITED = Citation(
    kind="documentPage", title="Report", cited_text="Rain.", range=CitedRange(unit="page", index=0, start=2, end=3)
)


@pytest.mark.parametrize("name", ["messages", "responses", "gemini", "interactions", "converse"])
def test_a_stream_cites_as_a_whole_answer_does(name: str) -> None:
    content = (Text(text="It rained.", citations=(CITED,)),)
    response = Response(id="i", model="m", candidates=(Candidate(content=content, finish=Finish(reason="stop")),))
    told = {how: CROSSED[how](response, ASKED, name, Losses()) for how in CROSSED}
    streamed, whole = (told[how].candidates[0].content[0] for how in ("streamed", "whole"))
    assert isinstance(streamed, Text)
    assert isinstance(whole, Text)
    assert streamed.citations == whole.citations != ()


@pytest.mark.parametrize("kind", ["documentPage", "file_citation"])
def test_a_server_gets_no_citation_of_another_dialect(kind: str) -> None:
    """It was sent with a `type` that the server does not know: a 400."""
    turn = Message(role="assistant", content=(Text(text="Hi", citations=(Citation(kind=kind, title="A"),)),))
    asked = Message(role="user", content=(Text(text="Hi"),))
    losses = Losses()
    body = get("messages").encode_request(Request(model="m", messages=(asked, turn, asked)), losses, Target())
    assert body["messages"][1]["content"] == "Hi" or "citations" not in body["messages"][1]["content"][0]
    assert [(loss.what, loss.how) for loss in losses if "citations" in loss.where] == [("citation", "dropped")]
