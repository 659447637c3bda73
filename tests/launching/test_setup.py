"""What a program is told: holes filled by value, models left out where none is known, no proxy before this machine."""

from __future__ import annotations

import json
import tomllib

import pytest

from xenoglot.launching import programs
from xenoglot.launching.program import File, Program
from xenoglot.launching.setup import Place, environment, setup, shown

PLACE = Place(url="http://127.0.0.1:9000", key="xg-secret", folder="/run/folder", model='a "b" \\ {url}')
NAMELESS = Place(url="http://127.0.0.1:9000", key="xg-secret", folder="/run/folder")
ROW = Program(
    name="mine",
    title="Mine",
    docs="https://mine.example",
    dialect="chat",
    arguments=(("--url", "{url}/v1"), ("-m", "{model}"), ("-c", 'model={"model"}')),
    env={"URL": "{url}", "MODEL": "{model}", "CONFIG": {"{model}": ["{key}", 1, True], "env": "{env:KEY}"}},
    unset=("OTHER",),
    files=(File(name="a.json", content={"model": "{model}", "key": "{key}"}), File(name="b.txt", content="{model}")),
)


def test_holes_are_filled_by_value() -> None:
    made = setup(ROW, PLACE)
    model = 'a "b" \\ {url}'
    assert made.arguments == ("--url", "http://127.0.0.1:9000/v1", "-m", model, "-c", 'model="a \\"b\\" \\\\ {url}"')
    assert tomllib.loads(made.arguments[-1]) == {"model": model}
    assert (made.env["URL"], made.env["MODEL"]) == ("http://127.0.0.1:9000", model)
    assert json.loads(made.env["CONFIG"]) == {model: ["xg-secret", 1, True], "env": "{env:KEY}"}
    assert json.loads(made.files["a.json"]) == {"model": model, "key": "xg-secret"}
    assert made.files["b.txt"] == model


def test_without_a_model_what_names_one_is_left_out() -> None:
    made = setup(ROW, NAMELESS)
    assert made.arguments == ("--url", "http://127.0.0.1:9000/v1")
    assert sorted(made.env) == ["CONFIG", "URL"]
    assert json.loads(made.env["CONFIG"]) == {"env": "{env:KEY}"}
    assert json.loads(made.files["a.json"]) == {"key": "xg-secret"}


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
    told = environment(setup(ROW, PLACE), given)
    assert {name: told[name] for name in direct} == direct
    assert ("OTHER" in told, told["URL"], told["PATH"]) == (False, "http://127.0.0.1:9000", "/bin")
    assert sum(name.lower() == "no_proxy" for name in told) == len(direct)


def test_what_would_be_set_is_shown_as_a_shell_is_told() -> None:
    lines = list(shown(setup(ROW, NAMELESS), ["mine", "-p", "two words"], "FOLDER"))
    assert lines[0] == "unset OTHER"
    assert lines[1] == "export URL=http://127.0.0.1:9000"
    assert lines[3:5] == ["cat > FOLDER/a.json <<'END'", "{"]
    assert lines[-1] == "mine -p 'two words'"


def test_codex_reads_its_overrides_as_toml() -> None:
    """Each `-c` is a dotted key and a value in TOML: https://developers.openai.com/codex/config-advanced."""
    made = setup(programs.get("codex"), PLACE)
    read = tomllib.loads("\n".join(text for text in made.arguments if text != "-c"))
    assert read["model"] == PLACE.model
    assert read["model_providers"]["xenoglot"]["base_url"] == "http://127.0.0.1:9000/v1"
    assert made.env == {read["model_providers"][read["model_provider"]]["env_key"]: "xg-secret"}
