"""Housekeeping requests: which are recognized, what is answered, and what is never mistaken for one."""

from __future__ import annotations

from typing import get_args

import pytest

from xenoglot.model.content import Image, Remote, Text
from xenoglot.model.request import Message, Prompt, Request, Sampling, Tool
from xenoglot.policy.local_answers import LONGEST, Kind, LocalAnswer, command_prefix, file_paths, local_answer

KINDS: tuple[Kind, ...] = get_args(Kind)
POLICY = "<policy_spec>\nCommand: git diff\nExamples\n</policy_spec>\n\nCommand: "


def user(text: str) -> Message:
    return Message(role="user", content=(Text(text=text),))


def system(text: str) -> Message:
    return Message(role="system", content=(Text(text=text),))


TITLE = system("Analyze if this message indicates a new conversation topic. Extract a 2-3 word title.")
PATHS = system("Extract any file paths. Answer in <filepaths> tags.")
QUOTA = Request(model="m", messages=(user("quota"),), sampling=Sampling(max_tokens=1))


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(QUOTA, LocalAnswer("quota_probe", "Quota check passed."), id="quota"),
        pytest.param(
            Request(model="m", messages=(TITLE, user("Fix the parser."))),
            LocalAnswer("title", "Conversation"),
            id="title",
        ),
        pytest.param(
            Request(model="m", messages=(user(POLICY + "git commit -m 'x'"),)),
            LocalAnswer("command_prefix", "git commit"),
            id="prefix-of-the-last-command",
        ),
        pytest.param(
            Request(model="m", messages=(user("a"), user("[SUGGESTION MODE: what next?]"))),
            LocalAnswer("suggestion", ""),
            id="suggestion",
        ),
        pytest.param(
            Request(model="m", messages=(PATHS, user("Command: ls src\nOutput: a.py"))),
            LocalAnswer("file_paths", "<filepaths>\n</filepaths>"),
            id="paths-of-a-command-that-shows-nothing",
        ),
        pytest.param(
            Request(model="m", messages=(PATHS, user("Command: head -n 5 a.py 'b c.py'\nOutput: hello"))),
            LocalAnswer("file_paths", "<filepaths>\na.py\nb c.py\n</filepaths>"),
            id="paths",
        ),
    ],
)
def test_f_s7_housekeeping_is_answered(request_: Request, expected: LocalAnswer) -> None:
    assert local_answer(request_, KINDS) == expected
    others = [kind for kind in KINDS if kind != expected.kind]
    assert local_answer(request_, others) is None


IMAGE = Message(role="user", content=(Text(text="quota"), Image(source=Remote("https://a.test/b.png"))))


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(Request(model="m", messages=(user("quota"),)), id="without-the-limit"),
        pytest.param(
            Request(model="m", messages=(user("What is my quota?"),), sampling=Sampling(max_tokens=1)), id="a-question"
        ),
        pytest.param(
            Request(model="m", messages=(user("Hi"), user("quota")), sampling=Sampling(max_tokens=1)), id="later"
        ),
        pytest.param(Request(model="m", messages=(IMAGE,), sampling=Sampling(max_tokens=1)), id="with-a-picture"),
        pytest.param(
            Request(model="m", messages=(TITLE, user("x")), tools=(Tool(name="run"),)), id="a-title-beside-tools"
        ),
        pytest.param(Request(model="m", messages=(user("What does [SUGGESTION MODE: mean?"),)), id="a-marker-quoted"),
        pytest.param(Request(model="m", messages=(user("Command: ls"),)), id="no-policy"),
        pytest.param(Request(model="m", messages=(user(POLICY + "x" * LONGEST),)), id="too-long"),
        pytest.param(Request(model="m", messages=()), id="nothing"),
        pytest.param(
            Request(model="m", prompt=Prompt(texts=("quota",)), sampling=Sampling(max_tokens=1)), id="a-completion"
        ),
    ],
)
def test_f_w15_a_prompt_is_never_mistaken(request_: Request) -> None:
    assert local_answer(request_, KINDS) is None


@pytest.mark.parametrize(
    ("command", "prefix"),
    [
        ("git status", "git status"),
        ("git -C /tmp status", "git"),
        ("ls -la", "ls"),
        ("npm run lint", "npm run"),
        ("", "none"),
        ("FOO=1 make", "none"),
        ("echo 'unbalanced", "none"),
        ("git status; rm -rf /", "command_injection_detected"),
        ("git status\nrm x", "command_injection_detected"),
        ("git status && x", "command_injection_detected"),
        ("git diff $(pwd)", "command_injection_detected"),
        ("git diff `pwd`", "command_injection_detected"),
        ("cat a > b", "command_injection_detected"),
        ("git diff $HOME", "command_injection_detected"),
    ],
)
def test_a_prefix_never_covers_a_second_command(command: str, prefix: str) -> None:
    assert command_prefix(command) == prefix


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("cat a b", ["a", "b"]),
        ("grep -n word a.py", []),
        ("grep word a.py b.py", ["a.py", "b.py"]),
        ("grep -e word a.py", ["a.py"]),
        ("ls src", []),
        ("cat a | grep b", []),
        ("", []),
    ],
)
def test_paths_are_those_of_commands_that_show_files(command: str, paths: list[str]) -> None:
    assert file_paths(command) == paths
