"""The configuration: what is meant where nothing is said, and what is said of every mistake, all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot.backends.http.timeouts import Deadlines
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import names
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config import load, settings
from xenoglot.gateway.config.from_flags import from_flags
from xenoglot.gateway.config.load import Config
from xenoglot.gateway.config.local_models import Embedded
from xenoglot.gateway.config.settings import KeySettings, ModelSettings, ServerSettings, UpstreamSettings
from xenoglot.model.request import Sampling
from xenoglot.providers import catalog

if TYPE_CHECKING:
    from pathlib import Path

    from xenoglot.model.json import JSONObject

MAIN = {"dialect": "chat", "base_url": "https://models.example/v1"}
ENVIRON = {
    "MAIN_KEY": "sk-upstream-0123456789",
    "CLIENTS": "first-key second-key\n",
    "EMPTY": " ",
    "STORE": "postgresql://me:secret@db.example/state",
}

WHOLE = """
on_loss = "ignore"

[server]
host = "0.0.0.0"
port = 9000
body_limit = 1048576
ping_interval = 5
drain_seconds = 2.5
allowed_hosts = ["gateway.example"]
allowed_origins = ["https://app.example"]

[keys]
env = ["CLIENTS"]

[upstreams.main]
dialect = "messages"
base_url = "https://models.example/anthropic?x=1"
key_env = "MAIN_KEY"
headers = { "x-team" = "blue" }
deadlines = { connect = 1.0, total = inf }
target = { provider = "example", thinking = "budget", max_tokens_limit = 4096 }

[embedded]
slots = 2
context = 4096

