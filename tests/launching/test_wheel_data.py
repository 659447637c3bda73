"""The wheel installs man pages and shell completions, made from the argument parser at the build."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from xenoglot.cli import command_parser
from xenoglot.command_help import commands_of
from xenoglot.launching.man_pages import man_pages

ROOT = Path(__file__).parents[2]
SHARE = "share/"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The prefix of an installation: what the wheel puts beside its packages."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "content")
    (data,) = (folder / "content").glob("*.data")
    return data / "data"


def commands() -> list[str]:
    """The names of all commands."""
    found = commands_of(command_parser())
    assert found is not None
    return [*found.choices]


def test_the_wheel_has_pages_and_completions(installed: Path) -> None:
    files = {str(path.relative_to(installed)) for path in installed.rglob("*") if path.is_file()}
    pages = {f"share/man/man1/xenoglot-{name}.1" for name in commands()}
    completions = {
        "share/bash-completion/completions/xenoglot",
        "share/zsh/site-functions/_xenoglot",
        "share/fish/vendor_completions.d/xenoglot.fish",
    }
    assert files == completions | pages | {"share/man/man1/xenoglot.1"}


def test_the_completions_are_those_of_the_shells(installed: Path) -> None:
    share = installed / "share"
    subprocess.run(["bash", "-n", str(share / "bash-completion/completions/xenoglot")], check=True)
    assert (share / "zsh/site-functions/_xenoglot").read_text().startswith("#compdef xenoglot\n")
    assert "complete -c xenoglot" in (share / "fish/vendor_completions.d/xenoglot.fish").read_text()


def test_the_build_needs_what_it_requires_alone(tmp_path: Path) -> None:
    """A build in isolation has hatchling, msgspec and shtab, and none of the other packages."""
    program = f"""
import sys, importlib.abc
HAS = ("hatchling", "msgspec", "shtab", "packaging", "pathspec", "pluggy", "tomlkit", "trove_classifiers")
class Isolated(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        top, ours = name.partition(".")[0], ("wheel_data", "xenoglot", "_sysconfigdata")
        if path is None and top not in (*HAS, *sys.stdlib_module_names) and not top.startswith(ours):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Isolated())
sys.path.insert(0, {str(ROOT / "scripts")!r})
from pathlib import Path
import wheel_data
print(len(list(wheel_data.generated(Path({str(ROOT)!r}), "1.2.0"))))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.stdout, done.stderr) == (f"{len(commands()) + 4}\n", "")


PAGES = man_pages(command_parser(), "1.2.3")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_its_sections(name: str) -> None:
    page = PAGES[name]
    title = name.removesuffix(".1").upper().replace("-", "\\-")
    assert page.startswith(f'.TH {title} 1 "" "xenoglot 1.2.3" "User Commands"\n.SH NAME\n')
    titles = re.findall(r'^\.SH "?([^"\n]+)"?$', page, re.MULTILINE)
    assert titles[:3] == ["NAME", "SYNOPSIS", "DESCRIPTION"]
    assert {"OPTIONS", "EXAMPLES"} <= set(titles)
    macros = set(re.findall(r"^\.([A-Z]+|[a-z]+)", page, re.MULTILINE))
    assert macros <= {"TH", "SH", "SS", "TP", "PP", "B", "BR", "nf", "fi"}
    assert "" not in page.splitlines()


def test_a_text_is_no_macro() -> None:
    page = PAGES["xenoglot.1"]
    assert ".B \\&./xenoglot.toml" in page
    assert "\\(dqWhat is the capital of France?\\(dq" in page
