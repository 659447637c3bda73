"""The runner: which scenarios are asked for, what gateways are given, and where a page takes the tables."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pytest

from bench import gateway
from bench.gateways import CLIENT_KEY, NGINX, READ, TLS, UPSTREAM_KEY, XENOGLOT, Gateway, Site, xenoglot_config
from bench.instructions import gate, read, told, total, write
from bench.measuring import Result, Settings, Stand, asked, load_command, measured
from bench.processes import Cores, family, memory_mb
from bench.scenarios import EVERY, GOALS, MATRIX, TRANSLATED, VERBATIM
from xenoglot.dialect_registry import names
from xenoglot.gateway.config.load import load


def options(**said: object) -> argparse.Namespace:
    return argparse.Namespace(**({"matrix": False, "only": None, "all": False} | said))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, port=8000, mock=9000, mock_tls=9001, authority=tmp_path / "authority.pem")


def test_the_goals_are_measured_unless_more_is_asked_for() -> None:
    assert gateway.chosen(options()) == GOALS
    assert gateway.chosen(options(all=True)) == EVERY
    assert gateway.chosen(options(matrix=True)) == MATRIX
    assert gateway.chosen(options(only=["verbatim", "chat-chat"])) == (VERBATIM, MATRIX[0])


def test_an_unknown_scenario_is_told() -> None:
    with pytest.raises(SystemExit, match="no scenario fast"):
        gateway.chosen(options(only=["fast"]))


def test_xenoglot_is_given_a_file_that_it_takes(site: Site) -> None:
    file = site.folder / "xenoglot.toml"
    file.write_text(xenoglot_config(site))
    file.chmod(0o600)
    config = load(file, {"BENCH_KEYS": CLIENT_KEY, "BENCH_UPSTREAM": UPSTREAM_KEY})
    assert {upstream.partition("-")[0] for upstream in config.upstreams} == set(names())
    assert {f"chat{TLS}", f"chat{READ}"} <= set(config.upstreams)
    assert config.keys is not None


def test_nginx_is_told_where_to_listen_and_whom_to_ask(site: Site) -> None:
    assert NGINX.start is not None
    start = NGINX.start(site)
    text = Path(start.command[-1]).read_text()
    assert [
        line in text for line in ("listen 127.0.0.1:8000 ", "listen 127.0.0.1:8001 ", "server 127.0.0.1:9000;")
    ] == [True] * 3


def test_a_gateway_is_asked_by_its_own_names_and_with_its_own_headers() -> None:
    peer = Gateway(name="peer", start=None, models={"chat": "theirs"}, headers=("x-provider: mock",))
    made = asked(TRANSLATED, peer)
    assert b'"model":"theirs"' in made.body
    assert made.headers[-1] == "x-provider: mock"


def test_what_is_not_offered_is_a_reason_and_no_sample(site: Site, tmp_path: Path) -> None:
    nobody = Gateway(name="direct", start=None, pairs=frozenset())
    settings = Settings(tools=tmp_path, folder=tmp_path, cores=Cores.here())
    assert measured(VERBATIM, [nobody], site, settings) == [Result("verbatim", "direct", reason="not offered")]


def test_the_load_tool_is_told_the_scenario(site: Site, tmp_path: Path) -> None:
    settings = Settings(tools=Path("/tools"), folder=tmp_path, cores=Cores.here())
    command = load_command(VERBATIM, Stand(XENOGLOT, site, 7), settings, 1.5, [7, 8])
    said = dict(zip(command[1::2], command[2::2], strict=True))
    assert command[0] == "/tools/load"
    assert (said["--port"], said["--path"], said["--connections"]) == ("8000", "/v1/chat/completions", "64")
    assert command[-4:] == ["--watch", "7", "--watch", "8"]


def test_tables_go_between_the_marks_of_a_page_and_nowhere_else() -> None:
    page = f"before\n{gateway.BEGIN}old\n{gateway.END}after\n"
    made = gateway.between(page, "new")
    assert made == f"before\n{gateway.BEGIN}\nnew\n{gateway.END}after\n"
    assert gateway.between(made, "new") == made
    assert made.count(gateway.BEGIN) == gateway.DOCS.read_text().count(gateway.BEGIN)


def test_this_process_is_of_its_own_family_and_holds_memory() -> None:
    assert os.getpid() in family(os.getppid())
    assert memory_mb([os.getpid()]) > 1


def test_a_dump_of_callgrind_has_a_total() -> None:
    assert total("version: 1\nevents: Ir\nsummary: 123\n\nfn=a\n1 5\ntotals: 456\n") == 456
    assert total("") == 0


def test_the_gate_lets_five_percent_pass_and_no_more(tmp_path: Path) -> None:
    file = tmp_path / "gate.json"
    assert read(file) == {}
    write(file, "callgrind", {"token": 1, "verbatim": 100})
    write(file, "perf", {"token": 200})
    write(file, "callgrind", {"token": 100})
    allowed = read(file)["callgrind"]
    assert gate({"token": 105, "verbatim": 106}, allowed) == ["verbatim: 106 instructions, allowed are 100 and 5 %"]
    assert "token" in told({"token": 1000}, "callgrind")
