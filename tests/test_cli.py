"""The command line as a shell sees it: what it prints, where, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

import xenoglot
from tests.gateway.running_gateway import TIMEOUT, config_for, run_gateway
from xenoglot.backends.scripted import Scripted
from xenoglot.errors import EXTRAS
from xenoglot.gateway.config.file_permissions import Secrets
from xenoglot.gateway.config.settings import KeySettings
from xenoglot.model.content import Text
from xenoglot.model.failure import Failure
from xenoglot.model.response import Candidate, Finish, Response

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.gateway.running_gateway import RunningGateway

XENOGLOT = str(Path(sys.executable).parent / "xenoglot")
KEY = "sk-the-key-of-the-upstream"
BOTH = pytest.mark.parametrize("dialect", ["chat", "messages"])
HELP = "; `xenoglot {}--help` tells more\n"


class Done(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str


def environment(**more: str) -> dict[str, str]:
    """The environment without any settings of ours, and `more`."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TEST_")} | more


def xenoglot_does(*arguments: str, given: bytes = b"", program: tuple[str, ...] = (XENOGLOT,), **environ: str) -> Done:
    """Run one command to its end."""
    done = subprocess.run(
        [*program, *arguments],
        input=given,
        env=environment(**environ),
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def answer(*texts: str) -> Response:
    """An answer that says `texts`."""
    content = tuple(Text(text=text) for text in texts)
    return Response(id="1", model="scripted", candidates=(Candidate(content=content, finish=Finish(reason="stop")),))


@pytest.fixture
def upstream() -> Generator[RunningGateway]:
    """A server that answers in both dialects; it wants a key."""
    scripted = Scripted(answer("Bonjour, ", "lāmi."))
    config = config_for("scripted", keys=KeySettings(env=("KEY",)), secrets=Secrets({"KEY": KEY}))
    with run_gateway({"scripted": scripted}, config) as running:
        yield running


@pytest.fixture
def failing() -> Generator[RunningGateway]:
    """A server that refuses every request, in several lines and with a terminal's own characters."""
    refusal = Failure(kind="invalid_request", message="this is\nnot \x1b[31mpossible")
    with run_gateway({"failing": Scripted(refusal, name="failing")}) as running:
        yield running


def test_the_version_is_printed() -> None:
    assert xenoglot_does("--version") == Done(0, f"xenoglot {xenoglot.__version__}\n", "")


@pytest.mark.parametrize("command", ["", "serve", "ask", "chat", "models", "translate", "parse", "pull"])
def test_every_command_explains_itself(command: str) -> None:
    done = xenoglot_does(*command.split(), "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"usage: xenoglot {command}".rstrip())


def test_the_program_is_a_module_too() -> None:
    program = (sys.executable, "-m", "xenoglot.cli")
    assert xenoglot_does("--version", program=program).out == f"xenoglot {xenoglot.__version__}\n"


MISUSES = [
    pytest.param("ask", 'no text; expected `xenoglot ask "TEXT"`, or text on standard input\n', id="no-prompt"),
    pytest.param(
        "translate",
        "the following arguments are required: --from, --to" + HELP.format("translate "),
        id="no-dialects",
    ),
    pytest.param("pull now", "unrecognized arguments: now" + HELP.format("pull "), id="a-word-too-many"),
    pytest.param(
        "models --upstr x",
        "unrecognized arguments: --upstr x; did you mean `--upstream`?" + HELP.format("models "),
        id="half-a-flag",
    ),
    pytest.param(
        "serve --port x",
        "argument --port: invalid int value: 'x'" + HELP.format("serve "),
        id="port-no-number",
    ),
    pytest.param(
        "serve --port 65536", "the command line: --port: found 65536; expected int <= 65535\n", id="port-range"
    ),
    pytest.param(
        "serve --host 0.0.0.0 --port 0",
        'the command line: --host: found "0.0.0.0", which others can reach; that needs client keys: name an '
        "environment variable that holds them (`--client-key-env`, or `env` under `[keys]`), or listen on 127.0.0.1\n",
        id="R40-open-to-all",
    ),
    pytest.param(
        "serve --client-key-env TEST_UNSET",
        'the command line: --client-key-env: the environment variable "TEST_UNSET" is not set\n',
        id="client-key-unset",
    ),
    pytest.param(
        "serve --upstream localhost:8000",
        'the command line: --upstream: found "localhost:8000"; expected http:// or https:// and a host\n',
        id="upstream-no-url",
    ),
    pytest.param(
        "serve --model m",
        "--model: no server is chosen; name one with `--upstream URL` or `--upstream PROVIDER`\n",
        id="model-alone",
    ),
    pytest.param(
        "serve --config /nowhere.toml", "`/nowhere.toml` cannot be read: No such file or directory\n", id="no-file"
    ),
    pytest.param(
        "serve --config x.toml --upstream http://localhost",
        "`--upstream` and `--config` exclude each other: write it into the file\n",
        id="config-and-upstream",
    ),
    pytest.param(
        "serve --gguf /nowhere.gguf --port 0",
        "`--gguf`: the model file cannot be read (No such file or directory); expected the path of a GGUF file\n",
        id="no-weights",
    ),
    pytest.param("serve --python json", "found `json`; expected `module:object`, as in `my_model:answer`\n", id="half"),
    pytest.param("serve --python json:answer", f"`json` ({json.__file__}) has no `answer`\n", id="no-object"),
    pytest.param(
        "serve --python json:JSONDecoder",
        "found the class `JSONDecoder`; expected a function of a prompt or of a request, a pipeline or a pair (model, "
        "tokenizer) of the transformers library, an object with `tokenizer.apply_chat_template` and `generate_async`, "
        "or a backend\n",
        id="no-factory",
    ),
    pytest.param(
        "serve --python json:dumps --upstream http://localhost",
        "`--upstream` and `--python` exclude each other\n",
        id="python-and-upstream",
    ),
    pytest.param(
        "serve --python json:dumps --port 65536",
        "the command line: --port: found 65536; expected int <= 65535\n",
        id="port-range-of-python",
    ),
    pytest.param(
        "parse --tools /nowhere.json", "`/nowhere.json` cannot be read: No such file or directory\n", id="no-tools"
    ),
    pytest.param(
        "parse --tools /dev/null", "`/dev/null`: $: not valid JSON: Input data was truncated\n", id="no-list-of-tools"
    ),
    pytest.param(
        "sevre", "unknown command `sevre`; did you mean `serve`?; `xenoglot --help` tells more\n", id="misspelt-command"
    ),
    pytest.param(
        "serve --prot 9000",
        "unrecognized arguments: --prot 9000; did you mean `--port`?; `xenoglot serve --help` tells more\n",
        id="misspelt-flag",
    ),
    pytest.param(
        "config shwo",
        "unknown command `shwo`; did you mean `show`?; `xenoglot config --help` tells more\n",
        id="config",
    ),
    pytest.param(
        "serve --upstream http://127.0.0.1:9 --dialect opnai",
        "argument --dialect: there is no dialect `opnai`; did you mean `openai`?; `xenoglot serve --help` tells more\n",
        id="misspelt-dialect",
    ),
    pytest.param("ask --max-tokens 0 hello", "--max-tokens: found 0; expected at least 1\n", id="no-tokens"),
]


@pytest.mark.parametrize(("command", "complaint"), MISUSES)
def test_misuse_is_one_line_and_exit_code_2(command: str, complaint: str) -> None:
    assert xenoglot_does(*command.split()) == Done(2, "", f"xenoglot: {complaint}")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        pytest.param("fly", ["unknown command", "fly", "serve"], id="command"),
        pytest.param("translate --from latin --to chat", ["argument --from", "latin", "messages"], id="dialect"),
    ],
)
def test_misuse_names_what_is_allowed(command: str, words: list[str]) -> None:
    done = xenoglot_does(*command.split())  # how the list is written differs between versions of Python
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert [word for word in words if word not in done.err] == []


