"""Deprecated configuration keys mean what the new ones mean, and are logged."""

from __future__ import annotations

import logging

import pytest

from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.load import check

UPSTREAM = {"dialect": "chat", "base_url": "http://upstream.invalid/v1"}
OVERRIDES = [{"names": ["large"], "context": 9}]

OLD = {
    "upstreams": {
        "u": {
            **UPSTREAM,
            "preserve": True,
            "facts": OVERRIDES,
            "also": [{"dialect": "messages", "facts": OVERRIDES}, {"dialect": "completions"}],
        }
    },
    "models": [
        {"name": "m", "hold_back": {"seconds": 0.5}, "continues": True, "patience_seconds": 5, "preserve": False}
    ],
}
NEW = {
    "upstreams": {
        "u": {
            **UPSTREAM,
            "preserve_reasoning": True,
            "model_overrides": OVERRIDES,
            "also": [{"dialect": "messages", "model_overrides": OVERRIDES}, {"dialect": "completions"}],
        }
    },
    "models": [
        {
            "name": "m",
            "buffer": {"seconds": 0.5},
            "midstream_failover": True,
            "retry_deadline_seconds": 5,
            "preserve_reasoning": False,
        }
    ],
}


def test_old_keys_have_the_meaning_of_the_new_ones_and_a_warning_each(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "xenoglot.gateway"):
        old = check(OLD, {}, "x.toml")
    assert caplog.messages == [
        "x.toml: upstreams.u.facts: deprecated; rename it to `model_overrides`",
        "x.toml: upstreams.u.preserve: deprecated; rename it to `preserve_reasoning`",
        "x.toml: upstreams.u.also[0].facts: deprecated; rename it to `model_overrides`",
        "x.toml: models[0].continues: deprecated; rename it to `midstream_failover`",
        "x.toml: models[0].hold_back: deprecated; rename it to `buffer`",
        "x.toml: models[0].patience_seconds: deprecated; rename it to `retry_deadline_seconds`",
        "x.toml: models[0].preserve: deprecated; rename it to `preserve_reasoning`",
    ]
    caplog.clear()
    new = check(NEW, {}, "x.toml")
    assert (old.upstreams, old.models) == (new.upstreams, new.models)
    assert caplog.messages == []


def test_both_names_of_a_key_are_a_mistake() -> None:
    plain = {"upstreams": {"u": UPSTREAM}, "models": [{"name": "m", "buffer": {}, "hold_back": {}}]}
    with pytest.raises(ConfigurationError) as raised:
        check(plain, {}, "x.toml")
    assert str(raised.value) == (
        "x.toml: models[0].hold_back: deprecated name of `buffer`, which is set too; remove it"
    )


@pytest.mark.parametrize(
    "plain",
    [
        pytest.param({"upstreams": 1}, id="upstreams"),
        pytest.param({"upstreams": {"u": 1}}, id="upstream"),
        pytest.param({"upstreams": {"u": {**UPSTREAM, "also": 1}}}, id="also"),
        pytest.param({"models": 1}, id="models"),
        pytest.param({"models": [1]}, id="model"),
    ],
)
def test_values_that_are_no_tables_are_reported_where_they_are_read(plain: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match=r"found 1; "):
        check(plain, {}, "x.toml")
