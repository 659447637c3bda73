"""The console in a real browser: signing in, filters, live rows, themes, keys, and what every page has to keep."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from playwright.sync_api import expect

from tests.gateway.admin.administered import CLIENT, KEYS, SECRETS, Administered
from tests.gateway.console.browser import NARROW, WIDE, ConsoleBrowser
from xenoglot.gateway.console.links import fragment
from xenoglot.gateway.console.render import NAVIGATION
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

    from tests.gateway.console.browser import Theme

HOSTILE = '"><img src=x onerror=alert(1)><script>alert(2)</script>'
LOOKS: tuple[tuple[Theme, int], ...] = (("light", WIDE), ("dark", NARROW), ("dark", WIDE), ("light", NARROW))


@pytest.fixture(scope="module")
def gateway() -> Iterator[Administered]:
    """Give a gateway that has answered requests, one with a hostile name."""
    with (
        Upstream(*answers("chat", text=("Hel", "lo."), reasoning="The plan.").rules()) as server,
        Administered(server, environ=SECRETS, keys={**KEYS, "store": True}, ledger={}) as running,
    ):
        running.generate("a")
        running.generate("b", path="/v1/messages", max_tokens=9, top_k=3)
        running.generate(HOSTILE)
        yield running


def served(console: ConsoleBrowser) -> list[str]:
    """Return the paths of the pages that the navigation names."""
    links = console.visit().get_by_role("navigation", name="Pages").get_by_role("link").all()
    return [str(link.get_attribute("href")).removeprefix("/console") for link in links]


def test_every_page_keeps_the_rules(console: ConsoleBrowser) -> None:
    """Nothing from elsewhere, no script error, nothing inaccessible and no page that is too wide, in each look."""
    paths = served(console)
    assert set(paths) <= {to.removesuffix("/") for to, _ in NAVIGATION}
    found: dict[str, object] = {}
    for path in paths:
        console.visit(path)
        for theme, width in LOOKS:
            console.look(theme, width)
            rules = () if theme == "light" and width == WIDE else ("color-contrast",)
            if wrong := console.inaccessible(rules):
                found[f"{path} {theme} {width}"] = wrong
            if width == NARROW and (over := console.overflow()):
                found[f"{path} {width}"] = over
    assert found == {}


def test_errors_are_accessible_too(console: ConsoleBrowser) -> None:
    """Forms with mistakes, refusals and pages that do not exist; a browser reports their status as an error."""
    token = console.visit("/keys").locator("input[name=csrf]").first.get_attribute("value")
    forms: dict[str, dict[str, str]] = {
        "/keys": {"expires": "soon"},
        "/budgets": {"scope": "nobody", "amount": "x"},
        "/budgets/none/change": {"amount": "1"},
        "/configuration/check": {"toml": "[server]\nport = 'x'"},
        "/configuration/reload": {},
        "/upstreams/up/check": {},
    }
    send = """([url, fields]) => {
        const form = Object.assign(document.createElement("form"), { method: "post", action: url });
        for (const [name, value] of Object.entries(fields)) {
            form.append(Object.assign(document.createElement("input"), { name, value }));
        }
        document.body.append(form);
        form.submit();
    }"""
    wrong: dict[str, list[str]] = {}
    for path in ("/nothing", "/requests/none", "/requests?from=never", "/usage?by=colour", *forms):
        if path in forms:
            console.visit("/connect")
            with console.page.expect_navigation():
                console.page.evaluate(send, [f"{console.url}{path}", {**forms[path], "csrf": token}])
        else:
            console.visit(path)
        if found := console.inaccessible():
            wrong[path] = found
        console.look("dark", NARROW)
        if found := [*console.inaccessible(("color-contrast",)), *(["too wide"] if console.overflow() else [])]:
            wrong[f"{path} dark"] = found
        console.look("light", WIDE)
    console.problems[:] = [one for one in console.problems if "the server responded with a status of 4" not in one]
    assert wrong == {}


def test_the_page_to_sign_in_is_accessible(gateway: Administered, opened: ConsoleBrowser) -> None:
    """Without a session, with an empty form and with a refused key."""
    context = opened.page.context.browser
    assert context is not None
    stranger = ConsoleBrowser(context, gateway.url)
    page = stranger.visit("/sign-in")
    assert stranger.inaccessible() == []
    page.get_by_label("API key of an administrator or viewer").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    stranger.look("dark", NARROW)
    assert (stranger.inaccessible(), stranger.overflow()) == ([], 0)
    stranger.close()


def test_requests_are_filtered(console: ConsoleBrowser) -> None:
    page = console.visit("/requests")
    page.get_by_label("Model").fill("b")
    page.get_by_role("button", name="Filter").click()
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("messages")
    assert "model=b" in page.url
    assert "model=b" in str(page.get_by_role("link", name="Export CSV").get_attribute("href"))


def test_rows_come_while_live_is_pressed(console: ConsoleBrowser, gateway: Administered) -> None:
    page = console.visit("/requests?model=live")
    button = page.get_by_role("button", name="Live")
    with page.expect_response(lambda answer: "/requests/live" in answer.url):
        button.click()
    gateway.generate("live")
    expect(page.locator("tbody tr").first).to_contain_text("live")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")


def test_live_rows_end_with_the_session(gateway: Administered, opened: ConsoleBrowser) -> None:
    """The page leads to where one signs in."""
    context = opened.page.context.browser
    assert context is not None
    made = gateway.admin("POST", "/keys", {"name": "follower", "roles": ["viewer"]}).json()
    follower = ConsoleBrowser(context, gateway.url)
    follower.sign_in(made["secret"])
    page = follower.visit("/requests")
    with page.expect_response(lambda answer: "/requests/live" in answer.url):
        page.get_by_role("button", name="Live").click()
    gateway.admin("DELETE", "/keys/follower")
    expect(page.get_by_label("API key of an administrator or viewer")).to_be_visible()
    follower.close()


def test_text_of_a_client_is_text(console: ConsoleBrowser) -> None:
    page = console.visit("/requests")
    expect(page.locator("tbody")).to_contain_text(HOSTILE)
    assert page.locator("main img").count() == 0


def test_the_theme_can_be_chosen_and_stays(console: ConsoleBrowser) -> None:
    page = console.visit()
    page.get_by_role("button", name="Switch between light and dark").click()
    dark = cast("str", page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert dark == "rgb(15, 18, 22)"
    console.visit("/requests")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    page.evaluate("localStorage.clear()")


def test_the_keyboard_reaches_everything(console: ConsoleBrowser) -> None:
    """The first stop skips the navigation; every link and field comes once, and its focus can be seen."""
    page = console.visit("/requests")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    page.keyboard.press("Tab")
    focused = page.locator(":focus-visible")
    expect(focused).to_have_attribute("name", "from")
    assert cast("str", focused.evaluate("(e) => getComputedStyle(e).outlineStyle")) == "solid"


def test_problems_are_noticed(opened: ConsoleBrowser) -> None:
    """The checks above can fail: an inline script, an image from elsewhere and text without contrast."""
    page = opened.visit()
    opened.problems.clear()
    page.evaluate("""() => {
        document.body.append(Object.assign(document.createElement("script"), { textContent: "1" }));
        document.body.append(Object.assign(document.createElement("img"), { src: "http://127.0.0.1:1/a", alt: "" }));
        document.querySelector("h1").style.color = "#eee";
    }""")
    assert {one.split()[0] for one in opened.problems} == {"error:", "request"}
    assert [one.partition(":")[0] for one in opened.inaccessible()] == ["color-contrast"]
    opened.problems.clear()


def typed(console: ConsoleBrowser, text: str) -> Page:
    """Type a text into the page Translate, and wait for the translation."""
    page = console.page
    page.get_by_label("Request, response or stream").fill(text)
    expect(page.locator("form[data-state=done]")).to_be_visible()
    return page


def test_what_is_typed_is_translated_and_marked(console: ConsoleBrowser) -> None:
    console.visit("/translate")
    page = typed(console, '{"model": "m", "seed": 3, "messages": [{"role": "user", "content": "<b>Hi</b>"}]}')
    expect(page.get_by_role("region", name="Translation")).to_contain_text('"content": "<b>Hi</b>"')
    expect(page.locator("[data-losses]")).to_contain_text("seed dropped at $.sampling")
    assert page.locator("mark").all_text_contents() == ['"seed": 3']
    page.get_by_role("button", name="seed").click()
    text = page.get_by_label("Request, response or stream")
    assert text.evaluate("(e) => e.value.slice(e.selectionStart, e.selectionEnd)") == '"seed": 3'
    typed(console, '{"model": "m", "messages": 3}')
    expect(page.get_by_role("alert")).to_contain_text("$.body")


def test_a_stream_and_facts_are_translated(console: ConsoleBrowser) -> None:
    page = console.visit("/translate")
    typed(console, 'data: {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]}\n\n')
    expect(page.get_by_role("region", name="Translation")).to_contain_text("event: content_block_delta")
    page.locator("select[name=to]").select_option("chat")
    page.get_by_text("Facts about the server").click()
    page.locator("textarea[name=target]").fill('{"lacks": ["seed"]}')
    typed(console, '{"model": "m", "seed": 3, "messages": [{"role": "user", "content": "Hi"}]}')
    expect(page.locator("[data-losses]")).to_contain_text("seed dropped")


def test_a_link_has_the_text_in_its_fragment_alone(console: ConsoleBrowser) -> None:
    console.visit("/translate")
    page = typed(console, '{"model": "shared", "messages": [{"role": "user", "content": "\u00fc\u202e"}]}')
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    link = str(page.evaluate("navigator.clipboard.readText()"))
    assert link.partition("#")[0] == f"{console.url}/translate"
    console.visit()
    page.goto(link)
    expect(page.get_by_role("region", name="Translation")).to_contain_text("\u00fc\u202e")


def test_pieces_of_pages_are_replaced_without_a_reload(console: ConsoleBrowser) -> None:
    page = console.visit("/upstreams")
    page.get_by_role("button", name="Check up").click()
    expect(page.get_by_role("status")).to_contain_text("up: answered in")
    page = console.visit("/configuration")
    page.locator("textarea[name=toml]").fill("[server]\nport = 'x'\n")
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator("#checked")).to_contain_text("server.port")
    page.get_by_role("button", name="Reload the file").click()
    expect(page.locator("#reloaded")).to_contain_text("without a configuration file")
    assert page.url == f"{console.url}/configuration"


def test_lines_to_connect_are_copied(console: ConsoleBrowser, gateway: Administered) -> None:
    page = console.visit("/connect?model=large")
    page.get_by_role("button", name="Copy the command for Claude Code").click()
    expect(page.get_by_text("Copied")).to_be_visible()
    copied = str(page.evaluate("navigator.clipboard.readText()"))
    assert copied.splitlines()[1] == (
        f"xenoglot run claude --gateway {gateway.url} --client-key-env XENOGLOT_KEY --model large"
    )


PIXEL = bytes.fromhex("47494638396101000100800000000000ffffff2c00000000010001000002024401003b")
"""A GIF of one pixel."""


def test_a_conversation_in_two_dialects(console: ConsoleBrowser) -> None:
    page = console.visit("/playground")
    page.get_by_label("Model").fill("large")
    page.get_by_label("Key of a client").fill(CLIENT)
    page.get_by_text("Options", exact=True).click()
    page.get_by_label("Images").set_input_files({"name": "a.gif", "mimeType": "image/gif", "buffer": PIXEL})
    raw = page.get_by_role("region", name="Response as it came")
    for number, (dialect, begin, stream) in enumerate(
        (("messages", "event: message_start", True), ("gemini", '{"', False)), start=1
    ):
        page.locator("select[name=dialect]").select_option(dialect)
        page.get_by_label("Stream the answer").set_checked(stream)
        page.get_by_label("Message", exact=True).fill("<b>Hi</b>")
        page.get_by_role("button", name="Send").click()
        expect(page.locator(".turn.assistant")).to_have_count(number)
        expect(page.locator("form[data-state=done]")).to_be_visible()
        expect(page.locator(".turn.assistant").last).to_contain_text("Hello.")
        expect(raw).to_contain_text(begin)
    expect(page.locator("[data-path]")).to_have_text("POST /v1beta/models/large:generateContent")
    expect(page.locator(".turn.user")).to_have_text(["user<b>Hi</b>", "user<b>Hi</b>"])
    assert page.locator(".turn.user img").count() == 1
    assert CLIENT not in page.content()


def test_a_wrong_key_is_shown(console: ConsoleBrowser) -> None:
    page = console.visit("/playground")
    page.get_by_label("Model").fill("large")
    page.get_by_label("Message", exact=True).fill("Hi")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("alert")).to_contain_text("key")
    expect(page.locator("[data-status]")).to_contain_text("status 401")
    console.problems[:] = [one for one in console.problems if "status of 401" not in one]


def test_the_page_reads_the_fragment_of_the_command(console: ConsoleBrowser) -> None:
    text = '{"model": "opened", "messages": [{"role": "user", "content": "\u00fc"}]}'
    console.visit()
    page = console.visit(f"/translate#{fragment('chat', 'gemini', text)}")
    expect(page.get_by_role("region", name="Translation")).to_contain_text('"text": "\u00fc"')
    assert page.locator("select[name=to]").input_value() == "gemini"


def test_a_feature_is_shown_with_its_counterparts(console: ConsoleBrowser) -> None:
    """A cell opens the pair, a feature its bodies, and a field lights up with its counterpart."""
    page = console.visit("/fidelity")
    page.get_by_role("link", name="chat to messages, requests").click()
    page.get_by_role("link", name="function", exact=True).click()
    example = page.locator("#example")
    expect(example.get_by_role("heading", name="function")).to_be_visible()
    assert "feature=function" in page.url
    example.get_by_role("region", name="Before").get_by_role("button", name="parameters").click()
    assert example.locator(".lit b").all_text_contents() == ["parameters", "input_schema"]
    assert (console.inaccessible(), console.overflow()) == ([], 0)
    console.look("dark", NARROW)
    assert (console.inaccessible(["color-contrast"]), console.overflow()) == ([], 0)
    example.get_by_role("link", name="Open in Translate").click()
    expect(page.get_by_role("region", name="Translation")).to_contain_text("input_schema")
