"""Videos as parts of messages: `video_url` of chat servers, and the videos of Gemini with the cut to watch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot import translate_request
from xenoglot.codec.loss import Losses
from xenoglot.codec.requests.checks import check_media
from xenoglot.dialect_registry import get, names
from xenoglot.errors import WireError
from xenoglot.model.content import Inline, Remote, Stored, Video

if TYPE_CHECKING:
    from xenoglot.model.json import JSONObject

TAKING = ("chat", "gemini", "interactions")
REFUSING = ("completions", "llama_stack_completion")
"""Dialects with and without a place for videos; the latter refuse media, for the answer would be to another prompt."""
URL = "https://a.example/a.mp4"


def chat(url: str) -> JSONObject:
    content = [{"type": "video_url", "video_url": {"url": url}}, {"type": "text", "text": "What is it?"}]
    return {"model": "m", "messages": [{"role": "user", "content": content}]}


def gemini(part: JSONObject) -> JSONObject:
    return {"model": "m", "contents": [{"role": "user", "parts": [part, {"text": "What is it?"}]}]}


@pytest.mark.parametrize(
    ("url", "part"),
    [
        pytest.param(URL, {"fileData": {"mimeType": "video/mp4", "fileUri": URL}}, id="by-url"),
        pytest.param(
            "data:video/webm;base64,AAAA", {"inlineData": {"mimeType": "video/webm", "data": "AAAA"}}, id="inline"
        ),
    ],
)
def test_videos_cross(url: str, part: JSONObject) -> None:
    losses = Losses()
    assert translate_request(chat(url), "chat", "gemini", losses) == gemini(part)
    assert translate_request(gemini(part), "gemini", "chat", losses) == chat(url)
    assert [*losses] == []


def test_the_cut_is_read_and_is_a_loss_where_there_is_none() -> None:
    cut = {"startOffset": "40s", "endOffset": "80.5s", "fps": 5}
    body = gemini({"fileData": {"mimeType": "video/mp4", "fileUri": URL}, "videoMetadata": cut})
    video = get("gemini").decode_request(body).messages[0].content[0]
    assert isinstance(video, Video)
    assert (video.source, video.start, video.end, video.fps) == (Remote(URL), 40, 80.5, 5)
    losses = Losses()
    assert translate_request(body, "gemini", "chat", losses) == chat(URL)
    assert [str(loss) for loss in losses] == [
        f"$.messages[0].content[0] {name} dropped (a video of the dialect has no such field)"
        for name in ("start", "end", "fps")
    ]


@pytest.mark.parametrize(
    "part",
    [
        {"fileData": {"mimeType": "video/mp4", "fileUri": URL}, "videoMetadata": {"startOffset": "1.50s"}},
        {"fileData": {"mimeType": "video/mp4", "fileUri": URL}, "videoMetadata": {"startOffset": "soon", "fps": None}},
        {"fileData": {"mimeType": "video/mp4", "fileUri": URL}, "videoMetadata": {"contentLayers": ["FRAMES"]}},
        {"fileData": {"mimeType": "video/mp4", "fileUri": URL, "displayName": "a"}, "videoMetadata": {}},
        {"fileData": {"mimeType": "video/mp4"}},
        {"inlineData": {"mimeType": "video/mp4"}},
        {"inlineData": {"mimeType": "VIDEO/MP4", "data": "AAAA"}, "mediaResolution": {"level": "HIGH"}},
    ],
)
def test_odd_videos_go_home_as_they_came(part: JSONObject) -> None:
    losses = Losses()
    assert translate_request(gemini(part), "gemini", "gemini", losses) == gemini(part)
    assert [*losses] == []


def test_a_video_that_google_keeps_means_nothing_elsewhere() -> None:
    kept = "https://generativelanguage.googleapis.com/v1beta/files/a"
    body = gemini({"fileData": {"mimeType": "video/mp4", "fileUri": kept}})
    video = get("gemini").decode_request(body).messages[0].content[0]
    assert isinstance(video, Video)
    assert video.source == Stored(kept)
    losses = Losses()
    assert "video_url" not in str(translate_request(body, "gemini", "chat", losses))
    assert [str(loss) for loss in losses] == [
        "$.messages[0].content[0] video dropped (only a URL or inline data can be written)"
    ]


@pytest.mark.parametrize("name", [name for name in names() if name not in (*TAKING, *REFUSING)])
def test_others_report_the_video(name: str) -> None:
    losses = Losses()
    assert URL not in str(translate_request(chat(URL), "chat", name, losses))
    assert [(loss.what, loss.how) for loss in losses if loss.where == "$.messages[0].content[0]"] == [
        ("video", "dropped")
    ]


def test_the_bytes_and_addresses_of_videos_are_checked() -> None:
    request = get("chat").decode_request(chat("file:///etc/passwd"))
    with pytest.raises(WireError, match="expected a URL"):
        check_media(request)
    inline = get("chat").decode_request(chat("data:video/mp4;base64,AAAA")).messages[0].content[0]
    assert isinstance(inline, Video)
    assert inline.source == Inline("AAAA", "video/mp4")
