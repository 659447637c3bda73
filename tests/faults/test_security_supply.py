"""What is installed, what is shipped, and what no line of it does (R1-R3, R13, R53, R54, S15, S20)."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import pytest

from scripts.wheel_data import generated
from tests.architecture.test_imports import IMPORT_UNDER_AUDIT
from tests.architecture.test_repository import INSTALLS, RUNNABLE, entries, unpinned_installs
from tests.architecture.tree import MODULES, ROOT, imported_names

if TYPE_CHECKING:
    from pathlib import Path

METADATA = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
MADE = {"PKG-INFO", ".gitignore"}
"""What the builder puts into the source archive beside what it is told to."""
SHIPPED = ("src", "tests", "bench", "docs", "requirements", "scripts")


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel and the source archive, offline, by the locked builder; give the folder that they are in."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def version(distributions: Path) -> str:
    """Return the version that the builder found: that of the tag, or one after it."""
    [wheel] = distributions.glob("*.whl")
    return wheel.name.split("-")[1]


def tree(*folders: str) -> dict[str, bytes]:
    """The files of the tree, by their paths in it."""
    paths = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())
    kept = (path for path in paths if "__pycache__" not in path.parts and path.suffix != ".gguf")
    return {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in kept}


def test_r2_s20_the_wheel_is_the_tree_and_nothing_else(distributions: Path, version: str) -> None:
    with zipfile.ZipFile(distributions / f"xenoglot-{version}-py3-none-any.whl") as wheel:
        held = {name: wheel.read(name) for name in wheel.namelist() if not name.endswith("/")}
    about = f"xenoglot-{version}.dist-info/"
    assert {name.removeprefix(about) for name in held if name.startswith(about)} == METADATA
    beside = f"xenoglot-{version}.data/data/"
    made = {name.removeprefix(beside): data.decode() for name, data in held.items() if name.startswith(beside)}
    assert made == dict(generated(ROOT, version))
    code = {f"src/{name}": data for name, data in held.items() if not name.startswith((about, beside))}
    assert code == tree("src/xenoglot")
    assert [name for name in held if name.endswith((".pth", ".so", ".pyc"))] == []


def test_r2_s20_the_source_archive_is_the_tree_and_nothing_else(distributions: Path, version: str) -> None:
    with tarfile.open(distributions / f"xenoglot-{version}.tar.gz") as archive:
        members = [member for member in archive.getmembers() if not member.isdir()]
        assert [member.name for member in members if not member.isreg()] == []
        files = {member.name: archive.extractfile(member) for member in members}
        held = {name.partition("/")[2]: file.read() for name, file in files.items() if file is not None}
    at_the_top = {
        path.name: path.read_bytes()
        for path in [*ROOT.glob("*.md"), *map(ROOT.joinpath, ("LICENSE", "Makefile", "mkdocs.yml", "pyproject.toml"))]
    }
    assert {name: data for name, data in held.items() if name not in MADE} == tree(*SHIPPED) | at_the_top


def test_r2_importing_what_is_shipped_opens_and_starts_nothing(
    distributions: Path, version: str, tmp_path: Path
) -> None:
    with zipfile.ZipFile(distributions / f"xenoglot-{version}-py3-none-any.whl") as wheel:
        wheel.extractall(tmp_path)  # noqa: S202  we made it
    modules = [module for module in MODULES if not module.endswith("__main__")]
    command = [sys.executable, "-c", IMPORT_UNDER_AUDIT, *modules]
    environ = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environ, check=True, capture_output=True, text=True)
    assert json.loads(done.stdout.splitlines()[-1])["seen"] == []


# -- R1 and R3: what is installed


def test_r1_s20_installs_are_looked_for_wherever_a_command_may_stand() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in RUNNABLE}
    assert {"Makefile", ".ci/run", "scripts/venv", "README.md", "docs/security.md"} <= names
    workflows = [path for folder in (".github", ".gitlab", ".circleci") for path in (ROOT / folder).rglob("*")]
    images = [*ROOT.rglob("Dockerfile*"), *ROOT.rglob("*.containerfile")]
    more = [path for path in [*workflows, *images] if path.is_file() and ".venv" not in path.parts]
    assert [line for path in more for line in unpinned_installs(path, path.read_text(encoding="utf-8"))] == []


def test_r1_npm_installs_from_its_lock_alone() -> None:
    commands = re.findall(r"npm (\w+)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert set(commands) <= {"ci"}
    for folder in ("drive", "drive/compliance"):
        packages = json.loads((ROOT / folder / "package-lock.json").read_text(encoding="utf-8"))["packages"]
        assert [name for name, package in packages.items() if name and "integrity" not in package] == []


def test_r3_s20_the_bill_of_materials_is_that_of_the_locks() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/sbom.py", "--check"], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    bill = json.loads((ROOT / "requirements" / "sbom.json").read_text(encoding="utf-8"))
    listed = sorted(
        (part["scope"], f"{part['name']}=={part['version']}", tuple(one["content"] for one in part["hashes"]))
        for part in bill["components"]
    )
    locked = sorted(
        (scope, line.partition(" ")[0], tuple(re.findall(r"sha256:(\w+)", line)))
        for lock, scope in (("run", "required"), ("build", "excluded"))
        for line in entries(ROOT / "requirements" / f"{lock}.txt")
    )
    assert listed == locked
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    references = [part["bom-ref"] for part in bill["components"]]
    assert len(set(references)) == len(references)


def test_r3_nothing_is_published_by_what_tests() -> None:
    commands = [(ROOT / "Makefile").read_text(encoding="utf-8"), (ROOT / ".ci" / "run").read_text(encoding="utf-8")]
    assert [
        word
        for word in ("twine", "uv publish", "hatch publish", "npm publish", "curl ", "wget ")
        if word in "".join(commands)
    ] == []
    assert INSTALLS.search("pip install twine")


# -- R13, R53, R54: what no line of it does

FORBIDDEN_MODULES = {
    "cloudpickle", "code", "codeop", "cPickle", "dill", "imp", "jinja2", "joblib", "mako", "marshal", "pickle", "pty",
    "runpy", "shelve", "tempita", "xml", "yaml",
}  # fmt: skip
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "breakpoint", "input"}
FORBIDDEN_ATTRIBUTES = {
    "os.system", "os.popen", "pickle.load", "pickle.loads", "torch.load", "yaml.load", "numpy.load", "tempfile.mktemp",
    "ssl._create_unverified_context", "builtins.eval", "builtins.exec",
}  # fmt: skip


SHELLS = {"Permissions", "replace", "shtab.complete"}
"""Where `shell` is something else: a permission, one that is changed, and the shell for which words are completed."""


class SourceFacts(NamedTuple):
    """What a module imports, and what it calls, as the source has it."""

    imported: tuple[str, ...]
    calls: tuple[tuple[str, ast.Call], ...]


@cache
def source_facts(module: str) -> SourceFacts:
    """Read a module once for all the tests."""
    nodes = list(ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))))
    called = [(ast.unparse(node.func), node) for node in nodes if isinstance(node, ast.Call)]
    return SourceFacts(tuple(name for node in nodes for name in imported_names(node)), tuple(called))


def test_r54_r53_no_module_that_runs_what_it_reads_is_imported() -> None:
    found = {
        (module, name)
        for module in MODULES
        for name in source_facts(module).imported
        if name.partition(".")[0] in FORBIDDEN_MODULES
    }
    # The templates of the console are files of the package; nothing that is read at run time is one.
    assert found == {("xenoglot.gateway.console.render", "jinja2")}


def test_r54_nothing_that_is_read_is_run() -> None:
    found = [
        f"{module}: {name}"
        for module in MODULES
        for name, _ in source_facts(module).calls
        if name in FORBIDDEN_CALLS or name in FORBIDDEN_ATTRIBUTES
    ]
    assert found == []


def test_r54_no_command_goes_through_a_shell_and_no_certificate_unseen() -> None:
    found = [
        f"{module}: {name}"
        for module in MODULES
        for name, call in source_facts(module).calls
        if name.endswith("create_subprocess_shell")
        or any(
            (word.arg == "shell" and ast.unparse(word.value) != "False" and name not in SHELLS)
            or (word.arg in {"check_hostname", "verify"} and ast.unparse(word.value) == "False")
            for word in call.keywords
        )
    ]
    assert found == []


@pytest.mark.parametrize(
    ("names", "places"),
    [
        pytest.param(
            {"subprocess.Popen", "subprocess.run", "asyncio.create_subprocess_exec", "os.execv", "os.fork"},
            {
                # our own processes, and what fetches the weights
                "xenoglot.agent.background", "xenoglot.engine.server.server_process", "xenoglot.engine.server.weights",
                "xenoglot.gateway.process.supervisor",
                # what the person at the terminal lets an agent run, and what they asked to have started
                "xenoglot.agent.tools.run", "xenoglot.agent.hooks", "xenoglot.agent.sandbox.subreaper",
                "xenoglot.agent.tools.search", "xenoglot.launching.foreground",
            },
            id="R13-commands",
        ),
        pytest.param(
            {"importlib.import_module", "import_module", "entry_points", "importlib.metadata.entry_points"},
            {
                "xenoglot.backends.local_models.load_object", "xenoglot.entry_points",
                # by names that stand in a table beside it: our own, and those of the official SDKs
                "xenoglot", "xenoglot.client.sdk.objects", "xenoglot.client.sdk.requests",
                # a compression of the standard library, or a package that may not be there
                "xenoglot.store.ledger.bodies",
                # old names of what has moved
                "xenoglot.codec.dialect", "xenoglot.moved_modules",
                # modules with tables of an installed dialect
                "xenoglot.gateway.console.inspection.field_names",
            },
            id="R13-modules",
        ),
    ],
)  # fmt: skip
def test_r13_few_places_run_or_load_anything(names: set[str], places: set[str]) -> None:
    found = {module for module in MODULES for name, _ in source_facts(module).calls if name in names}
    assert found <= places, found - places


def test_r13_s13_no_endpoint_opens_a_file() -> None:
    opening = re.compile(
        r"(os\.|io\.)?open|(?!(writer|relay|self\._relay)\.).*\.((read|write)_(text|bytes)|unlink|iterdir|rglob)"
    )
    inner = ("xenoglot.gateway", "xenoglot.dialects", "xenoglot.codec", "xenoglot.text", "xenoglot.policy")
    rooms = [module for module in MODULES if module.startswith(inner)]
    found = {module for module in rooms for name, _ in source_facts(module).calls if opening.fullmatch(name)}
    # The configuration and what it names, at the start; files of the package; a pipe or socket of the process itself.
    expected = {"config.discovery", "config.load", "console.render", "process.engines", "process.worker"}
    assert {module.removeprefix("xenoglot.gateway.") for module in found} == expected
