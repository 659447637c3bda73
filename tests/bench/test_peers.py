"""The peers of the benchmark: locked whole and without addresses, and told of where they cannot be had."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bench.gateways import Site
from bench.peers import installing
from bench.peers.__main__ import SCENARIOS
from bench.peers.installing import HERE, MissingError
from bench.peers.peers import PEERS
from bench.scenarios import EVERY

LOCKS = sorted(HERE.glob("*.txt"))
REQUIREMENT = re.compile(r"^([\w.\[\]-]+)==", re.MULTILINE)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_every_package_has_its_hashes(lock: Path) -> None:
    parts = re.split(r"^(?=[\w.\[\]-]+==)", lock.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [part for part in parts if part.strip() and "--hash=sha256:" not in part] == []


def test_every_lock_has_what_it_is_made_from() -> None:
    assert [lock.stem for lock in LOCKS] == sorted(path.stem for path in HERE.glob("*.in"))


def test_no_lock_has_an_address() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in (*LOCKS, HERE / "package-lock.json")}
    assert [name for name, text in texts.items() if "://" in text] == []


def test_every_package_of_node_has_its_hash() -> None:
    packages = json.loads((HERE / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert [name for name, package in packages.items() if name and "integrity" not in package] == []


def test_versions_are_told_by_the_names() -> None:
    made = "".join(path.read_text(encoding="utf-8") for path in (*HERE.glob("*.in"), HERE / "package.json"))
    assert [peer.name for peer in PEERS if peer.name.split()[-1] not in made] == []


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_a_peer_is_set_up_in_its_folder_alone(peer: object, tmp_path: Path) -> None:
    (chosen,) = [each for each in PEERS if each is peer]
    site = Site(tmp_path, port=8001, mock=8002, mock_tls=8003, authority=tmp_path / "authority.pem")
    gateway = chosen.gateway(Path("/nowhere"), site)
    assert gateway.start is not None
    started = gateway.start(site)
    files = " ".join(path.read_text(encoding="utf-8") for path in tmp_path.rglob("*") if path.is_file())
    told = " ".join((*started.command, *gateway.headers, files))
    assert ("8001" in told, "127.0.0.1:8002" in told) == (True, True)


def test_what_cannot_be_installed_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installing, "found", lambda _program: None)
    with pytest.raises(MissingError, match="there is no Node here"):
        installing.from_npm(tmp_path)


def test_what_is_installed_stays_until_its_lock_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr(installing, "_run", lambda command, _folder=None: ran.append(" ".join(command)))
    place = tmp_path / "switchyard"
    place.mkdir()
    (place / installing.STAMP).write_text("another", encoding="ascii")
    monkeypatch.setattr("shutil.rmtree", lambda *_args, **_more: None)
    assert [installing.from_pypi("switchyard", tmp_path) for _ in range(2)] == [place, place]
    assert [command.split()[-1] for command in ran] == [str(place), str(HERE / "switchyard.txt")]


def test_the_scenarios_are_those_of_the_benchmark() -> None:
    assert set(SCENARIOS) <= {scenario.name for scenario in EVERY}