def test_a_complaint_stays_one_line_whatever_it_quotes() -> None:
    done = xenoglot_does("pull", "hello", "two\nlines \x1b[31m")
    assert done == Done(
        2, "", "xenoglot: unrecognized arguments: hello two lines ?[31m; `xenoglot pull --help` tells more\n"
    )


def test_every_mistake_of_a_file_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "xenoglot.toml"
    path.write_text('[server]\nprot = 1\n\n[upstreams.main]\ndialect = "chat"\n', encoding="utf-8")
    assert xenoglot_does("serve", "--config", str(path)) == Done(
        2,
        "",
        f"xenoglot: {path}: 2 mistakes\n"
        "  server.prot: unknown; did you mean `port`?\n"
        "  upstreams.main.base_url: required, and not there\n",
    )


MODULES = {"google_auth": "google.auth", "azure_identity": "azure.identity"}
"""The modules of distributions that have other names."""

TO_LOCALHOST = '[upstreams.main]\ndialect = "chat"\nbase_url = "http://127.0.0.1:9"\n'


@pytest.mark.parametrize(
    ("package", "command", "file", "where"),
    [
        pytest.param("shtab", "completion bash", "", "", id="terminal"),
        pytest.param("json_repair", "parse --repair", "", "", id="structured"),
        pytest.param("mcp", "chat --mcp FILE", '{"mcpServers": {"a": {"command": "true"}}}', "", id="mcp"),
        pytest.param(
            "jsonschema_rs",
            "serve --config FILE",
            f"{TO_LOCALHOST}emulate = {{ check = true }}",
            "FILE: upstreams.main.emulate.check: ",
            id="checked-answers",
        ),
        pytest.param(
            "asyncpg", "serve --config FILE", f'{TO_LOCALHOST}[store]\nurl = "postgresql://h/d"', "", id="postgres"
        ),
        pytest.param("google_auth", "serve --config FILE", f'{TO_LOCALHOST}auth = "google"', "", id="google"),
        pytest.param("azure_identity", "serve --config FILE", f'{TO_LOCALHOST}auth = "azure"', "", id="azure"),
        pytest.param("redis", "serve --config FILE", f'{TO_LOCALHOST}[limits]\nstore = "redis"', "", id="redis"),
    ],
)
def test_a_missing_extra_is_answered_with_the_command_to_paste(
    package: str, command: str, file: str, where: str, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_text(file, encoding="utf-8")
    blocked = MODULES.get(package, package)
    without = (
        f"import sys; sys.modules[{blocked!r}] = None; from xenoglot.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    done = xenoglot_does(*command.replace("FILE", str(path)).split(), program=(sys.executable, "-c", without))
    told = f"{where.replace('FILE', str(path))}{package} is not installed: pip install 'xenoglot[{EXTRAS[package]}]'"
    assert done == Done(2, "", f"xenoglot: {told}\n")


# -- translate

TURN = {"role": "user", "content": "Hi"}
CHAT_REQUEST = {"model": "m", "messages": [TURN], "seed": 7}
MESSAGES_REQUEST = {"model": "m", "messages": [TURN], "max_tokens": 4096}
CHAT_RESPONSE = {
    "id": "a1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hello", "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
}
MESSAGES_RESPONSE = {
    "id": "a1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "Hello"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 9, "output_tokens": 2},
}
CHAT_ERROR = {"error": {"message": "busy", "type": "server_error", "param": None, "code": "service_unavailable"}}
MESSAGES_ERROR = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}

KINDS = [
    pytest.param(
        "chat",
        CHAT_REQUEST,
        MESSAGES_REQUEST,
        "loss: $.sampling max_tokens approximated (the dialect requires it; 4096 is written)\n"
        "loss: $.sampling seed dropped (the dialect has no such field)\n",
        id="chat-request",
    ),
    pytest.param("messages", MESSAGES_REQUEST, {**MESSAGES_REQUEST}, "", id="messages-request"),
    pytest.param("chat", CHAT_RESPONSE, MESSAGES_RESPONSE, "", id="chat-response"),
    pytest.param("messages", MESSAGES_RESPONSE, {**CHAT_RESPONSE, "created": 0}, "", id="messages-response"),
    pytest.param("chat", CHAT_ERROR, MESSAGES_ERROR, "", id="chat-error"),
    pytest.param("messages", MESSAGES_ERROR, CHAT_ERROR, "", id="messages-error"),
]


def other(dialect: str) -> str:
    """The other of the two dialects."""
    return "messages" if dialect == "chat" else "chat"


def translation(source: str) -> list[str]:
    """The command that translates from one dialect to the other."""
    return ["translate", "--from", source, "--to", other(source)]


@pytest.mark.parametrize(("source", "given", "expected", "losses"), KINDS)
def test_translate_writes_each_kind(source: str, given: object, expected: object, losses: str) -> None:
    done = xenoglot_does(*translation(source), given=json.dumps(given).encode())
    assert (done.code, done.err, done.out.count("\n")) == (0, losses, 1)
    assert json.loads(done.out) == expected


TABLE = """\
where       what        how           why
$.sampling  max_tokens  approximated  the dialect requires it; 4096 is written
$.sampling  seed        dropped       the dialect has no such field
2 losses: 1 approximated, 1 dropped
"""
LINES = (
    '{"where":"$.sampling","what":"max_tokens","how":"approximated",'
    '"why":"the dialect requires it; 4096 is written"}\n'
    '{"where":"$.sampling","what":"seed","how":"dropped","why":"the dialect has no such field"}\n'
)


@pytest.mark.parametrize(
    ("flags", "code", "told"),
    [
        pytest.param("--report", 0, TABLE, id="table"),
        pytest.param("--report json", 0, LINES, id="json"),
        pytest.param("--on-loss warn --report table", 0, TABLE, id="warn"),
        pytest.param("--on-loss ignore --report", 0, "", id="ignore"),
        pytest.param("--on-loss refuse --report", 3, TABLE, id="refuse"),
    ],
)
def test_translate_reports_losses(flags: str, code: int, told: str) -> None:
    done = xenoglot_does(*translation("chat"), *flags.split(), given=json.dumps(CHAT_REQUEST).encode())
    assert (done.code, done.err) == (code, told)
    assert (json.loads(done.out) if done.out else None) == (None if code else MESSAGES_REQUEST)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        pytest.param({key: CHAT_RESPONSE[key] for key in CHAT_RESPONSE if key != "usage"}, 3, id="loses"),
        pytest.param(CHAT_RESPONSE, 0, id="does-not"),
    ],
)
def test_translate_refuses_answers_too(given: object, code: int) -> None:
    done = xenoglot_does(*translation("chat"), "--on-loss", "refuse", given=json.dumps(given).encode())
    assert (done.code, bool(done.out)) == (code, not code)


