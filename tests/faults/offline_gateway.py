"""A default install, started and asked where every word to the net outside is noticed; run as a program of its own.

    python offline_gateway.py namespace|audit FOLDER [FLAG ...]

The flags are those of `xenoglot serve`.

In a network namespace of its own (`unshare --net`) there is no way out: the kernel counts what was to go there, from
the gateway and its children alike. Under an audit hook the gateway itself is watched, with the event loop of Python,
whose calls are audited. Prints what happened as JSON.
"""

from __future__ import annotations

import fcntl
import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

UP_AND_RUNNING = 0x1 | 0x40
GET_FLAGS, SET_FLAGS = 0x8913, 0x8914
TIMEOUT = 120

# What the gateway runs under: each connection, lookup and datagram is written down.
WATCHED_GATEWAY = """
import sys
SOCKETS = {"socket.connect", "socket.sendto", "socket.sendmsg"}
def hook(event, args, out=sys.argv[1]):
    if event in SOCKETS or event in {"socket.getaddrinfo", "socket.gethostbyname", "urllib.Request"}:
        with open(out, "a") as file:
            file.write(f"{event} {args[1] if event in SOCKETS else args[0]}\\n")
if sys.argv[2] == "audit":
    sys.modules["uvloop"] = None  # its sockets are not Python's
    sys.addaudithook(hook)
from xenoglot.cli import main
sys.exit(main(sys.argv[3:]))
"""


def bring_loopback_up() -> None:
    """Have 127.0.0.1 in the new namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        _, flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, GET_FLAGS, request))
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh14x", b"lo", flags | UP_AND_RUNNING))


def unroutable_packets() -> dict[str, int]:
    """What the kernel was asked to send and had no way for."""
    names, values = (
        line.split()[1:]
        for line in Path("/proc/net/snmp").read_text(encoding="ascii").splitlines()
        if line.startswith("Ip:")
    )
    four = dict(zip(names, map(int, values), strict=True))
    six = Path("/proc/net/snmp6")
    lines = six.read_text(encoding="ascii").splitlines() if six.exists() else []
    said = dict(line.split() for line in lines)
    return {"ipv4": four["OutNoRoutes"], "ipv6": int(said.get("Ip6OutNoRoutes", 0))}


def request_statuses(host: str, port: int) -> list[int]:
    """Ask for health, models and an answer; return the statuses."""
    body = json.dumps({"model": "any", "max_tokens": 4, "messages": [{"role": "user", "content": "Hi"}]})
    statuses = []
    asked = (("GET", "/health", None), ("GET", "/v1/models", None), ("POST", "/v1/chat/completions", body))
    for method, path, said in asked:
        connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT)
        connection.request(method, path, said)
        statuses.append(connection.getresponse().status)
        connection.close()
    return statuses


def main(how: str, folder: str, *flags: str) -> None:
    """Serve, ask, stop, and tell."""
    if how == "namespace":
        bring_loopback_up()
    seen = Path(folder, "seen")
    seen.touch()
    command = [sys.executable, "-c", WATCHED_GATEWAY, str(seen), how, "serve", "--port", "0", *flags]
    environ = os.environ | {"XDG_DATA_HOME": folder}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ) as serving:
        greeting = serving.stdout.readline() if serving.stdout else ""
        host, _, port = greeting.strip().rpartition("http://")[2].rpartition(":")
        statuses = request_statuses(host, int(port)) if port else []
        serving.send_signal(signal.SIGTERM)
        _, log = serving.communicate(timeout=TIMEOUT)
    told = {"greeting": greeting, "statuses": statuses, "exit": serving.returncode, "log": log}
    print(json.dumps(told | {"nowhere": unroutable_packets(), "seen": seen.read_text(encoding="utf-8").splitlines()}))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
