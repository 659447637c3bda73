"""Pictures and sound that the model made, as answers of every dialect that has them, whole and streamed."""

from __future__ import annotations

import io
import json
import wave
from base64 import b64decode, b64encode
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from xenoglot import stream_translator, translate_response
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline, through
from xenoglot.dialect_registry import get
from xenoglot.model.content import Audio, Image, Inline, Text
from xenoglot.model.fold import fold, unfold
from xenoglot.model.request import MediaOutput, Request
from xenoglot.model.response import Candidate, Finish, Response

if TYPE_CHECKING:
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSONObject

VECTOR = Path(__file__).parent.parent / "vectors" / "chat" / "openrouter-images"
PICTURE = "iVBORw0KGgo="
ASKED = Request(model="m")


def drawn(*parts: Part) -> Response:
    return Response(id="r", model="m", candidates=(Candidate(content=parts, finish=Finish(reason="stop")),))


def streamed(response: Response, name: str, losses: Losses) -> bytes:
    dialect = get(name)
    stages = Pipeline(dialect.stream_encoder(ASKED, losses), dialect.framing.encoder())
    return b"".join(through(unfold(response), stages))


def read(name: str, data: bytes) -> tuple[Part, ...]:
    dialect = get(name)
    response = fold(through([data], Pipeline(dialect.framing.decoder(), dialect.stream_decoder())))
    assert isinstance(response, Response)
    return response.candidates[0].content


@pytest.mark.parametrize("name", ["chat", "gemini"])
def test_a_picture_arrives_between_words(name: str) -> None:
    answer = drawn(Text(text="Here: "), Image(source=Inline(PICTURE, "image/png")))
    losses = Losses()
    whole = get(name).decode_response(get(name).encode_response(answer, ASKED, losses)).candidates[0].content
    for content in (whole, read(name, streamed(answer, name, losses))):
        assert [part.text if isinstance(part, Text) else part.source for part in content] == [  # type: ignore[union-attr]
            "Here: ",
            Inline(PICTURE, "image/png"),
        ]
    assert [loss for loss in losses if loss.what == "image"] == []


def test_a_client_of_gemini_gets_pictures_of_a_chat_server() -> None:
    body = json.loads((VECTOR / "response.json").read_text(encoding="utf-8"))
    parts = translate_response(body, "chat", "gemini")["candidates"][0]["content"]["parts"]
    assert parts == [
        {"text": "Here it is."},
        {"inlineData": {"mimeType": "image/png", "data": PICTURE}},
        {"inlineData": {"mimeType": "image/webp", "data": "UklGRg=="}},
    ]


def test_a_client_of_responses_gets_a_picture_as_an_item() -> None:
    losses = Losses()
    answer = drawn(Text(text="Here: "), Image(source=Inline(PICTURE, "image/png")))
    items = get("responses").encode_response(answer, ASKED, losses)["output"]
    assert [item["type"] for item in items] == ["message", "image_generation_call"]
    assert items[1] == {
        "type": "image_generation_call",
        "id": "ig_r_1",
        "status": "completed",
        "result": PICTURE,
    }
    assert [str(loss) for loss in losses] == [
        "$.candidates[0].content[1] image emulated (written as an item `image_generation_call`)"
    ]


def test_a_stream_of_responses_tells_of_the_picture_while_it_is_made() -> None:
    body = (VECTOR / "stream.sse").read_bytes()
    data = b"".join(through([body], stream_translator("chat", "responses")))
    events: list[JSONObject] = [json.loads(line[6:]) for line in data.split(b"\n") if line.startswith(b"data: ")]
    about = [(event["type"], event.get("item", {})) for event in events if event.get("output_index") == 1]
    begun = {"type": "image_generation_call", "id": "ig_gen-1_1", "status": "in_progress", "result": None}
    assert about == [
        ("response.output_item.added", begun),
        ("response.image_generation_call.in_progress", {}),
        ("response.image_generation_call.completed", {}),
        ("response.output_item.done", {**begun, "status": "completed", "result": PICTURE}),
    ]
    assert events[-1]["response"]["output"][1]["result"] == PICTURE


def test_sound_of_another_dialect_has_all_fields_that_chat_requires() -> None:
    answer = drawn(Audio(source=Inline("AAAA"), format="L16;codec=pcm;rate=24000"))
    losses = Losses()
    (choice,) = get("chat").encode_response(answer, ASKED, losses)["choices"]
    assert choice["message"]["audio"] == {"id": "", "data": "AAAA", "expires_at": 0, "transcript": ""}
    assert [part.source for part in read("chat", streamed(answer, "chat", losses))] == [Inline("AAAA")]  # type: ignore[union-attr]


@pytest.mark.parametrize("client", ["chat", "gemini"])
def test_an_image_that_a_hosted_tool_made_is_one_of_the_model(client: str) -> None:
    folder = VECTOR.parent.parent / "responses" / "image-generation"
    whole, stream = Losses(), Losses()
    body = translate_response(
        json.loads((folder / "response.json").read_text(encoding="utf-8")), "responses", client, whole
    )
    data = b"".join(through([(folder / "stream.sse").read_bytes()], stream_translator("responses", client, stream)))
    found = get(client).decode_response(body).candidates[0].content
    for content, losses in ((found, whole), (read(client, data), stream)):
        assert [part.source for part in content if isinstance(part, Image)] == [Inline("iVBORw0KGgoAAAA=", "image/png")]
        assert ("hosted_result", "approximated") in [(loss.what, loss.how) for loss in losses]


def test_raw_samples_are_a_wav_file_for_a_client_that_wants_one() -> None:
    samples = b64encode(bytes(480)).decode()
    sound = Audio(source=Inline(samples), format="L16;codec=pcm;rate=16000")
    losses = Losses()
    for wanted, expected in (("wav", None), ("pcm16", samples)):
        asked = Request(model="m", media=MediaOutput(modalities=("text", "audio"), audio_format=wanted))
        (choice,) = get("chat").encode_response(drawn(sound), asked, losses)["choices"]
        data = choice["message"]["audio"]["data"]
        if expected is None:
            with wave.open(io.BytesIO(b64decode(data))) as file:
                assert (file.getframerate(), file.getsampwidth(), file.getnchannels()) == (16000, 2, 1)
                assert file.readframes(file.getnframes()) == bytes(480)
        else:
            assert data == expected
    assert [str(loss) for loss in losses if loss.what == "format"] == [
        "$.candidates[0].content[0] format emulated (raw samples get the header of a WAV file)",
        "$.candidates[0].content[0] format dropped (an answer of the dialect does not name it)",
    ]


@pytest.mark.parametrize("sound", [Audio(source=Inline("!"), format="L16"), Audio(source=Inline("AAAA"), format="mp3")])
def test_other_sound_is_sent_as_it_came(sound: Audio) -> None:
    asked = Request(model="m", media=MediaOutput(audio_format="wav"))
    (choice,) = get("chat").encode_response(drawn(sound), asked, Losses())["choices"]
    assert isinstance(sound.source, Inline)
    assert choice["message"]["audio"]["data"] == sound.source.data
