"""What a configuration may name as a hook, and what is said of anything else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.hooks import user_hooks
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.load import check
from xenoglot.hooks.deny_list import DenyList
from xenoglot.hooks.hook import HookSettings
from xenoglot.hooks.load import load_hooks

HERE = user_hooks.__name__


@pytest.mark.parametrize(
    ("use", "options", "methods"),
    [
        pytest.param("deny_list", {"words": ["x"]}, {"before_request"}, id="name"),
        pytest.param(
            "deny_list", {"words": ["x"], "answers": True}, {"before_request", "after_response"}, id="options"
        ),
        pytest.param("redact", {}, {"before_request", "on_event"}, id="redact"),
        pytest.param("redact", {"restore": False}, {"before_request"}, id="redact-for-good"),
        pytest.param("webhook", {"url": "http://127.0.0.1:9/"}, {"before_request"}, id="webhook"),
        pytest.param(f"{HERE}:Shout", {}, {"on_event", "after_response"}, id="class"),
        pytest.param("tests.hooks:user_hooks", {}, {"before_request"}, id="module"),
    ],
)
def test_hooks(use: str, options: dict[str, Any], methods: set[str]) -> None:
    (loaded,) = load_hooks((HookSettings(use=use, options=options),))
    found = {name for name in ("before_request", "on_event", "after_response") if getattr(loaded, name) is not None}
    assert found == methods


@pytest.mark.parametrize(
    ("use", "options", "problem"),
    [
        pytest.param(
            "deny", {}, "hooks[0].use: found `deny`; expected one of `deny_list`, `redact`, `webhook`", id="no-name"
        ),
        pytest.param("no_such:Hook", {}, "hooks[0].use: there is no module `no_such`", id="no-module"),
        pytest.param(f"{HERE}:SYSTEM", {}, f"hooks[0].use: `{HERE}:SYSTEM` is no hook", id="no-method"),
        pytest.param("deny_list", {}, "hooks[0].options: a deny list needs `words` or `patterns`", id="no-words"),
        pytest.param(
            "deny_list", {"patterns": ["("]}, "hooks[0].options: `patterns`: `(` is no regular", id="no-pattern"
        ),
        pytest.param(
            "deny_list", {"word": "x"}, "hooks[0].options: `deny_list` cannot be made: TypeError", id="option"
        ),
        pytest.param("redact", {"personal": ["NAME"]}, "hooks[0].options: `personal`: found `NAME`", id="personal"),
        pytest.param("redact", {"patterns": {"a": "b"}}, "hooks[0].options: `patterns`: found `a`", id="kind"),
        pytest.param(
            "webhook", {"url": "http://example.com"}, "hooks[0].options: `url`: prompts are posted", id="plain"
        ),
        pytest.param("webhook", {"url": "https://a:b@example.com"}, "hooks[0].options: `url`: expected", id="password"),
        pytest.param(
            "webhook", {"url": "https://example.com", "token_env": "NONE_"}, "hooks[0].options: `token_env`", id="token"
        ),
        pytest.param("tests.hooks:user_hooks", {"a": 1}, "hooks[0].options: `tests.hooks:user_hooks` is", id="object"),
    ],
)
def test_what_is_no_hook(use: str, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_hooks((HookSettings(use=use, options=options),))
    assert str(caught.value).startswith(problem)


def test_hooks_of_a_file() -> None:
    plain = {"hooks": [{"use": "deny_list", "options": {"words": ["x"]}, "timeout_seconds": 1, "on_failure": "pass"}]}
    (settings,) = check(plain, {}, "here").hooks
    assert settings == HookSettings(use="deny_list", options={"words": ["x"]}, timeout_seconds=1.0, on_failure="pass")
    assert isinstance(load_hooks((settings,))[0].hook, DenyList)
