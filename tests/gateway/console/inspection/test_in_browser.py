"""One request, keys and budgets in a real browser: what scripts add to the pages, and what every page has to keep."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.gateway.admin.administered import CLIENT, KEYS, SECRETS, Administered
from tests.gateway.console.browser import NARROW, ConsoleBrowser
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.json import JSON

EVENTS = 10_000
HOSTILE = "</pre><img src=x onerror=alert(1)><script>alert(2)</script>"


@pytest.fixture(scope="module")
def gateway() -> Iterator[Administered]:
    """Give a gateway that captures requests, in front of a server whose streams have many events."""
    capture: dict[str, JSON] = {"share": 1.0, "max_bytes": 8_000_000}
    keys: dict[str, JSON] = {**KEYS, "store": True}
    with (
        Upstream(*answers("chat", text=("word ",) * EVENTS).rules()) as server,
        Administered(server, environ=SECRETS, keys=keys, ledger={}, capture=capture) as running,
    ):
        yield running


def sent(gateway: Administered, **more: JSON) -> str:
    message: JSON = [{"role": "user", "content": HOSTILE}]
    body: dict[str, JSON] = {"model": "first", "max_tokens": 9, "top_k": 3, "messages": message, **more}
    return recorded(gateway, str(gateway.generate(path="/v1/messages", **body).headers["x-request-id"]))


def recorded(gateway: Administered, name: str) -> str:
    """Return the id of a request once it is in the ledger with what was captured: after the end of its answer."""
    for _ in range(1000):
        found = gateway.admin("GET", f"/requests/{name}")
        if found.status_code == 200 and found.json()["capture"]:
            return name
    message = f"{name} was not captured"
    raise AssertionError(message)


def test_a_field_and_its_counterpart_light_up(console: ConsoleBrowser, gateway: Administered) -> None:
    page = console.visit(f"/requests/{sent(gateway)}")
    field = page.locator("#side-client_request .field", has_text="max_tokens")
    field.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".lit")).to_have_count(2)
    expect(page.locator("#side-upstream_request .lit")).to_have_text(re.compile("max_tokens"))
    page.locator("#side-client_request .field", has_text=HOSTILE).click()
    expect(page.locator("#side-upstream_request .lit")).to_contain_text(HOSTILE)
    assert page.locator("main img").count() == 0
    page.get_by_role("link", name="top_k").click()
    expect(page.locator("#side-client_request .line.found .loss")).to_contain_text("dropped: top_k")
    assert console.inaccessible() == []
    console.look("dark", NARROW)
    assert (console.overflow(), console.inaccessible(("color-contrast",))) == (0, [])
    console.look("light", 1280)


def test_a_long_stream_is_scrolled_through(console: ConsoleBrowser, gateway: Administered) -> None:
    page = console.visit(f"/requests/{sent(gateway, stream=True)}")
    side = page.locator("#side-upstream_response")
    events, slider = side.locator(".events li"), side.get_by_role("slider")
    expect(slider).to_be_enabled()
    assert int(slider.get_attribute("max") or 0) > EVENTS
    expect(events).to_have_count(0)
    slider.fill("5000")
    expect(side.locator("output")).to_contain_text("5,000 of ")
    expect(events).to_have_count(60)  # whatever the length of the stream
    expect(events.last).to_contain_text("word ")


def test_a_request_is_sent_again_to_another_model(console: ConsoleBrowser, gateway: Administered) -> None:
    page = console.visit(f"/requests/{sent(gateway)}")
    page.get_by_role("button", name="Copy as curl").click()
    assert "$XENOGLOT_KEY" in str(page.evaluate("navigator.clipboard.readText()"))
    page.get_by_label("Model").fill("second")
    page.get_by_label("API key of a client").fill(CLIENT)
    page.get_by_role("button", name="Replay").click()
    expect(page.locator("[data-status]")).to_contain_text("200, ")
    expect(page.locator("[data-new]")).to_contain_text("word word")
    expect(page.locator("[data-old]")).to_contain_text("word word")
    newest = gateway.admin("GET", "/requests?model=second").json()["data"][0]
    assert (newest["route"], newest["status"]) == ("/v1/messages", 200)
    page.get_by_role("link", name="Show the new request").click()
    expect(page.get_by_role("heading", name=f"Request {newest['id']}")).to_be_visible()


def test_a_stream_is_sent_again_in_the_framing_that_it_had(console: ConsoleBrowser, gateway: Administered) -> None:
    """Gemini's streams are events with `alt=sse`, else a JSON array (https://ai.google.dev/api#streaming)."""
    path, contents = "/v1beta/models/first:streamGenerateContent", [{"parts": [{"text": "Hi"}]}]
    for query, beginning in (("?alt=sse", "data: {"), ("", "[{")):
        answer = gateway.post(f"{path}{query}", {"contents": contents})
        page = console.visit(f"/requests/{recorded(gateway, answer.headers['x-request-id'])}")
        page.get_by_label("Model").fill("second")
        page.get_by_label("API key of a client").fill(CLIENT)
        page.get_by_role("button", name="Replay").click()
        expect(page.locator("[data-status]")).to_contain_text("200, ")
        assert str(page.locator("[data-new]").text_content()).startswith(beginning)
        assert f"{path}{query}' " in str(page.locator("#curl").text_content()) or query == ""


def test_a_key_is_created_and_deleted(console: ConsoleBrowser, gateway: Administered) -> None:
    page = console.visit("/keys")
    page.get_by_label("Name").fill("laptop")
    page.get_by_role("button", name="Create").click()
    expect(page.locator("#secret")).to_have_text(re.compile("^xg-"))
    assert console.inaccessible() == []
    page.reload()
    expect(page.locator("#secret")).to_have_count(0)
    assert len(gateway.admin("GET", "/keys").json()["data"]) == 1
    page.get_by_role("link", name="laptop").click()
    page.get_by_label("Models").fill("small*")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Models")).to_have_value("small*")
    assert (console.inaccessible(), gateway.admin("GET", "/keys/laptop").json()["models"]) == ([], ["small*"])
    page.get_by_role("link", name="All keys").click()
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete laptop").click()
    expect(page.locator("tbody")).to_contain_text("There are no keys")
    assert gateway.admin("GET", "/keys/laptop").status_code == 404


def test_a_budget_is_set_and_changed(console: ConsoleBrowser, gateway: Administered) -> None:
    page = console.visit("/budgets")
    form = page.locator("form.filters")
    form.get_by_label("Scope").fill("tenant:ada")
    form.get_by_label("Amount").fill("5")
    form.get_by_role("button", name="Set").click()
    page.get_by_label("Change the budget of tenant:ada, month").click()
    row = page.locator("tbody tr", has_text="tenant:ada")
    row.get_by_label("Warning at %").fill("90")
    assert console.inaccessible() == []
    row.get_by_label("Amount in USD").fill("7.5")
    row.get_by_label("Amount in USD").press("Enter")
    expect(page.locator("tbody")).to_contain_text("7.50 USD")
    (budget,) = gateway.admin("GET", "/budgets").json()["data"]
    assert (budget["amount"], budget["warn_at"]) == (7_500_000, 90)
    assert console.inaccessible() == []