def test_translate_reports_that_there_is_nothing_to_tell() -> None:
    done = xenoglot_does(*translation("messages"), "--report", given=json.dumps(MESSAGES_REQUEST).encode())
    assert (done.code, done.err) == (0, "no losses\n")


def compact(body: object) -> str:
    """JSON as it is on the wire."""
    return json.dumps(body, separators=(",", ":"))


def chunk(delta: object, finish: str | None = None, **more: object) -> str:
    """One frame of a stream of `chat`."""
    head = {"id": "a1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return f"data: {compact({**head, 'choices': [{'index': 0, 'delta': delta, 'finish_reason': finish}], **more})}\n\n"


def event(kind: str, **fields: object) -> str:
    """One event of a stream of `messages`."""
    return f"event: {kind}\ndata: {compact({'type': kind, **fields})}\n\n"


def words(text: str) -> str:
    """The event of more words."""
    return event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})


STARTED = MESSAGES_RESPONSE | {"content": [], "stop_reason": None, "usage": {"input_tokens": 0, "output_tokens": 0}}
ENDED = {"stop_reason": "end_turn", "stop_sequence": None}
COUNTED = {"usage": CHAT_RESPONSE["usage"]}
FRAMES = [
    chunk({"role": "assistant", "content": "Hel"}),
    chunk({"content": "lo"}),
    chunk({}, "stop", **COUNTED) + "data: [DONE]\n\n",
]
EVENTS = [
    event("message_start", message=STARTED)
    + event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    + words("Hel"),
    words("lo"),
    event("content_block_stop", index=0)
    + event("message_delta", delta=ENDED, usage=MESSAGES_RESPONSE["usage"])
    + event("message_stop"),
]
"""What `FRAMES` are in `messages`: after the first, after the second, and at the end."""


