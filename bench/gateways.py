"""What is compared: nothing between client and server, nginx as a plain reverse proxy, and Xenoglot as it comes.

A gateway of the benchmark is a name, the way to start it, and what it can do. Each stands in front of the same mock and
is asked by the same load tool; each peer (`bench/peers`) is one more of these.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from bench.processes import found
from xenoglot.dialect_registry import names

CLIENT_KEY: Final = "sk-bench-client-0123456789abcdef"
UPSTREAM_KEY: Final = "sk-bench-upstream-0123456789abcdef"


class Site(Struct, frozen=True):
    """Where a gateway is set up: a folder for its files, the port to listen on, and those of the mock.

    `mock_tls` is the mock's port that speaks TLS, `authority` the file of the certificate that signed the mock's.
    """

    folder: Path
    port: int
    mock: int
    mock_tls: int
    authority: Path


class Start(Struct, frozen=True):
    """How a gateway is started: the command, and what its environment has besides ours."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


class Gateway(Struct, frozen=True, kw_only=True):
    """Something to measure.

    `start` writes the files that the gateway needs and says how to run it; `None` where the mock itself is asked.
    `translates` is whether it speaks two dialects at once: where it does not, the mock answers in the client's.
    `pairs` are the dialects of client and upstream that it offers, where those are not all. `models` are its names for
    the models of the other side, by dialect; `headers` are sent to it with every request. `tls_offset` is added to the
    port where the upstream is to be asked over TLS. What is `slow_to_start` is started once, and not for each scenario.
    """

    name: str
    start: Callable[[Site], Start] | None
    translates: bool = True
    pairs: frozenset[tuple[str, str]] | None = None
    models: Mapping[str, str] = field(default_factory=dict)
    headers: tuple[str, ...] = ()
    tls_offset: int = 0
    slow_to_start: bool = False

    def offers(self, client: str, upstream: str) -> bool:
        """Whether it puts clients of the one dialect before servers of the other."""
        return self.pairs is None or (client, upstream) in self.pairs


def free_port() -> int:
    """Return a port of this machine at which nobody listens, with the next one free too."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port


_NGINX: Final = """
daemon off;
worker_processes 1;
worker_rlimit_nofile 16384;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 8192; }}
http {{
  access_log {folder}/access.log;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  client_max_body_size 64m;
  client_body_buffer_size 16m;
  keepalive_requests 1000000000;
  upstream mock {{ server 127.0.0.1:{mock}; keepalive 1024; keepalive_requests 1000000000; }}
  upstream mock_tls {{ server 127.0.0.1:{mock_tls}; keepalive 1024; keepalive_requests 1000000000; }}
  proxy_http_version 1.1;
  proxy_set_header Connection "";
  proxy_buffering off;
  proxy_read_timeout 600s;
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{ proxy_pass http://mock; }}
  }}
  server {{
    listen 127.0.0.1:{port_tls} backlog=4096;
    location / {{
      proxy_pass https://mock_tls;
      proxy_ssl_name localhost;
      proxy_ssl_trusted_certificate {authority};
      proxy_ssl_verify on;
    }}
  }}
}}
"""


def _start_nginx(site: Site) -> Start:
    config = site.folder / "nginx.conf"
    text = _NGINX.format(
        folder=site.folder,
        mock=site.mock,
        mock_tls=site.mock_tls,
        port=site.port,
        port_tls=site.port + 1,
        authority=site.authority,
    )
    config.write_text(text)
    return Start((found("nginx") or "nginx", "-p", str(site.folder), "-c", str(config)))


_XENOGLOT: Final = """
[server]
port = {port}

[keys]
env = ["BENCH_KEYS"]
limits = {{ requests = ["100000000/1m"], tokens = ["1000000000000/1m"], concurrency = 10000 }}
"""

_UPSTREAM: Final = """
[upstreams.{name}]
dialect = "{dialect}"
base_url = "{url}"
key_env = "BENCH_UPSTREAM"
{more}
[[models]]
name = "{name}"
upstream = "{name}"
"""

TLS: Final = "-tls"
READ: Final = "-read"
"""Behind the name of a dialect: the same upstream over TLS; the same, its text read for calls."""


def xenoglot_config(site: Site) -> str:
    """Return what an operator would write: keys, limits, an upstream of each dialect; all else is the default."""
    parts = [_XENOGLOT.format(port=site.port)]
    plain, secure = f"http://127.0.0.1:{site.mock}", f"https://localhost:{site.mock_tls}"
    for name in names():
        parts.append(_UPSTREAM.format(name=name, dialect=name, url=plain, more=""))
        parts.append(_UPSTREAM.format(name=name + TLS, dialect=name, url=secure, more=""))
        parts.append(_UPSTREAM.format(name=name + READ, dialect=name, url=plain, more='text_syntax = "hermes"\n'))
    return "".join(parts)


_LEDGER: Final = """
[ledger]

[[prices]]
model = "*"
input = "0.20"
output = "0.80"
"""


def _start_with_ledger(site: Site) -> Start:
    return _start_xenoglot(site, _LEDGER)


def _start_xenoglot(site: Site, more: str = "") -> Start:
    config = site.folder / "xenoglot.toml"
    config.write_text(xenoglot_config(site) + more)
    environment = {
        "BENCH_KEYS": CLIENT_KEY,
        "BENCH_UPSTREAM": UPSTREAM_KEY,
        "SSL_CERT_FILE": str(site.authority),
        "XDG_DATA_HOME": str(site.folder),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    return Start((sys.executable, "-m", "xenoglot", "serve", "--config", str(config)), environment)


DIRECT: Final = Gateway(name="direct", start=None, translates=False)
NGINX: Final = Gateway(name="nginx", start=_start_nginx, translates=False, tls_offset=1)
XENOGLOT: Final = Gateway(name="xenoglot", start=_start_xenoglot)
LEDGER: Final = Gateway(name="with ledger", start=_start_with_ledger)
"""The same that also records each request, and what it cost, in its store."""

USUAL: Final = (DIRECT, NGINX, XENOGLOT)
