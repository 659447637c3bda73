"""Exceptions in the user's own code: a traceback on the operator's terminal, a clean error for the client."""

from __future__ import annotations

import http.client
import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.test_cli import XENOGLOT, environment
from xenoglot.backends.user_traceback import has_user_frames, user_traceback

if TYPE_CHECKING:
    from pathlib import Path

KEY = "sk-a1b2c3d4e5f6a7b8c9d0"
MODEL = f'''"""A model with bugs."""


def find(prompt):
    raise ValueError("boom in my function with {KEY} and " + prompt[:0] + "\\x1b[31mred")


def broken(request):
    return find("secret")


class Server:
    """A backend of one's own."""

    name = "own"

    async def answer(self, call):
        return find("secret")

    async def count(self, call):
        return None

    async def models(self):
        return ()

    async def aclose(self):
        pass


server = Server()
'''


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A module with bugs."""
    path = tmp_path / "my_model.py"
    path.write_text(MODEL, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["broken", "server"])
def test_serve_shows_the_traceback_to_the_operator_alone(module: Path, name: str) -> None:
    command = [XENOGLOT, "serve", "--port", "0", "--python", f"my_model:{name}"]
    process = subprocess.Popen(
        command, cwd=module.parent, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        body = json.dumps({"model": "x", "messages": [{"role": "user", "content": "Hi"}]}).encode()
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
        connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
        response = connection.getresponse()
        shown = response.read().decode()
        connection.close()
        assert response.status == 500
    finally:
        process.terminate()
        _, err = process.communicate(timeout=60)
    lines = next(line for line in map(json.loads, err.splitlines()) if line["event"] == "message")["message"].split(
        "\n"
    )
    start = lines.index("Traceback (most recent call last):")
    end = next(index for index, line in enumerate(lines) if line.startswith("ValueError: "))
    files = [line.split('"')[1] for line in lines[start:end] if line.startswith('  File "')]
    assert files == [str(module)] * 2
    assert lines[end] == "ValueError: boom in my function with [redacted] and ?[31mred"
    assert "boom" not in shown
    assert str(module) not in shown
    assert KEY not in err


def test_ask_shows_the_traceback(module: Path) -> None:
    done = subprocess.run(
        [XENOGLOT, "ask", "Hi", "--python", "my_model:broken"],
        cwd=module.parent,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    *_, exception, complaint, _ = done.stderr.split("\n")
    assert exception == "ValueError: boom in my function with [redacted] and ?[31mred"
    assert complaint == "xenoglot: internal error: the model function failed"
    assert done.returncode == 8


def caught(function: object, *arguments: object) -> BaseException:
    """What a call raises."""
    assert callable(function)
    try:
        function(*arguments)
    except BaseException as error:  # noqa: BLE001  any is a case
        return error
    raise AssertionError


def test_values_of_secret_variables_are_masked() -> None:
    def fails() -> None:
        raise ValueError("hunter2hunter2 and Bearer abc.def")

    told = user_traceback(caught(fails), {"DB_PASSWORD": "hunter2hunter2", "HOME": "and"})
    assert told.endswith("ValueError: [redacted] and [redacted]")


def test_causes_are_shown() -> None:
    def fails() -> None:
        try:
            int("x")
        except ValueError as error:
            raise RuntimeError("outer") from error

    told = user_traceback(caught(fails), {})
    assert "ValueError: invalid literal" in told
    assert "The above exception was the direct cause" in told
    assert told.endswith("RuntimeError: outer")


def test_an_error_of_this_package_has_no_user_frames() -> None:
    from xenoglot.dialect_registry import get  # noqa: PLC0415  only here

    error = caught(get, "nosuch")
    assert error.__traceback__ is not None
    assert not has_user_frames(error.with_traceback(error.__traceback__.tb_next))
    assert has_user_frames(caught(json.loads, "{"))  # called by this file, which is the user's


def test_compiled_modules_of_packages_have_no_user_frames() -> None:
    """Cython names a module's source by the path that it had where it was built."""
    code = compile("1 / 0", "asyncpg/protocol/protocol.pyx", "exec")
    error = caught(exec, code)
    assert error.__traceback__ is not None
    inner = error.__traceback__.tb_next
    assert inner is not None
    assert not has_user_frames(error.with_traceback(inner))
