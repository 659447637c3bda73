"""`xenoglot embed` as a shell sees it: the vectors on standard output, and what its server was sent."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.terminal.tmux import XENOGLOT
from xenoglot.testing.script import Respond, ScriptRule
from xenoglot.testing.upstream import Upstream

ROWS = [{"object": "embedding", "index": index, "embedding": [0.5, float(index)]} for index in range(2)]


def served(count: int) -> Upstream:
    """A server that answers with `count` vectors."""
    body = {"object": "list", "model": "v", "data": ROWS[:count], "usage": {"prompt_tokens": 2, "total_tokens": 2}}
    return Upstream(
        ScriptRule(steps=(Respond(200, (("content-type", "application/json"),), json.dumps(body).encode()),))
    )


def embed(*words: str, given: str = "") -> tuple[int, str, str]:
    """How the command went."""
    done = subprocess.run([XENOGLOT, "embed", *words], input=given, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("words", "given", "inputs", "printed"),
    [
        pytest.param(("a", "fox"), "", ["a fox"], "[0.5,0.0]\n", id="words"),
        pytest.param((), "a\nfox", ["a\nfox"], "[0.5,0.0]\n", id="standard-input"),
        pytest.param(("--lines",), "a\nfox\n", ["a", "fox"], "[0.5,0.0]\n[0.5,1.0]\n", id="lines"),
    ],
)
def test_vectors_are_printed(words: tuple[str, ...], given: str, inputs: list[str], printed: str) -> None:
    with served(len(inputs)) as upstream:
        flags = ("--upstream", upstream.url, "--model", "v", "--dimensions", "2")
        assert embed(*flags, *words, given=given) == (0, printed, "")
        asked: dict[str, Any] = upstream.requests[0].json
    found = asked["input"]
    assert ([found] if isinstance(found, str) else found, asked["dimensions"]) == (inputs, 2)


def test_json_has_model_and_usage() -> None:
    with served(1) as upstream:
        code, out, err = embed("--upstream", upstream.url, "--model", "v", "--json", "fox")
    told = json.loads(out)
    assert (code, err, told["model"], told["embeddings"]) == (0, "", "v", [[0.5, 0.0]])
    assert told["usage"]["input_tokens"] == 2


def test_the_embedded_model_needs_no_upstream() -> None:
    code, out, _ = embed("a", "fox")
    assert (code, len(json.loads(out))) == (0, 384)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        pytest.param((), 'no text; expected `xenoglot embed "TEXT"`, or text on standard input', id="no-text"),
        pytest.param(("--lines", "a"), "`--lines` reads standard input", id="text-and-lines"),
        pytest.param(("--dimensions", "0", "a"), "--dimensions: found 0; expected at least 1", id="dimensions"),
    ],
)
def test_misuse_is_a_line(words: tuple[str, ...], problem: str) -> None:
    code, out, err = embed(*words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"xenoglot: {problem}")
