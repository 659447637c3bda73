"""What one large body does to everybody else: the worst delay of `/health`, CPU time and peak memory of the gateway.

`python -m bench.bodies` starts a gateway for each case (`--only WORD` picks some), sends it one request, and asks
`/health` every 5 ms meanwhile. The server behind it is a thread of this process that sends the answer of the case. Two
cores are wanted: one for the gateway, one for all else.
"""

from __future__ import annotations

import argparse
import http.client
import os
import random
import re
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from bench.gateways import free_port
from bench.processes import running

POLL_SECONDS: Final = 0.005
SETTLE_SECONDS: Final = 0.3
_FINE: Final = 200
_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"content-length: *([0-9]+)", re.IGNORECASE)

CONFIG: Final = """
[server]
port = {port}

[upstreams.u]
dialect = "{dialect}"
base_url = "http://127.0.0.1:{mock}"

[[models]]
name = "*"
upstream = "u"
"""

PATHS: Final = {
    "chat": "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
    "gemini": "/v1beta/models/m:generateContent",
    "embeddings": "/v1/embeddings",
}


class Case(Struct, frozen=True):
    """A request to `path`, and the answer of a server of `dialect`; `times` so many at once."""

    name: str
    path: str
    dialect: str
    body: Callable[[], bytes]
    answer: Callable[[], bytes]
    times: int = 1


class Found(Struct, frozen=True):
    """What came of a case: seconds, and megabytes beyond those of the idle gateway."""

    name: str
    sent: int
    answered: int
    statuses: tuple[int, ...]
    seconds: float
    cpu: float
    health: float
    peak_mb: float


def _chat(content: bytes = b'"hi"', more: bytes = b"") -> bytes:
    return b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":' + content + b"}]" + more + b"}"


def _unknown(value: bytes) -> Callable[[], bytes]:
    return lambda: _chat(more=b',"x":' + value)


def _many(one: bytes, times: int, around: bytes = b"[%b]") -> bytes:
    return around % b",".join([one] * times)


def _keys(times: int) -> bytes:
    return b"{" + b",".join(b'"key%07d":0' % number for number in range(times)) + b"}"


def _answer(message: bytes = b'{"role":"assistant","content":"hi"}', more: bytes = b"") -> bytes:
    choice = b'{"index":0,"finish_reason":"stop","message":' + message + b"}"
    usage = b'"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}'
    return b'{"id":"c","object":"chat.completion","model":"m","choices":[' + choice + b"]," + usage + more + b"}"


