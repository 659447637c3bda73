"""Chromium at the console of a gateway: pages as people see them, and whatever is wrong with them."""

from __future__ import annotations

import shutil
from contextlib import contextmanager, suppress
from importlib.resources import files
from typing import TYPE_CHECKING, Final, Literal, cast

from playwright.sync_api import TimeoutError as PlaywrightTimeoutError
from playwright.sync_api import sync_playwright

from tests.gateway.running_gateway import TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playwright.sync_api import Browser, ConsoleMessage, Page, Request

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
FLAGS: Final = (
    "--no-sandbox",  # root has none
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDE, NARROW = 1280, 400
"""Widths of a desktop and of a telephone."""
SERIOUS: Final = ("serious", "critical")
AXE: Final = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")

Theme = Literal["light", "dark"]


class ConsoleBrowser:
    """A browser at the console at `url`.

    `problems` has errors of scripts, violations of the policy and foreign requests.
    """

    def __init__(self, browser: Browser, url: str) -> None:
        self.url = f"{url}/console"
        self._host = url
        self._context = browser.new_context(viewport={"width": WIDE, "height": 900})
        self._context.grant_permissions(["clipboard-read", "clipboard-write"])
        self._context.set_default_timeout(TIMEOUT * 1000)
        self.problems: list[str] = []
        self.page: Page = self._context.new_page()
        self.page.on("console", self._message)
        self.page.on("pageerror", lambda error: self.problems.append(f"script error: {error}"))
        self.page.on("request", self._request)

    def close(self) -> None:
        """Close its pages."""
        self._context.close()

    def visit(self, path: str = "") -> Page:
        """Open a page of the console, and wait until its scripts have run."""
        self.page.goto(self.url + path, wait_until="load")
        return self.page

    def sign_in(self, key: str) -> None:
        """Sign in with a key."""
        page = self.visit("/sign-in")
        page.get_by_label("API key of an administrator or viewer").fill(key)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(self.url)

    def look(self, theme: Theme, width: int) -> None:
        """Show the page in a theme and at a width."""
        self.page.emulate_media(color_scheme=theme)
        self.page.set_viewport_size({"width": width, "height": 900})

    def inaccessible(self, rules: Sequence[str] = ()) -> list[str]:
        """Return what axe-core finds that is serious, each with its first place; `rules` limit it to some."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE)
        options: dict[str, object] = {"resultTypes": ["violations"]}
        if rules:
            options["runOnly"] = list(rules)
        found = cast("dict[str, list[dict[str, object]]]", self.page.evaluate("(o) => axe.run(o)", options))
        return [
            f"{one['id']}: {cast('list[dict[str, object]]', one['nodes'])[0]['html']}"
            for one in found["violations"]
            if one["impact"] in SERIOUS
        ]

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than the window, once its charts have followed a new width."""
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        with suppress(PlaywrightTimeoutError):
            self.page.wait_for_function(f"{wide} <= 0")
        return int(cast("int", self.page.evaluate(wide)))

    def _message(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"{message.type}: {message.text}")

    def _request(self, request: Request) -> None:
        if not request.url.startswith((f"{self._host}/", "data:", "blob:")):
            self.problems.append(f"request to {request.url}")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the system's Chromium; one for each module of tests, because a start takes a second."""
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    assert path, "the tests of the console need Chromium: `make test` installs it, or reports how to"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()