[[models]]
name = "claude-*"
upstream = "main"
model = "large"
defaults = { max_tokens = 512, stop = ["END"] }
on_loss = "refuse"
"""

DIALECTS = ", ".join(names())


def found(plain: JSONObject) -> list[str]:
    """Return the lines that the check of `plain` ends in."""
    with pytest.raises(ConfigurationError) as caught:
        load.check(plain, ENVIRON, "here")
    where, _, text = str(caught.value).partition(": ")
    assert where == "here"
    first, *lines = text.split("\n")
    assert not lines or first == f"{len(lines)} mistakes"
    return [line.removeprefix("  ") for line in lines] or [first]


def test_everything_that_a_file_can_say(tmp_path: Path) -> None:
    path = tmp_path / "xenoglot.toml"
    path.write_text(WHOLE)
    loaded = load.load(path, ENVIRON)
    assert loaded == Config(
        server=ServerSettings(
            host="0.0.0.0",  # noqa: S104  it is what the file says
            port=9000,
            body_limit=1048576,
            ping_interval=5.0,
            drain_seconds=2.5,
            allowed_hosts=("gateway.example",),
            allowed_origins=("https://app.example",),
        ),
        keys=KeySettings(env=("CLIENTS",)),
        upstreams={
            "main": UpstreamSettings(
                dialect="messages",
                base_url="https://models.example/anthropic?x=1",
                key_env="MAIN_KEY",
                headers={"x-team": "blue"},
                deadlines=Deadlines(connect=1.0, total=float("inf")),
                target=Target(provider="example", thinking="budget", max_tokens_limit=4096),
            )
        },
        embedded=Embedded(slots=2, context=4096),
        models=(
            ModelSettings(
                name="claude-*",
                upstream="main",
                model="large",
                defaults=Sampling(max_tokens=512, stop=("END",)),
                on_loss="refuse",
            ),
        ),
        on_loss="ignore",
        secrets=loaded.secrets,
    )
    assert (loaded.client_keys, loaded.backends) == (("first-key", "second-key"), ("main", "embedded"))


def test_nothing_said_serves_the_embedded_model_to_this_machine() -> None:
    checked = load.check({}, {}, "here")
    assert (checked.backends, checked.client_keys, checked.server) == (("embedded",), (), ServerSettings())
    assert checked.server.loopback


def test_s21_secrets_are_not_shown() -> None:
    plain = {"keys": {"env": ["CLIENTS"]}, "upstreams": {"main": MAIN | {"key_env": "MAIN_KEY"}}}
    shown = repr(load.check(plain, ENVIRON, "here"))
    assert ("Secrets(CLIENTS, MAIN_KEY)" in shown, "first-key" in shown, "sk-upstream" in shown) == (True, False, False)


def test_all_mistakes_are_told_at_once() -> None:
    plain = {
        "sever": {},
        "on_loss": "warm",
        "server": {"port": 70000, "hots": "x"},
        "upstreams": {"main": {"dialect": "chatt", "base_url": "models.example", "deadlines": {"idel": 3}}},
        "models": [{"name": "a", "upstream": "mian", "defaults": {"temperature": 3, "max_token": 5}}],
    }
    assert found(plain) == [
        "sever: unknown; did you mean `server`?",
        'on_loss: found "warm"; expected one of ignore, warn, refuse',
        "server.port: found 70000; expected int <= 65535",
        "server.hots: unknown; did you mean `host`?",
        "upstreams.main.deadlines.idel: unknown; did you mean `idle`?",
        "models[0].defaults.max_token: unknown; did you mean `max_tokens`?",
        'upstreams.main.dialect: found "chatt"; did you mean `chat`?',
        'upstreams.main.base_url: found "models.example"; expected http:// or https:// and a host',
        'models[0].upstream: found "mian": unknown; did you mean `main`?',
        "models[0].defaults.temperature: found 3.0; expected 0 to 2",
    ]


@pytest.mark.parametrize(
    ("plain", "line"),
    [
        pytest.param({"server": 3}, "server: found 3; expected a table", id="no-table"),
        pytest.param(
            {"store": {"url": "off"}, "models": [{"name": "x", "preserve_reasoning": True}]},
            'store.url: found "off"; `preserve_reasoning` needs a store',
            id="nowhere-to-preserve",
        ),
        pytest.param(
            {"clients": {"latin": {"reasoning": "never"}}},
            f'clients.latin: found "latin"; expected one of {DIALECTS}',
            id="unknown-client-dialect",
        ),
        pytest.param(
            {"clients": {"chat": {"reasoning": "on_request"}}},
            'clients.chat.reasoning: found "on_request"; requests of `chat` do not ask for reasoning',
            id="reasoning-that-nobody-can-request",
        ),
        pytest.param({"server": {"host": 3}}, "server.host: found 3; expected str", id="wrong-type"),
        pytest.param(
            {"upstreams": {"main": MAIN | {"cache_marks": "auto"}}},
            'upstreams.main.cache_marks: found "auto", and the server caches without marks, as far as is known; leave '
            "it out, or set `target.cache_marks = true` if it takes them",
            id="cache-marks-for-a-server-without-them",
        ),
        pytest.param(
            {"upstreams": {"main": MAIN | {"cache_marks": "auto", "target": {"cache_marks": True}}}},
            None,
            id="cache-marks-for-a-server-that-takes-them",
        ),
        pytest.param(
            {"upstreams": {"main": MAIN | {"cache_marks": "auto", "dialect": "messages"}}},
            None,
            id="cache-marks-for-a-dialect-with-them",
        ),
        pytest.param({"server": {"port": True}}, "server.port: found true; expected int", id="bool-for-int"),
        pytest.param(
            {"server": {"ping_interval": 0}}, "server.ping_interval: found 0; expected float > 0.0", id="no-interval"
        ),
        pytest.param(
            {"zzz": 1},
            "zzz: unknown; expected one of server, keys, tenants, clients, upstreams, embedded, models, store, "
            "batches, fetch, limits, ledger, prices, telemetry, budgets, log, hooks, cache, capture, tools, on_loss",
            id="unknown-without-a-near-match",
        ),
        pytest.param(
            {"server": {"host": "0.0.0.0"}},  # noqa: S104  the case
            'server.host: found "0.0.0.0", which others can reach; that needs client keys: name an environment '
            "variable "
            "that holds them (`--client-key-env`, or `env` under `[keys]`), or listen on 127.0.0.1",
            id="R40-open-to-others-without-a-key",
        ),
        pytest.param(
            {"server": {"allowed_hosts": ["gateway.example", "*"]}},
            'server.allowed_hosts[1]: found "*"; expected a host name, not a pattern',
            id="findings-11-pattern-of-hosts",
        ),
        pytest.param(
            {"upstreams": {"main": MAIN | {"base_url": "http://models.example:0/v1"}}},
            'upstreams.main.base_url: found "http://models.example:0/v1"; expected a port from 1 to 65535',
            id="findings-11-port-0",
        ),
        pytest.param(
            {"server": {"allowed_origins": ["app.example"]}},
            'server.allowed_origins[0]: found "app.example"; '
            "expected an origin in lower case like https://app.example:8443",
            id="no-origin",
        ),
        pytest.param(
            {"server": {"allowed_origins": ["http://[::1"]}},
            'server.allowed_origins[0]: found "http://[::1"; '
            "expected an origin in lower case like https://app.example:8443",
            id="no-origin-and-no-url",
        ),
        pytest.param(
            {"keys": {"env": ["NOWHERE"]}}, 'keys.env[0]: the environment variable "NOWHERE" is not set', id="no-key"
        ),
        pytest.param(
            {"keys": {"env": ["EMPTY"]}}, 'keys.env[0]: the environment variable "EMPTY" is empty', id="empty"
        ),
        pytest.param(
            {"upstreams": {"main": MAIN | {"key_env": "NOWHERE"}}},
            'upstreams.main.key_env: the environment variable "NOWHERE" is not set',
            id="no-upstream-key",
        ),
        pytest.param(
            {"upstreams": {"main": MAIN | {"key_env": "CLIENTS"}}}, None, id="blanks-in-an-upstream-key-are-part-of-it"
        ),
        pytest.param(
            {"upstreams": {"main": {"dialect": "chat"}}},
            "upstreams.main.base_url: required, and not there",
            id="required",
        ),
        pytest.param(
            {"upstreams": {"main": MAIN | {"base_url": "https://me:secret@models.example"}}},
            "upstreams.main.base_url: holds a user or password; a key goes into an environment variable, named in "
            "`key_env`",
            id="userinfo",
        ),
        pytest.param(
            {"upstreams": {"main": MAIN | {"base_url": "ftp://models.example"}}},
            'upstreams.main.base_url: found "ftp://models.example"; expected http:// or https:// and a host',
            id="scheme",
        ),
        pytest.param(
            {"upstreams": {"main": MAIN | {"base_url": "http://models.example:99999"}}},
            "upstreams.main.base_url: not a URL: Port out of range 0-65535",
            id="port",
        ),
        pytest.param(
            {"upstreams": {"main": MAIN | {"headers": {"Authorization": "Bearer x"}}}},
            "upstreams.main.headers.Authorization: a key does not stand in the file: name the environment variable "
            "that holds it in `key_env`",
            id="key-in-the-file",
        ),
        pytest.param(
            {"upstreams": {"main": MAIN | {"headers": {"x-a": "1\r\nx-b: 2"}}}},
            "upstreams.main.headers.x-a: not a header of printable ASCII characters",
            id="R60-header-injection",
        ),
        pytest.param(
            {"upstreams": {"main": MAIN | {"headers": {"Host": "other.example"}}}},
            "upstreams.main.headers.Host: belongs to the connection, and is written by the gateway",
            id="framing-header",
        ),
        pytest.param(
            {"upstreams": {"main": MAIN | {"headers": {"Expect": "other.example"}}}},
            "upstreams.main.headers.Expect: belongs to the connection, and is written by the gateway",
            id="expect-framing-header",
        ),
        pytest.param(
            {"upstreams": {"main": MAIN | {"headers": {"Keep-Alive": "other.example"}}}},
            "upstreams.main.headers.Keep-Alive: belongs to the connection, and is written by the gateway",
            id="keep-alive-framing-header",
        ),
        pytest.param(
            {"upstreams": {"main": MAIN | {"deadlines": {"idle": 0.0}}}},
            "upstreams.main.deadlines.idle: found 0.0; expected more than 0 seconds",
            id="no-time",
        ),
        pytest.param(
            {"upstreams": {"embedded": MAIN}},
            'upstreams.embedded: found "embedded"; a name is letters, digits and `.`, `_`, `-`, and not `embedded`',
            id="reserved-name",
        ),
        pytest.param(
            {"upstreams": {"a b": MAIN}},
            'upstreams."a b": found "a b"; a name is letters, digits and `.`, `_`, `-`, and not `embedded`',
            id="unlawful-name",
        ),
        pytest.param(
            {"upstreams": {"a": MAIN, "b": MAIN}},
            "models: with more than one upstream, say which models each of them answers",
            id="nobody-knows-who-answers",
        ),
        pytest.param(
            {"embedded": {"models": {"a*": {"gguf": "a.gguf"}}}},
            'embedded.models."a*": found "a*"; expected a name of printable characters without `*`, of no other',
            id="K21-embedded-pattern",
        ),
        pytest.param(
            {"embedded": {"name": "a", "models": {"a": {"gguf": "a.gguf"}}}},
            'embedded.models.a: found "a"; expected a name of printable characters without `*`, of no other',
            id="K21-embedded-twice",
        ),
        pytest.param(
            {"embedded": {"models": {"a": {}}}}, "embedded.models.a.gguf: required, and not there", id="K21-no-file"
        ),
        pytest.param(
            {"embedded": {"text_syntax": "auto", "models": {"a": {"gguf": "a.gguf", "text_syntax": "herm"}}}},
            'embedded.models.a.text_syntax: found "herm": unknown; did you mean `hermes`?',
            id="embedded-syntax",
        ),
        pytest.param(
            {"embedded": {"enabled": False}},
            "upstreams: nothing answers: name an upstream, or leave the embedded model enabled",
            id="nothing-answers",
        ),
        pytest.param(
            {"upstreams": {"a": MAIN, "b": MAIN}, "models": [{"name": "x"}]},
            "models[0].upstream: required where there is more than one: a, b",
            id="which-upstream",
        ),
        pytest.param(
            {"store": {"url": "mysql://db.example"}},
            "store.url: expected one of sqlite, sqlite:///PATH, postgresql://..., memory, off",
            id="no-store",
        ),
        pytest.param(
            {"store": {"url": "postgresql://me:secret@db.example/state"}},
            "store.url: holds a user or password; name the environment variable with the URL in `url_env`",
            id="S21-password-in-the-file",
        ),
        pytest.param({"store": {"url_env": "STORE"}}, None, id="store-in-the-environment"),
        pytest.param(
            {"store": {"url_env": "CLIENTS"}},
            "store.url_env: expected one of sqlite, sqlite:///PATH, postgresql://..., memory, off",
            id="no-store-in-the-environment",
        ),
        pytest.param(
            {"store": {"url_env": "NOWHERE"}},
            'store.url_env: the environment variable "NOWHERE" is not set',
            id="no-such-variable",
        ),
        pytest.param({"store": {"max_bytes": 0}}, "store.max_bytes: found 0; expected int >= 1", id="nothing-fits"),
        pytest.param(
            {"models": [{"name": "x"}, {"name": "y"}, {"name": "x"}]},
            'models[2].name: found "x", which is models[0] already',
            id="twice",
        ),
        pytest.param(
            {"models": [{"name": "x", "model": "y-*"}]},
            'models[0].model: found "y-*"; only `name` can be a pattern',
            id="pattern-as-a-target",
        ),
        pytest.param(
            {"models": [{"name": "x\n"}]},
            'models[0].name: found "x?"; expected a name of printable characters',
            id="C22-newline-in-a-name",
        ),
        pytest.param(
            {"models": [{"name": "x", "defaults": {"temperature": float("nan")}}]},
            "models[0].defaults.temperature: found nan; expected 0 to 2",
            id="C14-nan",
        ),
    ],
)
def test_each_mistake_names_its_path(plain: JSONObject, line: str | None) -> None:
    if line is None:
        load.check(plain, ENVIRON, "here")
    else:
        assert "\n".join(found(plain)) == line


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("LOCALHOST.", True),
        ("0.0.0.0", False),  # noqa: S104  the case
        ("::", False),
        ("", False),
        ("192.168.1.2", False),
        ("localhost.example", False),
    ],
)
def test_loopback(host: str, *, loopback: bool) -> None:
    assert settings.is_loopback(host) is loopback


def test_flags_for_an_upstream_and_its_model() -> None:
    checked = from_flags(
        ENVIRON,
        upstream="http://127.0.0.1:11434/v1",
        dialect="chat",
        model="llama",
        key_env="MAIN_KEY",
        client_key_env="CLIENTS",
        host="::",
        port=0,
    )
    assert checked == Config(
        server=ServerSettings(host="::", port=0),
        keys=KeySettings(env=("CLIENTS",)),
        upstreams={
            "upstream": UpstreamSettings(dialect="chat", base_url="http://127.0.0.1:11434/v1", key_env="MAIN_KEY"),
        },
        models=(
            ModelSettings(name="llama", upstream="upstream", model="llama"),
            ModelSettings(name="*", upstream="upstream", model="llama"),
        ),
        secrets=checked.secrets,
    )


def test_flags_are_named_as_flags() -> None:
    with pytest.raises(ConfigurationError) as caught:
        from_flags({}, upstream="x", dialect="chatt", model="a", key_env="NO", client_key_env="NEITHER", port=-1)
    assert str(caught.value).split("\n") == [
        "the command line: 5 mistakes",
        f'  --upstream: found "x": unknown; expected one of {", ".join(catalog.names())}',
        "  --port: found -1; expected int >= 0",
        '  --client-key-env: the environment variable "NEITHER" is not set',
        '  --key-env: the environment variable "NO" is not set',
        '  --dialect: found "chatt"; did you mean `chat`?',
    ]


def test_a_flag_that_is_no_url() -> None:
    with pytest.raises(ConfigurationError) as caught:
        from_flags({}, upstream="//x")
    assert str(caught.value) == 'the command line: --upstream: found "//x"; expected http:// or https:// and a host'


def test_flags_of_an_upstream_need_one() -> None:
    with pytest.raises(ConfigurationError) as caught:
        from_flags({}, model="a", dialect="chat")
    expected = "--dialect, --model: no server is chosen; name one with `--upstream URL` or `--upstream PROVIDER`"
    assert str(caught.value) == expected


def test_a_syntax_is_that_of_the_upstream_or_of_the_model_file() -> None:
    told = from_flags({}, gguf="a.gguf", text_syntax="hermes")
    assert told.embedded == Embedded(gguf="a.gguf", text_syntax="hermes")
    both = from_flags({}, gguf="a.gguf", upstream="http://127.0.0.1:9", text_syntax="hermes")
    assert (both.embedded, both.upstreams["upstream"].text_syntax) == (Embedded(gguf="a.gguf"), "hermes")
    with pytest.raises(ConfigurationError, match="--text-syntax: no server is chosen"):
        from_flags({}, text_syntax="hermes")
    with pytest.raises(ConfigurationError, match=r"--text-syntax: found .herms.: unknown; did you mean .hermes."):
        from_flags({}, gguf="a.gguf", text_syntax="herms")


def test_a_command_line_stands_before_the_file(tmp_path: Path) -> None:
    path = tmp_path / "xenoglot.toml"
    path.write_text("[server]\nport = 9000\ndrain_seconds = 1\n")
    loaded = load.load(path, {}, host="::1", port=9001)
    assert loaded.server == ServerSettings(host="::1", port=9001, drain_seconds=1.0)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(None, "cannot be read: No such file or directory", id="missing"),
        pytest.param(b"a = ", "is not TOML: Invalid value (at end of document)", id="no-toml"),
        pytest.param(
            b"\xff", "is not TOML: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte", id="no-utf8"
        ),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, content: bytes | None, problem: str) -> None:
    path = tmp_path / "xenoglot.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        load.load(path, {})
    assert str(caught.value) == f"`{path}` {problem}"
