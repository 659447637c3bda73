"""The page of one request: four bodies aligned, losses at their places, times, events; hostile content is inert."""

from __future__ import annotations

import io
import json
import re
from html import unescape
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast
from zipfile import ZipFile

import pytest

from tests.gateway.admin.administered import ADMIN, KEYS, SECRETS, VIEWER, Administered
from tests.gateway.console.visited import Visitor, signed_in
from xenoglot.errors import FailureError
from xenoglot.gateway.admin.requests import CapturedBody, RequestDetails
from xenoglot.gateway.admin.route import not_found
from xenoglot.gateway.admin.services import AdminServices
from xenoglot.gateway.console.inspection import bodies as inspected
from xenoglot.gateway.console.inspection import request_page
from xenoglot.gateway.console.inspection.bodies import compare, stream_events
from xenoglot.gateway.console.inspection.json_tree import MOST_CHARACTERS, MOST_ROWS, completed, parsed, visible
from xenoglot.gateway.console.inspection.request_page import InspectionPages, path_of
from xenoglot.gateway.console.inspection.timeline import timeline
from xenoglot.store.ledger.rows import RequestRow
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.gateway.console.admin_calls import AdminCalls
    from xenoglot.gateway.console.route import ConsoleRequest
    from xenoglot.model.json import JSON

HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>\u202eevil\x1b[31m"
LARGE = "m" * 1024 * 1024
PARTS = ("client_request", "upstream_request", "upstream_response", "client_response")


@pytest.fixture(scope="module")
def gateway() -> Iterator[Administered]:
    """Give a gateway that captures requests of one model."""
    capture: dict[str, JSON] = {"models": ["seen*"], "max_bytes": 4_000_000}
    with (
        Upstream(*answers("chat", text=("Hel", "lo")).rules()) as server,
        Administered(server, environ=SECRETS, keys=KEYS, ledger={}, capture=capture) as running,
    ):
        yield running


def sent(gateway: Administered, text: str = "Hi", **more: JSON) -> str:
    """Return the id of a request of Anthropic's dialect that was answered."""
    message: JSON = [{"role": "user", "content": text}]
    body: dict[str, JSON] = {"model": "seen", "max_tokens": 9, "messages": message, **more}
    answer = gateway.generate(path="/v1/messages", **body)
    assert answer.status_code == 200, answer.text
    return answer.headers["x-request-id"]


def groups(page: str) -> dict[str, list[str]]:
    """Return the fields of each group, as the page has them."""
    found: dict[str, list[str]] = {}
    pattern = r'data-group="(\w+)"><b>(.*?)</b> <span class="is-\w+">(.*?)</span>'
    for group, key, text in re.findall(pattern, page, re.DOTALL):
        found.setdefault(group, []).append(f"{key}={unescape(text)}")
    return found


def test_the_bodies_stand_side_by_side_and_are_aligned(viewer: Visitor, gateway: Administered) -> None:
    page = viewer.get(f"/requests/{sent(gateway, stop_sequences=['END'])}").text
    assert re.findall(r'id="side-(\w+)"', page) == list(PARTS)
    found = list(groups(page).values())
    for pair in (
        ["max_tokens=9", "max_tokens=9"],
        ["stop_sequences=[1]", "stop=[1]"],
        ["content=Hi", "content=Hi"],
        ["content=Hello", "text=Hello"],
        ["finish_reason=stop", "stop_reason=end_turn"],
    ):
        assert pair in found


def test_losses_are_marked_at_their_places(viewer: Visitor, gateway: Administered) -> None:
    page = viewer.get(f"/requests/{sent(gateway, top_k=3)}").text
    (line,) = re.findall(r'<div class="line d0" id="loss-0">.*?</div>', page, re.DOTALL)
    assert "<b>top_k</b>" in line
    assert "dropped: top_k, the dialect has no such field" in line
    assert 'href="#loss-0"' in page


def test_a_stream_is_an_answer_and_events(viewer: Visitor, gateway: Administered) -> None:
    name = sent(gateway, stream=True)
    page = viewer.get(f"/requests/{name}").text
    assert ["content=Hello", "text=Hello"] in groups(page).values()
    places = re.findall(r'data-events="/console(/[^"]+)"', page)
    assert [place.rpartition("/")[2] for place in places] == list(PARTS[2:])
    upstream, client = (viewer.get(place).json() for place in places)
    assert upstream[-1] == ["", "[DONE]"]
    assert [event for event, _ in client][-1] == "message_stop"


def test_the_course_is_shown_in_order(viewer: Visitor, gateway: Administered) -> None:
    page = viewer.get(f"/requests/{sent(gateway)}").text
    steps = re.findall(r'aria-hidden="true">■</span> (.*?)</td>', page)
    assert steps == [
        "queue and translation",
        "try 1: connection and head",
        "try 1: first bytes",
        "try 1: rest",
        "client: response",
    ]


def test_without_a_capture_the_page_says_how(viewer: Visitor, gateway: Administered) -> None:
    name = gateway.generate("other").headers["x-request-id"]
    page = viewer.get(f"/requests/{name}")
    assert page.status_code == 200
    assert '[capture]\nmodels = ["other"]' in page.text
    assert viewer.get(f"/requests/{name}/vector.zip").status_code == 404
    assert viewer.get("/requests/req_none").status_code == 404


def test_hostile_content_is_inert(viewer: Visitor, gateway: Administered) -> None:
    name = sent(gateway, HOSTILE)
    answers_ = [viewer.get(f"/requests/{name}"), viewer.get(f"/requests/{name}/text/client_request")]
    page = answers_[0].text
    assert not re.search(r"<img|<script>|alert\(1\)<", page)
    for answer in answers_:
        assert not re.search("[\u202e\x1b]", answer.text)
    assert "\\u202eevil" in page
    assert answers_[1].headers["content-type"] == "text/plain; charset=utf-8"
    assert answers_[1].headers["x-content-type-options"] == "nosniff"


def test_a_large_body_makes_no_large_page(viewer: Visitor, gateway: Administered) -> None:
    words: JSON = {f"k{number}": HOSTILE for number in range(10_000)}
    page = viewer.get(f"/requests/{sent(gateway, 'x' * 1_000_000, metadata=words)}").text
    shown, sent_again = page.split("Use it again")
    assert shown.count('<div class="line') <= 4 * MOST_ROWS
    assert len(shown) < 2_500_000
    assert len(sent_again) < 20_000  # nothing so large is sent again from a page


def test_a_vector_has_the_files_of_both_sides(viewer: Visitor, gateway: Administered) -> None:
    name = sent(gateway, stream=True)
    with ZipFile(io.BytesIO(viewer.get(f"/requests/{name}/vector.zip").content)) as archive:
        names = archive.namelist()
        request = json.loads(archive.read(names[0]))
        stream = archive.read(f"chat/{name}/stream.sse")
    assert names[:2] == [f"messages/ask-{name}/request.json", f"messages/ask-{name}/NOTE.md"]
    assert names[2:] == [f"chat/{name}/stream.sse", f"chat/{name}/NOTE.md"]
    assert request["max_tokens"] == 9
    assert stream.endswith(b"data: [DONE]\n\n")


def test_a_command_sends_it_again_without_a_key(viewer: Visitor, gateway: Administered) -> None:
    name = sent(gateway, "it's")
    page = viewer.get(f"/requests/{name}").text
    (command,) = re.findall(r'<pre id="curl"[^>]*>(.*?)</pre>', page, re.DOTALL)
    command = unescape(command)
    assert command.startswith('curl "$XENOGLOT_URL"/v1/messages \\\n  -H "authorization: Bearer $XENOGLOT_KEY"')
    assert "it'\"'\"'s" in command
    assert "data-replay" not in page  # of a viewer


def test_administrators_send_it_again(gateway: Administered) -> None:
    admin = Visitor(gateway.url)
    admin.sign_in(ADMIN)
    page = admin.get(f"/requests/{sent(gateway)}").text
    admin.close()
    assert 'data-replay="/v1/messages"' in page


def body(part: str, text: str, media: str = "application/json", *, truncated: bool = False) -> CapturedBody:
    return CapturedBody(request="r", part=part, media=media, truncated=truncated, text=text, expires=0.0)


def test_many_events_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream of 10,000 events that passed unchanged is read one time, for the tree of both sides."""
    chunk = '{"choices":[{"index":0,"delta":{"content":"a"}}]}'
    text = f"data: {chunk}\n\n" * 10_000 + "data: [DONE]\n\n"
    read: list[str] = []
    plain = inspected._answer

    def counted(one: CapturedBody, dialect: object) -> JSON:
        read.append(one.part)
        return plain(one, dialect)  # type: ignore[arg-type]

    monkeypatch.setattr(inspected, "_answer", counted)
    pair = {part: body(part, text, "text/event-stream") for part in PARTS[2:]}
    found = compare(pair, ("chat", "chat"), ())
    assert len(read) == 1
    assert any(row.text.startswith("aaaa") for row in found.sides[0].rows)
    assert len(stream_events(pair["client_response"], "chat")) == 10_001


def test_a_page_with_many_events_is_no_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, as times fail on a busy machine: bytes, elements and queries are those of a page with 50 events."""
    asked: list[object] = []
    read = AdminServices.read

    async def counted(services: AdminServices, steps: object) -> object:
        asked.append(steps)
        return await read(services, steps)  # type: ignore[arg-type]

    monkeypatch.setattr(AdminServices, "read", counted)
    sizes = []
    for events in (50, 10_000):
        capture: dict[str, JSON] = {"share": 1.0, "max_bytes": 8_000_000}
        with (
            Upstream(*answers("chat", text=("word ",) * events).rules()) as server,
            Administered(server, environ=SECRETS, keys=KEYS, ledger={}, capture=capture) as running,
            signed_in(running.url, VIEWER) as visitor,
        ):
            name = sent(running, stream=True)
            asked.clear()
            page = visitor.get(f"/requests/{name}").text
            sizes.append((len(page), page.count("<"), len(asked)))
            assert len(visitor.get(f"/requests/{name}/events/upstream_response").json()) > events
    (small, few, queries), (large, many, queries_of_many) = sizes
    assert (queries_of_many, many) == (queries, few)
    assert large <= small + 2 * MOST_CHARACTERS  # the text of the answer, once for each side


@pytest.mark.parametrize(("missing", "looks"), [(0, 1), (3, 4), (99, request_page.LOOKS)])
async def test_a_request_that_has_just_ended_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, missing: int, looks: int
) -> None:
    """Its row is written a moment after the client has its last byte, by a gateway that may be another one."""
    monkeypatch.setattr(request_page, "PAUSE", 0)
    asked: list[str] = []
    found = RequestDetails(request=RequestRow(id="req_1", at=0.0), loss_kinds={}, capture=[])

    class Calls:
        async def object(self, _kind: object, _request: object, path: str) -> RequestDetails:
            asked.append(path)
            if len(asked) <= missing:
                raise not_found("request", "req_1")
            return found

    pages = InspectionPages(cast("AdminCalls", Calls()))
    request = cast("ConsoleRequest", SimpleNamespace(variables={"id": "req_1"}))
    if missing < looks:
        assert await pages._details(request) is found
    else:
        with pytest.raises(FailureError):
            await pages._details(request)
    assert asked == ["/requests/req_1"] * looks


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": [1, 2, {"b": "c', {"a": [1, 2, {}]}),
        ('{"a": "x, y", "b', {"a": "x, y"}),
        ('{"a": {"b": 1}, "c": tr', {"a": {"b": 1}}),
        ('{"a": "\\"', {}),
        ("[", []),
    ],
)
def test_a_body_that_is_cut_is_shown_as_far_as_it_goes(text: str, expected: JSON) -> None:
    assert parsed(text, truncated=True) == expected
    assert completed(text).startswith(text[0])


