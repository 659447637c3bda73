"""Who visits the console of the gateway that a module of tests has: browsers with and without scripts, signed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gateway.admin.administered import ADMIN, VIEWER
from tests.gateway.console.browser import WIDE, ConsoleBrowser, chromium
from tests.gateway.console.visited import signed_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.gateway.admin.administered import Administered
    from tests.gateway.console.visited import Visitor


@pytest.fixture(scope="module")
def admin(gateway: Administered) -> Iterator[Visitor]:
    """Give a session of an administrator, without scripts."""
    with signed_in(gateway.url, ADMIN) as visitor:
        yield visitor


@pytest.fixture(scope="module")
def viewer(gateway: Administered) -> Iterator[Visitor]:
    """Give a session of a viewer, without scripts."""
    with signed_in(gateway.url, VIEWER) as visitor:
        yield visitor


@pytest.fixture(scope="module")
def opened(gateway: Administered) -> Iterator[ConsoleBrowser]:
    """Give Chromium with a session of an administrator."""
    with chromium() as browser:
        console = ConsoleBrowser(browser, gateway.url)
        console.sign_in(ADMIN)
        yield console
        console.close()


@pytest.fixture
def console(opened: ConsoleBrowser) -> Iterator[ConsoleBrowser]:
    """Give that Chromium, and fail if a page had problems."""
    opened.look("light", WIDE)
    opened.problems.clear()
    yield opened
    assert opened.problems == []
