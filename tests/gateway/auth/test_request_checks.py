"""Hosts, origins and media types that come in, and those that do not."""

from __future__ import annotations

import pytest

from xenoglot.gateway.auth.request_checks import check_host, check_media, check_origin
from xenoglot.gateway.config.settings import ServerSettings

LOCAL = ServerSettings(allowed_hosts=("gateway.example",), allowed_origins=("https://app.example",))
PUBLIC = ServerSettings(host="0.0.0.0")  # noqa: S104  the case


@pytest.mark.parametrize(
    ("host", "local", "public"),
    [
        pytest.param("127.0.0.1:8080", True, True, id="address"),
        pytest.param("localhost", True, True, id="name"),
        pytest.param("LocalHost:1", True, True, id="name-in-any-case"),
        pytest.param("[::1]:8080", True, True, id="address-6"),
        pytest.param("gateway.example:8080", True, True, id="allowed"),
        pytest.param("evil.example", False, True, id="S03-rebinding"),
        pytest.param("127.0.0.1.evil.example", False, True, id="S03-rebinding-by-a-name-like-an-address"),
        pytest.param("192.168.0.1", False, True, id="S03-another-address"),
        *(
            pytest.param(host, None, None, id=f"S02-{name}")
            for name, host in {
                "empty": "",
                "query": "localhost?",
                "fragment": "localhost#",
                "path": "localhost/admin",
                "user": "user@localhost",
                "blank": "local host",
                "list": "localhost, evil.example",
                "port": "localhost:x",
                "open": "[::1",
                "nul": "localhost\0",
                "newline": "localhost\n",
            }.items()
        ),
    ],
)
def test_host(host: str, local: bool | None, public: bool | None) -> None:  # noqa: FBT001  what the cases say
    """`None` is for what is no host anywhere."""
    kinds = {None: "permission" if local is not None else "invalid_request"}
    for server, fine in ((LOCAL, local), (PUBLIC, public)):
        refusal = check_host([("host", host)], server)
        assert (refusal and refusal.failure.kind) == (None if fine else kinds[None])


@pytest.mark.parametrize("headers", [[], [("host", "localhost"), ("host", "localhost")]], ids=["S02-none", "S02-two"])
def test_there_is_one_host(headers: list[tuple[str, str]]) -> None:
    for server in (LOCAL, PUBLIC):
        refusal = check_host(headers, server)
        assert refusal is not None
        assert refusal.failure.kind == "invalid_request"


@pytest.mark.parametrize(
    ("headers", "kind"),
    [
        pytest.param([], None, id="none"),
        pytest.param([("origin", "https://app.example")], None, id="allowed"),
        pytest.param([("origin", "https://app.example:444")], "permission", id="S04-another-port"),
        pytest.param([("origin", "null")], "permission", id="S04-null"),
        pytest.param(
            [("origin", "https://app.example"), ("origin", "https://evil.example")], "permission", id="S04-two"
        ),
        pytest.param(
            [("sec-fetch-mode", "cors"), ("anthropic-dangerous-direct-browser-access", "true")],
            None,
            id="R41-node-clients",
        ),
    ],
)
def test_origin(headers: list[tuple[str, str]], kind: str | None) -> None:
    refusal = check_origin(headers, LOCAL)
    assert (refusal and refusal.failure.kind) == kind


@pytest.mark.parametrize(
    ("header", "status"),
    [
        pytest.param(("content-type", "application/json"), None, id="C24-json"),
        pytest.param(("content-type", "Application/JSON; Charset=UTF-8"), None, id="C24-json-utf8"),
        pytest.param(("content-type", 'application/json; charset="utf-8"'), None, id="C24-json-utf8-quoted"),
        pytest.param(("content-type", "application/vnd.api+json"), None, id="C24-json-suffix"),
        pytest.param(("content-type", ""), None, id="C24-empty"),
        pytest.param(("accept", "text/plain"), None, id="C24-missing"),
        pytest.param(("content-type", "application/json; charset=utf-16"), 415, id="C24-utf16"),
        pytest.param(("content-type", "multipart/form-data; boundary=x"), 415, id="C24-multipart"),
        pytest.param(("content-type", "application/x-www-form-urlencoded"), None, id="findings-clients-7-curl"),
        pytest.param(("content-type", "application/x-www-form-urlencoded; charset=utf-16"), 415, id="C24-form-utf16"),
        pytest.param(("content-type", "text/plain"), 415, id="S04-simple-request"),
        pytest.param(("content-type", "application/jsonp"), 415, id="C24-nearly"),
        pytest.param(("content-encoding", "gzip"), 415, id="C09-gzip"),
        pytest.param(("content-encoding", "identity"), None, id="identity"),
    ],
)
def test_media(header: tuple[str, str], status: int | None) -> None:
    refusal = check_media([header])
    assert (refusal and refusal.status) == status


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(("origin", "https://app.example"), id="S04-origin"),
        pytest.param(("origin", "null"), id="S04-null"),
        pytest.param(("sec-fetch-site", "cross-site"), id="S04-site"),
        pytest.param(("sec-fetch-mode", "no-cors"), id="S04-mode"),
    ],
)
@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
def test_a_form_that_a_browser_may_have_sent_is_refused(header: tuple[str, str], first: bool) -> None:  # noqa: FBT001
    """findings-clients-7: pages may send forms across origins without leave, and say where they come from."""
    form = ("content-type", "application/x-www-form-urlencoded")
    refusal = check_media([header, form] if first else [form, header])
    assert refusal is not None
    assert refusal.status == 415