def test_a_body_that_is_no_json_is_shown_as_text() -> None:
    (side,) = compare({"client_request": body("client_request", "<b>\x1b")}, ("chat", "chat"), ()).sides
    assert (side.rows, side.text) == ((), "<b>\\u001b")
    assert side.problem


def test_a_stream_that_is_cut_has_the_answer_so_far() -> None:
    text = 'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\ndata: {"choi'
    one = body("upstream_response", text, "text/event-stream", truncated=True)
    (side,) = compare({"upstream_response": one}, ("chat", "chat"), ()).sides
    assert "Hel" in [row.text for row in side.rows]
    assert len(stream_events(one, "chat")) == 1


def test_emoji_stay_and_controls_are_escaped() -> None:
    assert visible("👩\u200d💻 a\tb\n\u2066x\ud800") == "👩\u200d💻 a\tb\n\\u2066x\\ud800"
    assert json.loads(f'"{visible(chr(0xE0041))}"') == chr(0xE0041)
    assert visible("abcd", 2) == "ab… (2 more characters)"


def test_a_course_without_a_capture() -> None:
    row = RequestRow(id="r", at=0.0, ttfb_ms=40.0, total_ms=100.0)
    assert [(bar.name, bar.x, bar.width) for bar in timeline(row, None)] == [
        ("until the first byte", 0, 400),
        ("response", 400, 600),
    ]


@pytest.mark.parametrize(
    ("route", "model", "expected"),
    [
        ("/v1/messages", "../x", ""),
        ("/v1/messages", "m", "/v1/messages"),
        ("/v1beta/models/{model}:generateContent", "a?b/#c", "/v1beta/models/a%3Fb%2F%23c:generateContent"),
        ("/v1beta/models/{+model}:generateContent", "a/b c", "/v1beta/models/a/b%20c:generateContent"),
        ("/v1beta/models/{+model}:generateContent", "../../admin/v1/reload", ""),
        ("/v1beta/models/{+model}:generateContent", "..\\admin", ""),
        ("/v1/files/{id}", "m", ""),
        (None, None, ""),
    ],
)
def test_the_name_of_a_model_leads_to_no_other_path(route: str | None, model: str | None, expected: str) -> None:
    assert path_of(RequestRow(id="r", at=0.0, route=route, model=model)) == expected
