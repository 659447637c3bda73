"""What media a request wants as its answer: `modalities` and beside it, in every dialect that has such wishes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot import translate_request
from xenoglot.codec.loss import Losses
from xenoglot.dialect_registry import get
from xenoglot.model.request import MediaOutput

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject


def chat(**fields: JSON) -> JSONObject:
    return {"model": "m", "messages": [{"role": "user", "content": "Hi"}], **fields}


def gemini(**config: JSON) -> JSONObject:
    contents = [{"role": "user", "parts": [{"text": "Hi"}]}]
    return {"model": "m", "contents": contents, "generationConfig": config}


def speech(voice: str) -> JSONObject:
    return {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": voice}}}


PICTURES = chat(modalities=["text", "image"], image_config={"aspect_ratio": "16:9", "image_size": "2K"})
DRAWING = gemini(responseModalities=["TEXT", "IMAGE"], imageConfig={"aspectRatio": "16:9", "imageSize": "2K"})


def asked(body: JSONObject, client: str, upstream: str) -> tuple[JSONObject, list[str]]:
    losses = Losses()
    return translate_request(body, client, upstream, losses), [str(loss) for loss in losses]


def test_pictures_are_wanted_alike() -> None:
    assert asked(PICTURES, "chat", "gemini") == (DRAWING, [])
    assert asked(DRAWING, "gemini", "chat") == (PICTURES, [])


def test_both_are_one_wish() -> None:
    wish = MediaOutput(modalities=("text", "image"), aspect_ratio="16:9", image_size="2K")
    assert get("chat").decode_request(PICTURES).media == get("gemini").decode_request(DRAWING).media == wish


@pytest.mark.parametrize(
    ("body", "config", "losses"),
    [
        pytest.param(
            chat(modalities=["text", "audio"], audio={"voice": "alloy", "format": "wav"}),
            {"responseModalities": ["AUDIO"]},
            [
                "$.media modalities approximated (sound comes without its text)",
                "$.media voice dropped (the voices of the dialect are others; the server's default speaks)",
                "$.media audio_format dropped (the server decides on the format)",
            ],
            id="openai",
        ),
        pytest.param(
            chat(modalities=["audio"], audio={"voice": "Kore"}),
            {"responseModalities": ["AUDIO"], "speechConfig": speech("Kore")},
            [],
            id="a-voice-of-google",
        ),
    ],
)
def test_sound_is_wanted_of_gemini(body: JSONObject, config: JSONObject, losses: list[str]) -> None:
    assert asked(body, "chat", "gemini") == (gemini(**config), losses)


@pytest.mark.parametrize(("stream", "shape"), [(True, "pcm16"), (False, "wav")])
def test_sound_is_wanted_of_chat_with_all_that_it_requires(stream: bool, shape: str) -> None:  # noqa: FBT001  a case
    body = gemini(responseModalities=["AUDIO"], speechConfig=speech("Kore")) | ({"stream": True} if stream else {})
    written, losses = asked(body, "gemini", "chat")
    assert {key: written[key] for key in ("modalities", "audio")} == {
        "modalities": ["text", "audio"],
        "audio": {"voice": "alloy", "format": shape},
    }
    assert losses == [
        "$.media modalities approximated (sound comes with its text)",
        "$.media voice approximated (the voices of the dialect are others; `alloy` is written)",
        f"$.media audio_format approximated (not set; `{shape}` is written)",
    ]


@pytest.mark.parametrize("upstream", ["messages", "responses", "ollama"])
def test_others_have_no_such_wish(upstream: str) -> None:
    losses = asked(PICTURES, "chat", upstream)[1]
    assert "$ media dropped (the dialect has no such field)" in losses
    assert not any("media" in loss for loss in asked(chat(modalities=["text"]), "chat", upstream)[1])


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("chat", chat(modalities=[])),
        ("chat", chat(audio={})),
        ("chat", chat(audio={"voice": {"id": "v"}, "format": "wav"}, image_config={"strength": 0.5})),
        ("chat", chat(audio=None, modalities=None)),
        ("gemini", gemini(responseModalities=["MODALITY_UNSPECIFIED"])),
        ("gemini", gemini(responseModalities=[])),
        ("gemini", gemini(responseModalities=["Image"])),
        ("gemini", gemini(speechConfig={})),
        ("gemini", gemini(speechConfig={"voiceConfig": {"voice": "v"}, "languageCode": "de"})),
        ("gemini", gemini(speechConfig={"multiSpeakerVoiceConfig": {"speakerVoiceConfigs": []}})),
        ("gemini", gemini(imageConfig={"aspectRatio": 1})),
    ],
)
def test_odd_wishes_go_home_as_they_came(name: str, body: JSONObject) -> None:
    assert asked(body, name, name) == (body, [])
