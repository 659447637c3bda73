"""`xenoglot completion`: a real shell completes commands, flags, names and files; the others get a script as well."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from xenoglot.cli import main
from xenoglot.programs import catalog as programs

if TYPE_CHECKING:
    from pathlib import Path

# As bash does for a line whose last word is being typed.
COMPLETE = """
source "$1"; shift
COMP_WORDS=(xenoglot "$@"); COMP_CWORD=$#; COMP_LINE="xenoglot $*"; COMPREPLY=()
_shtab_xenoglot
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The script for bash, as a shell gets it."""
    command = [sys.executable, "-m", "xenoglot.cli", "completion", "bash"]
    done = subprocess.run(command, capture_output=True, check=True)
    path = tmp_path_factory.mktemp("completion") / "xenoglot.bash"
    path.write_bytes(done.stdout)
    return path


def completed(script: Path, folder: Path, *words: str) -> list[str]:
    """Return what bash makes of the last word."""
    command = ["bash", "--norc", "-euo", "pipefail", "-c", COMPLETE, "bash", str(script), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["ser"], ["serve"], id="command"),
        pytest.param(["serve", "--print"], ["--print-config"], id="flag"),
        pytest.param(["serve", "--dialect", "mess"], ["messages"], id="dialect"),
        pytest.param(["serve", "--upstream", "gro"], ["groq"], id="provider"),
        pytest.param(["serve", "--config", "gate"], ["gateway.toml"], id="file"),
        pytest.param(["serve", "--text-syntax", "herm"], ["hermes"], id="syntax"),
        pytest.param(["batch", "gate"], ["gateway.toml"], id="file-of-no-flag"),
        pytest.param(["run", "cla"], ["claude"], id="program"),
        pytest.param(["init", "--upstream", "mist"], ["mistral"], id="of-init"),
        pytest.param(["completion", "z"], ["zsh"], id="shell"),
        pytest.param(["zzz"], [], id="nothing"),
    ],
)
def test_bash_completes(script: Path, words: list[str], expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "gateway.toml").touch()
    assert completed(script, tmp_path, *words) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "xenoglot" in script
    assert [name for name in (*programs.names(), "serve", "translate", "--config") if name not in script] == []


def test_another_shell_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "cmd"]) == 2
    assert "invalid choice: 'cmd'" in capsys.readouterr().err
