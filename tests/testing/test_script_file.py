"""A script as TOML is the same script."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.backends.raw_server import leakless
from xenoglot.errors import ConfigurationError
from xenoglot.testing import (
    AsyncRawClient,
    Body,
    Hang,
    Repeat,
    RequestMatcher,
    Reset,
    Respond,
    ResponseHead,
    ScriptRule,
    Send,
    Upstream,
    answers,
)
from xenoglot.testing.script_file import ServerTable, load, read

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = r"""
[server]
port = 9
door = "refuse"
greeting = [{ do = "send", data = "hello\r\n" }]

[[rule]]
when = { method = "POST", path = "/v1/*", contains = "needle", dialect = "chat", stream = true }
times = 2
reads = "head"
steps = [
  { do = "respond", status = 503, headers = {retry-after = "3", x = ["a", "b"] }, body = "no", length = 9, split = [1]},
  { do = "head", chunked = false },
  { do = "repeat", steps = [{ do = "body", data = { base64 = "AP8=", times = 2 }, split = 1 }] },
  { do = "send", data = { file = "bytes.bin" } },
  { do = "hang" },
  { do = "reset" },
]
"""


def test_every_form(tmp_path: Path) -> None:
    (tmp_path / "bytes.bin").write_bytes(b"\0\1")
    (tmp_path / "script.toml").write_text(SCRIPT, encoding="utf-8")
    script = load(tmp_path / "script.toml")
    assert script.server == ServerTable(port=9, door="refuse", greeting=(Send(b"hello\r\n"),))
    assert script.rules() == (
        ScriptRule(
            when=RequestMatcher(method="POST", path="/v1/*", contains=b"needle", dialect="chat", stream=True),
            times=2,
            reads="head",
            steps=(
                Respond(
                    status=503,
                    headers=(("retry-after", "3"), ("x", "a"), ("x", "b")),
                    body=b"no",
                    length=9,
                    split=(1,),
                ),
                ResponseHead(chunked=False),
                Repeat((Body(b"\0\xff\0\xff", split=1),)),
                Send(b"\0\1"),
                Hang(),
                Reset(),
            ),
        ),
    )


@leakless
async def test_a_ready_answer_that_breaks_off(tmp_path: Path) -> None:
    answer = (
        '[[rule]]\nanswer = { dialect = "chat", text = ["a", "b"], tool = { name = "f" }, upto = 2, then = "broken" }'
    )
    script = read(answer, tmp_path)
    made = answers("chat", text=("a", "b"), tool=("f", "{}"))
    async with Upstream(*script.rules()) as upstream, AsyncRawClient(upstream.url) as client:
        ask = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
        assert (await client.request("POST", "/v1/chat/completions", ask)).body == made.body
        assert (await client.request("GET", "/v1/models")).body == made.models
        broken = await client.request("POST", "/v1/chat/completions", ask | {"stream": True})
        assert (broken.body, broken.ending) == (b"".join(made.frames[:2]), "reset")


def test_without_rules_every_dialect_is_answered(tmp_path: Path) -> None:
    assert {rule.when.path for rule in read("", tmp_path).rules()} >= {"*/chat/completions", "*/messages", "*/api/chat"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("[[rule]", "Expected", id="no-TOML"),
        pytest.param(
            "[[rule]]\nsteps = [{ do = 'dance' }]", "dance.*expected one of respond, head,", id="unknown-step"
        ),
        pytest.param("[[rule]]\nsteps = [{ do = 'pause', secs = 1 }]", "secs", id="unknown-field"),
        pytest.param(
            "[[rule]]\nanswer = { dialect = 'chat', then = 'reset' }",
            "answer.then`; expected one of end, cut, broken, silent",
            id="unknown-ending",
        ),
        pytest.param("[server]\nport = 65536", "65535 - at `\\$.server.port`", id="no-port"),
        pytest.param("[[rule]]\nwhen = { route = '/' }", "route", id="unknown-condition"),
        pytest.param("[[rule]]\nsteps = [{ do = 'send', data = { base64 = '*' } }]", "base64", id="no-base64"),
        pytest.param("[[rule]]\nsteps = [{ do = 'send', data = { text = 'x', odd = 1 } }]", "odd", id="odd-bytes"),
        pytest.param("[[rule]]\nsteps = [{ do = 'send', data = { size = 1 } }]", "data", id="no-bytes"),
        pytest.param("[[rule]]\nsteps = [{ do = 'send', data = { file = 'gone' } }]", "No such file", id="no-file"),
        pytest.param("x = '\xe9'", "byte 5 is not UTF-8", id="no-UTF-8"),
    ],
)
def test_what_is_no_script(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "script.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigurationError, match=complaint):
        load(path)


@pytest.mark.parametrize(("other", "name"), [("openai", "chat"), ("claude", "messages"), ("google", "gemini")])
def test_a_dialect_may_have_its_other_names(other: str, name: str, tmp_path: Path) -> None:
    text = "[[rule]]\nanswer = {{ dialect = '{0}' }}\n[[rule]]\nwhen = {{ dialect = '{0}', stream = true }}\n"
    assert read(text.format(other), tmp_path).rules() == read(text.format(name), tmp_path).rules()


@pytest.mark.parametrize("key", ["answer", "when"])
def test_a_dialect_that_does_not_exist_is_refused_at_the_start(key: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^there is no dialect `opnai`; did you mean `openai`\?$"):
        read(f"[[rule]]\n{key} = {{ dialect = 'opnai' }}", tmp_path).rules()
