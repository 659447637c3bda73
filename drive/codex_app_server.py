"""Codex as a server on its standard input and output (`codex app-server`): turns that a test interrupts or steers."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
from typing import TYPE_CHECKING, Self

from drive.conftest import CLIENTS, PATIENCE

if TYPE_CHECKING:
    from drive.conftest import Place
    from xenoglot.model.json import JSON, JSONObject

CONFIG = """
model = "somebody-elses"
model_provider = "gateway"
[model_providers.gateway]
name = "gateway"
base_url = "{url}/v1"
wire_api = "responses"
supports_websockets = {sockets}
stream_max_retries = 2
[analytics]
enabled = false
"""


class CodexAppServer:
    """One thread of conversation; JSON-RPC messages are lines."""

    def __init__(self, place: Place, url: str, *, sockets: bool = True) -> None:
        home = place.home / ".codex"
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(CONFIG.format(url=url, sockets=str(sockets).lower()))
        node = CLIENTS / "bin"
        path = os.pathsep.join((str(node), str(CLIENTS / "node_modules" / ".bin"), os.environ["PATH"]))
        self._process = subprocess.Popen(
            [CLIENTS / "node_modules" / ".bin" / "codex", "app-server"],
            cwd=place.work,
            env={"HOME": str(place.home), "PATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._messages: queue.Queue[JSONObject | None] = queue.Queue()
        self._seen: list[JSONObject] = []
        self._thread = threading.Thread(target=self._read, name="codex app-server")
        self._number = 0
        self._work = str(place.work)
        self.thread_id = ""

    def __enter__(self) -> Self:
        self._thread.start()
        self.call("initialize", clientInfo={"name": "drive", "version": "0"})
        self._send({"method": "initialized"})
        started = self.call("thread/start", cwd=self._work, approvalPolicy="never", sandbox="danger-full-access")
        self.thread_id = str(started["thread"]["id"])
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._thread.join()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def call(self, method: str, **params: JSON) -> JSONObject:
        """Return the result of a method; notifications that come before it are kept for `until`."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        kept: list[JSONObject] = []
        while (message := self._next()).get("id") != self._number or "method" in message:
            kept.append(message)
        self._seen += kept
        assert "error" not in message, message
        result: JSONObject = message["result"]
        return result

    def begin(self, text: str) -> str:
        """Begin a turn and return its id."""
        started = self.call("turn/start", threadId=self.thread_id, input=[{"type": "text", "text": text}])
        return str(started["turn"]["id"])

    def until(self, method: str) -> JSONObject:
        """Return the parameters of the next notification of `method`; those before it are passed over."""
        while self._seen:
            if (message := self._seen.pop(0)).get("method") == method:
                return dict(message["params"])
        while (message := self._next()).get("method") != method:
            pass
        return dict(message["params"])

    def end(self) -> tuple[str, list[str]]:
        """Return the status of the turn when it ends, and what the model said in it."""
        said: list[str] = []
        while True:
            message = self._seen.pop(0) if self._seen else self._next()
            params = message.get("params") or {}
            if message.get("method") == "item/completed" and params["item"]["type"] == "agentMessage":
                said.append(str(params["item"]["text"]))
            if message.get("method") == "turn/completed":
                return str(params["turn"]["status"]), said

    def _send(self, message: JSONObject) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _next(self) -> JSONObject:
        message = self._messages.get(timeout=PATIENCE)
        assert message is not None, "codex has ended"
        return message

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._messages.put(json.loads(line))
        self._messages.put(None)
