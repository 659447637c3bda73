"""`xenoglot init`: what it asks, what it writes, and what it leaves alone."""

from __future__ import annotations

import os
import pty
import stat
import subprocess
import sys
import tomllib
from argparse import Namespace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.gateway.running_gateway import TIMEOUT
from tests.matrix.dialect_server import DialectServer
from xenoglot import dialect_registry as dialects
from xenoglot.cli import main
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.load import load
from xenoglot.launching.first_config import InitAnswers, UpstreamChoice, render_config, validate_answers
from xenoglot.launching.init import InitPrompt, answers_of
from xenoglot.providers import catalog

if TYPE_CHECKING:
    from pathlib import Path

FLAGS = ("upstream", "dialect", "key_env", "model", "embedded", "port", "client_key_env", "store")
KEY = "sk-the-key-itself"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, without anybody's keys."""
    monkeypatch.chdir(tmp_path)
    for name in catalog.names():
        monkeypatch.delenv(catalog.get(name).key_env or "NONE", raising=False)
    for name in ("XENOGLOT_UPSTREAM", "XENOGLOT_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def flags(**said: object) -> Namespace:
    """Return flags, most of them not said."""
    return Namespace(**(dict.fromkeys(FLAGS) | {"setting": []} | said))


def run_init(answers: list[str], environ: dict[str, str], **said: object) -> tuple[InitAnswers, list[str], list[str]]:
    """Return the answers, the questions, and what was told between them."""
    questions: list[str] = []
    told: list[str] = []

    def ask(question: str) -> str:
        questions.append(question)
        if not answers:
            raise EOFError
        return answers.pop(0)

    return answers_of(flags(**said), InitPrompt(ask, told.append, environ)), questions, told


def test_the_usual_answers_make_the_embedded_model() -> None:
    made, questions, told = run_init([""] * 4, {})
    assert made == InitAnswers()
    assert [question.rpartition("[")[2] for question in questions] == ["embedded] ", "8080] ", "none] ", "sqlite] "]
    assert told[0].startswith("Providers: anthropic, azure,")


def test_a_provider_whose_key_is_there_is_the_usual_one() -> None:
    answers = ["", "", "9000", "no", "fast slow", "yes", "CLIENTS", "off"]
    made, questions, _ = run_init(answers, {"GROQ_API_KEY": KEY})
    who = UpstreamChoice(name="groq", provider="groq", key_env="GROQ_API_KEY")
    assert made == InitAnswers(upstream=who, models=("fast", "slow"), port=9000, client_key_env="CLIENTS", store="off")
    assert KEY not in "".join(questions) + render_config(made)


def test_wrong_answers_are_told_and_asked_again() -> None:
    answers = ["opnai", "http://127.0.0.1:9", "chatt", "messages", KEY, "MY_KEY"]
    answers += ["99999", "8081", "*", "maybe", "n", "", "postgresql://u:p@h/d", "memory"]
    made, _, told = run_init(answers, {})
    who = UpstreamChoice(name="main", base_url="http://127.0.0.1:9", dialect="messages", key_env="MY_KEY")
    assert made == InitAnswers(upstream=who, models=("*",), embedded=False, port=8081, store="memory")
    assert [text for text in told if KEY in text] == []
    assert [text.split(", completions")[0] for text in told[1:]] == [
        "there is no provider `opnai`; did you mean `openai`?",
        'found "chatt"; did you mean `chat`?',
        "expected the name of an environment variable; the file never contains a key itself",
        "expected a number up to 65535",
        "expected yes or no",
        "contains a user or password; put the URL in an environment variable, and set `url_env` to its name",
    ]


def test_the_models_of_a_server_are_shown() -> None:
    with DialectServer(dialects.get("chat")) as speaker:
        _, _, told = run_init([speaker.url, "", "", "", "yes", "", "", "", ""], {})
    assert "Models: large." in told
    _, _, told = run_init(["http://127.0.0.1:9", "", "", "", "", "", "", "", ""], {})
    assert told[-1].startswith("Models cannot be listed: ")


def test_a_setting_is_asked_for() -> None:
    made, questions, _ = run_init(["azure", "mine", "", "", "*", "", "", ""], {})
    assert made.upstream is not None
    assert made.upstream.settings == {"resource": "mine"}
    assert questions[1] == "Azure OpenAI needs the name of the resource: [] "
    made, _, _ = run_init(["azure", "", "", "*", "", "", ""], {"AZURE_RESOURCE_NAME": "found"})
    assert made.upstream is not None
    assert made.upstream.settings == {}


def test_no_more_answers_write_nothing() -> None:
    with pytest.raises(ConfigurationError, match="no file written"):
        run_init([""], {})


def test_flags_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--yes", "--upstream", "mistral", "--model", "a*", "--model", "b", "--port", "9"]) == 0
    path = here / "xenoglot.toml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    config = load(path, {"MISTRAL_API_KEY": KEY})
    assert (config.server.port, [model.name for model in config.models], config.has_embedded) == (9, ["a*", "b"], False)
    assert capsys.readouterr().out.splitlines() == [
        "Wrote xenoglot.toml. Start the gateway with `xenoglot serve`.",
        "Set MISTRAL_API_KEY first: it must contain the API key.",
    ]


@pytest.mark.parametrize(
    ("flags", "environ", "command"),
    [
        pytest.param(["--output", "mine.toml"], {}, "xenoglot serve --config mine.toml", id="another-name"),
        pytest.param([], {"XENOGLOT_UPSTREAM": "groq"}, "xenoglot serve --config xenoglot.toml", id="a-variable"),
    ],
)
def test_the_command_uses_the_file_that_was_written(
    flags: list[str],
    environ: dict[str, str],
    command: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert main(["init", "--yes", "--upstream", "ollama", *flags]) == 0
    assert f"Start the gateway with `{command}`." in capsys.readouterr().out


def test_a_file_that_is_there_is_left_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "mine.toml").write_text("mine")
    assert main(["init", "--yes", "--output", "mine.toml"]) == 2
    assert (here / "mine.toml").read_text() == "mine"
    assert (
        "`mine.toml` already exists: choose another file with `--output`, or overwrite it with `--force`"
        in capsys.readouterr().err
    )
    assert main(["init", "--yes", "--output", "mine.toml", "--force"]) == 0
    assert tomllib.loads((here / "mine.toml").read_text())["embedded"] == {"enabled": True}
    assert [path.name for path in here.iterdir()] == ["mine.toml"]


def test_in_a_terminal(here: Path) -> None:
    """A person presses the return key until it is done."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "xenoglot.cli", "init"]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True) as process:
        os.close(theirs)
        os.write(ours, b"\n" * 4)
        assert process.wait(TIMEOUT) == 0
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert "Which port should the gateway listen on? [8080] " in shown
    assert "Wrote xenoglot.toml." in shown
    assert load(here / "xenoglot.toml", {}).has_embedded


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param([], "standard input is not a terminal: set options by flags", id="no-terminal"),
        pytest.param(["--yes", "--upstream", "x"], "--upstream: there is no provider `x`", id="provider"),
        pytest.param(["--yes", "--upstream", "azure"], "--setting resource=...: Azure OpenAI needs", id="setting"),
        pytest.param(["--yes", "--upstream", "azure", "--setting", "resource=a/b"], "xenoglot.toml: ", id="value"),
        pytest.param(["--yes", "--upstream", "groq", "--dialect", "gemini"], "`groq` does not speak", id="dialect"),
        pytest.param(["--yes", "--upstream", "groq", "--key-env", KEY], "--key-env: expected the name of", id="key"),
        pytest.param(["--yes", "--upstream", f"http://h/v1?key={KEY}"], "upstreams.main.base_url: looks", id="query"),
        pytest.param(["--yes", "--upstream", f"http://u:{KEY}@h"], "xenoglot.toml: upstreams.main.base_url", id="user"),
        pytest.param(["--yes", "--port", "-1"], "--port: expected a number up to 65535", id="port"),
        pytest.param(["--yes", "--port", "x"], "--port: expected a number up to 65535", id="no-port"),
        pytest.param(["--yes", "--store", "mysql://h"], "--store: expected one of sqlite", id="store"),
        pytest.param(["--yes", "--output", "none/x.toml"], "`none/x.toml` cannot be written: No such", id="folder"),
    ],
)
def test_a_mistake_writes_nothing(
    arguments: list[str], problem: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"xenoglot: {problem}")
    assert KEY not in err
    assert list(here.iterdir()) == []


TEXT = some.text(some.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(some.lists(TEXT.filter(str.isprintable), max_size=3, unique=True), TEXT, some.booleans())
def test_whatever_is_said_is_what_the_file_says(models: list[str], url: str, embedded: bool) -> None:  # noqa: FBT001  drawn
    """No name or address gets out of its quotes."""
    answers = InitAnswers(
        upstream=UpstreamChoice(name="main", base_url=f"http://{url}", dialect="chat"),
        models=tuple(models),
        embedded=embedded,
    )
    plain = tomllib.loads(render_config(answers))
    assert plain["upstreams"] == {"main": {"dialect": "chat", "base_url": f"http://{url}"}}
    assert [model["name"] for model in plain.get("models", [])] == ([] if "*" in models else models)
    assert plain["embedded"] == {"enabled": embedded}


def test_every_provider_makes_a_file_that_is_right() -> None:
    for name in catalog.names():
        row = catalog.get(name)
        settings = {one: "value" for one, setting in row.settings.items() if not setting.default}
        who = UpstreamChoice(name="main", provider=name, settings=settings, key_env=row.key_env)
        assert validate_answers(InitAnswers(upstream=who), {}, name).upstreams["main"].provider == name
