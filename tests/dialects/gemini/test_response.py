"""Whole answers: what they say in the model's words, and how a stranger's is written."""

import pytest

from xenoglot.codec.loss import Losses
from xenoglot.dialects.gemini import GEMINI
from xenoglot.errors import FailureError, WireError
from xenoglot.model.content import Citation, Origin, Reasoning, Refusal, Text, ToolCall
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Request
from xenoglot.model.response import Candidate, Finish, FinishReason, Response, Usage

ASKED = Request(model="m")


def answer(*parts: JSON, **candidate: JSON) -> JSONObject:
    content = {"parts": list(parts), "role": "model"}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0, **candidate}], "modelVersion": "m"}


def first(body: JSONObject) -> Candidate:
    return GEMINI.decode_response(body).candidates[0]


def encode(*content: object, finish: Finish | None = None, usage: Usage | None = None) -> tuple[JSONObject, list[str]]:
    losses = Losses()
    candidate = Candidate(content=content, finish=finish or Finish(reason="stop"))  # type: ignore[arg-type]
    body = GEMINI.encode_response(Response(candidates=(candidate,), usage=usage), ASKED, losses)
    return body, [str(loss) for loss in losses]


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "refusal"),
        ("RECITATION", "refusal"),
        ("SPII", "refusal"),
        ("CONTINUATION", "pause"),
        ("MALFORMED_FUNCTION_CALL", "unknown"),
        ("OTHER", "unknown"),
        ("TO_COME", "unknown"),
    ],
)
def test_why_it_ended(word: str, reason: FinishReason) -> None:
    """pitfall-68."""
    finish = first(answer({"text": "Hi"}, finishReason=word)).finish
    assert finish == Finish(reason=reason, raw=word, dialect="gemini")


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("stop", "STOP"),
        ("stop_sequence", "STOP"),
        ("length", "MAX_TOKENS"),
        ("context", "MAX_TOKENS"),
        ("tool_calls", "STOP"),
        ("refusal", "SAFETY"),
        ("pause", "OTHER"),
        ("unknown", "OTHER"),
    ],
)
def test_how_an_end_is_said(reason: FinishReason, word: str) -> None:
    body, _ = encode(Text(text="Hi"), finish=Finish(reason=reason))
    assert body["candidates"][0]["finishReason"] == word


def test_stop_beside_calls_waits_for_their_results() -> None:
    """pitfall-69; and ids that the server left out are derived from the answer."""
    call = {"functionCall": {"name": "f", "args": {"a": 9007199254740993}}}
    candidate = first({**answer(call, call), "responseId": "r"})
    assert candidate.finish == Finish(reason="tool_calls", raw="STOP", dialect="gemini")
    calls = [part for part in candidate.content if isinstance(part, ToolCall)]
    assert [(one.id, one.arguments) for one in calls] == [
        ("call_9ed4b98b663ed4a84f4f60fe", '{"a":9007199254740993}'),
        ("call_ee10911b7893be254c7d6e80", '{"a":9007199254740993}'),
    ]


def test_words_of_a_refusal_are_an_answer_that_was_stopped() -> None:
    """pitfall-72."""
    body, losses = encode(Refusal(text="No."))
    assert body["candidates"] == [
        {"content": {"parts": [{"text": "No."}], "role": "model"}, "finishReason": "SAFETY", "index": 0}
    ]
    assert losses == ["$.candidates[0].content[0] refusal approximated (written as text)"]


