"""Screenshots of the console in Chromium, of a gateway in front of scripted servers: part of `make docs-images`.

A screenshot is an SVG file with the picture in it, so that the site treats it as it treats the recordings.
"""

from __future__ import annotations

from base64 import b64encode
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, cast

import httpx2

from tests.gateway.admin.administered import ADMIN, CLIENT, KEYS, SECRETS, Administered
from tests.gateway.console.browser import ConsoleBrowser, chromium
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from playwright.sync_api import Page

    from xenoglot.model.json import JSON

WIDTH, HEIGHT = 1280, 860
SECONDS: Final = 30.0
WEATHER: Final = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
QUESTION: Final = "Is it raining in Oslo?"
REQUESTS: Final[tuple[tuple[str, JSON], ...]] = (
    ("/v1/chat/completions", {"model": "small", "messages": [{"role": "user", "content": QUESTION}]}),
    (
        "/v1/messages",
        {
            "model": "gpt-5",
            "max_tokens": 500,
            "top_k": 40,
            "stream": True,
            "system": "Answer in one sentence.",
            "tools": [{"name": "weather", "description": "The weather of a city.", "input_schema": WEATHER}],
            "messages": [{"role": "user", "content": QUESTION}],
        },
    ),
    (
        "/v1/responses",
        {"model": "gemini-flash", "input": QUESTION, "text": {"verbosity": "low"}, "reasoning": {"effort": "low"}},
    ),
    ("/v1beta/models/small:generateContent", {"contents": [{"role": "user", "parts": [{"text": QUESTION}]}]}),
)
"""What clients of the gateway send."""


def latest(page: Page) -> None:
    """Open the newest request of a client of another dialect, and light up a field and its counterpart."""
    page.get_by_label("Model").fill("gpt-5")
    page.get_by_role("button", name="Filter").click()
    page.locator("tbody tr", has_text="messages").first.get_by_role("link").click()
    page.locator("#side-client_request .field", has_text="input_schema").click()
    page.locator("#side-upstream_response").get_by_role("slider").fill("4")


def typed(page: Page) -> None:
    """Wait for the translation."""
    page.locator("form[data-state=done]").wait_for()


def asked(page: Page) -> None:
    """Have a conversation in the playground."""
    page.get_by_label("Model", exact=True).fill("small")
    page.get_by_label("Key of a client").fill(CLIENT)
    page.get_by_role("textbox", name="Message").fill(QUESTION)
    page.get_by_role("button", name="Send").click()
    page.get_by_text("umbrella").first.wait_for()


def nothing(page: Page) -> None:
    """Leave the page as it is."""


SCENES: Mapping[str, tuple[str, Callable[[Page], None]]] = {
    "console-overview": ("", nothing),
    "console-requests": ("/requests", nothing),
    "console-request": ("/requests", latest),
    "console-translate": ("/translate", typed),
    "console-playground": ("/playground", asked),
    "console-usage": ("/usage?from=24h", nothing),
    "console-keys": ("/keys", nothing),
    "console-budgets": ("/budgets", nothing),
    "console-upstreams": ("/upstreams", nothing),
    "console-configuration": ("/configuration", nothing),
    "console-audit": ("/audit", nothing),
    "console-fidelity": ("/fidelity", nothing),
    "console-fidelity-pair": ("/fidelity/chat/messages?part=requests&feature=function", nothing),
    "console-connect": ("/connect", nothing),
}
"""The path of each page that is shown, and what is done there."""


@contextmanager
def gateway() -> Iterator[Administered]:
    """Start a gateway whose clients have sent requests."""
    pieces = ("Yes, ", "it rains ", "in Oslo: ", "take an ", "umbrella.")
    with (
        Upstream(*answers("chat", text=pieces, reasoning="Oslo is in Norway.").rules()) as server,
        Upstream(*answers("gemini", text=pieces).rules()) as other,
        Administered(
            server,
            environ=SECRETS,
            keys={**KEYS, "store": True},
            ledger={},
            capture={"share": 1.0},
            upstreams={
                "lab": {"dialect": "chat", "base_url": server.url},
                "google": {"dialect": "gemini", "base_url": other.url},
            },
            models=[{"name": "gemini-*", "upstream": "google"}, {"name": "*", "upstream": "lab"}],
            budgets=[{"scope": "all", "amount": 100, "period": "month", "warn_at": 80}],
        ) as running,
    ):
        for name, tenant in (("laptop", "ada"), ("build", "team")):
            running.admin("POST", "/keys", {"name": name, "tenant": tenant, "limits": {"requests": ["60/1m"]}})
        headers = {"authorization": f"Bearer {CLIENT}"}
        for path, body in REQUESTS * 4:
            httpx2.post(f"{running.url}{path}", json=body, headers=headers, timeout=SECONDS).raise_for_status()
        yield running


def screenshots(names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the SVG text of each screenshot."""
    if not names:
        return
    with gateway() as running, chromium() as browser:
        console = ConsoleBrowser(browser, running.url)
        console.sign_in(ADMIN)
        console.page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
        for name in names:
            path, act = SCENES[name]
            page = console.visit(path)
            act(page)
            whole = cast("int", page.evaluate("document.documentElement.scrollHeight"))
            yield name, svg(page.screenshot(full_page=True), min(max(whole, HEIGHT), 2 * HEIGHT))
        console.close()


def svg(png: bytes, height: int) -> str:
    """Return a picture as SVG, cut at a height."""
    data = b64encode(png).decode()
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
        f'<image width="{WIDTH}" preserveAspectRatio="xMinYMin" href="data:image/png;base64,{data}"/></svg>\n'
    )
