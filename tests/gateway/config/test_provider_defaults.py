"""An upstream that names its provider is filled from the row, where the file does not say otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from xenoglot.codec.target import Target
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.extra_endpoints import ModelOverrides
from xenoglot.gateway.config.from_flags import from_flags
from xenoglot.gateway.config.load import check
from xenoglot.gateway.config.provider_defaults import dialect_of, syntax_of, targets_of
from xenoglot.gateway.config.settings import UpstreamSettings
from xenoglot.gateway.routing.router import Router, plans
from xenoglot.providers import catalog

if TYPE_CHECKING:
    from xenoglot.model.json import JSONObject

ENVIRON = {"GROQ_API_KEY": "k", "AZURE_OPENAI_API_KEY": "k", "DEEPSEEK_API_KEY": "k", "MINE": "k"}
GROQ = catalog.get("groq")


def upstream(**said: object) -> UpstreamSettings:
    """The upstream that a file means."""
    return check({"upstreams": {"up": said}}, ENVIRON, "the test").upstreams["up"]


def problems(environ: dict[str, str] | None = None, **said: object) -> list[str]:
    """What is wrong with an upstream."""
    with pytest.raises(ConfigurationError) as caught:
        check({"upstreams": {"up": said}}, ENVIRON if environ is None else environ, "the test")
    return [line.strip().removeprefix("the test: ") for line in str(caught.value).split("\n")]


def test_nothing_else_need_be_said() -> None:
    made = upstream(provider="groq")
    assert replace(made, model_overrides=()) == UpstreamSettings(
        provider="groq",
        dialect="chat",
        base_url="https://api.groq.com/openai/v1",
        key_env="GROQ_API_KEY",
        target=catalog.target_of(GROQ.quirks),
    )
    assert [facts.names for facts in made.model_overrides] == [models.names for models in GROQ.models]


SAID: list[tuple[JSONObject, str, object]] = [
    ({"dialect": "responses"}, "dialect", "responses"),
    ({"base_url": "https://eu.groq.example/v1"}, "base_url", "https://eu.groq.example/v1"),
    ({"key_env": "MINE"}, "key_env", "MINE"),
    ({"auth": "x-api-key"}, "auth", "x-api-key"),
    ({"path": "/ask"}, "path", "/ask"),
    ({"headers": {"x-team": "a"}}, "headers", {"x-team": "a"}),
    ({"text_syntax": "auto"}, "text_syntax", "auto"),
]


@pytest.mark.parametrize(("said", "name", "value"), SAID, ids=[name for _, name, _ in SAID])
def test_what_the_file_says_stands_first(said: JSONObject, name: str, value: object) -> None:
    assert getattr(upstream(provider="groq", **said), name) == value


def test_a_fact_of_the_file_stands_before_those_of_the_row_and_of_its_models() -> None:
    targets = targets_of(upstream(provider="groq", target={"fan_out": False, "lacks": ["seed"]}))
    assert targets.of("unheard-of") == Target(reasoning_field="reasoning", fan_out=False, lacks=("seed",))
    assert targets.of("openai/gpt-oss-120b") == Target(
        reasoning_field="reasoning",
        fan_out=False,
        lacks=("seed",),
        max_tokens_limit=65536,
        images=False,
        efforts=("low", "medium", "high"),
    )


def test_facts_of_a_file_without_a_provider() -> None:
    facts = [{"names": ["big*"], "target": {"images": False}, "text_syntax": "hermes", "context": 9}]
    made = upstream(dialect="chat", base_url="http://h/v1", target={"fan_out": True}, model_overrides=facts)
    row = ModelOverrides(names=("big*",), target=Target(fan_out=True, images=False), text_syntax="hermes", context=9)
    assert made.model_overrides == (row,)
    assert [syntax_of(made.model_overrides, name, "off") for name in ("big-1", "small")] == ["hermes", "off"]


def test_a_name_that_goes_through_is_read_as_its_model_writes() -> None:
    facts = [{"names": ["big*"], "text_syntax": "hermes"}]
    said = {"dialect": "chat", "base_url": "http://h/v1", "model_overrides": facts}
    models = [
        {"name": "fixed", "model": "big-2"},
        {"name": "told", "model": "big-2", "text_syntax": "off"},
        {"name": "*"},
    ]
    config = check({"upstreams": {"up": said}, "embedded": {"enabled": False}, "models": models}, {}, "the test")
    router = Router(plans(config, None))
    routes = {name: router.resolve(name) for name in ("fixed", "told", "big-1", "small")}
    assert {name: route.text_syntax for name, route in routes.items() if route} == {
        "fixed": "hermes",
        "told": "off",
        "big-1": "hermes",
        "small": "off",
    }


def test_facts_of_a_file_stand_before_those_of_the_row() -> None:
    facts = [{"names": ["openai/*"], "target": {"max_tokens_limit": 9}}]
    targets = targets_of(upstream(provider="groq", model_overrides=facts))
    assert [targets.of(name).max_tokens_limit for name in ("openai/gpt-oss-20b", "qwen/qwen3-32b")] == [9, 40960]


def test_settings_stand_in_the_address() -> None:
    said = upstream(provider="azure", settings={"resource": "acme"})
    assert (said.base_url, said.auth) == ("https://acme.openai.azure.com/openai/v1", "api-key")
    environ = {**ENVIRON, "AZURE_RESOURCE_NAME": "from-there"}
    told = check({"upstreams": {"up": {"provider": "azure"}}}, environ, "the test").upstreams["up"]
    assert told.base_url == "https://from-there.openai.azure.com/openai/v1"


def test_paths_are_those_of_the_row() -> None:
    dialect = dialect_of(upstream(provider="deepseek"))
    assert (dialect.name, dialect.path, dialect.models_path) == ("chat", "/chat/completions", "/models")


WHERE = "write it here, or set the environment variable AZURE_RESOURCE_NAME"
RESOURCE = "upstreams.up.settings.resource"
HOST = "letters, digits, `.`, `_` and `-`"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        pytest.param(
            {"provider": "grok"}, ['upstreams.up.provider: found "grok": unknown; did you mean `groq`?'], id="provider"
        ),
        pytest.param({"provider": 1}, ["upstreams.up.provider: found 1; expected str | null"], id="no-name"),
        pytest.param(
            {"provider": "groq", "dialect": "messages"},
            ["upstreams.up.dialect: `groq` does not speak `messages`; it speaks chat, responses"],
            id="dialect",
        ),
        pytest.param(
            {"provider": "azure"},
            [f"{RESOURCE}: required by `azure`, the name of the resource: {WHERE}"],
            id="setting",
        ),
        pytest.param(
            {"provider": "azure", "settings": {"resource": "evil.example/x"}},
            [f"{RESOURCE}: found `evil.example/x`; expected the name of the resource: {HOST}"],
            id="a-setting-that-leads-elsewhere",
        ),
        pytest.param(
            {"provider": "azure", "settings": {"resource": "a", "resourc": "b"}},
            ["upstreams.up.settings.resourc: unknown; did you mean `resource`?"],
            id="setting-misspelt",
        ),
        pytest.param(
            {"provider": "groq", "settings": {"region": "b"}},
            ["upstreams.up.settings.region: `groq` has none"],
            id="no-settings",
        ),
        pytest.param(
            {"dialect": "chat", "base_url": "http://h", "settings": {"region": "b"}},
            ["upstreams.up.settings: of a provider, and none is named"],
            id="settings-of-nobody",
        ),
        pytest.param(
            {"provider": "groq", "target": {"fan_outt": True}},
            ["upstreams.up.target.fan_outt: unknown; did you mean `fan_out`?"],
            id="target",
        ),
        pytest.param(
            {"provider": "groq", "path": "no"},
            ['upstreams.up.path: found "no"; expected a path that begins with `/`, without a query'],
            id="path",
        ),
        pytest.param(
            {"dialect": "gemini", "base_url": "http://h", "path": "/x"},
            ["upstreams.up.path: the paths of gemini cannot be others"],
            id="paths-of-a-dialect-with-two",
        ),
    ],
)
def test_mistakes(said: JSONObject, told: list[str]) -> None:
    assert problems(**said)[-len(told) :] == told


def test_a_key_that_is_not_there() -> None:
    told = ['upstreams.up.key_env: the environment variable "GROQ_API_KEY" is not set']
    assert problems({}, provider="groq") == told


def test_a_flag_names_a_provider() -> None:
    config = from_flags(ENVIRON, upstream="groq")
    assert config.upstreams["upstream"] == upstream(provider="groq")
    assert from_flags(ENVIRON, upstream="groq", dialect="responses").upstreams["upstream"].dialect == "responses"
