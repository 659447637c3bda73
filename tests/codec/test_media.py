"""Media of a request that nobody opens are refused wherever they stand, at their place."""

import pytest

from xenoglot.codec.requests.bounds import bounded
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
