"""The page Fidelity: a heat map of all pairs, and of each feature of a pair the bodies before and after."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import ROOT
from tests.gateway.admin.administered import Administered
from tests.gateway.console.visited import Visitor
from xenoglot import dialect_registry as dialects
from xenoglot.gateway.console.fidelity.pair_table import PARTS, pair_table
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterator

HOSTILE = "%3Cscript%3Ealert(1)%3C%2Fscript%3E"


@pytest.fixture(scope="module")
def visitor() -> Iterator[Visitor]:
    """Give a visitor of a gateway that needs no key."""
    with Upstream(*answers("chat", text="Hi").rules()) as server, Administered(server) as running:
        browser = Visitor(running.url)
        yield browser
        browser.close()


def test_the_page_names_what_it_counts(visitor: Visitor) -> None:
    """The documentation counts vectors, and says so too."""
    page = visitor.get("/fidelity").text
    for part in PARTS:
        features = {one.feature for pair in pair_table().values() for one in pair.of(part)}
        assert f"{len(features)} {'features of requests' if part == 'requests' else 'of answers'}" in page
    assert "once for each of its test vectors" in page
    assert "counts once for each vector" in (ROOT / "docs" / "losses.md").read_text(encoding="utf-8")


def test_every_cell_leads_to_its_pair(visitor: Visitor) -> None:
    page = visitor.get("/fidelity").text
    links = {unescape(link) for link in re.findall(r'<a class="h\d" href="/console(/fidelity/[^"#]+)', page)}
    assert links == {f"/fidelity/{client}/{upstream}" for client, upstream in pair_table()}
    share = pair_table()["chat", "messages"].share("requests")
    assert f'aria-label="chat to messages, requests: {share} per cent"' in page
    assert page.count('<span class="same">=</span>') == len(PARTS) * len(dialects.names())


def test_a_pair_has_all_features_with_what_becomes_of_them(visitor: Visitor) -> None:
    page = visitor.get("/fidelity/chat/messages").text
    found = re.findall(r'hx-push-url="true">([^<]+)</a> <span class="fate f-(\w+)"', page)
    expected = [(one.feature, one.fate) for one in pair_table()["chat", "messages"].examples]
    assert [(unescape(feature), fate) for feature, fate in found] == expected


def test_a_feature_has_its_bodies_its_losses_and_a_link(visitor: Visitor) -> None:
    page = visitor.get("/fidelity/chat/messages?part=requests&feature=seed").text
    assert '<div class="tree" tabindex="0" role="region" aria-label="Before">' in page
    assert '<div class="tree" tabindex="0" role="region" aria-label="After">' in page
    assert '<span class="loss">dropped: seed, the dialect has no such field</span>' in page
    assert 'href="/console/translate#' in page
    piece = visitor.get("/fidelity/chat/messages?part=requests&feature=seed", {"hx-request": "true"}).text
    assert piece.startswith("<h2>seed")


def test_answers_go_from_the_upstream_to_the_client(visitor: Visitor) -> None:
    page = visitor.get("/fidelity/chat/messages?part=answers&feature=usage%3A%20cache_read").text
    assert "Answers: from messages to chat" in page


def test_a_refused_request_has_the_reason(visitor: Visitor) -> None:
    pair = pair_table()["chat", "completions"]
    feature = next(one.feature for one in pair.of("requests") if one.fate == "refused")
    page = visitor.get(f"/fidelity/chat/completions?part=requests&feature={feature.replace(' ', '%20')}").text
    assert "The gateway refuses this request" in page


@pytest.mark.parametrize(
    "path",
    [
        "/fidelity/chat/chat",
        f"/fidelity/chat/{HOSTILE}",
        f"/fidelity/chat/messages?part=requests&feature={HOSTILE}",
        f"/fidelity/chat/messages?part={HOSTILE}&feature=seed",
    ],
)
def test_what_does_not_exist_is_not_found(visitor: Visitor, path: str) -> None:
    answer = visitor.get(path)
    assert (answer.status_code, "<script>alert" in answer.text) == (404, False)
