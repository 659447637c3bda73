"""The worker as a process: what it answers to its one line, and when it leaves."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.worker_process import (
    LONG,
    PYTHON,
    answer,
    configuration,
    end_input,
    full_pipe,
    line,
    new_socket,
    send_line,
    wait_for_end,
    watched,
    worker,
)
from xenoglot.engine.server.server_process import COMMAND
from xenoglot.engine.server.weights import Weights
from xenoglot.errors import missing_extra

GOOD = configuration(Weights(path=Path("/there/is/no/model.gguf"), name="none"))
SHAPE = (
    "model: str, alias: str, key: str, socket: str, slots: int, context: int, threads: int, batch: int, "
    "pooling: str, template: str"
)
NOT_JSON = "the configuration is not one line of JSON"
NOT_SHAPED = f"the configuration must be an object of {SHAPE}"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"", NOT_JSON, id="nothing"),
        pytest.param(b"\n", NOT_JSON, id="empty-line"),
        pytest.param(b"hello\n", NOT_JSON, id="words"),
        pytest.param(b"\xff\xfe\x00\n", NOT_JSON, id="bytes"),
        pytest.param(b"[" * 70_000 + b"\n", NOT_JSON, id="longer-than-a-line-may-be"),
        pytest.param(b"[" * 50_000 + b"\n", NOT_JSON, id="deep"),
        pytest.param(b"[]\n", NOT_SHAPED, id="list"),
        pytest.param(b"{}\n", NOT_SHAPED, id="empty-object"),
        pytest.param(line({key: value for key, value in GOOD.items() if key != "key"}), NOT_SHAPED, id="field-missing"),
        pytest.param(line({**GOOD, "more": 1}), NOT_SHAPED, id="field-unknown"),
        pytest.param(line({**GOOD, "slots": "4"}), NOT_SHAPED, id="string-for-int"),
        pytest.param(line({**GOOD, "slots": True}), NOT_SHAPED, id="bool-for-int"),
    ],
)
def test_a_line_that_is_no_configuration_is_refused(data: bytes, message: str) -> None:
    assert answer(data) == ({"error": "config", "message": message}, 2)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="missing"),
        pytest.param(b"GGUF\x03\0\0\0" + b"\xa5" * 4000, id="garbage"),
        pytest.param(b"GGUF\x03\0\0\0" + bytes(16), id="no-tensors"),
    ],
)
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.gguf"
    if content is not None:
        path.write_bytes(content)
    with worker() as process:
        report = json.loads(send_line(process, line({**GOOD, "model": str(path)})))
        status = process.wait(LONG)
    message = "the runtime cannot load the model file: it is damaged, or of a kind that it does not know"
    assert (report, status) == ({"error": "model", "message": message}, 2)


def test_what_the_runtime_logged_is_out_before_the_worker_leaves(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(b"GGUF\x03\0\0\0" + b"\xa5" * 4000)
    log, sink = full_pipe()
    with log, worker(stderr=sink) as process:
        os.close(sink)
        send_line(process, line({**GOOD, "model": str(path)}))
        assert b"failed to load model" in log.read()
        assert process.wait(LONG) == 2


def test_a_truncated_model_is_refused(tmp_path: Path, weights: Weights) -> None:
    path = tmp_path / "x.gguf"
    with weights.path.open("rb") as file:
        path.write_bytes(file.read(10_000_000))
    with worker() as process:
        report = json.loads(send_line(process, line({**GOOD, "model": str(path)})))
    message = "the runtime cannot load the model file: it is damaged, or of a kind that it does not know"
    assert report == {"error": "model", "message": message}


def test_says_what_to_install_where_the_runtime_is_missing() -> None:
    with worker([PYTHON, "-S", *COMMAND[1:]]) as process:
        report = json.loads(send_line(process, line(GOOD)))
    assert report == {"error": "runtime", "message": missing_extra("xllamacpp")}


@pytest.mark.parametrize(
    ("loader", "message"),
    [
        pytest.param(
            "'libgomp.so.1: cannot open shared object file: No such file or directory'",
            "xllamacpp needs the system library libgomp.so.1: "
            "apt-get install libgomp1 (or your system's package of it)",
            id="libgomp",
        ),
        pytest.param(
            "'libstdc++.so.6: cannot open shared object file: No such file or directory'",
            "xllamacpp needs the system library libstdc++.so.6: "
            "apt-get install libstdc++6 (or your system's package of it)",
            id="libstdc++",
        ),
        pytest.param("'wrong ELF class'", "xllamacpp cannot be loaded (wrong ELF class)", id="else"),
        pytest.param(
            "os.environ['OMP_WAIT_POLICY']",
            "xllamacpp cannot be loaded (passive)",
            id="threads-wait-passively-from-load",
        ),
    ],
)
def test_says_what_to_install_where_a_library_is_missing(tmp_path: Path, loader: str, message: str) -> None:
    """The loader's failure is scripted: a module of the runtime's name that cannot be imported."""
    (tmp_path / "xllamacpp.py").write_text(f"import os\nraise ImportError({loader})\n")
    with worker(environ={**os.environ, "PYTHONPATH": str(tmp_path)}) as process:
        report = json.loads(send_line(process, line(GOOD)))
    assert report == {"error": "library", "message": message}


def test_serves_until_its_input_ends_and_takes_its_socket_along(weights: Weights) -> None:
    path = new_socket()
    with worker() as process:
        assert json.loads(send_line(process, line(configuration(weights, path)))) == {"address": f"unix://{path}"}
        with watched(path) as connection:
            end_input(process)
            wait_for_end(connection)
        assert process.wait(LONG) == 0
    assert not Path(path).parent.exists()


def test_leaves_while_it_loads_when_its_input_ends(weights: Weights) -> None:
    path = new_socket()
    with worker() as process:
        process.communicate(line(configuration(weights, path)), LONG)
        assert process.returncode == 0
    assert not Path(path).parent.exists()


def test_ignores_what_follows_its_line(weights: Weights) -> None:
    path = new_socket()
    with worker() as process:
        assert json.loads(send_line(process, line(configuration(weights, path)) + b"\xff" * 100_000)) == {
            "address": f"unix://{path}"
        }
        end_input(process)
        assert process.wait(LONG) == 0


BLOCKED = """import ctypes, os, socket
class Anything: pass
class CommonParams: model = cpuparams = cpuparams_batch = Anything()
def Server(params):
    watch = socket.socket(socket.AF_UNIX)
    watch.connect(os.environ["WATCH"])
    ctypes.PyDLL(None).pause()
