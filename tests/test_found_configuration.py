"""The configuration of a user who names none: files that are found, variables, the only model, trust."""

from __future__ import annotations

import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.gateway.running_gateway import TIMEOUT
from xenoglot.testing.canned import MODEL, answers
from xenoglot.testing.script import RequestMatcher, Respond, ScriptRule
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Generator

XENOGLOT = str(Path(sys.executable).with_name("xenoglot"))
USING = "xenoglot: using xenoglot.toml of this directory: "


class Done(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str


class User(NamedTuple):
    """Someone with an empty home, at work in a folder below it."""

    home: Path

    @property
    def work(self) -> Path:
        """The current directory."""
        return self.home / "work"

    @property
    def own_file(self) -> Path:
        """The user's own configuration file."""
        return self.home / ".config" / "xenoglot" / "config.toml"

    def does(self, *arguments: str, given: str = "", **environ: str) -> Done:
        """Run a command to its end, with no other variables than these and nothing but `given` on standard input."""
        done = subprocess.run(
            [XENOGLOT, *arguments],
            cwd=self.work,
            env={"HOME": str(self.home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **environ},
            input=given,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def writes(self, path: Path, text: str) -> None:
        """Write a file, its folders too."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture
def user(tmp_path: Path) -> User:
    """A new user."""
    made = User(tmp_path)
    made.work.mkdir()
    return made


@pytest.fixture
def server() -> Generator[Upstream]:
    """A server with one model."""
    with Upstream(*answers("chat", text="Hello.").rules()) as served:
        yield served


def several(more: bytes = b'{"id": "small"}') -> Upstream:
    """Return a server that lists two models."""
    listed = Respond(body=b'{"object": "list", "data": [{"id": "large"}, %s]}' % more)
    listing = ScriptRule(steps=(listed,), when=RequestMatcher(method="GET", path="/v1/models"))
    return Upstream(listing, *answers("chat", text="Hello.").rules())


def to(server: Upstream, more: str = "") -> str:
    """Return a file that names a server of this machine."""
    return f'[upstreams.main]\ndialect = "chat"\nbase_url = "{server.url}"\n{more}'


def using(server: Upstream) -> str:
    """Return the line that says so."""
    return f"{USING}{server.url}\n"


def models(server: Upstream) -> list[str]:
    """Return the models that were asked for."""
    return [request.json["model"] for request in server.requests if request.method == "POST"]


# -- where it comes from


def test_variables_name_server_and_model(user: User, server: Upstream) -> None:
    variables = {"XENOGLOT_UPSTREAM": server.url, "XENOGLOT_MODEL": "m"}
    assert user.does("ask", "Hi", **variables) == Done(0, "Hello.\n", "")
    assert models(server) == ["m"]


def test_a_file_of_the_directory_is_used_and_said(user: User, server: Upstream) -> None:
    user.writes(user.work / "xenoglot.toml", to(server))
    assert user.does("ask", "Hi", "--model", "m") == Done(0, "Hello.\n", using(server))
    assert models(server) == ["m"]


def test_the_file_of_the_user_is_used_and_needs_no_word(user: User, server: Upstream) -> None:
    user.writes(user.own_file, to(server))
    assert user.does("ask", "Hi", XENOGLOT_MODEL="m") == Done(0, "Hello.\n", "")
    moved = user.home / "elsewhere"
    user.writes(moved / "xenoglot" / "config.toml", to(server, '[[models]]\nname = "fast"\nmodel = "large"\n'))
    assert user.does("ask", "Hi", XDG_CONFIG_HOME=str(moved)) == Done(0, "Hello.\n", "")
    assert models(server) == ["m", "large"]


def test_the_nearest_applies(user: User) -> None:
    """Flags, the variable of a server, the variable of a file, the file of the directory, the file of the user."""
    with several() as flag, several() as variable, several() as named, several() as local, several() as own:
        user.writes(user.own_file, to(own))
        user.writes(user.work / "xenoglot.toml", to(local))
        user.writes(user.home / "named.toml", to(named))
        ask, config = ("ask", "Hi", "--model", "m"), {"XENOGLOT_CONFIG": str(user.home / "named.toml")}
        assert user.does(*ask, "--upstream", flag.url, XENOGLOT_UPSTREAM=variable.url, **config).err == ""
        assert user.does(*ask, XENOGLOT_UPSTREAM=variable.url, **config).err == ""
        assert user.does(*ask, **config).err == ""
        assert user.does(*ask).err == using(local)
        (user.work / "xenoglot.toml").unlink()
        assert user.does(*ask).err == ""
        assert [models(one) for one in (flag, variable, named, local, own)] == [["m"]] * 5


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("ask", "Hi"), id="ask"),
        pytest.param(("chat", "--plain"), id="chat"),
        pytest.param(("agent", "Hi", "--no-session"), id="agent"),
        pytest.param(("batch", "in.jsonl", "out.jsonl"), id="batch"),
        pytest.param(("run", "sdk", "--", "true"), id="run"),
    ],
)
def test_every_command_that_uses_a_model_finds_it(user: User, server: Upstream, command: tuple[str, ...]) -> None:
    user.writes(user.work / "in.jsonl", '{"messages": [{"role": "user", "content": "Hi"}]}\n')
    for flags, said in (("--config", str(user.home / "named.toml")), ""), ((), USING):
        user.writes(user.home / "named.toml" if flags else user.work / "xenoglot.toml", to(server))
        at = command.index("--") if "--" in command else len(command)
        done = user.does(*command[:at], *flags, *command[at:])
        assert (done.code, done.err.startswith(said)) == (0, True), done
        (user.work / "out.jsonl").unlink(missing_ok=True)
    assert set(models(server)) <= {MODEL}


def test_models_and_serve_find_it(user: User, server: Upstream) -> None:
    user.writes(user.work / "xenoglot.toml", to(server))
    assert user.does("models") == Done(0, f"{MODEL}\n", using(server))
    assert f'"base_url": "{server.url}"' in user.does("serve", "--print-config").out


def test_a_flag_beside_a_found_file_names_it(user: User, server: Upstream) -> None:
    user.writes(user.work / "xenoglot.toml", to(server))
    told = "xenoglot: `--dialect` and `xenoglot.toml` exclude each other: write it into the file\n"
    assert user.does("ask", "Hi", "--model", "m", "--dialect", "chat") == Done(2, "", using(server) + told)


# -- which model


def test_the_only_model_of_a_server_is_taken(user: User, server: Upstream) -> None:
    assert user.does("ask", "Hi", "--upstream", server.url) == Done(0, "Hello.\n", "")
    assert models(server) == [MODEL]


def test_of_several_models_one_has_to_be_named(user: User) -> None:
    with several() as server:
        told = "xenoglot: the server has 2 models: name one with `--model` or `XENOGLOT_MODEL`: large, small\n"
        assert user.does("ask", "Hi", "--upstream", server.url) == Done(2, "", told)
        assert models(server) == []


def test_a_model_for_embeddings_is_none_to_choose_from(user: User) -> None:
    with several(b'{"id": "small", "architecture": {"output_modalities": ["embeddings"]}}') as server:
        assert user.does("ask", "Hi", "--upstream", server.url) == Done(0, "Hello.\n", "")
        assert models(server) == ["large"]


@pytest.mark.parametrize("command", [("ask", "Hi"), ("chat", "--plain")], ids=lambda command: command[0])
def test_the_first_model_of_a_file_is_taken(user: User, command: tuple[str, ...]) -> None:
    with several() as server:
        named = "".join(f'[[models]]\nname = "{name}"\n' for name in ("claude-*", "fast", "other"))
        user.writes(user.own_file, to(server, named))
        assert user.does(*command, given="Hi\n").code == 0
        assert models(server) == ["fast"]


def test_lines_of_a_batch_without_a_model_get_the_only_one(user: User, server: Upstream) -> None:
    line = '{"messages": [{"role": "user", "content": "Hi"}]}'
    user.writes(user.work / "in.jsonl", f"{line}\n{line}\n")
    assert user.does("batch", "in.jsonl", "out.jsonl", "--upstream", server.url).code == 0
    assert models(server) == [MODEL, MODEL]
    assert [one.method for one in server.requests].count("GET") == 1
    with several() as other:
        done = user.does("batch", "in.jsonl", "none.jsonl", "--upstream", other.url)
        assert (done.code, "the server has 2 models" in done.err, models(other)) == (2, True, [])


def test_the_built_in_model_has_a_name_too(user: User) -> None:
    assert user.does("serve", "--print-config", "--model", "smollm2-135m-instruct").code == 0


def test_the_provider_of_a_known_model_is_suggested(user: User) -> None:
    told = "--model: no server is chosen; did you mean `--model openai/gpt-4o`? Else name one with `--upstream URL` or"
    assert told in user.does("ask", "Hi", "--model", "gpt-4o").err


def test_a_model_may_name_its_provider(user: User) -> None:
    told = 'the environment variable "OPENAI_API_KEY" is not set'
    assert told in user.does("ask", "Hi", "--model", "openai/gpt-x").err
    assert told in user.does("ask", "Hi", XENOGLOT_MODEL="openai/gpt-x").err
    shown = user.does("serve", "--print-config", "--model", "openai/gpt-x", OPENAI_API_KEY="sk-secret").out
    assert ('"base_url": "https://api.openai.com/v1"' in shown, '"model": "gpt-x"' in shown) == (True, True)
    assert "sk-secret" not in shown


def test_a_slash_is_part_of_the_name_where_a_server_is_chosen(user: User, server: Upstream) -> None:
    user.writes(user.own_file, to(server))
    assert user.does("ask", "Hi", "--model", "openai/gpt-oss-120b").code == 0
    assert user.does("ask", "Hi", "--model", "openai/gpt-oss-120b", "--upstream", server.url).code == 0
    assert models(server) == ["openai/gpt-oss-120b"] * 2


# -- a hostile repository


HOSTILE = [
    pytest.param('[upstreams.a]\ndialect = "chat"\nbase_url = "https://evil.example/v1"', "base_url", id="host"),
    pytest.param(
        '[upstreams.a]\nprovider = "openai"\nbase_url = "http://127.0.0.1:1"', "base_url", id="provider-moved"
    ),
    pytest.param(
        '[upstreams.a]\ndialect = "chat"\nbase_url = "http://127.0.0.1:1"\nkey_env = "HOME"', "key_env", id="key"
    ),
    pytest.param(
        '[upstreams.a]\nprovider = "azure"\nsettings = { resource = "evil" }', "settings", id="part-of-a-host"
    ),
    pytest.param('[upstreams.a]\nprovider = "openai"\nproxy = "http://evil.example"', "upstreams.a.proxy", id="proxy"),
    pytest.param('[embedded]\ngguf = "evil.gguf"', "embedded.gguf", id="file-that-is-read"),
    pytest.param('[store]\nurl = "sqlite:///tmp/x"', "store", id="file-that-is-written"),
    pytest.param('[server]\nhost = "0.0.0.0"', "server.host", id="address"),
    pytest.param('[server]\nallowed_origins = ["https://evil.example"]', "server.allowed_origins", id="web-pages"),
    pytest.param('[fetch]\nhosts = ["*"]', "fetch", id="fetches"),
    pytest.param('[some_day]\npython = "evil:main"', "some_day", id="future-keys"),
]


@pytest.mark.parametrize(("text", "entry"), HOSTILE)
def test_a_file_that_could_do_harm_needs_trust(user: User, text: str, entry: str) -> None:
    user.writes(user.work / "xenoglot.toml", text)
    for command in ("ask", "Hi"), ("serve", "--print-config"), ("run", "sdk", "--", "true"):
        done = user.does(*command, OPENAI_API_KEY="sk-x", AZURE_OPENAI_API_KEY="sk-y")
        first, *more = done.err.splitlines()
        assert (done.code, done.out, "is not trusted" in first) == (2, "", True), done
        assert [line for line in more if entry in line], done


def test_trust_is_for_the_file_as_it_is(user: User) -> None:
    with several() as server:
        user.writes(user.work / "xenoglot.toml", to(server, 'key_env = "MY_KEY"\n'))
        ask = ("ask", "Hi", "--model", "m")
        assert user.does(*ask, MY_KEY="k").code == 2
        assert user.does(*ask, "--config", "xenoglot.toml", MY_KEY="k") == Done(0, "Hello.\n", "")
        assert user.does("config", "trust").out == (
            f"trusted {user.work / 'xenoglot.toml'}\n  upstreams.main.key_env: MY_KEY\n"
        )
        assert user.does(*ask, MY_KEY="k") == Done(0, "Hello.\n", using(server))
        user.writes(user.work / "xenoglot.toml", to(server, 'key_env = "OTHER_KEY"\n'))
        assert user.does(*ask, MY_KEY="k", OTHER_KEY="o").code == 2
        record = user.home / ".local" / "state" / "xenoglot" / "trusted-configurations"
        assert stat.S_IMODE(record.stat().st_mode) == 0o600


def test_what_init_wrote_is_trusted(user: User, server: Upstream) -> None:
    flags = ("--upstream", server.url, "--dialect", "chat", "--key-env", "MY_KEY", "--model", "*", "--yes")
    assert user.does("init", *flags, MY_KEY="k").code == 0
    assert user.does("ask", "Hi", "--model", "m", MY_KEY="k") == Done(0, "Hello.\n", using(server))


def test_a_file_that_everybody_may_write_is_not_used(user: User, server: Upstream) -> None:
    path = user.work / "xenoglot.toml"
    user.writes(path, to(server))
    path.chmod(0o666)
    done = user.does("ask", "Hi", "--model", "m")
    assert (done.code, "everybody may write it" in done.err, models(server)) == (2, True, [])


def test_workers_find_it_too_and_it_is_said_once(user: User, server: Upstream) -> None:
    user.writes(user.work / "xenoglot.toml", to(server))
    command = [XENOGLOT, "serve", "--port", "0", "--workers", "2"]
    environ = {"HOME": str(user.home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    with subprocess.Popen(
        command, cwd=user.work, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as gateway:
        assert gateway.stdout is not None
        url = next(found[0] for line in gateway.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
        try:
            assert user.does("ask", "Hi", "--upstream", url, "--model", "m").out == "Hello.\n"
        finally:
            gateway.terminate()
        _, told = gateway.communicate(timeout=TIMEOUT)
    assert told.count(USING) == 1
