"""The promises of the repository: pinned installs, few dependencies, speaking names, documented modules."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT, SOURCES
from xenoglot.errors import EXTRAS as EXTRA_OF

# What a user installs, all extras together. A new one needs its reason in docs/dependencies.md and a change here.
MOST_DEPENDENCIES = 26

VAGUE_NAMES = {"base", "common", "handler", "handlers", "helper", "helpers", "manager", "misc", "util", "utils"}

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
GROUPS: dict[str, list[str]] = PROJECT["dependency-groups"]
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
ALL: list[str] = EXTRAS.pop("all")
RUNTIME: list[str] = [*PROJECT["project"]["dependencies"], *(name for names in EXTRAS.values() for name in names)]
# Whoever wants `transformers` has PyTorch of their own choice beside it, and `ray` is for several machines: no
# environment of ours installs either to run. `pii` is for those who have a model of spaCy for their language.
LOCKED_EXTRAS = [extra for extra in EXTRAS if extra not in ("transformers", "ray", "pii")]
LOCKED: list[str] = [*PROJECT["project"]["dependencies"], *(name for extra in LOCKED_EXTRAS for name in EXTRAS[extra])]
LOCKED_GROUPS = ("build", "clients", "deploy", "dev", "docs", "fuzz", "lock", "openapi", "torch")
DIRECT = {**{name: GROUPS[name] for name in LOCKED_GROUPS}, "run": LOCKED}

# Whatever may hold a command that somebody runs: recipes, scripts and pages.
RUNNABLE = [
    ROOT / "Makefile",
    *(
        path
        for folder in (".ci", "scripts")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    ),
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
]
INSTALLS = re.compile(
    r"""\b(?:pip3?|uv\s+pip|pipx)\s+(?:install|download|wheel)\b|\$\(PIP\)\s+install\b
      | \b(?:uv\s+(?:sync|add|run|tool)|uvx|pipx\s+run|npx|npm\s+(?:install|i|exec)|apt(?:-get)?\s+install)\b""",
    re.VERBOSE,
)
# The hashes are checked, or there is nothing to fetch.
SAFE = ("--require-hashes", "--no-index")
# What pages tell users to type for Xenoglot itself, and nothing else: a release has no hash before it exists.
OWN = re.compile(
    r"(?:pip install|uv tool (?:install|upgrade|uninstall)) (?:--upgrade )?"
    r"'?xenoglot(?:\[[a-z,]+\])?(?![\w.\[-])'?(?!'|\s+['\"\w.-])"
)
# The system's own packages are checked by its package manager, and not the project's to pin: what a person is told to
# install, the terminal and the browser of the tests.
TOLD = {
    "scripts/venv": "apt-get install python$version-venv",
    "scripts/tmux": "apt-get install --yes --quiet --no-install-recommends tmux",
    "scripts/chromium": "apt-get install --yes --quiet --no-install-recommends chromium",
    ".github/workflows/release.yml": "apt-get install --yes --no-install-recommends tmux",
}


def distribution(requirement: str) -> str:
    """The normalised name in a requirement: `pytest-asyncio` for `pytest_asyncio>=1; python_version > "3"`."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def entries(lock: Path) -> list[str]:
    """The requirements of a lock, each with its hashes on one line, without comments."""
    text = lock.read_text(encoding="utf-8").replace("\\\n", " ")
    return [" ".join(line.split()) for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def unpinned_installs(path: Path, text: str) -> list[str]:
    """The lines that install something without checking a hash; a line broken by a backslash is one line."""
    told = TOLD.get(path.relative_to(ROOT).as_posix())
    own = OWN if path.suffix == ".md" else re.compile(r"(?!)")
    return [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for line in text.replace("\\\n", " ").splitlines()
        if INSTALLS.search(own.sub("", line.replace(told, "") if told else line))
        and not any(flag in line for flag in SAFE)
    ]


def test_r1_every_install_checks_hashes() -> None:
    assert [line for path in RUNNABLE for line in unpinned_installs(path, path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    "line",
    [
        "pip install xenoglot-more",
        "pip install 'xenoglot[all]' requests",
        "python -m pip install --upgrade pip",
        "uv sync --extra local",
        "\t@$(PIP) install -e .",
        "npx @anthropic-ai/claude-code",
    ],
)
def test_r1_an_unpinned_install_is_seen(line: str) -> None:
    assert unpinned_installs(ROOT / "README.md", line) == [f"README.md: {line.strip()}"]


def test_r1_only_a_page_may_name_the_release_without_a_hash() -> None:
    line = "pip install --upgrade 'xenoglot[all]'"
    assert unpinned_installs(ROOT / "README.md", line) == []
    assert unpinned_installs(ROOT / "Makefile", line) == [f"Makefile: {line}"]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_r1_locks_carry_versions_and_hashes_and_no_host(lock: Path) -> None:
    entry = re.compile(r"[a-z0-9-]+==[0-9][0-9A-Za-z.+!]*( ; [^@:/]+?)?( --hash=sha256:[0-9a-f]{64})+")
    text = lock.read_text(encoding="utf-8")
    assert [line for line in entries(lock) if not entry.fullmatch(line)] == []
    assert re.findall(r"\S*://\S*|--(?:extra-)?index\S*|--find-links\S*|\S+\.(?:org|com|io|net)\b", text) == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_r1_locks_hold_what_the_project_names(lock: Path) -> None:
    locked = {distribution(line) for line in entries(lock)}
    assert {distribution(name) for name in DIRECT[lock.stem]} - locked == set()


def test_r1_the_build_requirement_is_the_locked_one() -> None:
    assert PROJECT["build-system"]["requires"] == GROUPS["build"]


def test_all_extras_are_those_that_are_locked() -> None:
    assert [f"xenoglot[{','.join(sorted(LOCKED_EXTRAS))}]"] == ALL


def test_every_optional_package_has_the_extra_that_installs_it() -> None:
    brought = {extra: {distribution(name).replace("-", "_") for name in names} for extra, names in EXTRAS.items()}
    assert brought == {extra: {name for name, of in EXTRA_OF.items() if of == extra} for extra in brought}


def test_one_module_words_what_is_not_installed() -> None:
    """The engine's child process imports nothing of ours, so it repeats the sentence; a test of its own compares it."""
    own = {"errors.py", "server_main.py"}
    assert [str(path) for path in SOURCES if path.name not in own and "xenoglot[" in path.read_text("utf-8")] == []


def test_r1_direct_dependencies_are_few_and_explained() -> None:
    names = {distribution(name) for name in RUNTIME}
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    explained = {distribution(name) for name in re.findall(r"^\| `([^`]+)`", page, re.MULTILINE)}
    assert len(names) <= MOST_DEPENDENCIES
    assert {distribution(name) for names in (*DIRECT.values(), RUNTIME) for name in names} == explained


def test_every_source_file_says_what_it_is() -> None:
    silent = [path for path in SOURCES if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]
    assert [str(path.relative_to(ROOT)) for path in silent] == []


def test_names_of_files_say_something() -> None:
    paths = [path.relative_to(ROOT) for folder in ("src", "tests") for path in (ROOT / folder).rglob("*.py")]
    vague = [
        path
        for path in paths
        if VAGUE_NAMES & {word for name in path.with_suffix("").parts for word in name.split("_")}
    ]
    assert [str(path) for path in vague] == []


def test_the_package_is_typed() -> None:
    assert (ROOT / "src" / "xenoglot" / "py.typed").is_file()
