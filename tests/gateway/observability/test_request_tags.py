"""Tags of a request: bounded, from the header and from fields, in the log, the ledger and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import httpx2
import pytest

from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.cli import main
from xenoglot.errors import FailureError
from xenoglot.gateway.observability.request_tags import (
    HEADER,
    MOST_TAGS,
    decode_tags,
    encode_tags,
    read_tags,
    with_fields,
)
from xenoglot.model.request import Request
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gateway.running_gateway import AccessLines
    from xenoglot.model.json import JSONObject

BODY: JSONObject = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize(
    ("values", "tags"),
    [
        ([], None),
        ([""], None),
        (["team=search, job = nightly ,"], {"team": "search", "job": "nightly"}),
        (["a=1", "a=2,b=x=y z"], {"a": "2", "b": "x=y z"}),
        ([",".join(f"t{number}=1" for number in range(MOST_TAGS))], {f"t{number}": "1" for number in range(MOST_TAGS)}),
    ],
)
def test_tags_are_read(values: list[str], tags: dict[str, str] | None) -> None:
    assert read_tags([("host", "a"), *((HEADER, value) for value in values)]) == tags


@pytest.mark.parametrize(
    "value",
    [
        "team",
        "=a",
        "team=",
        "te am=a",
        "a=\x7f",
        f"{'n' * 65}=a",
        f"a={'v' * 129}",
        ",".join(f"t{n}=1" for n in range(17)),
    ],
)
def test_malformed_tags_are_refused(value: str) -> None:
    with pytest.raises(FailureError, match="x-xenoglot-tags: expected at most 16 of name=value"):
        read_tags([(HEADER, value)])


def test_fields_are_tags_as_far_as_they_fit_and_the_header_takes_precedence() -> None:
    metadata: JSONObject = {"team": "ads", "job": "nightly", "long": "v" * 129, "a b": "c", "number": 1}
    request = Request(model="m", user="ada", metadata=metadata)
    assert with_fields({"team": "search"}, request) == {"user": "ada", "team": "search", "job": "nightly"}
    assert with_fields(None, Request(model="m", user='{"session_id":"s"}')) is None


def test_the_column_has_the_same_tags() -> None:
    tags = {"team": "search, ads", "job": "100%=x"}
    assert encode_tags(tags) == ",job=100%25%3Dx,team=search%2C ads,"
    assert decode_tags(encode_tags(tags)) == tags
    assert (encode_tags({}), encode_tags(None), decode_tags(None)) == (None, None, {})


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"], ids=["verbatim", "translated"])
def test_tags_are_in_the_log_and_in_reports_and_not_sent_on(
    access_lines: AccessLines, capsys: pytest.CaptureFixture[str], tmp_path: Path, path: str
) -> None:
    config = tmp_path / "xenoglot.toml"
    body: JSONObject = {**BODY, "max_tokens": 9}
    store = {"url": f"sqlite://{tmp_path}/state.db"}
    with Upstream(*answers("chat", text="Hi").rules()) as server:
        with DialectGateway(server, store=store, ledger={}) as running, httpx2.Client(timeout=TIMEOUT) as client:
            for value in ("team=search", "team=ads,job=nightly", "team=search", None, "team"):
                headers = {} if value is None else {HEADER: value}
                answer = client.post(running.url + path, json=body, headers=headers)
                assert answer.status_code == (400 if value == "team" else 200)
                assert ("expected at most 16 of name=value" in answer.text) == (value == "team")
        assert not any(name == HEADER for request in server.requests for name, _ in request.headers)
        config.write_text(
            f'[upstreams.a]\ndialect = "chat"\nbase_url = "{server.url}"\n[store]\nurl = "{store["url"]}"\n'
        )
    lines = [cast("JSONObject", access_lines.next()) for _ in range(5)]
    assert [line.get("tags") for line in lines] == [
        {"team": "search"},
        {"team": "ads", "job": "nightly"},
        {"team": "search"},
        None,
        None,
    ]
    assert main(["usage", "--config", str(config), "--by", "tag:team", "--csv"]) == 0
    report = capsys.readouterr().out
    assert [line.split(",")[:3] for line in report.splitlines()] == [
        ["tag:team", "currency", "requests"],
        ["", "", "2"],
        ["ads", "", "1"],
        ["search", "", "2"],
    ]
