"""`xenoglot console`: which URL is opened, and what happens without a gateway or a browser."""

from __future__ import annotations

import argparse
import json
import webbrowser
import zlib
from base64 import urlsafe_b64decode

import pytest

from xenoglot.errors import ConfigurationError
from xenoglot.launching import console_command, health


def options(url: str, *, printed: bool = False) -> argparse.Namespace:
    return argparse.Namespace(url=url, print=printed)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9", "http://127.0.0.1:9/", "http://127.0.0.1:9/v1", "http://127.0.0.1:9/console"]
)
def test_the_url_is_printed(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert console_command.run(options(url, printed=True)) == 0
    assert capsys.readouterr().out == "http://127.0.0.1:9/console\n"


@pytest.mark.parametrize(("found", "code"), [(True, 0), (False, 1)])
def test_the_browser_is_opened(monkeypatch: pytest.MonkeyPatch, found: bool, code: int) -> None:  # noqa: FBT001  a row
    opened: list[str] = []
    monkeypatch.setattr(health, "check", lambda *_: (True, "ok"))

    def opens(url: str) -> bool:
        opened.append(url)
        return found

    monkeypatch.setattr(webbrowser, "open", opens)
    assert console_command.run(options("http://127.0.0.1:9")) == code
    assert opened == ["http://127.0.0.1:9/console"]


def test_without_a_gateway_nothing_is_opened(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(health, "check", lambda *_: (False, "not reached"))
    assert console_command.run(options("http://127.0.0.1:9")) == 1
    assert "xenoglot serve" in capsys.readouterr().err
    with pytest.raises(ConfigurationError, match="expected a URL"):
        console_command.run(options("javascript:alert(1)"))


def test_a_translation_is_opened_with_its_text_in_the_fragment(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def opens(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr(health, "check", lambda *_: (True, "ok"))
    monkeypatch.setattr(webbrowser, "open", opens)
    assert console_command.open_translation("http://127.0.0.1:9", "chat", "gemini", '{"a": "ü"}'.encode()) == 0
    page, _, fragment = opened[0].partition("#")
    assert page == "http://127.0.0.1:9/console/translate"
    state = zlib.decompress(urlsafe_b64decode(fragment + "=" * (-len(fragment) % 4)), wbits=-zlib.MAX_WBITS)
    assert json.loads(state) == {"from": "chat", "to": "gemini", "text": '{"a": "ü"}', "target": ""}
    noise = bytes(range(32, 127)) * 2
    random = "".join(f"{hash((one, noise)):x}" for one in range(20_000)).encode()
    with pytest.raises(ConfigurationError, match="too long"):
        console_command.open_translation("http://127.0.0.1:9", "chat", "gemini", random)
