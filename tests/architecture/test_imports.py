"""The arrows of the house: who may import whom, who may open a socket, and what an import may do."""

import ast
import json
import subprocess
import sys
from fnmatch import fnmatchcase

import pytest

from tests.architecture.tree import MODULES, ROOT, SOURCES, Import, imports, module_name, place

VALUES = {"errors", "model"}
MACHINERY = VALUES | {"codec", "moved_modules", "shortcuts", "signatures", "user_directories"}
FORMATS = MACHINERY | {"dialects", "dialect_registry", "text"}
ANSWERERS = FORMATS | {"providers", "policy", "backends", "http1"}
ROOMS = ANSWERERS | {"engine", "store", "translate"}
PROGRAMS = ROOMS | {"tools", "client", "gateway", "model_selection"}

# model <- codec <- dialects, text, policy <- providers <- backends <- client, gateway; engine stands beside backends.
# A part may import itself and what stands here. The root of the package (`xenoglot`, `__main__`) is a part too.
ARROWS = {
    "errors": {"model"},  # an error may carry a `Failure`
    "model": set[str](),
    "entry_points": set[str](),
    "http1": set[str](),
    "moved_modules": set[str](),
    "shortcuts": set[str](),
    "signatures": set[str](),
    "user_directories": set[str](),
    "codec": VALUES | {"shortcuts"},
    "dialect_registry": MACHINERY | {"entry_points"},
    "policy": MACHINERY,
    "store": MACHINERY | {"policy"},
    "dialects": MACHINERY,
    "text": MACHINERY,
    "providers": FORMATS | {"entry_points"},
    "backends": FORMATS | {"providers", "policy", "http1"},
    "engine": ANSWERERS,
    "hooks": ANSWERERS | {"entry_points"},
    "translate": FORMATS,
    "testing": ANSWERERS,
    "probe_command": ANSWERERS | {"gateway", "model_selection"},
    "usage_commands": MACHINERY | {"gateway", "model_selection", "store"},
    "administration": MACHINERY | {"backends", "gateway", "model_selection", "policy", "store", "usage_commands"},
    "bench_commands": MACHINERY | {"dialect_registry", "testing"},
    "tools": FORMATS | {"policy"},
    "client": ROOMS | {"tools", "python_gateway"},  # the default upstream
    "bulk": ROOMS | {"tools", "client", "model_selection", "gateway"},
    "gateway": ROOMS | {"hooks", "programs", "tools"},
    "model_selection": ANSWERERS | {"client", "gateway"},
    "agent": PROGRAMS,
    "terminal": PROGRAMS | {"agent"},
    "programs": MACHINERY,
    "launching": PROGRAMS | {"command_help", "programs"},
    "python_gateway": ROOMS | {"gateway"},
    "command_help": set[str](),
    "cli": PROGRAMS
    | {
        "",
        "administration",
        "agent",
        "bench_commands",
        "bulk",
        "command_help",
        "launching",
        "probe_command",
        "terminal",
        "usage_commands",
    },
    "": ROOMS | {"client", "cli", "moved_modules", "python_gateway", "tools"},
}

CATALOGUE = ("xenoglot.programs.environment", "xenoglot.programs.program", "xenoglot.programs.catalog")
"""Rows of programs and what is made of them: data and pure functions, which the console shows too."""

FAMILIES = ("google", "openai")
"""Folders under `dialects/` that are no dialect: what those of one vendor share."""

# The only modules that speak to an upstream, and those that play one, or a client, in a test.
UPSTREAM = ("xenoglot.backends.http.*", "xenoglot.testing.*")
PARENT = "xenoglot.gateway.limits.worker_ipc"
"""Speaks to the process that it is a worker of."""
CLIENT_MODULES = {"aiohttp", "http.client", "httpx", "httpx2", "requests", "ssl", "urllib.request", "urllib3"}
CONNECTING_CALLS = {
    "create_connection",
    "create_datagram_endpoint",
    "create_unix_connection",
    "open_connection",
    "open_unix_connection",
    "sock_connect",
    "urlopen",
}

# Run in a fresh interpreter: import the modules named, and tell how long that took and what it did besides. No audit
# event tells of a thread before Python 3.12, so the functions that start one are watched themselves.
IMPORT_UNDER_AUDIT = """
import _thread, importlib, json, sys, time

FORBIDDEN = {
    "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "socket.__new__", "socket.bind",
    "socket.connect", "socket.getaddrinfo", "subprocess.Popen", "urllib.Request",
}
seen = []

def watched(name, start):
    return lambda *args, **kwargs: (seen.append(name), start(*args, **kwargs))[1]

for name in {"start_new_thread", "start_joinable_thread"} & set(vars(_thread)):
    setattr(_thread, name, watched("thread", getattr(_thread, name)))
sys.addaudithook(lambda event, _: seen.append(event) if event in FORBIDDEN else None)
started = time.perf_counter()
for name in sys.argv[1:]:
    importlib.import_module(name)
seconds = time.perf_counter() - started
print(json.dumps({"seconds": seconds, "seen": seen}))
"""


