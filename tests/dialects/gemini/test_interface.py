"""The record: where requests go, what is asked beside them, and with which headers."""

import pytest

from xenoglot.codec.requests.url_params import addressed, informed
from xenoglot.dialects.gemini import GEMINI
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.json import JSONObject

MODEL = ModelInfo(id="gemini-x", display_name="Gemini X", max_input_tokens=1000, max_output_tokens=100)
WIRE: JSONObject = {
    "name": "models/gemini-x",
    "displayName": "Gemini X",
    "inputTokenLimit": 1000,
    "outputTokenLimit": 100,
    "supportedGenerationMethods": ["generateContent", "countTokens"],
}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"model": "m", "stream": True}, ("/v1beta/models/m:streamGenerateContent", "alt=sse", {})),
        ({"model": "m"}, ("/v1beta/models/m:generateContent", "", {})),
    ],
)
def test_where_requests_go(body: JSONObject, expected: tuple[str, str, JSONObject]) -> None:
    assert addressed(body, GEMINI) == expected


@pytest.mark.parametrize("path", [path for path in GEMINI.aliases if path.endswith(":streamGenerateContent")])
def test_where_requests_come_from(path: str) -> None:
    assert informed({}, path, {"model": "m"}, GEMINI) == {"model": "m", "stream": True}


def test_the_key_has_a_header_of_its_own() -> None:
    assert list(GEMINI.authorize("k")) == [("x-goog-api-key", "k")]
    assert list(GEMINI.authorize(None)) == []


def test_models() -> None:
    assert GEMINI.encode_models([MODEL]) == {"models": [WIRE]}
    assert list(GEMINI.decode_models({"models": [WIRE, {}]})) == [MODEL]


def test_models_come_on_one_page() -> None:
    assert GEMINI.models_query == "pageSize=1000"


def test_one_model() -> None:
    (inquiry,) = GEMINI.inquiries
    assert inquiry.answer({"model": "gemini-x"}, [MODEL]) == WIRE
    assert inquiry.answer({"model": "other"}, [MODEL]) is None


def test_counts_of_tokens() -> None:
    """pitfall-124."""
    assert GEMINI.encode_count is not None
    assert GEMINI.decode_counted is not None
    assert GEMINI.encode_count(7) == {"totalTokens": 7}
    assert GEMINI.decode_counted({"totalTokens": 7, "totalBillableCharacters": 20}) == 7
