"""`xenoglot batch` as a shell sees it: what it writes, what it says, and how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.bulk.batches import ids, numbers, running, write_input
from xenoglot.bulk.command import FAILED, UNFINISHED
from xenoglot.cli import main
from xenoglot.errors import INTERRUPTED, MISUSE
from xenoglot.testing import RequestMatcher, Respond, ScriptRule, Upstream, WaitEvent, answers

if TYPE_CHECKING:
    from collections.abc import Generator

XENOGLOT = str(Path(sys.executable).parent / "xenoglot")
PATIENCE = 120.0
KEY = "sk-the-key-of-the-upstream"


@pytest.fixture
def upstream() -> Generator[Upstream]:
    """A server that answers whatever it is asked."""
    with Upstream(*answers("chat").rules()) as server:
        yield server


def batch(folder: Path, upstream: Upstream | None, *more: str, source: str = "in.jsonl") -> int:
    where = () if upstream is None else ("--upstream", f"{upstream.url}/v1")
    path = source if source == "-" else str(folder / source)
    return main(["batch", path, str(folder / "out.jsonl"), *where, *more])


def test_lines_are_answered_and_the_run_summed_up(
    tmp_path: Path, upstream: Upstream, capsys: pytest.CaptureFixture[str]
) -> None:
    write_input(tmp_path / "in.jsonl", 5)
    assert batch(tmp_path, upstream) == 0
    assert numbers(tmp_path / "out.jsonl") == dict.fromkeys(range(1, 6), 1)
    told = capsys.readouterr()
    assert told.out == ""
    assert "5 of 5 lines answered, 50 tokens" in told.err


def test_what_is_done_is_not_asked_again(tmp_path: Path, upstream: Upstream) -> None:
    write_input(tmp_path / "in.jsonl", 5)
    assert batch(tmp_path, upstream) == 0
    before = (tmp_path / "out.jsonl").read_bytes()
    assert batch(tmp_path, upstream) == 0
    assert ((tmp_path / "out.jsonl").read_bytes(), len(upstream.requests)) == (before, 5)


def test_a_model_and_a_key_are_those_of_the_flags(
    tmp_path: Path, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    (tmp_path / "in.jsonl").write_text('{"messages": []}\n{"model": "other", "messages": []}\n', encoding="utf-8")
    assert batch(tmp_path, upstream, "--model", "m", "--key-env", "THE_KEY") == 0
    assert {request.json["model"] for request in upstream.requests} == {"m"}
    assert upstream.requests[0].header("authorization") == f"Bearer {KEY}"
    assert KEY not in (tmp_path / "out.jsonl").read_text(encoding="utf-8")


def test_errors_are_lines_too(tmp_path: Path, upstream: Upstream, capsys: pytest.CaptureFixture[str]) -> None:
    write_input(tmp_path / "in.jsonl", 3)
    refusal = Respond(400, (("content-type", "application/json"),), b'{"error": {"message": "I will not"}}')
    upstream.script(ScriptRule(steps=(refusal,), when=RequestMatcher(contains=b"What is 2?")), *answers("chat").rules())
    errors = tmp_path / "errors.jsonl"
    assert batch(tmp_path, upstream, "--errors", str(errors)) == FAILED
    assert (sorted(ids(tmp_path / "out.jsonl")), ids(errors)) == (["id-1", "id-3"], ["id-2"])
    told = json.loads(errors.read_bytes())
    assert (told["response"]["status_code"], told["error"]) == (400, None)
    assert "3 of 3 lines answered, 1 with an error" in capsys.readouterr().err
    upstream.script(*answers("chat").rules())
    assert batch(tmp_path, upstream, "--errors", str(errors), "--retry-failed") == 0
    assert (sorted(ids(tmp_path / "out.jsonl")), ids(errors)) == (["id-1", "id-2", "id-3"], [])
    assert len(upstream.requests) == 4


def test_invalid_lines_are_skipped(tmp_path: Path, upstream: Upstream, capsys: pytest.CaptureFixture[str]) -> None:
    """first-minutes-H20: each invalid line gets an error, once, and all others are sent."""
    write_input(tmp_path / "in.jsonl", 3)
    with (tmp_path / "in.jsonl").open("ab") as source:
        source.write(b'not JSON\n{"custom_id": "id-1", "params": {}}\n')
    assert batch(tmp_path, upstream) == MISUSE
    assert "--skip-invalid" in capsys.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()
    errors = tmp_path / "errors.jsonl"
    for again in ((), (), ("--retry-failed",)):
        assert batch(tmp_path, upstream, "--errors", str(errors), "--skip-invalid", *again) == FAILED
        assert sorted(ids(tmp_path / "out.jsonl")) == ["id-1", "id-2", "id-3"]
        told = [json.loads(line) for line in errors.read_bytes().splitlines()]
        assert [(line["custom_id"], line["response"], line["error"]["code"]) for line in told] == [
            ("line-4", None, "invalid_json_line"),
            ("id-1", None, "duplicate_custom_id"),
        ]
    assert len([request for request in upstream.requests if request.body]) == 3  # the others list the models
    assert "5 of 5 lines answered, 2 with an error" in capsys.readouterr().err


def test_anthropics_lines_are_answered_in_their_form(tmp_path: Path) -> None:
    line = {
        "custom_id": "one",
        "params": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]},
    }
    (tmp_path / "in.jsonl").write_text(json.dumps(line), encoding="utf-8")
    with Upstream(*answers("messages").rules()) as server:
        assert batch(tmp_path, server, "--dialect", "messages") == 0
    told = json.loads((tmp_path / "out.jsonl").read_bytes())
    assert (told["custom_id"], told["result"]["type"]) == ("one", "succeeded")


def test_standard_input_is_an_input(tmp_path: Path, upstream: Upstream) -> None:
    given = write_input(tmp_path / "in.jsonl", 3).read_bytes()
    command = [XENOGLOT, "batch", "-", str(tmp_path / "out.jsonl"), "--upstream", f"{upstream.url}/v1"]
    for _ in range(2):
        done = subprocess.run(command, input=given, capture_output=True, timeout=PATIENCE, check=False)
        assert (done.returncode, done.stdout) == (0, b"")
    assert numbers(tmp_path / "out.jsonl") == dict.fromkeys(range(1, 4), 1)
    assert len(upstream.requests) == 3


def test_lines_are_known_by_their_fields_or_by_a_flag(tmp_path: Path, upstream: Upstream) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
    (tmp_path / "in.jsonl").write_text(json.dumps(body), encoding="utf-8")
    assert batch(tmp_path, upstream, "--lines", "ollama") == 0
    told = json.loads((tmp_path / "out.jsonl").read_bytes())
    assert told["response"]["body"]["done"] is True


def test_the_embedded_model_answers_where_nobody_is_named(tmp_path: Path, engine: object) -> None:
    assert engine
    lines = [
        '{"max_tokens": 4, "temperature": 0, "messages": [{"role": "user", "content": "Say hi"}]}',
        '{"custom_id": "b", "params": {"max_tokens": 4, "messages": [{"role": "user", "content": "Say hi"}]}}',
    ]
    (tmp_path / "in.jsonl").write_text("\n\n".join(lines), encoding="utf-8")
    assert batch(tmp_path, None, "--ordered") == 0
    assert ids(tmp_path / "out.jsonl") == ["line-1", "b"]


@pytest.mark.parametrize(
    ("lines", "flags", "told"),
    [
        pytest.param("{", (), "line 1: $: not valid JSON", id="bad-line"),
        pytest.param("", (), "the input has no lines", id="empty"),
        pytest.param(None, (), "in.jsonl` cannot be read: No such file", id="no-input"),
        pytest.param(
            '{"messages":[]}', ("--concurrency", "0"), "--concurrency: found 0; expected at least 1", id="none"
        ),
        pytest.param('{"messages":[]}', ("--concurrency", "9999"), "expected at most 4096", id="too-many"),
        pytest.param('{"messages":[]}', ("--rpm", "-1"), "--rpm: found -1; expected at least 1", id="rpm"),
        pytest.param('{"messages":[]}', ("--timeout", "nan"), "--timeout: found nan; expected more than 0", id="nan"),
        pytest.param('{"messages":[]}', ("--ray", ""), "--ray: found nothing; expected `auto`", id="ray"),
        pytest.param('{"messages":[]}', ("--actors", "2"), "--actors: needs a cluster", id="actors"),
        pytest.param('{"messages":[]}', ("--lines", "klingon"), "there is no dialect `klingon`", id="dialect"),
    ],
)
def test_a_mistake_is_told_in_a_line_and_nothing_is_asked(  # noqa: PLR0913, PLR0917  a case and its fixtures
    tmp_path: Path,
    upstream: Upstream,
    capsys: pytest.CaptureFixture[str],
    lines: str | None,
    flags: tuple[str, ...],
    told: str,
) -> None:
    if lines is not None:
        (tmp_path / "in.jsonl").write_text(lines, encoding="utf-8")
    assert batch(tmp_path, upstream, *flags) == MISUSE
    said = capsys.readouterr().err
    assert told in said
    assert (said.count("\n"), upstream.requests) == (2 if "--skip-invalid" in said else 1, [])
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        pytest.param(Respond(401, body=b'{"error": {"message": "no"}}'), "refuses all that is asked", id="wrong-key"),
        pytest.param(Respond(402, body=b'{"error": {"message": "no"}}'), "refuses all that is asked", id="no-money"),
    ],
)
def test_a_run_that_cannot_go_on_says_so(
    tmp_path: Path, upstream: Upstream, capsys: pytest.CaptureFixture[str], answer: Respond, told: str
) -> None:
    write_input(tmp_path / "in.jsonl", 20)
    upstream.script((answer,))
    assert batch(tmp_path, upstream, "--concurrency", "2") == UNFINISHED
    said = capsys.readouterr().err
    assert told in said
    assert "run the same command to continue" in said
    assert (tmp_path / "out.jsonl").read_bytes() == b""
    upstream.script(*answers("chat").rules())
    assert batch(tmp_path, upstream) == 0
    assert len(ids(tmp_path / "out.jsonl")) == 20


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_is_told_to_stop_ends_in_good_order(tmp_path: Path, upstream: Upstream, number: signal.Signals) -> None:
    write_input(tmp_path / "in.jsonl", 50)
    ready = answers("chat").complete()
    upstream.script(ScriptRule(steps=ready, times=10), (WaitEvent("go"), *ready))
    command = [XENOGLOT, "batch", str(tmp_path / "in.jsonl"), str(tmp_path / "out.jsonl"), "--concurrency", "4"]
    with running(*command, "--upstream", f"{upstream.url}/v1") as run:
        upstream.wait(lambda: len(upstream.requests) == 14)
        run.send_signal(number)
        upstream.release("go")
        _, said = run.communicate(timeout=PATIENCE)
    assert run.returncode == INTERRUPTED
    assert "stopped; run the same command to continue" in said.decode()
    answered = len(ids(tmp_path / "out.jsonl"))
    assert 14 <= answered == len(upstream.requests) < 50  # what was under way when it heard is finished
    assert batch(tmp_path, upstream) == 0
    assert numbers(tmp_path / "out.jsonl") == dict.fromkeys(range(1, 51), 1)
    assert len(upstream.requests) == 50


def test_who_is_told_twice_ends_at_once(tmp_path: Path, upstream: Upstream) -> None:
    write_input(tmp_path / "in.jsonl", 5)
    upstream.script((WaitEvent("never"),))
    command = [XENOGLOT, "batch", str(tmp_path / "in.jsonl"), str(tmp_path / "out.jsonl")]
    with running(*command, "--upstream", f"{upstream.url}/v1") as run:
        upstream.wait(lambda: len(upstream.requests) == 5)
        run.send_signal(signal.SIGINT)
        run.send_signal(signal.SIGTERM)  # two of one kind might come as one
        _, said = run.communicate(timeout=PATIENCE)
    assert run.returncode == INTERRUPTED
    assert b"Traceback" not in said
    assert ids(tmp_path / "out.jsonl") == []


def test_an_input_that_changes_while_it_is_read_ends_the_run(
    tmp_path: Path, upstream: Upstream, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_input(tmp_path / "in.jsonl", 5)
    from xenoglot.bulk import run  # noqa: PLC0415  only here

    begin = run._Shown.begin

    def changed(shown: run._Shown) -> None:
        source.write_bytes(source.read_bytes().replace(b"What is 4", b"Who is 4!"))
        begin(shown)

    monkeypatch.setattr(run._Shown, "begin", changed)
    assert batch(tmp_path, upstream) == MISUSE
    assert "line 4 is another now" in capsys.readouterr().err


def test_nobody_loads_what_a_cluster_needs(tmp_path: Path, upstream: Upstream) -> None:
    write_input(tmp_path / "in.jsonl", 1)
    program = (
        "import sys; from xenoglot.cli import main;code = main(sys.argv[1:]); sys.exit(code or 'ray' in sys.modules)"
    )
    command = [sys.executable, "-c", program, "batch", str(tmp_path / "in.jsonl"), str(tmp_path / "out.jsonl")]
    done = subprocess.run(
        [*command, "--upstream", f"{upstream.url}/v1"], capture_output=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