def _words(size: int) -> bytes:
    return b'"' + b"The tide, twice a day: {so} it goes. \\n" * (size // 39) + b'"'


def _calls(times: int) -> bytes:
    call = b'{"id":"call_%06d","type":"function","function":{"name":"f","arguments":"{\\"a\\": 1}"}}'
    calls = b",".join(call % number for number in range(times))
    return b'{"role":"assistant","content":null,"tool_calls":[' + calls + b"]}"


def _vectors(rows: int = 2048, width: int = 1536, *, ollama: bool = False) -> bytes:
    made = random.Random(7)  # noqa: S311  any numbers will do
    row = b"[" + b",".join(b"%.15g" % made.uniform(-0.1, 0.1) for _ in range(width)) + b"]"
    if ollama:
        return b'{"model":"m","embeddings":' + _many(row, rows) + b',"prompt_eval_count":3}'
    items = (b'{"object":"embedding","index":%d,"embedding":%b}' % (index, row) for index in range(rows))
    usage = b'"usage":{"prompt_tokens":3,"total_tokens":3}'
    return b'{"object":"list","model":"m","data":[' + b",".join(items) + b"]," + usage + b"}"


def _inputs(rows: int = 2048) -> bytes:
    return b'{"model":"m","input":' + _many(b'"a"', rows) + b"}"


def _turns(times: int) -> bytes:
    one = b'{"role":"user","content":"hi"},{"role":"assistant","content":"yes"}'
    return b'{"model":"m","max_tokens":9,"messages":' + _many(one, times // 2) + b"}"


def _session(turns: int) -> bytes:
    text = _words(4000)
    user = b'{"role":"user","content":[{"type":"text","text":' + text + b"}]}"
    pair = user + b',{"role":"assistant","content":' + text + b"}"
    return b'{"model":"m","max_tokens":9,"messages":' + _many(pair, turns // 2) + b"}"


def cases() -> list[Case]:
    """Return all that is measured: the tables of what was found, then what is large and usual."""
    chat, embeddings = PATHS["chat"], PATHS["embeddings"]
    small = _answer
    return [
        Case("15 M zeros in an unknown field", chat, "chat", _unknown(_many(b"0", 15_000_000)), small),
        Case("10 M `{}`", chat, "chat", _unknown(_many(b"{}", 10_000_000)), small),
        Case("10 M `{}`, four at once", chat, "chat", _unknown(_many(b"{}", 10_000_000)), small, 4),
        Case("1.5 M keys", chat, "chat", _unknown(_keys(1_500_000)), small),
        Case("4 M duplicates of a key", chat, "chat", _unknown(_many(b'"k":0', 4_000_000, b"{%b}")), small),
        Case(
            "800,000 messages of `responses`",
            PATHS["responses"],
            "chat",
            lambda: b'{"model":"m","input":' + _many(b'{"role":"user","content":"hi"}', 800_000) + b"}",
            small,
        ),
        Case(
            "550,000 `contents` of `gemini`",
            PATHS["gemini"],
            "chat",
            lambda: b'{"contents":' + _many(b'{"role":"user","parts":[{"text":"hi"}]}', 550_000) + b"}",
            small,
        ),
        Case("330,000 `[]`", chat, "chat", _unknown(_many(b"[]", 330_000)), small),
        Case("330,000 `[]`, translated", PATHS["messages"], "chat", _unknown(_many(b"[]", 330_000)), small),
        Case("900,000 keys", chat, "chat", _unknown(_keys(900_000)), small),
        Case("900,000 keys beside the model", chat, "chat", lambda: b'{"model":"m",' + _keys(900_000)[1:], small),
        Case("30 MB of text", chat, "chat", lambda: _chat(_words(30_000_000)), small),
        Case("30 MB of text, translated", PATHS["messages"], "chat", lambda: _chat(_words(30_000_000)), small),
        Case("4 MB session", chat, "chat", lambda: _session(1000), small),
        Case("4 MB session, translated", PATHS["messages"], "chat", lambda: _session(1000), small),
        Case("99,000 turns", chat, "chat", lambda: _turns(99_000), small),
        Case("99,000 turns, translated", PATHS["messages"], "chat", lambda: _turns(99_000), small),
        Case("embeddings 2,048 x 1,536, alike", embeddings, "chat", _inputs, _vectors),
        Case("embeddings 2,048 x 1,536, from ollama", embeddings, "ollama", _inputs, lambda: _vectors(ollama=True)),
        Case("60 MB answer of text, alike", chat, "chat", _chat, lambda: _answer(_said(_words(60_000_000)))),
        Case(
            "60 MB answer of text, translated",
            PATHS["messages"],
            "chat",
            _chat,
            lambda: _answer(_said(_words(60_000_000))),
        ),
        Case("answer with 20 M `{}`", chat, "chat", _chat, lambda: _answer(more=b',"x":' + _many(b"{}", 20_000_000))),
        Case("answer with 330,000 `{}`", chat, "chat", _chat, lambda: _answer(more=b',"x":' + _many(b"{}", 330_000))),
        Case("answer of 100,000 calls, alike", chat, "chat", _chat, lambda: _answer(_calls(100_000))),
        Case("answer of 100,000 calls, translated", PATHS["messages"], "chat", _chat, lambda: _answer(_calls(100_000))),
    ]


def _said(text: bytes) -> bytes:
    return b'{"role":"assistant","content":' + text + b"}"


class _Mock:
    """A server that answers each request with the same bytes, however long the request is."""

    def __init__(self, answer: bytes) -> None:
        self.play(answer)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def play(self, answer: bytes) -> None:
        """Answer so from now on."""
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(answer)
        self._answer = head + answer

    def close(self) -> None:
        """Take no more connections."""
        self._socket.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while _received(connection) is not None:
                connection.sendall(self._answer)


def _received(connection: socket.socket) -> tuple[bytes, int] | None:
    """Read one message; return its head and the size of its body; `None` at the end of the connection."""
    data = b""
    while _HEAD_END not in data:
        piece = connection.recv(65_536)
        if not piece:
            return None
        data += piece
    head, _, rest = data.partition(_HEAD_END)
    found = _LENGTH.search(head)
    size = int(found[1]) if found else 0
    left = size - len(rest)
    buffer = bytearray(1 << 20)
    while left > 0:
        count = connection.recv_into(buffer)
        if not count:
            return None
        left -= count
    return head, size


def _posted(port: int, case: Case, body: bytes) -> tuple[int, int]:
    """Send a request; return the status and the size of the answer; 0 where there is none."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        head = f"POST {case.path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        with suppress(OSError):
            connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        received = _received(connection)
        return (0, 0) if received is None else (int(received[0].split(b" ", 2)[1]), received[1])


class _Poller(threading.Thread):
    """Asks `/health` again and again, and notes the slowest answer."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.worst = 0.0
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        self._over = threading.Event()

    def run(self) -> None:
        """Ask until it is over."""
        while not self._over.wait(POLL_SECONDS):
            begun = time.perf_counter()
            self._connection.request("GET", "/health")
            self._connection.getresponse().read()
            self.worst = max(self.worst, time.perf_counter() - begun)

    def stop(self) -> float:
        """Return the slowest answer, in seconds."""
        self._over.set()
        self.join()
        return self.worst


def _status(pid: int, field: str) -> float:
    """Return a field of `/proc/PID/status`, in megabytes."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(rf"{field}:\s+(\d+)", text)[0]) / 1024


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(case: Case, folder: Path) -> Found:
    """Return what came of a case."""
    body, answer, mock, port = case.body(), case.answer(), _Mock(_answer()), free_port()
    config = folder / "xenoglot.toml"
    config.write_text(CONFIG.format(port=port, mock=mock.port, dialect=case.dialect))
    environment = {"XDG_DATA_HOME": str(folder)}
    command = (sys.executable, "-m", "xenoglot", "serve", "--config", str(config))
    with running(command, folder / "gateway.log", environment) as process:
        _wait(port)
        for _ in range(2):  # what is loaded at the first request is not what is measured
            _posted(port, case, _chat(more=b',"contents":[{"parts":[{"text":"hi"}]}],"input":"hi"'))
        mock.play(answer)
        idle, used = _status(process.pid, "VmRSS"), _cpu(process.pid)
        poller = _Poller(port)
        poller.start()
        time.sleep(SETTLE_SECONDS)
        statuses: list[tuple[int, int]] = []
        begun = time.perf_counter()
        asking = [
            threading.Thread(target=lambda: statuses.append(_posted(port, case, body))) for _ in range(case.times)
        ]
        for one in asking:
            one.start()
        for one in asking:
            one.join()
        seconds = time.perf_counter() - begun
        time.sleep(SETTLE_SECONDS)
        health = poller.stop()
        found = Found(
            case.name,
            len(body),
            max(size for _, size in statuses),
            tuple(status for status, _ in statuses),
            seconds,
            _cpu(process.pid) - used,
            health,
            _status(process.pid, "VmHWM") - idle,
        )
    mock.close()
    return found


def _wait(port: int) -> None:
    until = time.perf_counter() + 60
    while time.perf_counter() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.01)
    raise TimeoutError("the gateway did not start")


def row(found: Found) -> str:
    """Return a row of the table."""
    statuses = ", ".join(str(status) for status in sorted(set(found.statuses)))
    sizes = f"{found.sent / 1e6:.1f} | {found.answered / 1e6:.1f}"
    costs = f"{found.cpu:.2f} | {found.health * 1000:.0f} | {found.peak_mb:.0f}"
    return f"| {found.name} | {sizes} | {statuses} | {costs} |"


def say(line: str) -> None:
    """Write a line."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="WORD", help="cases with this in their name")
    options = parser.parse_args(arguments)
    say("| body | MB sent | MB answered | status | CPU s | worst `/health` ms | peak MB |")
    say("|---|---|---|---|---|---|---|")
    for case in cases():
        if not options.only or any(word in case.name for word in options.only):
            with tempfile.TemporaryDirectory() as folder:
                say(row(measured(case, Path(folder))))


if __name__ == "__main__":
    main()
