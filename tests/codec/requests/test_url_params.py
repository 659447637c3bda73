"""What a URL says of a request goes into its body and comes out again."""

import pytest
from msgspec.structs import replace

from xenoglot.codec.dialect import Dialect
from xenoglot.codec.requests.url_params import addressed, informed
from xenoglot.dialect_registry import get
from xenoglot.errors import WireError
from xenoglot.model.json import JSONObject

PLAIN = get("chat")
AT_MODEL = replace(
    PLAIN,
    path="/v1beta/models/{model}:generate",
    stream_path="/v1beta/models/{model}:stream",
    stream_query="alt=sse",
    count_path="/v1beta/models/{model}:count",
)
AT_SLASHES = replace(PLAIN, path="/run/{+model}")


@pytest.mark.parametrize(
    ("dialect", "body", "path", "query", "left"),
    [
        pytest.param(PLAIN, {"model": "m", "stream": True}, PLAIN.path, "", {"model": "m", "stream": True}, id="plain"),
        pytest.param(AT_MODEL, {"model": "m", "a": 1}, "/v1beta/models/m:generate", "", {"a": 1}, id="whole"),
        pytest.param(AT_MODEL, {"model": "m", "stream": True}, "/v1beta/models/m:stream", "alt=sse", {}, id="streamed"),
        pytest.param(AT_MODEL, {"model": "a/b ?#"}, "/v1beta/models/a%2Fb%20%3F%23:generate", "", {}, id="escaped"),
        pytest.param(AT_MODEL, {"model": "//h/x"}, "/v1beta/models/%2F%2Fh%2Fx:generate", "", {}, id="findings-paths"),
        pytest.param(AT_MODEL, {"model": "m@1:a%2F"}, "/v1beta/models/m%401%3Aa%252F:generate", "", {}, id="reserved"),
        pytest.param(AT_SLASHES, {"model": "@cf/meta/m:1"}, "/run/@cf/meta/m%3A1", "", {}, id="slashes-are-the-paths"),
    ],
)
def test_out(dialect: Dialect, body: JSONObject, path: str, query: str, left: JSONObject) -> None:
    kept = dict(body)
    assert addressed(body, dialect) == (path, query, left)
    assert body == kept


@pytest.mark.parametrize("dialect", [AT_MODEL, AT_SLASHES], ids=["one-segment", "several"])
@pytest.mark.parametrize("name", ["..", "../files", "a/../../b", "./a", "a/.", "a\\..\\b"])
def test_a_name_leads_nowhere_else(name: str, dialect: Dialect) -> None:
    """Whoever may name a model must not choose what else of the server the gateway's key opens."""
    with pytest.raises(WireError, match=r"\$.model: is no name of a model"):
        addressed({"model": name}, dialect)


@pytest.mark.parametrize("name", ["", "//h/x", "/a", "a/", "a//b"])
def test_segments_of_a_name_are_not_empty(name: str) -> None:
    with pytest.raises(WireError, match=r"\$.model: is no name of a model: it has a slash"):
        addressed({"model": name}, AT_SLASHES)


def test_a_count_has_a_path_of_its_own() -> None:
    assert addressed({"model": "m"}, AT_MODEL, counting=True) == ("/v1beta/models/m:count", "", {})


@pytest.mark.parametrize(
    ("path", "streamed"),
    [
        pytest.param("/v1beta/models/{model}:generate", False, id="whole"),
        pytest.param("/v1beta/models/{model}:stream", True, id="streamed"),
        pytest.param("/v1/models/{model}:stream", True, id="of-an-alias"),
    ],
)
def test_in(path: str, streamed: bool) -> None:  # noqa: FBT001  it is what is expected
    assert informed({"a": 1}, path, {"model": "x%2Fy"}, AT_MODEL) == {"a": 1, "model": "x/y", "stream": streamed}


def test_a_body_that_is_no_object_is_left_to_the_decoder() -> None:
    assert informed([1], "/v1beta/models/{model}:stream", {"model": "m"}, AT_MODEL) == [1]


def test_a_plain_path_says_nothing() -> None:
    body = {"model": "m"}
    assert informed(body, PLAIN.path, {}, PLAIN) is body
