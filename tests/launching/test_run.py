"""`xenoglot run` as a person uses it: what the program finds, how it ends, what is left, and what is refused."""

from __future__ import annotations

import json
import os
import pty
import signal
import stat
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.gateway.running_gateway import TIMEOUT
from tests.matrix.dialect_server import DialectServer
from xenoglot import dialect_registry as dialects
from xenoglot.cli import main
from xenoglot.errors import ConfigurationError
from xenoglot.gateway.config.from_flags import from_flags
from xenoglot.launching.gateway_thread import run_gateway

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.gateway.config.load import Config
    from xenoglot.model.json import JSONObject

# What stands for each program: it writes down what it finds, and does what it is told by its last argument.
PROGRAM = """#!{python} -IS
import json, os, signal, sys, urllib.request
here = next((value for value in (*sys.argv, *os.environ.values()) if "/xenoglot-run/" in value), None)
folder = None if here is None else os.path.dirname(here)
found = dict(pid=os.getpid(), argv=sys.argv[1:], env=dict(os.environ), folder=folder, files={{}}, modes={{}})
for name in os.listdir(folder) if folder else ():
    path = os.path.join(folder, name)
    found["files"][name] = open(path).read()
    found["modes"][name] = oct(os.stat(path).st_mode & 0o777)
with urllib.request.urlopen(os.environ["{url}"] + "/health") as answer:
    found["health"] = json.load(answer)
if sys.argv[-1] == "ask":
    asked = dict(model="claude-sonnet-4-5", max_tokens=4, messages=[dict(role="user", content="Hi")])
    head = {{"content-type": "application/json", "authorization": "Bearer " + os.environ["ANTHROPIC_API_KEY"]}}
    request = urllib.request.Request(os.environ["{url}"] + "/v1/messages", json.dumps(asked).encode(), head)
    with urllib.request.urlopen(request) as answer:
        found["answer"] = json.load(answer)
json.dump(found, open(os.environ["RECORD"], "w"))
told = sys.argv[-1]
if told == "die":
    os.kill(os.getpid(), signal.SIGTERM)
if told == "wait":
    print("ready", flush=True)
    signal.pause()
if told == "stop":
    print("stopping", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
    told = "9"
if told == "inherits":
    print(os.read(int(os.environ["GIVEN"]), 5).decode())
if told == "counts":
    both = {{signal.SIGINT, signal.SIGTERM}}
    signal.pthread_sigmask(signal.SIG_BLOCK, both)
    print("ready", flush=True)
    signal.sigwait({{signal.SIGINT}})
    print("one", flush=True)
    signal.sigwait({{signal.SIGTERM}})
    told = "6" if signal.SIGINT in signal.sigpending() else "5"
if told == "interrupted":
    signal.signal(signal.SIGINT, lambda *_: sys.exit(5))
    print("ready", flush=True)
    signal.pause()
sys.exit(int(told) if told.isdigit() else 0)
"""
CONTROL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(1, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Makes the terminal that of the program behind it."""

URLS = {"claude": "ANTHROPIC_BASE_URL", "goose": "OPENAI_HOST", "gemini": "GOOGLE_GEMINI_BASE_URL"}


@pytest.fixture(scope="module")
def speaker() -> Iterator[DialectServer]:
    with DialectServer(dialects.get("chat")) as speaker:
        yield speaker


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the programs, and return where each writes what it finds."""
    (tmp_path / "bin").mkdir()
    for name, url in URLS.items():
        program = tmp_path / "bin" / name
        program.write_text(PROGRAM.format(python=sys.executable, url=url))
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.setenv("RECORD", str(tmp_path / "record.json"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-theirs")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-theirs")
    return tmp_path / "record.json"


def read(record: Path) -> JSONObject:
    """Return what a program found."""
    found: JSONObject = json.loads(record.read_text())
    return found


def test_a_program_finds_the_gateway_and_its_arguments(speaker: DialectServer, record: Path) -> None:
    assert main(["run", "claude", "--upstream", speaker.url, "--model", "large", "--", "-p", "a b", "--", "7"]) == 7
    found = read(record)
    assert found["argv"][-4:] == ["-p", "a b", "--", "7"]
    assert found["health"] == {"status": "ok"}
    assert found["env"]["ANTHROPIC_MODEL"] == "large"
    assert "ANTHROPIC_API_KEY" not in found["env"]
    assert found["env"]["OPENAI_API_KEY"] == "sk-of-theirs"  # the environment is theirs, but for what is set
    settings = json.loads(found["files"]["settings.json"])["env"]
    assert settings["ANTHROPIC_BASE_URL"] == found["env"]["ANTHROPIC_BASE_URL"]
    assert settings["ANTHROPIC_API_KEY"] == ""


def test_a_program_keeps_its_own_login(speaker: DialectServer, record: Path) -> None:
    """The gateway's key has a header of its own; what the program sends as its credential is the provider's."""
    assert main(["run", "claude", "--upstream", speaker.url, "--auth", "client", "--", "7"]) == 7
    found = read(record)
    assert found["env"]["ANTHROPIC_API_KEY"] == "sk-of-theirs"
    assert found["env"]["ANTHROPIC_CUSTOM_HEADERS"].startswith("x-xenoglot-key: xg-")
    assert "ANTHROPIC_AUTH_TOKEN" not in found["env"]
    settings = json.loads(found["files"]["settings.json"])["env"]
    assert settings["ANTHROPIC_BASE_URL"] == found["env"]["ANTHROPIC_BASE_URL"]
    assert not settings.keys() & {"ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"}


def test_a_program_without_a_login_is_not_started(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "aider", "--upstream", "anthropic", "--auth", "client"]) == 2
    assert "--auth client: aider sends no login of its own to a gateway; set a key" in capsys.readouterr().err


@pytest.mark.usefixtures("weights")
def test_the_embedded_model_answers_to_any_name(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any flag there is an answer to whatever the program asks for, and no gateway of others is asked."""
    monkeypatch.setattr("xenoglot.launching.detect_gateway.owned_by_user", lambda _: False)
    monkeypatch.setattr("xenoglot.launching.local_servers.find_local_servers", list)
    assert main(["run", "sdk", "--", "claude", "ask"]) == 0
    assert read(record)["answer"]["usage"]["output_tokens"] > 0


def test_files_are_its_owners_alone_and_gone_at_the_end(speaker: DialectServer, record: Path) -> None:
    assert main(["run", "gemini", "--upstream", speaker.url]) == 0
    found = read(record)
    assert found["modes"] == {"settings.json": "0o600"}
    assert not Path(found["folder"]).exists()
    assert stat.S_IMODE((record.parent / "runtime" / "xenoglot-run").stat().st_mode) == 0o700
    assert found["env"]["GEMINI_MODEL"] == "large"  # the only one that the server lists


def test_the_key_is_in_no_argument(speaker: DialectServer, record: Path) -> None:
    main(["run", "claude", "--upstream", speaker.url])
    found = read(record)
    assert found["env"]["ANTHROPIC_AUTH_TOKEN"] not in " ".join(found["argv"])


def test_a_program_that_is_killed(speaker: DialectServer, record: Path) -> None:
    assert main(["run", "claude", "--upstream", speaker.url, "--", "die"]) == 128 + signal.SIGTERM
    assert read(record)["argv"][-1] == "die"


def test_signals_reach_it(speaker: DialectServer, record: Path) -> None:
    """What only we are sent, it is sent; and then all is over."""
    command = [sys.executable, "-m", "xenoglot.cli", "run", "claude", "--upstream", speaker.url, "--", "wait"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT) == 128 + signal.SIGINT
    assert not Path(read(record)["folder"]).exists()


def test_it_stops_and_goes_on_as_a_job(speaker: DialectServer, record: Path) -> None:
    """A program that stops itself, as those do that own the terminal, has the whole job stopped."""
    command = [sys.executable, "-m", "xenoglot.cli", "run", "claude", "--upstream", speaker.url, "--", "stop"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "stopping\n"
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        process.send_signal(signal.SIGCONT)
        assert process.wait(TIMEOUT) == 9
    assert read(record)["argv"][-1] == "stop"


def test_what_is_typed_is_for_the_program(speaker: DialectServer, record: Path) -> None:
    """Ctrl-C goes to both, and the program alone decides on it."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "xenoglot.cli", "run", "claude", "--upstream", speaker.url, "--", "interrupted"]
    process = subprocess.Popen([sys.executable, "-c", CONTROL, *command], stdin=theirs, stdout=theirs, stderr=theirs)
    with process:
        os.close(theirs)
        until(ours, b"ready")
        os.write(ours, b"\x03")
        assert process.wait(TIMEOUT) == 5
    os.close(ours)
    assert read(record)["argv"][-1] == "interrupted"


def test_it_is_interrupted_once_where_it_reads_from_a_pipe(speaker: DialectServer, record: Path) -> None:
    """The terminal interrupts it, whatever it reads from; it is not interrupted again by us."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "xenoglot.cli", "run", "claude", "--upstream", speaker.url, "--", "counts"]
    process = subprocess.Popen(
        [sys.executable, "-c", CONTROL, *command], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    )
    with process:
        os.close(theirs)
        until(ours, b"ready")
        process.send_signal(signal.SIGSTOP)  # so that it has had that of the terminal before we could send another
        os.waitpid(process.pid, os.WUNTRACED)
        os.write(ours, b"\x03")
        until(ours, b"one")
        process.send_signal(signal.SIGTERM)  # sent on behind whatever else is
        process.send_signal(signal.SIGCONT)
        assert process.wait(TIMEOUT) == 5
    os.close(ours)
    assert read(record)["argv"][-1] == "counts"


def until(terminal: int, word: bytes) -> None:
    """Read what is shown until a word stands there."""
    shown = b""
    while word not in shown:
        shown += os.read(terminal, 4096)


@pytest.mark.usefixtures("record")
def test_what_is_open_for_us_is_open_for_it(speaker: DialectServer, capfd: pytest.CaptureFixture[str]) -> None:
    """As `<(...)` of a shell is."""
    reading, writing = os.pipe()
    os.write(writing, b"given")
    os.set_inheritable(reading, True)  # noqa: FBT003  it takes no name
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIVEN", str(reading))
        assert main(["run", "claude", "--upstream", speaker.url, "--", "inherits"]) == 0
    os.close(reading)
    os.close(writing)
    assert capfd.readouterr().out == "given\n"


def test_what_a_killed_run_leaves_is_gone_when_its_program_is(speaker: DialectServer, record: Path) -> None:
    """Its program goes on, and so do the files of it; the next run after both removes them."""
    command = [sys.executable, "-m", "xenoglot.cli", "run", "claude", "--upstream", speaker.url, "--", "wait"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.kill()
        process.wait(TIMEOUT)
        left = read(record)
        main(["run", "claude", "--upstream", speaker.url])
        assert Path(left["folder"]).exists()
        os.kill(left["pid"], signal.SIGTERM)
        assert process.stdout.read() == ""  # its end, for it has the pipe as well
    main(["run", "claude", "--upstream", speaker.url])
    assert not Path(left["folder"]).exists()
    assert list(Path(left["folder"]).parent.iterdir()) == []


def test_a_place_where_others_may_write_is_not_used(speaker: DialectServer, record: Path) -> None:
    place = record.parent / "runtime" / "xenoglot-run"
    place.mkdir(parents=True)
    place.chmod(0o777)
    main(["run", "claude", "--upstream", speaker.url])
    assert "/xenoglot-run/" not in " ".join(read(record)["argv"])


def test_a_model_that_is_needed_is_the_first_that_is_named(
    speaker: DialectServer, record: Path, tmp_path: Path
) -> None:
    config = tmp_path / "gateway.toml"
    config.write_text(
        f"""
        [server]
        port = 1
        [upstreams.main]
        dialect = "chat"
        base_url = "{speaker.url}"
        [[models]]
        name = "mine"
        upstream = "main"
        """
    )
    config.chmod(stat.S_IRUSR | stat.S_IWUSR)
    assert main(["run", "goose", "--config", str(config)]) == 0
    assert read(record)["env"]["GOOSE_MODEL"] == "mine"
    assert main(["run", "goose", "--config", str(config), "--model", "other"]) == 0
    assert read(record)["env"]["GOOSE_MODEL"] == "other"


def test_a_gateway_that_is_named_is_asked(
    speaker: DialectServer, record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run_gateway(from_flags({}, upstream=speaker.url)) as door:
        monkeypatch.setenv("MINE", door.key)
        assert main(["run", "goose", "--gateway", f"{door.url}/v1", "--client-key-env", "MINE"]) == 0
    found = read(record)
    assert (found["env"]["OPENAI_HOST"], found["env"]["OPENAI_API_KEY"]) == (door.url, door.key)
    assert found["env"]["GOOSE_MODEL"] == "large"


@pytest.mark.parametrize(
    ("upstream", "model", "context"),
    [
        pytest.param('model_overrides = [{ names = ["large"], context = 32768 }]', "large", "32768", id="of-the-file"),
        pytest.param('provider = "anthropic"', "claude-haiku-4-5", "200000", id="of-the-provider"),
        pytest.param("", "large", None, id="unknown"),
    ],
)
def test_findings_clients_3_the_context_window_is_looked_up(  # noqa: PLR0913, PLR0917  fixtures among them
    speaker: DialectServer,
    record: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    upstream: str,
    model: str,
    context: str | None,
) -> None:
    """Without `--context` it is what the configuration says, as `xenoglot probe` writes it, or the provider's row."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    config = tmp_path / "gateway.toml"
    named = f'[[models]]\nname = "{model}"\nupstream = "main"\n'
    config.write_text(f'{named}[upstreams.main]\ndialect = "chat"\nbase_url = "{speaker.url}"\n{upstream}\n')
    for given, expected in (([], context), (["--context", "1024"], "1024")):
        assert main(["run", "claude", "--config", str(config), "--model", model, *given]) == 0
        assert read(record)["env"].get("CLAUDE_CODE_MAX_CONTEXT_TOKENS") == expected


def test_one_that_runs_where_the_file_says_is_asked(speaker: DialectServer, record: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        door = stack.enter_context(run_gateway(from_flags({}, upstream=speaker.url)))
        port = door.url.rpartition(":")[2]
        config = tmp_path / "gateway.toml"
        upstream = f'[upstreams.main]\ndialect = "chat"\nbase_url = "{speaker.url}"'
        config.write_text(f'[server]\nport = {port}\n[keys]\nenv = ["MINE"]\n{upstream}')
        config.chmod(stat.S_IRUSR | stat.S_IWUSR)
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("MINE", door.key)
        assert main(["run", "claude", "--config", str(config)]) == 0
        assert read(record)["env"]["ANTHROPIC_BASE_URL"] == door.url
        patch.setenv("MINE", "sk-that-does-not-fit")  # it is none of that file
        assert main(["run", "claude", "--config", str(config)]) == 0
        assert read(record)["env"]["ANTHROPIC_BASE_URL"] != door.url


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(["run"], "no program named: expected one of aider, claude, codex", id="none"),
        pytest.param(["run", "codx"], "unknown program `codx`; did you mean `codex`?", id="unknown"),
        pytest.param(["run", "crush"], "program `crush` not found; install Crush with: npm", id="not-installed"),
        pytest.param(["run", "sdk"], "no command named: use `xenoglot run sdk -- PROGRAM ...`", id="nothing-to-start"),
        pytest.param(["run", "sdk", "--", "no-such"], "program `no-such` not found\n", id="no-such-program"),
        pytest.param(["run", "claude", "-p"], "unrecognized arguments: -p", id="arguments-before-the-dashes"),
        pytest.param(
            ["run", "claude", "--gateway", "http://127.0.0.1:1", "--upstream", "openai"],
            "`--upstream` and `--gateway` exclude each other",
            id="both",
        ),
        pytest.param(
            ["run", "claude", "--gateway", "http://127.0.0.1:1"],
            "--gateway: no Xenoglot gateway answers at",
            id="no-gateway",
        ),
        pytest.param(
            ["run", "claude", "--client-key-env", "UNSET_HERE"], "--client-key-env: the environment", id="no-key"
        ),
        pytest.param(
            ["run", "goose", "--upstream", "http://127.0.0.1:1"],
            "goose requires a model: name one",
            id="no-model",
        ),
        pytest.param(
            ["run", "claude", "--upstream", "http://127.0.0.1:1", "--model", "a\nb"],
            "--model: expected a name of printable characters",
            id="no-name",
        ),
        pytest.param(
            ["run", "claude", "--upstream", "http://127.0.0.1:1", "--log", "/"], "--log: `/` cannot be", id="log"
        ),
    ],
)
@pytest.mark.usefixtures("record")
def test_a_mistake_is_one_line(arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"xenoglot: {problem}")
    assert (out, err.count("\n")) == ("", 1)


def test_what_cannot_be_started_is_told(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (record.parent / "bin" / "claude").write_text("#!/no/such/interpreter\n")
    assert main(["run", "claude", "--upstream", "http://127.0.0.1:1"]) == 2
    assert capsys.readouterr().err.endswith("bin/claude` cannot be started: No such file or directory\n")


def test_what_would_be_set_is_shown_without_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "crush", "--print", "--model", "large", "--", "run", "a b"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("export XENOGLOT_KEY='***'\nexport CRUSH_GLOBAL_DATA=FOLDER\ncat > FOLDER/crush.json")
    assert shown.endswith("\nEND\ncrush run 'a b'\n")


@pytest.mark.usefixtures("record")
def test_programs_are_listed_with_their_places(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--list"]) == 0
    rows = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines()}
    assert rows["claude"][1:4] == ["messages", "Claude", "Code"]
    assert rows["claude"][-1].endswith("/bin/claude")
    assert rows["crush"][-1] == "-"


@pytest.mark.parametrize(
    ("flags", "preserve"),
    [
        pytest.param([], "translated", id="usual"),
        pytest.param(["--preserve"], True, id="all"),
        pytest.param(["--no-preserve"], False, id="none"),
    ],
)
def test_what_a_program_strips_is_kept(flags: list[str], preserve: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """findings-clients-5: thoughts of the upstream come home, unless told otherwise."""
    seen: list[Config] = []

    def hosted_so(config: Config, _: object) -> None:
        seen.append(config)
        raise ConfigurationError("seen")

    monkeypatch.setattr("xenoglot.launching.gateway_thread.run_gateway", hosted_so)
    assert main(["run", "sdk", "--upstream", "http://127.0.0.1:9", *flags, "--", sys.executable]) == 2
    assert [config.upstreams["upstream"].preserve_reasoning for config in seen] == [preserve]