"""


if sys.platform == "linux":  # elsewhere it leaves when the load is over

    def test_never_outlives_a_parent_that_is_killed_during_the_load(temporary: Path, weights: Weights) -> None:
        """The load is scripted: it holds the interpreter's lock, as the real one does, and has no end."""
        (temporary / "xllamacpp.py").write_text(BLOCKED)
        environ = {**os.environ, "PYTHONPATH": str(temporary), "WATCH": str(temporary / "watch")}
        command = [PYTHON, str(Path(__file__).parents[1] / "parent_process.py"), str(weights.path)]
        with socket.socket(socket.AF_UNIX) as listener:
            listener.settimeout(LONG)
            listener.bind(environ["WATCH"])
            listener.listen()
            with subprocess.Popen(command, env=environ) as parent:
                connection, _ = listener.accept()
                connection.settimeout(LONG)
                parent.kill()
            with connection:
                wait_for_end(connection)


@pytest.mark.parametrize("how", [pytest.param([], id="alone"), pytest.param(["fork"], id="a-fork-holds-its-pipes")])
def test_never_outlives_a_killed_parent(temporary: Path, weights: Weights, how: list[str]) -> None:
    command = [PYTHON, str(Path(__file__).parents[1] / "parent_process.py"), str(weights.path), *how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        path = parent.stdout.readline().strip()
        with watched(path) as connection:
            parent.kill()
            assert parent.wait(LONG) == -9
            wait_for_end(connection)
    assert list(temporary.iterdir()) == []
