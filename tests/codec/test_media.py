"""Media of a request that nobody opens are refused wherever they stand, at their place."""

import pytest

from xenoglot.codec.requests.checks import bounded
from xenoglot.dialect_registry import get
from xenoglot.errors import WireError
from xenoglot.model.json import JSONObject

FILE: JSONObject = {"type": "image", "source": {"type": "url", "url": "file:///etc/passwd"}}
TEXT: JSONObject = {"type": "text", "text": "a"}


def document(block: JSONObject) -> JSONObject:
    """Return a document that is made of a text and `block`."""
    return {"type": "document", "source": {"type": "content", "content": [TEXT, block]}}


@pytest.mark.parametrize(
    ("block", "path"),
    [
        (FILE, "$.messages[0].content[1]"),
        (document(FILE), "$.messages[0].content[1].source.content[1]"),
        (
            {"type": "tool_result", "tool_use_id": "t", "content": [TEXT, FILE]},
            "$.messages[0].content[1].content[1]",
        ),
        (
            {"type": "tool_result", "tool_use_id": "t", "content": [TEXT, document(FILE)]},
            "$.messages[0].content[1].content[1].source.content[1]",
        ),
    ],
    ids=["turn", "document", "result", "document-in-a-result"],
)
def test_what_is_not_opened_here(block: JSONObject, path: str) -> None:
    turn = {"role": "user", "content": [TEXT, block]}
    request = get("messages").decode_request({"model": "m", "max_tokens": 9, "messages": [turn]})
    with pytest.raises(WireError) as refused:
        bounded(request)
    assert refused.value.path == path


URL = "file:///etc/passwd"
SYSTEM: JSONObject = {"role": "system", "content": "Be brief."}
IMAGE: JSONObject = {"type": "image_url", "image_url": {"url": "data:image/png;base64,?"}}


@pytest.mark.parametrize(
    ("dialect", "body", "path"),
    [
        pytest.param(
            "messages",
            {"model": "m", "max_tokens": 9, "system": "Be brief.", "messages": [{"role": "user", "content": [FILE]}]},
            "$.messages[0].content[0].source.url",
            id="messages",
        ),
        pytest.param(
            "chat",
            {
                "model": "m",
                "messages": [
                    SYSTEM,
                    {
                        "role": "user",
                        "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,?"}}],
                    },
                ],
            },
            "$.messages[1].content[0].image_url.url",
            id="chat-data-url",
        ),
        pytest.param(
            "responses",
            {
                "model": "m",
                "instructions": "Be brief.",
                "input": [{"role": "user", "content": [{"type": "input_image", "image_url": URL}]}],
            },
            "$.input[0].content[0].image_url",
            id="responses",
        ),
        pytest.param(
            "gemini",
            {
                "systemInstruction": {"parts": [{"text": "Be brief."}]},
                "model": "m",
                "contents": [{"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": ""}}]}],
            },
            "$.contents[0].parts[0].inlineData.data",
            id="gemini-no-data",
        ),
    ],
)
def test_the_path_of_an_error_is_that_in_the_body(dialect: str, body: JSONObject, path: str) -> None:
    with pytest.raises(WireError) as refused:
        bounded(get(dialect).decode_request(body), body)
    assert refused.value.path == path
