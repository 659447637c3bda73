"""Which model a command uses: a Python object in front of every command that asks one, and prices that are set."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.gateway.running_gateway import TIMEOUT
from xenoglot import model_selection
from xenoglot.cli import main
from xenoglot.errors import MISUSE, ConfigurationError
from xenoglot.model.response import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

XENOGLOT = str(Path(sys.executable).with_name("xenoglot"))
MODEL = """
def shout(prompt: str) -> str:
    return prompt.rpartition("User:")[2].split()[0].upper() + "!"
"""
LOSSES = {
    "loss: $.messages turns emulated (the one turn of the user is the prompt)",
    "loss: $.sampling max_tokens dropped (the model's function has no such parameter)",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a model in it, as `shouting:shout`."""
    (tmp_path / "shouting.py").write_text(MODEL)
    (tmp_path / "work").mkdir()
    return tmp_path


def ran(folder: Path, command: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command of the command line in that folder, with `text` on its standard input."""
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}
    return subprocess.run(
        [XENOGLOT, *command],
        cwd=folder,
        env=environ,
        input=text,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


@pytest.mark.parametrize(
    ("command", "text"),
    [
        pytest.param(["ask", "Hello"], "", id="ask"),
        pytest.param(["chat"], "Hello\n", id="chat"),
        pytest.param(["agent", "Hello", "--no-session", "--folder", "work", "--max-cost", "1"], "", id="agent"),
    ],
)
def test_r_s2_a_python_object_answers(folder: Path, command: list[str], text: str) -> None:
    price = [] if command[0] == "ask" else ["--price", "1/2"]
    done = ran(folder, [*command, "--python", "shouting:shout", *price], text)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "HELLO!")
    said = set((done.stdout + done.stderr).splitlines()[1:])  # `chat` reports losses among its answers
    assert said <= LOSSES


def test_r_s2_a_python_object_answers_a_batch(folder: Path) -> None:
    line = {"messages": [{"role": "user", "content": "Hello"}]}
    (folder / "in.jsonl").write_text(json.dumps(line) + "\n")
    done = ran(folder, ["batch", "in.jsonl", "out.jsonl", "--python", "shouting:shout"])
    answer = json.loads((folder / "out.jsonl").read_text())
    assert (done.returncode, answer["response"]["body"]["choices"][0]["message"]["content"]) == (0, "HELLO!")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        pytest.param("ask hi --python json:dumps --model m", "`--model` and `--python` exclude each other\n", id="ask"),
        pytest.param("agent hi --python json", "found `json`; expected `module:object`", id="agent"),
        pytest.param("batch a b --python json:dumps --ray auto", "`--ray` and `--python` exclude each other", id="ray"),
        pytest.param("agent hi --price 3", "`--price 3`: expected IN/OUT, as in 0.25/2\n", id="one-price"),
        pytest.param("agent hi --price 3//1", "`--price 3//1`: expected IN/OUT, as in 0.25/2\n", id="hole"),
        pytest.param("agent hi --price 1/2/3/4/5", "`--price 1/2/3/4/5`: expected IN/OUT, as in", id="five-prices"),
        pytest.param("agent hi --price 1/-2", "`--price 1/-2`: `output` is no price: expected a number", id="negative"),
    ],
)
def test_mistakes(command: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command.split()) == MISUSE
    assert capsys.readouterr().err.startswith(f"xenoglot: {expected}")


def test_c_s4_prices_hold_for_every_model() -> None:
    prices = model_selection.prices_of(Namespace(price="1/2/0.5"))
    assert prices is not None
    cost = prices.cost(Usage(input_tokens=3_000_000, output_tokens=1_000_000, cache_read=1_000_000), "qwen3")
    assert (cost and cost.total, model_selection.prices_of(Namespace(price=None))) == (4.5, None)


def test_a_model_and_another_upstream_exclude_each_other() -> None:
    options = Namespace(python="json:dumps", config=None, upstream="http://localhost", text_syntax=None)
    with pytest.raises(ConfigurationError, match="`--upstream` and `--python` exclude each other"):
        model_selection.load_python_backend(options)
