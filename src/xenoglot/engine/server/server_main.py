"""Main module of the child process: runs llama.cpp's server (xllamacpp) on a unix socket, or on loopback with a key.

The socket is private to this user. The protocol with the parent has three parts. One JSON line comes in on stdin: the
fields of `Config`. One JSON line goes out on stdout: `{"address": "unix:///…"}` once requests can be sent, or
`{"error": code, "message": …}`. The end of stdin means that the parent has died, or wants the child to exit: it exits
at once, in any state.

It imports nothing of this project and is run as a file, so that it starts fast and does not depend on the parent's
import path.
"""

import contextlib
import ctypes
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, TypedDict, cast

if TYPE_CHECKING:
    import xllamacpp

LONGEST_LINE: Final = 1 << 16
ORPHAN_CHECK_SECONDS: Final = 1.0
PR_SET_PDEATHSIG: Final = 1
HTTP_THREADS: Final = 64  # every open request holds one, also while it waits for a slot; the default is 6
ERROR_LEVEL: Final = 1  # llama.cpp's log level "error": one above silence; it prints no prompts


class Config(TypedDict):
    """The configuration from the parent: a model file, its alias, and the settings of the server.

    `slots` requests run concurrently and share `context` tokens of memory; prompts are processed in batches of `batch`
    tokens. `socket` is the path of the unix socket, or "" for a free loopback port. `pooling` is "" for a generating
    model; for embeddings it is `mean` (over all tokens) or `model` (as the model file specifies).
    """

    model: str
    alias: str
    key: str
    socket: str
    slots: int
    context: int
    threads: int
    batch: int
    pooling: str
    template: str


class StartFailure(Exception):  # noqa: N818 - it is one line to the parent, not an error of the program
    """Sent to the parent instead of an address."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def main() -> None:
    """Read the configuration, load the model, report, and stay until stdin ends."""
    report = os.dup(1)
    os.dup2(2, 1)  # what a library prints is not our report
    parent = os.getppid()
    try:
        config = read_config(sys.stdin.buffer.readline(LONGEST_LINE))
        threading.Thread(target=leave_at_end_of_input, args=(config,), daemon=True).start()
        die_with_parent(wanted=True)
        server = serve(config)
        die_with_parent(wanted=False)
    except StartFailure as refusal:
        say(report, {"error": refusal.code, "message": refusal.message})
        sys.exit(2)  # in an orderly way: the runtime writes its log in a thread, and nothing works that could be torn
    say(report, {"address": server.listening_address})
    # The pipe tells at once, unless the parent forked and the fork holds the other end too: then the parent changes.
    while os.getppid() == parent:
        time.sleep(ORPHAN_CHECK_SECONDS)
    abandon(config)


def read_config(line: bytes) -> Config:
    """Check the parent's line; every field must be there, and no other."""
    try:
        config = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise StartFailure("config", "the configuration is not one line of JSON") from error
    kinds = Config.__annotations__
    if not isinstance(config, dict) or {key: type(value) for key, value in config.items()} != kinds:
        wanted = ", ".join(f"{key}: {kind.__name__}" for key, kind in kinds.items())
        raise StartFailure("config", f"the configuration must be an object of {wanted}")
    return cast("Config", config)


def serve(config: Config) -> "xllamacpp.Server":
    """Load the model and give its server, which runs in threads of its own and stops when it is collected."""
    # Read when libgomp is loaded. Spinning threads starve each other as soon as anything else wants the cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        import xllamacpp  # noqa: PLC0415 - after the environment is set, and its absence is an answer
    except ModuleNotFoundError as error:
        raise StartFailure("runtime", "xllamacpp is not installed: pip install 'xenoglot[local]'") from error
    except ImportError as error:
        raise StartFailure("library", missing_library(str(error))) from error
    params = xllamacpp.CommonParams()
    params.model.path = config["model"]
    params.model_alias = {config["alias"]}
    params.n_parallel = config["slots"]
    params.n_ctx = config["context"]
    params.kv_unified = True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = config["threads"]
    params.n_batch = params.n_ubatch = config["batch"]
    params.n_threads_http = HTTP_THREADS
    params.cache_ram_mib = 256
    params.api_keys = [config["key"]]
    params.ui = False
    params.cors_origins = ""
    params.sse_ping_interval = 1  # also how soon a closed connection is noticed
    params.verbosity = ERROR_LEVEL
    params.chat_template = config["template"]
    params.embedding = bool(config["pooling"])
    if config["pooling"] == "mean":
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    if config["socket"]:
        params.hostnames = [config["socket"]]
        params.port = 1
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        problem = "the runtime cannot load the model file: it is damaged, or of a kind that it does not know"
        problem += "; or the chat template is none" if config["template"] else ""
        raise StartFailure("model", problem) from error


def missing_library(message: str) -> str:
    """Name the system library that the loader could not find, and the package that has it."""
    library = message.partition(":")[0]
    package = {"libgomp.so.1": "libgomp1", "libstdc++.so.6": "libstdc++6"}.get(library)
    if package is None:
        return f"xllamacpp cannot be loaded ({message})"
    return f"xllamacpp needs the system library {library}: apt-get install {package} (or your system's package of it)"


def say(report: int, line: dict[str, str]) -> None:
    """Write one line to the parent."""
    with contextlib.suppress(BrokenPipeError):  # then stdin has ended too
        os.write(report, json.dumps(line).encode() + b"\n")


def leave_at_end_of_input(config: Config) -> None:
    """Wait until the other end of stdin is closed."""
    while os.read(0, LONGEST_LINE):
        pass
    abandon(config)


def abandon(config: Config) -> NoReturn:
    """Leave, taking the socket and its folder along, since the parent may be unable to."""
    if config["socket"]:
        socket = Path(config["socket"])
        with contextlib.suppress(OSError):  # the parent may have been faster
            socket.unlink(missing_ok=True)
            socket.parent.rmdir()
    leave(0)


def die_with_parent(*, wanted: bool) -> None:
    """Let Linux kill this process when its parent dies, or no longer.

    The load holds the interpreter's lock, so that no thread of ours could act on the end of the input. Only for that
    time, since the signal really comes when the thread that started us ends, which may be no death at all:
    https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL if wanted else 0)


def leave(status: int) -> NoReturn:
    """End without unwinding: tearing the runtime down while it works aborts the process."""
    os._exit(status)


if __name__ == "__main__":
    main()
