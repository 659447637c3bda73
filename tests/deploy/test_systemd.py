"""The systemd unit: verified by systemd itself, hardened, and in agreement with the gateway's own times and paths."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT
from xenoglot.gateway.config.settings import ServerSettings
from xenoglot.gateway.process.serve import GRACE_SECONDS

FOLDER = ROOT / "deploy" / "systemd"
TEXT = (FOLDER / "xenoglot.service").read_text(encoding="utf-8")
MOST_EXPOSURE = 1.5
"""The highest exposure level of `systemd-analyze security` that the unit may have, of 10."""


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    """The unit's settings; of one that is given twice the last."""
    parser = configparser.RawConfigParser(strict=False, comment_prefixes="#", interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]  # the documented way to keep capital letters
    parser.read_string(TEXT)
    return {name: value for section in parser.sections() for name, value in parser.items(section)}


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    """The program need not be installed here: the unit is verified with a program that exists in its place."""
    assert shutil.which("systemd-analyze"), "install the system's package `systemd`"
    program = tmp_path / "xenoglot"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "xenoglot.service"
    unit.write_text(TEXT.replace("/opt/xenoglot/bin/xenoglot", str(program)))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (done.stdout + done.stderr, done.returncode) == ("", 0)


def test_the_unit_is_hardened() -> None:
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(FOLDER / "xenoglot.service")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"Overall exposure level for xenoglot.service: ([0-9.]+)", done.stdout)
    assert found, done.stdout + done.stderr
    assert float(found[1]) <= MOST_EXPOSURE


def test_systemd_waits_longer_than_the_drain(settings: dict[str, str]) -> None:
    assert float(settings["TimeoutStopSec"]) > ServerSettings().drain_seconds + GRACE_SECONDS


def test_the_store_and_the_weights_are_in_the_state_directory(settings: dict[str, str]) -> None:
    folder = f"/var/lib/{settings['StateDirectory']}"
    places = dict(word.split("=") for word in settings["Environment"].split())
    assert (places["XDG_DATA_HOME"], Path(places["XENOGLOT_MODELS"]).parent) == (folder, Path(folder))


def test_a_mistake_in_the_configuration_is_not_started_again(settings: dict[str, str]) -> None:
    assert (settings["Restart"], settings["RestartPreventExitStatus"]) == ("on-failure", "2")


@pytest.mark.parametrize(("program", "file"), [("systemd-sysusers", "sysusers"), ("systemd-tmpfiles", "tmpfiles")])
def test_user_and_folders_are_made(tmp_path: Path, program: str, file: str) -> None:
    """Both programs run on an empty root: nothing of this machine is changed."""
    (tmp_path / "etc/xenoglot").mkdir(parents=True)
    (tmp_path / "etc/xenoglot/keys.env").write_text("OPENAI_API_KEY=secret\n")
    flags = ["--create"] if program == "systemd-tmpfiles" else []
    command = [program, *flags, f"--root={tmp_path}", str(FOLDER / f"xenoglot.{file}")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    if program == "systemd-tmpfiles":
        assert oct((tmp_path / "etc/xenoglot/keys.env").stat().st_mode & 0o777) == "0o600"
    else:
        assert re.search(
            r"^xenoglot:.*:/var/lib/xenoglot:/usr/sbin/nologin$", (tmp_path / "etc/passwd").read_text(), re.MULTILINE
        )