def part(module: str) -> str:
    """The part that a module belongs to: `codec` for `xenoglot.codec.framing.sse`, empty for the root."""
    name = module.partition(".")[2].partition(".")[0]
    return "" if name == "__main__" else name


def lawful(edge: Import) -> bool:
    """Is this import along an arrow?"""
    importer, imported = part(edge.importer), part(edge.imported)
    if importer == imported == "dialects":  # each is a folder of its own; those of one family may share one
        return edge.imported.split(".")[2] in (edge.importer.split(".")[2], *FAMILIES)
    return imported == importer or imported in ARROWS[importer]


def speaks_upstream(module: str) -> bool:
    """Is this one of the modules that open sockets to an upstream?"""
    return any(fnmatchcase(module, pattern) for pattern in UPSTREAM)


def import_under_audit(*modules: str) -> dict[str, object]:
    """Import modules in a fresh interpreter; gives `seconds`, and in `seen` the forbidden audit events."""
    command = [sys.executable, "-c", IMPORT_UNDER_AUDIT, *modules]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return result


def test_the_house_has_the_rooms_of_the_map() -> None:
    assert {part(module) for module in MODULES} - set(ARROWS) == set()


def test_the_catalogue_of_programs_needs_no_program() -> None:
    found = {
        edge.imported
        for path in SOURCES
        if module_name(path) in CATALOGUE
        for edge in imports(path)
        if edge.imported.partition(".")[0] == "xenoglot"
    }
    assert {one for one in found if one not in CATALOGUE and part(one) not in MACHINERY} == set()


def test_imports_follow_the_arrows() -> None:
    edges = [edge for path in SOURCES for edge in imports(path) if edge.imported.partition(".")[0] == "xenoglot"]
    assert [edge for edge in edges if not lawful(edge)] == []


@pytest.mark.parametrize(
    ("importer", "imported", "expected"),
    [
        pytest.param("xenoglot.codec.framing.sse", "xenoglot.model.events", True, id="along-the-arrow"),
        pytest.param("xenoglot.model.events", "xenoglot.codec.framing.sse", False, id="against-the-arrow"),
        pytest.param("xenoglot.dialects.chat.parts", "xenoglot.dialects.chat.error", True, id="within-a-dialect"),
        pytest.param("xenoglot.dialects.chat.parts", "xenoglot.dialects.messages.errors", False, id="between-dialects"),
        pytest.param("xenoglot.dialects.chat", "xenoglot.text.think", False, id="between-siblings"),
        pytest.param("xenoglot.codec.framing.sse", "xenoglot.entry_points", False, id="installed-from-codec"),
        pytest.param("xenoglot.dialects.chat", "xenoglot.dialect_registry", False, id="registry-from-a-dialect"),
        pytest.param("xenoglot.client.async_", "xenoglot.gateway.http.asgi", False, id="gateway-from-elsewhere"),
        pytest.param("xenoglot.cli", "xenoglot.gateway.http.asgi", True, id="gateway-from-cli"),
        pytest.param("xenoglot.gateway.batches.worker", "xenoglot.bulk.run", False, id="bulk-from-gateway"),
    ],
)
def test_the_arrows_tell_right_from_wrong(importer: str, imported: str, expected: bool) -> None:  # noqa: FBT001 (a case)
    assert lawful(Import(importer, imported, "")) is expected


def test_only_the_transport_opens_sockets_to_an_upstream() -> None:
    others = [path for path in SOURCES if not speaks_upstream(name := module_name(path)) and name != PARENT]
    imported = [edge for path in others for edge in imports(path) if edge.imported in CLIENT_MODULES]
    called = [
        f"{place(path, node)} {node.attr}"
        for path in others
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in CONNECTING_CALLS
    ]
    assert (imported, called) == ([], [])


def test_importing_xenoglot_does_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    result = import_under_audit("xenoglot")
    with capsys.disabled():
        print(f"\nimport xenoglot: {result['seconds']:.3f} s")  # noqa: T201 (for information; no limit)
    assert result["seen"] == []


def test_importing_any_module_does_nothing_else() -> None:
    modules = [module for module in MODULES if not module.endswith("__main__")]
    assert import_under_audit(*modules)["seen"] == []


def test_the_audit_sees_what_it_forbids() -> None:
    seen = import_under_audit("tests.architecture.opens_a_socket")["seen"]
    assert seen == ["socket.__new__", "thread"]
