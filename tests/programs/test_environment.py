"""What a program is told: holes filled by value, models left out where none is known, no proxy before this machine."""

from __future__ import annotations

import json
import tomllib

import pytest

from xenoglot.programs import catalog as programs
from xenoglot.programs.environment import GatewayLocation, environment, program_environment, shown
from xenoglot.programs.program import Program, ProgramFile

PLACE = GatewayLocation(url="http://127.0.0.1:9000", key="xg-secret", folder="/run/folder", model='a "b" \\ {url}')
NAMELESS = GatewayLocation(url="http://127.0.0.1:9000", key="xg-secret", folder="/run/folder")
ROW = Program(
    name="mine",
    title="Mine",
    docs="https://mine.example",
    dialect="chat",
    arguments=(("--url", "{url}/v1"), ("-m", "{model}"), ("-c", 'model={"model"}')),
    env={"URL": "{url}", "MODEL": "{model}", "CONFIG": {"{model}": ["{key}", 1, True], "env": "{env:KEY}"}},
    unset=("OTHER",),
    files=(
        ProgramFile(name="a.json", content={"model": "{model}", "key": "{key}"}),
        ProgramFile(name="b.txt", content="{model}"),
    ),
)


def test_holes_are_filled_by_value() -> None:
    made = program_environment(ROW, PLACE)
    model = 'a "b" \\ {url}'
    assert made.arguments == ("--url", "http://127.0.0.1:9000/v1", "-m", model, "-c", 'model="a \\"b\\" \\\\ {url}"')
    assert tomllib.loads(made.arguments[-1]) == {"model": model}
    assert (made.env["URL"], made.env["MODEL"]) == ("http://127.0.0.1:9000", model)
    assert json.loads(made.env["CONFIG"]) == {model: ["xg-secret", 1, True], "env": "{env:KEY}"}
    assert json.loads(made.files["a.json"]) == {"model": model, "key": "xg-secret"}
    assert made.files["b.txt"] == model


def test_without_a_model_what_names_one_is_left_out() -> None:
    made = program_environment(ROW, NAMELESS)
    assert made.arguments == ("--url", "http://127.0.0.1:9000/v1")
    assert sorted(made.env) == ["CONFIG", "URL"]
    assert json.loads(made.env["CONFIG"]) == {"env": "{env:KEY}"}
    assert json.loads(made.files["a.json"]) == {"key": "xg-secret"}


def test_the_context_window_is_a_number_or_left_out() -> None:
    """findings-clients-3: what holds the number goes with it."""
    row = Program(
        name="mine",
        title="Mine",
        docs="https://mine.example",
        dialect="chat",
        arguments=(("-c", "window={context}"),),
        env={"WINDOW": "{context}", "CONFIG": {"limit": {"context": "{=context}", "output": 8}, "name": "n"}},
    )
    known = program_environment(row, GatewayLocation(url="u", key="k", folder="f", model="m", context=32768))
    assert known.arguments == ("-c", "window=32768")
    assert known.env["WINDOW"] == "32768"
    assert json.loads(known.env["CONFIG"]) == {"limit": {"context": 32768, "output": 8}, "name": "n"}
    unknown = program_environment(row, GatewayLocation(url="u", key="k", folder="f", model="m"))
    assert (unknown.arguments, sorted(unknown.env)) == ((), ["CONFIG"])
    assert json.loads(unknown.env["CONFIG"]) == {"name": "n"}
    assert (row.wants_context, ROW.wants_context) == (True, False)


@pytest.mark.parametrize("name", ["claude", "codex", "opencode"])
def test_programs_are_told_the_context_window(name: str) -> None:
    """findings-clients-3: Claude Code assumed a window of a million tokens."""
    place = GatewayLocation(url="u", key="k", folder="f", model="m", context=32768)
    made = program_environment(programs.get(name), place)
    told = json.dumps([made.arguments, made.env, made.files])
    assert "32768" in told
    assert "context" not in json.dumps(program_environment(programs.get(name), PLACE).env).lower()


def test_claude_code_keeps_its_own_aliases() -> None:
    """findings-clients-3: ANTHROPIC_DEFAULT_OPUS_MODEL makes Claude Code rewrite the user's settings.json."""
    made = program_environment(programs.get("claude"), PLACE)
    assert not [name for name in made.env if name.startswith("ANTHROPIC_DEFAULT_")]
    assert "ANTHROPIC_DEFAULT_" not in made.files["settings.json"]


@pytest.mark.parametrize(
    ("environ", "direct"),
    [
        pytest.param({}, {}, id="no-proxy"),
        pytest.param({"http_proxy": ""}, {}, id="empty"),
        pytest.param(
            {"HTTPS_PROXY": "http://p"}, dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1,localhost"), id="proxy"
        ),
        pytest.param(
            {"all_proxy": "http://p", "no_proxy": "a.example, localhost"},
            {"no_proxy": "a.example,localhost,127.0.0.1", "NO_PROXY": "127.0.0.1,localhost"},
            id="exceptions",
        ),
    ],
)
def test_no_proxy_stands_before_this_machine(environ: dict[str, str], direct: dict[str, str]) -> None:
    given = {"PATH": "/bin", "OTHER": "elsewhere", "URL": "theirs"} | environ
    told = environment(program_environment(ROW, PLACE), given)
    assert {name: told[name] for name in direct} == direct
    assert ("OTHER" in told, told["URL"], told["PATH"]) == (False, "http://127.0.0.1:9000", "/bin")
    assert sum(name.lower() == "no_proxy" for name in told) == len(direct)


def test_what_would_be_set_is_shown_as_a_shell_is_told() -> None:
    lines = list(shown(program_environment(ROW, NAMELESS), ["mine", "-p", "two words"], "FOLDER"))
    assert lines[0] == "unset OTHER"
    assert lines[1] == "export URL=http://127.0.0.1:9000"
    assert lines[3:5] == ["cat > FOLDER/a.json <<'END'", "{"]
    assert lines[-1] == "mine -p 'two words'"


def test_codex_reads_its_overrides_as_toml() -> None:
    """Each `-c` is a dotted key and a value in TOML: https://developers.openai.com/codex/config-advanced."""
    made = program_environment(programs.get("codex"), PLACE)
    read = tomllib.loads("\n".join(text for text in made.arguments if text != "-c"))
    assert read["model"] == PLACE.model
    assert read["model_providers"]["xenoglot"]["base_url"] == "http://127.0.0.1:9000/v1"
    assert made.env == {read["model_providers"][read["model_provider"]]["env_key"]: "xg-secret"}
