"""`xenoglot ask`, beside what `tests/test_cli.py` has of it: what goes along, and what a terminal is shown."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from tests.terminal.tmux import XENOGLOT, Terminal
from xenoglot.model.response import Finish
from xenoglot.terminal.prompt_input import _read
from xenoglot.testing.canned import answers
from xenoglot.testing.script import Respond, ScriptRule
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from tests.terminal.conftest import Home


@pytest.fixture
def upstream() -> Generator[Upstream]:
    """A server whose answer would clear the screen."""
    with Upstream(*answers("chat", text="\x1b[2JHello.").rules()) as served:
        yield served


def run_ask(upstream: Upstream, *flags: str) -> tuple[int, str, str]:
    """How one question went."""
    command = [XENOGLOT, "ask", "--upstream", upstream.url, "--model", "m", "Well?", *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_files_go_along(upstream: Upstream, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one", encoding="utf-8")
    (tmp_path / "b.gif").write_bytes(b"GIF89a")
    flags = ("--file", str(tmp_path / "a.txt"), "--image", str(tmp_path / "b.gif"))
    assert run_ask(upstream, *flags) == (0, "\x1b[2JHello.\n", "")
    (message,) = upstream.requests[0].json["messages"]
    assert message["content"] == [
        {"type": "text", "text": "a.txt:\n```\none\n```"},
        {"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lGODlh"}},
        {"type": "text", "text": "Well?"},
    ]


def test_a_file_that_is_not_there_is_a_mistake(upstream: Upstream) -> None:
    assert run_ask(upstream, "--file", "/no/such") == (
        2,
        "",
        "xenoglot: `/no/such` cannot be read: No such file or directory\n",
    )
    assert upstream.requests == []


def test_json_is_the_whole_answer(upstream: Upstream) -> None:
    code, out, err = run_ask(upstream, "--json")
    told: dict[str, Any] = json.loads(out)
    assert (code, err, told["losses"]) == (0, "", [])
    assert told["response"]["candidates"][0]["content"][0]["text"] == "\x1b[2JHello."
    assert told["response"]["usage"]["output_tokens"] == 3


def test_a_terminal_does_not_obey(upstream: Upstream, home: Home) -> None:
    command = [XENOGLOT, "ask", "--upstream", upstream.url, "--model", "m", "Well?"]
    with Terminal(command, home=home) as terminal:
        assert terminal.until("exit code") == "�[2JHello.\n[exit code 0]"


def asked(upstream: Upstream, *words: str, given: bytes = b"") -> str:
    """The prompt that the model got for these words, with `given` on standard input."""
    command = [XENOGLOT, "ask", "--upstream", upstream.url, "--model", "m", *words]
    done = subprocess.run(command, input=given, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    (message,) = upstream.requests[-1].json["messages"]
    content: str = message["content"]
    return content


def test_standard_input_is_added_below_the_prompt(upstream: Upstream) -> None:
    """first-minutes-H6: `cat doc.txt | xenoglot ask QUESTION` dropped the document."""
    document = "The secret word is banana.\n"
    assert asked(upstream, "What is it?", given=document.encode()) == f"What is it?\n\n{document}"
    assert asked(upstream, "What is it?", "-", given=document.encode()) == f"What is it?\n\n{document}"
    assert asked(upstream, given=b"\xef\xbb\xbfWell?\n") == "Well?\n"
    assert asked(upstream, "Well?", given=b" \n") == "Well?"


def test_words_need_no_quotes(upstream: Upstream) -> None:
    assert asked(upstream, "What", "is", "5", "-", "3?") == "What is 5 - 3?"
    assert asked(upstream, "What", "is", "--max-tokens", "9", "it?", "Say", "it.") == "What is it? Say it."


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        pytest.param(b"%PDF\0", "standard input is not text; send images with `--image PATH`", id="no-text"),
        pytest.param(b"x" * 1_000_001, "standard input is larger than 1 MB; a prompt can have 1 MB", id="too-large"),
    ],
)
def test_standard_input_is_text_of_bounded_length(upstream: Upstream, given: bytes, problem: str) -> None:
    command = [XENOGLOT, "ask", "--upstream", upstream.url, "--model", "m", "Well?"]
    done = subprocess.run(command, input=given, capture_output=True, check=False)
    assert (done.returncode, done.stdout, upstream.requests) == (2, b"", [])
    assert done.stderr.decode().startswith(f"xenoglot: {problem}")


def test_closed_standard_input_is_empty(upstream: Upstream) -> None:
    command = f"{XENOGLOT} ask --upstream {upstream.url} --model m Well? <&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_pipe_without_data_is_waited_for_with_a_notice() -> None:
    """An open pipe that nobody writes to must not look like a hang."""
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as source:

        def waiting() -> None:
            os.write(write_end, b"late")
            os.close(write_end)

        assert _read(source, waiting, patience=0) == b"late"


def ask(upstream: Upstream, home: Path, *words: str, key: str = "") -> tuple[int, str, str]:
    """How `ask` went for somebody whose state is in `home`."""
    command = [XENOGLOT, "ask", "--upstream", upstream.url, "--model", "m", *words]
    environ = {**os.environ, "XDG_STATE_HOME": str(home), "PYTHONPATH": str(home), "THE_API_KEY": key}
    done = subprocess.run(command, input="", env=environ, cwd=home, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_continue_continues_the_last_conversation(upstream: Upstream, tmp_path: Path) -> None:
    upstream.script(*answers("chat", text="Yes.").rules())
    assert ask(upstream, tmp_path, "One?", "--system", "Be brief.") == (0, "Yes.\n", "")
    assert ask(upstream, tmp_path, "Two?", "--continue") == (0, "Yes.\n", "")
    assert ask(upstream, tmp_path, "Aside?", "--no-history") == (0, "Yes.\n", "")
    assert ask(upstream, tmp_path, "Three?", "--continue") == (0, "Yes.\n", "")
    assert [(turn["role"], turn["content"]) for turn in upstream.requests[-1].json["messages"]] == [
        ("system", "Be brief."),
        ("user", "One?"),
        ("assistant", "Yes."),
        ("user", "Two?"),
        ("assistant", "Yes."),
        ("user", "Three?"),
    ]
    (kept,) = (tmp_path / "xenoglot").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600


def test_there_may_be_nothing_to_continue(upstream: Upstream, tmp_path: Path) -> None:
    problem = 'xenoglot: `--continue`: no conversation to continue; `xenoglot ask "PROMPT"` starts one\n'
    assert ask(upstream, tmp_path, "Two?", "--continue") == (2, "", problem)


def test_a_conversation_with_a_key_is_not_kept(upstream: Upstream, tmp_path: Path) -> None:
    upstream.script(*answers("chat", text="Yes.").rules())
    note = "note: this conversation is not kept for `--continue`: it contains a key\n"
    assert ask(upstream, tmp_path, "Is it key-abcdef?", key="key-abcdef") == (0, "Yes.\n", note)
    assert list(tmp_path.iterdir()) == []


def test_a_home_that_cannot_be_written_is_noted(upstream: Upstream, tmp_path: Path) -> None:
    (tmp_path / "xenoglot").write_text("a file")
    code, out, err = ask(upstream, tmp_path, "One?")
    assert (code, out) == (0, "\x1b[2JHello.\n")
    assert err.startswith("note: this conversation is not kept for `--continue`: `")


def test_a_failed_question_leaves_the_last_conversation(upstream: Upstream, tmp_path: Path) -> None:
    assert ask(upstream, tmp_path, "One?")[0] == 0
    kept = (tmp_path / "xenoglot" / "ask-conversation.json").read_bytes()
    upstream.script(ScriptRule(steps=(Respond(400, (), b"no"),)))
    assert ask(upstream, tmp_path, "Two?", "--continue")[0] == 7
    assert (tmp_path / "xenoglot" / "ask-conversation.json").read_bytes() == kept


SCHEMA = """{
    "type": "object",
    "properties": {"age": {"type": "integer"}},
    "required": ["age"],
    "additionalProperties": false
}"""


def test_an_answer_matches_the_schema(upstream: Upstream, tmp_path: Path) -> None:
    (tmp_path / "age.json").write_text(SCHEMA)
    wrong, right = (answers("chat", text=text).rules() for text in ('{"age": "old"}', '```json\n{"age": 4}\n```'))
    upstream.script(replace(wrong[0], times=1), *right)
    assert ask(upstream, tmp_path, "How old?", "--schema", "age.json") == (0, '{"age": 4}\n', "")
    first, second = (request.json for request in upstream.requests)
    assert first["response_format"]["json_schema"]["schema"] == json.loads(SCHEMA)
    assert second["messages"][-1]["content"].startswith("Your answer does not match the JSON Schema:\n- $.age: ")


def test_an_answer_that_never_matches_is_not_printed(upstream: Upstream, tmp_path: Path) -> None:
    (tmp_path / "age.json").write_text(SCHEMA)
    upstream.script(*answers("chat", text="four").rules())
    code, out, err = ask(upstream, tmp_path, "How old?", "--schema", "age.json")
    assert (code, out, len(upstream.requests)) == (8, "", 3)
    assert err.startswith("xenoglot: the answer does not match the schema: ")


def test_tools_are_called(upstream: Upstream, tmp_path: Path) -> None:
    """Each call is a line on standard error; standard output has the answer alone."""
    (tmp_path / "counting.py").write_text(
        'def count(word: str) -> int:\n    """Count the letters."""\n    return len(word)\n'
    )
    asks = answers("chat", text="", tool=("count", '{"word": "tree"}')).rules()
    upstream.script(replace(asks[0], times=1), *answers("chat", text="Four.").rules())
    done = ask(upstream, tmp_path, "How long is tree?", "--tool", "counting:count")
    assert done == (0, "Four.\n", '● count(word="tree")\n')
    assert [turn["role"] for turn in upstream.requests[-1].json["messages"]] == ["user", "assistant", "tool"]
    assert upstream.requests[-1].json["messages"][-1]["content"] == "4"


def test_a_cut_off_answer_is_noted(upstream: Upstream, tmp_path: Path) -> None:
    upstream.script(*answers("chat", text="Once upon", finish=Finish(reason="length")).rules())
    note = "note: the answer is cut off after 9 tokens; `--max-tokens N` allows more\n"
    assert ask(upstream, tmp_path, "Well?", "--max-tokens", "9") == (0, "Once upon\n", note)
