"""Fields of a request that mean something else elsewhere, or nothing: refused or reported, never written as another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.adapt_request import fitted
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get, names
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

OTHERS = [name for name in names() if name != "gemini"]
TURNED = [name for name in OTHERS if name not in ("completions", "llama_stack_completion", "ollama_generate")]
TURN: JSONObject = {"role": "user", "parts": [{"text": "Hi"}]}
FUNCTION: JSONObject = {"name": "f", "parametersJsonSchema": {"type": "object", "properties": {}}}


def crossed(name: str, losses: Losses, **body: JSON) -> JSONObject:
    """Return what a server of `name` is sent."""
    request = get("gemini").decode_request({"model": "m", "contents": [TURN], **body})
    target = Target()
    dialect = get(name)
    return dialect.encode_request(fitted(request, name, target, losses, dialect.hosted_tools), losses, target)


@pytest.mark.parametrize("name", OTHERS)
def test_a_cached_prompt_is_no_earlier_answer_findings_b1(name: str) -> None:
    with pytest.raises(WireError, match=r"^\$.cachedContent: this model keeps no conversation"):
        crossed(name, Losses(), cachedContent="cachedContents/abc")


@pytest.mark.parametrize("name", TURNED)
def test_validated_calls_are_not_just_any_calls_findings_b2(name: str) -> None:
    losses = Losses()
    config = {"functionCallingConfig": {"mode": "VALIDATED"}}
    crossed(name, losses, tools=[{"functionDeclarations": [FUNCTION]}], toolConfig=config)
    told = [str(loss) for loss in losses if loss.where == "$.tool_choice" or loss.what == "tool_choice"]
    assert told, [*map(str, losses)]


@pytest.mark.parametrize("names_allowed", [None, ["f"]], ids=["all", "some"])
def test_validated_goes_home(names_allowed: list[str] | None) -> None:
    calling = {"mode": "VALIDATED", **({} if names_allowed is None else {"allowedFunctionNames": names_allowed})}
    config, losses = {"functionCallingConfig": calling}, Losses()
    sent = crossed("gemini", losses, tools=[{"functionDeclarations": [FUNCTION]}], toolConfig=config)
    assert sent["toolConfig"] == config
    assert [*losses] == []


VIDEOS: dict[str, JSONObject] = {
    "by-url": {"fileData": {"mimeType": "video/mp4", "fileUri": "https://a.example/a.mp4"}},
    "by-ending": {"fileData": {"fileUri": "https://a.example/a.mp4"}},
    "youtube": {"fileData": {"fileUri": "https://www.youtube.com/watch?v=abc"}},
    "stored": {
        "fileData": {
            "mimeType": "video/quicktime",
            "fileUri": "https://generativelanguage.googleapis.com/v1beta/files/a",
        }
    },
    "bytes": {"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}, "videoMetadata": {"fps": 1}},
}


@pytest.mark.parametrize("name", [name for name in TURNED if name not in ("chat", "converse", "interactions")])
@pytest.mark.parametrize("case", VIDEOS)
def test_a_video_is_no_document_findings_b3(case: str, name: str) -> None:
    losses = Losses()
    sent = crossed(name, losses, contents=[{"role": "user", "parts": [{"text": "See"}, VIDEOS[case]]}])
    assert b"a.mp4" not in encode_json(sent)
    assert b"youtube" not in encode_json(sent)
    assert b"AAAA" not in encode_json(sent)
    told = [loss for loss in losses if loss.where.startswith("$.messages[0].content[1]")]
    assert [loss.how for loss in told] == ["dropped"]


@pytest.mark.parametrize("case", VIDEOS)
def test_videos_go_home(case: str) -> None:
    contents = [{"role": "user", "parts": [{"text": "See"}, VIDEOS[case]]}]
    assert crossed("gemini", Losses(), contents=contents)["contents"] == contents


@pytest.mark.parametrize(("tool", "kind"), [("googleMaps", "google_maps"), ("enterpriseWebSearch",) * 2])
@pytest.mark.parametrize("name", OTHERS)
def test_tools_that_only_google_runs_are_refused_by_name_findings_b4(name: str, tool: str, kind: str) -> None:
    if kind in get(name).hosted_tools:
        assert crossed(name, Losses(), tools=[{tool: {}}])["tools"] == [{"type": kind}]
        return
    with pytest.raises(WireError, match=f"`{kind}`"):
        crossed(name, Losses(), tools=[{tool: {}}])


@pytest.mark.parametrize("name", ["chat", "responses"])
@pytest.mark.parametrize(
    ("media_type", "audio_format"),
    [("audio/mpeg", "mp3"), ("audio/mp3", "mp3"), ("audio/x-wav", "wav"), ("audio/wav", "wav"), ("audio/ogg", "ogg")],
)
def test_audio_formats_have_the_names_of_openai(name: str, media_type: str, audio_format: str) -> None:
    parts: list[JSON] = [{"text": "Hear"}, {"inlineData": {"mimeType": media_type, "data": "AAAA"}}]
    losses = Losses()
    sent = crossed(name, losses, contents=[{"role": "user", "parts": parts}])
    (turn,) = sent.get("messages") or sent["input"]
    assert turn["content"][1] == {"type": "input_audio", "input_audio": {"data": "AAAA", "format": audio_format}}
    assert [*losses] == []


@pytest.mark.parametrize("name", ["chat", "messages", "responses"])
@pytest.mark.parametrize(
    ("file", "lost"),
    [
        ({"mimeType": "text/csv", "fileUri": "https://a.example/a"}, ["fileData.mimeType"]),
        ({"mimeType": "text/csv", "fileUri": "https://a.example/a", "displayName": "a.csv"}, ["fileData.mimeType"]),
        ({"mimeType": "text/plain", "fileUri": "https://a.example/a.txt"}, []),
        ({"mimeType": "application/pdf", "fileUri": "https://a.example/a"}, []),
        ({"fileUri": "https://a.example/a"}, []),
    ],
    ids=["csv", "named", "by-ending", "pdf", "unset"],
)
def test_the_type_of_a_file_by_url_is_reported_findings_b3(name: str, file: JSONObject, lost: list[str]) -> None:
    losses = Losses()
    contents: list[JSON] = [{"role": "user", "parts": [{"text": "Read"}, {"fileData": file}]}]
    crossed(name, losses, contents=contents)
    assert [loss.what for loss in losses if loss.why == "only gemini has it"] == lost
    assert crossed("gemini", Losses(), contents=contents)["contents"] == contents


@pytest.mark.parametrize("name", OTHERS)
def test_fields_inside_of_known_objects_are_reported_by_their_paths(name: str) -> None:
    losses = Losses()
    crossed(
        name,
        losses,
        generationConfig={"temperature": 0.5, "speechConfig": {"languageCode": "de-DE"}, "mediaResolution": None},
        toolConfig={"retrievalConfig": {"languageCode": "de"}},
        labels={"a": "b"},
    )
    told = {loss.what for loss in losses if loss.why == "only gemini has it"}
    assert told == {"generationConfig.speechConfig", "toolConfig.retrievalConfig", "labels"}


UNKNOWN: dict[str, JSONObject] = {
    "toolCall": {"toolCall": {"toolType": "URL_CONTEXT"}},
}


@pytest.mark.parametrize("role", ["user", "model"])
@pytest.mark.parametrize("kind", UNKNOWN)
@pytest.mark.parametrize("name", TURNED)
def test_parts_that_only_gemini_has_are_reported_by_their_names_findings_b4(name: str, kind: str, role: str) -> None:
    losses = Losses()
    crossed(name, losses, contents=[TURN, {"role": role, "parts": [{"text": "See"}, UNKNOWN[kind]]}, TURN])
    told = [loss.what for loss in losses if ".content[" in loss.where and loss.how != "emulated"]
    assert told == [kind]


@pytest.mark.parametrize("name", [name for name in names() if name not in ("gemini", "responses")])
def test_stored_state_is_refused_by_the_field_of_the_client(name: str) -> None:
    request = get("responses").decode_request({"model": "m", "input": "Hi", "previous_response_id": "resp_1"})
    with pytest.raises(WireError, match=r"^\$.previous_response_id: this model keeps no conversation"):
        get(name).encode_request(request, Losses(), Target())