def test_translate_writes_a_stream() -> None:
    done = xenoglot_does(*translation("chat"), given="".join(FRAMES).encode())
    assert done == Done(0, "".join(EVENTS), "")


def test_translate_tells_at_the_end_that_a_stream_lost_something() -> None:
    frames = [*FRAMES[:2], chunk({}, "stop") + "data: [DONE]\n\n"]
    done = xenoglot_does(*translation("chat"), "--on-loss", "refuse", given="".join(frames).encode())
    assert done.out.endswith(event("message_stop"))
    why = "approximated (not reported, and the dialect requires a number: 0)"
    told = "".join(f"loss: $.usage {name} {why}\n" for name in ("input_tokens", "output_tokens"))
    assert (done.code, done.err) == (3, told)


def test_translate_writes_a_stream_at_the_pace_it_comes() -> None:
    command = [XENOGLOT, *translation("chat")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        for frame, events in zip(FRAMES[:2], EVENTS[:2], strict=True):
            process.stdin.write(frame.encode())
            process.stdin.flush()
            assert process.stdout.read(len(events)).decode() == events
        process.stdin.write("".join(FRAMES[2:]).encode())
        process.stdin.close()
        assert process.stdout.read().decode() == EVENTS[2]
        assert process.stderr.read().decode() == ""
    assert process.returncode == 0


def test_translate_ends_a_cut_stream_as_a_failure() -> None:
    done = xenoglot_does(*translation("chat"), given=FRAMES[0].encode())
    told = event(
        "error",
        error={"type": "api_error", "message": "connection lost: the upstream's stream ended without being complete"},
    )
    assert done == Done(0, EVENTS[0] + told, "")


@pytest.mark.parametrize(
    ("source", "given", "complaint"),
    [
        pytest.param("chat", "", "$: nothing was given", id="nothing"),
        pytest.param("chat", "hello", "$: neither a JSON object nor an event stream", id="words"),
        pytest.param("chat", "{", "$: not valid JSON: Input data was truncated", id="half"),
        pytest.param(
            "chat",
            "{}",
            "$: neither a request of `chat` ($.model: required, expected str) nor a response ($.choices: required, "
            "expected list)",
            id="neither",
        ),
        pytest.param(
            "messages",
            json.dumps(CHAT_REQUEST),
            "$: neither a request of `messages` ($.max_tokens: required, expected int) nor a response ($.content: "
            "required, expected list)",
            id="of-another-dialect",
        ),
        pytest.param(
            "chat",
            json.dumps(CHAT_REQUEST | {"n": 2}),
            "$.n: this model gives one answer per request; ask for 1, or send several requests",
            id="pitfall-46-impossible-there",
        ),
    ],
)
def test_translate_says_why_it_cannot(source: str, given: str, complaint: str) -> None:
    assert xenoglot_does(*translation(source), given=given.encode()) == Done(
        2, "", f"xenoglot: standard input: {complaint}\n"
    )


@pytest.mark.parametrize(
    ("command", "given"),
    [
        pytest.param(translation("chat"), "".join(FRAMES), id="translate"),
        pytest.param(["translate", "--help"], "", id="help"),
        pytest.param(["--version"], "", id="version"),
    ],
)
def test_a_reader_that_has_seen_enough_is_no_failure(command: list[str], given: str) -> None:
    there, here = os.pipe()
    os.close(there)  # as `| head` does
    try:
        done = subprocess.run(
            [XENOGLOT, *command],
            input=given.encode(),
            stdout=here,
            stderr=subprocess.PIPE,
            timeout=TIMEOUT,
            check=False,
        )
    finally:
        os.close(here)
    assert (done.returncode, done.stderr) == (0, b"")


# -- parse

WRITTEN = '<tool_call>{"name": "weather", "arguments": {"city": "Lāmi"}}</tool_call>'


def tools_in(folder: Path) -> str:
    """A file with the tools that may be called."""
    (folder / "tools.json").write_text('[{"type": "function", "function": {"name": "weather"}}]', encoding="utf-8")
    return str(folder / "tools.json")


def content_of(done: Done) -> list[dict[str, str]]:
    """The parts that `parse` found, without the ids of calls."""
    assert (done.code, done.err) == (0, "")
    parts: list[dict[str, str]] = json.loads(done.out)["content"]
    return [{key: value for key, value in part.items() if key != "id"} for part in parts]


def test_parse_finds_calls(tmp_path: Path) -> None:
    flags = ["--syntax", "hermes", "--tools", tools_in(tmp_path)]
    assert content_of(xenoglot_does("parse", *flags, given=WRITTEN.encode())) == [
        {"type": "tool_call", "name": "weather", "arguments": '{"city": "Lāmi"}'}
    ]


@pytest.mark.parametrize(
    ("flags", "given", "content"),
    [
        pytest.param(
            "--any-tool",
            WRITTEN,
            [{"type": "tool_call", "name": "weather", "arguments": '{"city": "Lāmi"}'}],
            id="any-tool",
        ),
        pytest.param("--model qwq-32b", "Hm</think>Hi\n", [("reasoning", "Hm"), ("text", "Hi\n")], id="model"),
        pytest.param("--model qwq-32b --no-thinking", "Hi", [("text", "Hi")], id="not-thinking"),
        pytest.param("--syntax off", "<think>Hm</think>", [("text", "<think>Hm</think>")], id="off"),
    ],
)
def test_parse_goes_by_its_flags(flags: str, given: str, content: list[dict[str, str] | tuple[str, str]]) -> None:
    wanted = [part if isinstance(part, dict) else {"type": part[0], "text": part[1]} for part in content]
    assert content_of(xenoglot_does("parse", *flags.split(), given=given.encode())) == wanted


@pytest.mark.parametrize(
    ("given", "found"),
    [
        pytest.param(WRITTEN, "1 tool call", id="one"),
        pytest.param(f"{WRITTEN} and {WRITTEN}", "2 tool calls", id="two"),
        pytest.param('[TOOL_CALLS][{"name": "weather", "arguments": {}}]', "1 tool call", id="another-syntax"),
    ],
)
def test_parse_notes_calls_of_tools_that_are_not_declared(given: str, found: str) -> None:
    """first-minutes-H19: the calls were left in the text without a word."""
    done = xenoglot_does("parse", given=given.encode())
    assert [part["type"] for part in json.loads(done.out)["content"]] == ["text"]
    remedy = "declare tools with `--tools FILE`, or accept any with `--any-tool`"
    note = f"note: {found} left as text, because no such tool is declared: weather; {remedy}\n"
    assert (done.code, done.err) == (0, note)


def test_parse_takes_text_alone() -> None:
    done = xenoglot_does("parse", given=b"Hi \xff")
    assert done == Done(2, "", "xenoglot: standard input: byte 3 is not UTF-8\n")


def test_parse_names_what_it_knows() -> None:
    done = xenoglot_does("parse", "--syntax", "latin")
    assert (done.code, done.out) == (2, "")
    assert done.err == "xenoglot: there is no text syntax `latin`; did you mean `think`?\n"


# -- ask and models


def behind(upstream: RunningGateway, dialect: str) -> list[str]:
    """The flags that put a command in front of `upstream`."""
    return ["--upstream", upstream.url, "--dialect", dialect, "--key-env", "TEST_KEY"]


@BOTH
def test_ask_prints_the_answer(upstream: RunningGateway, dialect: str) -> None:
    flags = [*behind(upstream, dialect), "--model", "m", "--system", "Be brief.", "--temperature", "0.5"]
    done = xenoglot_does("ask", *flags, "--max-tokens", "9", "Bonjour?", TEST_KEY=KEY)
    assert done == Done(0, "Bonjour, lāmi.\n", "")
    scripted = upstream.gateway.backends["scripted"]
    assert isinstance(scripted, Scripted)
    (request,) = scripted.requests
    said = [(message.role, [part.text for part in message.content]) for message in request.messages]  # type: ignore[union-attr]
    assert said == [("system", ["Be brief."]), ("user", ["Bonjour?"])]
    assert (request.model, request.sampling.max_tokens, request.sampling.temperature) == ("m", 9, 0.5)


def test_ask_leaves_out_thoughts_in_text() -> None:
    with run_gateway({"scripted": Scripted(answer("<thi", "nk>French?</think>", "Bonjour."))}) as running:
        asked = ["ask", "--upstream", running.url, "--model", "m", "Bonjour?"]
        assert xenoglot_does(*asked) == Done(0, "<think>French?</think>Bonjour.\n", "")
        assert xenoglot_does(*asked, "--text-syntax", "hermes") == Done(0, "Bonjour.\n", "")


def test_ask_reads_the_question_from_standard_input(upstream: RunningGateway) -> None:
    flags = [*behind(upstream, "chat"), "--model", "m"]
    done = xenoglot_does("ask", *flags, "-", given="Où?\xff".encode("latin-1"), TEST_KEY=KEY)
    assert done == Done(0, "Bonjour, lāmi.\n", "")
    scripted = upstream.gateway.backends["scripted"]
    assert isinstance(scripted, Scripted)
    assert [message.content for message in scripted.requests[0].messages] == [(Text(text="O�?�"),)]


def test_ask_tells_what_was_lost(upstream: RunningGateway) -> None:
    flags = [*behind(upstream, "messages"), "--model", "m", "--temperature", "1.5"]
    done = xenoglot_does("ask", *flags, "Bonjour?", TEST_KEY=KEY)
    lost = "loss: $.sampling temperature approximated (the dialect's highest is 1)\n"
    assert done == Done(0, "Bonjour, lāmi.\n", lost)


def test_ask_writes_what_a_terminal_cannot_show(upstream: RunningGateway) -> None:
    flags = [*behind(upstream, "chat"), "--model", "m"]
    done = xenoglot_does("ask", *flags, "Bonjour?", TEST_KEY=KEY, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done == Done(0, "Bonjour, l\\u0101mi.\n", "")


@BOTH
def test_ask_says_in_one_line_why_there_is_no_answer(failing: RunningGateway, dialect: str) -> None:
    done = xenoglot_does("ask", "--upstream", failing.url, "--dialect", dialect, "--model", "m", "Bonjour?")
    path = {"chat": "/v1/chat/completions", "messages": "/v1/messages"}[dialect]
    assert done == Done(7, "", f"xenoglot: HTTP 400 from {failing.url}{path}: this is not ?[31mpossible\n")


@BOTH
def test_a_key_that_is_refused_is_not_shown(upstream: RunningGateway, dialect: str) -> None:
    done = xenoglot_does("ask", *behind(upstream, dialect), "--model", "m", "Bonjour?", TEST_KEY="sk-another-key")
    assert done.code == 7
    assert done.err.startswith(f"xenoglot: 401 from {upstream.url}")
    assert "the key in $TEST_KEY was refused" in done.err
    assert "sk-another-key" not in done.err


@BOTH
def test_models_are_listed_one_a_line(upstream: RunningGateway, dialect: str) -> None:
    assert xenoglot_does("models", *behind(upstream, dialect), TEST_KEY=KEY) == Done(0, "scripted\n", "")


def test_models_of_a_file_are_listed(upstream: RunningGateway, tmp_path: Path) -> None:
    path = tmp_path / "xenoglot.toml"
    path.write_text(
        f'[upstreams.main]\ndialect = "chat"\nbase_url = "{upstream.url}"\nkey_env = "TEST_KEY"\n\n'
        '[[models]]\nname = "small"\nmodel = "scripted"\n\n[[models]]\nname = "*"\n',
        encoding="utf-8",
    )
    assert xenoglot_does("models", "--config", str(path), TEST_KEY=KEY) == Done(0, "small\nscripted\n", "")


def test_an_upstream_that_is_not_there_is_said_to_be_so() -> None:
    with run_gateway({"scripted": Scripted(answer("never"))}) as gone:
        flags = ["--upstream", gone.url]
    told = f"xenoglot: cannot connect to {gone.url}: connection refused; is the server running?\n"
    assert xenoglot_does("models", *flags) == Done(8, "", told)


def test_without_an_upstream_the_embedded_model_is_there() -> None:
    assert xenoglot_does("models") == Done(0, "smollm2-135m-instruct\nall-minilm-l6-v2\n", "")


def test_models_downloads_nothing(tmp_path: Path) -> None:
    """first-minutes-H11: a new machine downloaded 92 MB to print two names, or failed without a network."""
    models, index = str(tmp_path / "models"), "http://127.0.0.1:9/"
    done = xenoglot_does("models", XENOGLOT_MODELS=models, PIP_INDEX_URL=index, PIP_RETRIES="0")
    assert done == Done(0, "smollm2-135m-instruct\nall-minilm-l6-v2\n", "")
    assert list(tmp_path.iterdir()) == []


def test_without_an_upstream_the_embedded_model_answers() -> None:
    done = xenoglot_does("ask", "--max-tokens", "2", "What is the capital of France?")
    told = "note: the answer is cut off after 2 tokens; `--max-tokens N` allows more\n"
    assert (done.code, bool(done.out.strip()), done.err) == (0, True, told)


# -- serve and pull


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_serves_until_a_signal(upstream: RunningGateway, number: signal.Signals) -> None:
    command = [XENOGLOT, "serve", "--port", "0", *behind(upstream, "messages"), "--client-key-env", "TEST_CLIENT"]
    environ = environment(TEST_KEY=KEY, TEST_CLIENT="sk-the-clients-key")
    with ExitStack() as stack:
        process = stack.enter_context(
            subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
        stack.callback(process.kill)
        assert process.stdout
        greeting = re.fullmatch(
            r"Xenoglot serves every model at (http://127\.0\.0\.1:\d+)\n", process.stdout.readline()
        )
        assert greeting
        asked = ["ask", "--upstream", greeting[1], "--model", "m", "--key-env", "TEST_CLIENT", "Bonjour?"]
        assert xenoglot_does(*asked, TEST_CLIENT="sk-the-clients-key") == Done(0, "Bonjour, lāmi.\n", "")
        assert xenoglot_does(*asked, TEST_CLIENT="sk-not-the-key").code == 7
        process.send_signal(number)
        out, err = process.communicate(timeout=TIMEOUT)
        lines = [json.loads(line) for line in err.splitlines()]
        assert (process.returncode, out) == (0, "")
        assert [(line["route"], line["status"], line["failure"]) for line in lines] == [
            ("/v1/chat/completions", 200, None),
            ("/v1/chat/completions", 401, "authentication"),
        ]


def test_serve_says_that_an_address_is_taken(upstream: RunningGateway) -> None:
    done = xenoglot_does("serve", "--port", str(upstream.port), "--upstream", upstream.url)
    told = "Address already in use; choose another with `--host` and `--port`"
    assert done == Done(2, "", f"xenoglot: cannot listen at 127.0.0.1:{upstream.port}: {told}\n")


def test_serve_serves_a_model_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "shouting.py").write_text("def shout(prompt: str):\n    yield prompt.upper()\n", encoding="utf-8")
    command = [XENOGLOT, "serve", "--port", "0", "--python", "shouting:shout"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout
            greeting, _, url = process.stdout.readline().strip().rpartition(" at ")
            assert greeting == "Xenoglot serves shout, every model"
            asked = ["ask", "--upstream", url, "--model", "shout", "Bonjour?"]
            assert xenoglot_does(*asked) == Done(0, "BONJOUR?\n", "")
            process.send_signal(signal.SIGTERM)
            assert process.wait(TIMEOUT) == 0
        finally:
            process.kill()


def test_pull_prints_where_the_weights_are() -> None:
    done = xenoglot_does("pull")
    assert (done.code, done.err) == (0, "")
    assert Path(done.out.removesuffix("\n")).is_file()
