"""Codex with the login of ChatGPT, Claude Code with that of Claude: the provider gets it, the gateway has its own key.

Sources: `login/src/auth/storage.rs` (`auth.json`) and `model-provider-info` of openai/codex; the variable
CLAUDE_CODE_OAUTH_TOKEN of https://code.claude.com/docs/en/authentication. Both see no network but this machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from base64 import urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from drive.conftest import CLIENTS, PATIENCE, DriveSetup, furnished, gateway
from drive.script import text_turn
from drive.test_claude_code import QUIET
from tests.matrix.dialect_server import DialectServer
from xenoglot import dialect_registry as dialects

if TYPE_CHECKING:
    from pathlib import Path

    from xenoglot.model.json import JSONObject

KEY = "gw-key-of-the-gateway"
ACCOUNT = "11111111-2222-4333-8444-555555555555"
LOGIN = "sk-ant-oat01-login-of-claude-0123456789"
ALONE = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1,localhost"}

CODEX = """
model = "gpt-5.5"
model_provider = "gateway"
chatgpt_base_url = "http://127.0.0.1:9"
cli_auth_credentials_store = "file"
[model_providers.gateway]
name = "gateway"
base_url = "{url}/v1"
wire_api = "responses"
requires_openai_auth = true
supports_websockets = {sockets}
http_headers = {{ "x-xenoglot-key" = "{key}" }}
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
"""

GATEWAY = """
[keys]
env = ["KEYS"]

[upstreams.provider]
dialect = "{dialect}"
base_url = "{url}"
auth = "client"
"""


def token(**claims: object) -> str:
    """Return a token in the form that Codex reads; nothing verifies its signature here."""
    parts = ({"alg": "RS256", "typ": "JWT"}, claims)
    told = [urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return ".".join((*told, "c2lnbmF0dXJl"))


def log_in(home: Path) -> str:
    """Write what `codex login` leaves; return the access token."""
    expiry = int((datetime.now(UTC) + timedelta(days=9)).timestamp())
    claims = {"chatgpt_account_id": ACCOUNT, "chatgpt_plan_type": "pro", "chatgpt_user_id": "user-1"}
    shared: JSONObject = {"exp": expiry, "https://api.openai.com/auth": claims}
    access = token(**shared, scp=["openid"])
    tokens = {
        "id_token": token(**shared, email="ada@example.com"),
        "access_token": access,
        "refresh_token": "rt-of-the-login",
        "account_id": ACCOUNT,
    }
    login = {"auth_mode": "chatgpt", "OPENAI_API_KEY": None, "tokens": tokens}
    (home / "auth.json").write_text(json.dumps({**login, "last_refresh": datetime.now(UTC).isoformat()}))
    return access


def header(speaker: DialectServer, name: str) -> set[str | None]:
    """Return the values of a header in all requests that the provider got."""
    return {{key.lower(): value for key, value in one.items()}.get(name) for one in speaker.headers}


@pytest.mark.parametrize("sockets", ["false", "true"], ids=["posted", "web-socket"])
def test_codex_with_the_login_of_chatgpt(tmp_path: Path, sockets: str) -> None:
    config = tmp_path / "xenoglot.toml"
    with DialectServer(dialects.get("responses")) as speaker:
        config.write_text(GATEWAY.format(dialect="responses", url=speaker.url))
        speaker.script(text_turn("Hello."))
        with gateway(tmp_path, "--config", str(config), KEYS=KEY) as served:
            home, work = furnished(tmp_path)
            setup = DriveSetup(url=served.url, speaker=speaker, home=home, work=work)
            (home / ".codex").mkdir()
            access = log_in(home / ".codex")
            (home / ".codex" / "config.toml").write_text(CODEX.format(url=served.url, key=KEY, sockets=sockets))
            flags = ("--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
            printed = setup.run("codex", "exec", *flags, "say hello", **ALONE)
            log = json.dumps(served.lines())
    assert '"text":"Hello."' in printed
    assert header(speaker, "authorization") == {f"Bearer {access}"}
    assert header(speaker, "chatgpt-account-id") == {ACCOUNT}
    assert header(speaker, "originator") == {"codex_exec"}
    assert header(speaker, "x-xenoglot-key") == {None}
    assert access not in log


def test_xenoglot_run_keeps_the_login_of_codex(tmp_path: Path) -> None:
    home, work = furnished(tmp_path)
    (home / ".codex").mkdir()
    access = log_in(home / ".codex")
    with DialectServer(dialects.get("responses")) as speaker:
        speaker.script(text_turn("Hello."))
        where = ("--upstream", speaker.url, "--dialect", "responses", "--auth", "client", "--model", "gpt-5.5")
        flags = ("exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "say hello")
        path = os.pathsep.join((str(CLIENTS / "bin"), str(CLIENTS / "node_modules" / ".bin"), os.environ["PATH"]))
        done = subprocess.run(
            [sys.executable, "-m", "xenoglot.cli", "run", "codex", *where, "--", *flags],
            cwd=work,
            env={"HOME": str(home), "PATH": path, **ALONE},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert '"text":"Hello."' in done.stdout, done.stderr
    assert header(speaker, "authorization") == {f"Bearer {access}"}
    assert header(speaker, "chatgpt-account-id") == {ACCOUNT}


def test_claude_code_with_its_own_login(tmp_path: Path) -> None:
    config = tmp_path / "xenoglot.toml"
    with DialectServer(dialects.get("messages")) as speaker:
        config.write_text(GATEWAY.format(dialect="messages", url=speaker.url))
        speaker.script(*[text_turn("Hello.")] * 4)
        with gateway(tmp_path, "--config", str(config), KEYS=KEY) as served:
            home, work = furnished(tmp_path)
            setup = DriveSetup(url=served.url, speaker=speaker, home=home, work=work)
            environment = {
                "ANTHROPIC_BASE_URL": served.url,
                "ANTHROPIC_CUSTOM_HEADERS": f"x-xenoglot-key: {KEY}",
                "CLAUDE_CODE_OAUTH_TOKEN": LOGIN,
            }
            printed = setup.run("claude", "-p", "say hello", **environment, **QUIET, **ALONE)
            log = json.dumps(served.lines())
    assert printed.strip() == "Hello."
    assert header(speaker, "authorization") == {f"Bearer {LOGIN}"}
    assert all("oauth-2025-04-20" in (value or "").split(",") for value in header(speaker, "anthropic-beta"))
    assert header(speaker, "x-xenoglot-key") == {None}
    assert LOGIN not in log