def test_a_prompt_that_was_blocked_is_an_answer_that_refuses() -> None:
    """pitfall-72."""
    response = GEMINI.decode_response({"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "No."}})
    (candidate,) = response.candidates
    assert candidate.content == ()
    assert candidate.finish is not None
    assert (candidate.finish.reason, candidate.finish.raw, candidate.finish.explanation) == ("refusal", "SAFETY", "No.")


@pytest.mark.parametrize(
    ("wire", "usage"),
    [
        pytest.param(
            {
                "promptTokenCount": 12,
                "cachedContentTokenCount": 4,
                "candidatesTokenCount": 3,
                "thoughtsTokenCount": 2,
                "toolUsePromptTokenCount": 7,
                "totalTokenCount": 24,
            },
            Usage(input_tokens=19, output_tokens=5, cache_read=4, reasoning=2),
            id="thoughts-beside-candidates-tools-beside-the-prompt",
        ),
        pytest.param({"promptTokenCount": 5, "totalTokenCount": 5}, Usage(input_tokens=5, output_tokens=0), id="zero"),
        pytest.param(
            {"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 9},
            Usage(input_tokens=5, output_tokens=2, total=9),
            id="another-sum",
        ),
    ],
)
def test_counts(wire: JSONObject, usage: Usage) -> None:
    """pitfall-78, pitfall-81."""
    body = {**answer({"text": "Hi"}), "usageMetadata": wire}
    response = GEMINI.decode_response(body)
    found = response.usage
    assert found is not None
    names = [name for name in Usage.__struct_fields__ if name != "extra"]
    assert [getattr(found, name) for name in names] == [getattr(usage, name) for name in names]
    assert GEMINI.encode_response(response, ASKED, Losses())["usageMetadata"] == wire


def test_a_strangers_counts() -> None:
    body, _ = encode(Text(text="Hi"), usage=Usage(input_tokens=10, output_tokens=7, cache_read=4, reasoning=3))
    assert body["usageMetadata"] == {
        "promptTokenCount": 10,
        "candidatesTokenCount": 4,
        "totalTokenCount": 17,
        "cachedContentTokenCount": 4,
        "thoughtsTokenCount": 3,
    }


def test_grounding_becomes_citations() -> None:
    """Offsets count bytes; a segment that is not where it says has none."""
    chunks = [{"web": {"uri": "https://a.example", "title": "A"}}, {"web": {"uri": "https://b.example"}}, {"maps": {}}]
    supports = [
        {"segment": {"startIndex": 3, "endIndex": 5, "text": "ß"}, "groundingChunkIndices": [0, 2, 9]},
        {"segment": {"startIndex": 0, "endIndex": 2, "text": "no"}, "groundingChunkIndices": [0]},
    ]
    (part,) = first(
        answer({"text": "Ja ß."}, groundingMetadata={"groundingChunks": chunks, "groundingSupports": supports})
    ).content
    assert isinstance(part, Text)
    assert [(one.url, one.title, one.start, one.end) for one in part.citations] == [
        ("https://a.example", "A", 3, 4),
        ("https://a.example", "A", None, None),
        ("https://b.example", None, None, None),
    ]


def test_citations_become_grounding() -> None:
    cited = Text(
        text="ß b", citations=(Citation(kind="url_citation", url="https://a.example", title="A", start=2, end=3),)
    )
    body, losses = encode(Reasoning(text="Hm."), cited)
    assert body["candidates"][0]["groundingMetadata"] == {
        "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}],
        "groundingSupports": [
            {
                "segment": {"partIndex": 1, "startIndex": 3, "endIndex": 4, "text": "b"},
                "groundingChunkIndices": [0],
            }
        ],
    }
    assert losses == []


def test_another_dialects_seal_is_wrapped_and_comes_back() -> None:
    """pitfall-50, pitfall-51: the SDK for Python writes it in the URL-safe alphabet."""
    part = Reasoning(text="Hm.", signature="Eq+/?>~", origin=Origin(dialect="messages", provider="acme"))
    body, losses = encode(part)
    assert losses == [
        "$.candidates[0].content[0] signature emulated (only its maker can open it; wrapped to come back)"
    ]
    wire = body["candidates"][0]["content"]["parts"][0]
    wire["thoughtSignature"] = wire["thoughtSignature"].replace("+", "-").replace("/", "_").rstrip("=")
    (again,) = (
        GEMINI.decode_request({"model": "m", "contents": [{"role": "model", "parts": [wire]}]}).messages[0].content
    )
    assert isinstance(again, Reasoning)
    assert (again.text, again.signature, again.origin) == (part.text, part.signature, part.origin)


def test_an_answer_without_words_has_a_part() -> None:
    """pitfall-73: the SDKs take a content without parts for a broken answer."""
    assert encode()[0]["candidates"][0]["content"] == {"parts": [{"text": ""}], "role": "model"}


@pytest.mark.parametrize("body", [{}, {"candidates": []}, {"usageMetadata": {}}, {"promptFeedback": {}}])
def test_nothing_is_no_answer(body: JSONObject) -> None:
    """U24."""
    with pytest.raises(WireError, match=r"\$\.candidates: required"):
        GEMINI.decode_response(body)


def test_an_error_with_the_status_of_an_answer() -> None:
    with pytest.raises(FailureError) as caught:
        GEMINI.decode_response([{"error": {"code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED"}}])
    assert (caught.value.failure.kind, caught.value.failure.status) == ("rate_limit", 429)


@pytest.mark.parametrize("call", [5, True, 1.5])
def test_a_call_that_is_none(call: JSON) -> None:
    with pytest.raises(WireError, match="functionCall"):
        GEMINI.decode_response({"candidates": [{"content": {"parts": [{"functionCall": call}]}}]})


def test_counts_that_nobody_said_stay_unsaid() -> None:
    """Not said is not zero."""
    answer = {"candidates": [{"index": 0}], "usageMetadata": {"thoughtsTokenCount": 5}, "modelVersion": "m"}
    assert GEMINI.encode_response(GEMINI.decode_response(answer), Request(model="m"), Losses()) == answer


def test_likeliest_tokens_without_those_chosen_go_home() -> None:
    top = {"topCandidates": [{"candidates": [{"token": "a", "logProbability": -1.0}]}]}
    candidate = {"content": {"parts": [{"text": "a"}], "role": "model"}, "index": 0, "logprobsResult": top}
    answer = {"candidates": [candidate], "modelVersion": "m"}
    assert GEMINI.encode_response(GEMINI.decode_response(answer), Request(model="m"), Losses()) == answer
