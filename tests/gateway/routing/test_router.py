"""Who answers to which name, under which name."""

from __future__ import annotations

import pytest

from xenoglot.gateway.config.load import Config
from xenoglot.gateway.config.local_models import Embedded, EmbeddedModel
from xenoglot.gateway.config.settings import ModelSettings, UpstreamSettings
from xenoglot.gateway.routing.router import Route, Router, apply_defaults, plans, single
from xenoglot.model.request import Request, Sampling

ONE = {"main": UpstreamSettings(dialect="chat", base_url="http://one.example")}
TWO = {**ONE, "other": UpstreamSettings(dialect="chat", base_url="http://two.example")}
OWN = "SmolLM2-135M-Instruct"

DEFAULTS = Sampling(max_tokens=64, temperature=0.5)
NAMED = Config(
    upstreams=TWO,
    models=(
        ModelSettings(name="claude-*", upstream="main"),
        ModelSettings(name="claude-*-haiku*", upstream="other", model="never reached"),
        ModelSettings(name="claude-small", upstream="other", model="small", defaults=DEFAULTS, on_loss="refuse"),
        ModelSettings(name="*-mini", upstream="other", model="mini"),
    ),
)

BESIDE = Config(
    upstreams=ONE,
    embedded=Embedded(models={"coder": EmbeddedModel(gguf="/models/coder.gguf")}),
    models=(ModelSettings(name="claude-*", upstream="embedded", model="coder", defaults=DEFAULTS),),
)


@pytest.mark.parametrize(
    ("config", "own", "model", "route"),
    [
        pytest.param(
            Config(upstreams=ONE), None, "any", Route(backend="main", model="any", named=True), id="lone-upstream"
        ),
        pytest.param(Config(), OWN, OWN, Route(backend="embedded", model=OWN), id="embedded-by-its-name"),
        pytest.param(
            Config(), OWN, "gpt-4o", Route(backend="embedded", model=OWN, substituted=True), id="embedded-instead"
        ),
        pytest.param(
            Config(upstreams=ONE, embedded=Embedded()),
            OWN,
            OWN,
            Route(backend="embedded", model=OWN),
            id="both-embedded",
        ),
        pytest.param(
            Config(upstreams=ONE, embedded=Embedded()),
            OWN,
            "any",
            Route(backend="main", model="any", named=True),
            id="both-other",
        ),
        pytest.param(
            NAMED,
            None,
            "claude-small",
            Route(backend="other", model="small", defaults=DEFAULTS, on_loss="refuse"),
            id="exact-before-patterns",
        ),
        pytest.param(
            NAMED,
            None,
            "claude-3-haiku",
            Route(backend="main", model="claude-3-haiku", named=True),
            id="first-pattern-wins",
        ),
        pytest.param(NAMED, None, "o9-mini", Route(backend="other", model="mini"), id="pattern-with-a-target"),
        pytest.param(NAMED, None, "o9", None, id="nobody"),
        pytest.param(NAMED, None, "CLAUDE-small", None, id="case-counts"),
        pytest.param(Config(upstreams=ONE), None, "", None, id="C21-empty"),
        pytest.param(Config(upstreams=ONE), None, "x" * 257, None, id="C21-long"),
        pytest.param(Config(upstreams=ONE), None, "a\r\nb", None, id="C22-newline"),
        pytest.param(
            Config(upstreams=ONE), None, "../a/b", Route(backend="main", model="../a/b", named=True), id="S13-path-like"
        ),
        pytest.param(
            Config(models=(ModelSettings(name="tiny", defaults=DEFAULTS),)),
            OWN,
            "tiny",
            Route(backend="embedded", model=OWN, defaults=DEFAULTS),
            id="alias-of-the-embedded-model",
        ),
        pytest.param(
            Config(models=(ModelSettings(name="tiny"),)), OWN, "other", None, id="named-models-end-substitution"
        ),
        pytest.param(BESIDE, OWN, "coder", Route(backend="embedded/models/coder", model="coder"), id="second-embedded"),
        pytest.param(BESIDE, OWN, OWN, Route(backend="embedded", model=OWN), id="usual-beside-a-second"),
        pytest.param(
            BESIDE,
            OWN,
            "claude-3",
            Route(backend="embedded/models/coder", model="coder", defaults=DEFAULTS),
            id="pattern-to-the-second-embedded",
        ),
    ],
)
def test_resolve(config: Config, own: str | None, model: str, route: Route | None) -> None:
    assert Router(plans(config, own)).resolve(model) == route


@pytest.mark.parametrize(
    ("upstream", "model", "preserved"),
    [(False, None, False), (True, None, True), (True, False, False), (False, True, True)],
)
def test_a_model_preserves_as_it_says_or_as_its_upstream_does(
    *, upstream: bool, model: bool | None, preserved: bool
) -> None:
    main = UpstreamSettings(dialect="chat", base_url="http://upstream.invalid/v1", preserve_reasoning=upstream)
    config = Config(
        upstreams={"main": main}, models=(ModelSettings(name="m", upstream="main", preserve_reasoning=model),)
    )
    route = Router(plans(config, None)).resolve("m")
    assert route is not None
    assert route.preserve == preserved


def test_a_lone_upstream_preserves_as_it_says() -> None:
    main = UpstreamSettings(dialect="chat", base_url="http://upstream.invalid/v1", preserve_reasoning=True)
    config = Config(upstreams={"main": main}, embedded=Embedded(enabled=False))
    assert Router(plans(config, None)).resolve("any") == Route(backend="main", model="any", named=True, preserve=True)


def test_a_name_given_twice_goes_to_the_first() -> None:
    router = Router((single("a", "first"), single("a", "second")))
    assert router.resolve("a") == Route(backend="first", model="a")


def test_defaults_stand_only_where_nothing_is_said() -> None:
    route = Route(backend="main", model="m", defaults=Sampling(max_tokens=64, temperature=0.0, stop=("END",)))
    request = Request(model="m", sampling=Sampling(temperature=1.5, seed=7))
    expected = Request(model="m", sampling=Sampling(max_tokens=64, temperature=1.5, seed=7, stop=("END",)))
    assert apply_defaults(request, route) == expected


def test_defaults_that_change_nothing_leave_the_request_itself() -> None:
    request = Request(model="m", sampling=Sampling(max_tokens=1))
    assert apply_defaults(request, Route(backend="main", model="m", defaults=Sampling(max_tokens=64))) is request
