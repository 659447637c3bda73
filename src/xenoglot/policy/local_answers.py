"""Recognizes housekeeping requests of coding clients that need no model; answered locally if configured.

Claude Code sends them in addition to its real work: a quota probe, a title for the conversation, the prefix of a
command, the file paths in a command's output, and a suggestion for the next prompt. Each costs a request of the
upstream's quota. What is recognized is narrow on purpose, so that no prompt of a person is mistaken for one (reference
F-S7, F-W15).
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from xenoglot.model.content import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from xenoglot.model.request import Message, Request

Kind: TypeAlias = Literal["quota_probe", "title", "command_prefix", "suggestion", "file_paths"]

_PROBE: Final = "quota"
_SUGGESTION: Final = "[SUGGESTION MODE:"
_POLICY: Final = "<policy_spec>"
_COMMAND = re.compile(r"^Command:[ \t]*(?P<command>.*?)(?:\nOutput:|\Z)", re.MULTILINE | re.DOTALL)
_UNSAFE = re.compile(r"[`;&|<>(){}\n\r\\$]")
"""What may start another command, or hide one: a prefix of such a command must never be allowed by itself."""

_WITH_SUBCOMMAND: Final = frozenset(
    {"git", "npm", "pnpm", "yarn", "docker", "kubectl", "cargo", "go", "pip", "uv", "gh", "make", "terraform", "apt"}
)
_SHOWING: Final = frozenset({"cat", "head", "tail", "less", "more", "bat", "nl", "wc"})
_SEARCHING: Final = frozenset({"grep", "egrep", "fgrep", "rg"})
_TAKES_VALUE: Final = frozenset({"-n", "-c", "-m", "-A", "-B", "-C", "-e", "-f"})
LONGEST: Final = 100_000
"""Characters of a request beyond which it is no housekeeping."""


class LocalAnswer(NamedTuple):
    """What is answered in place of a model, and to which kind of request."""

    kind: Kind
    text: str


def local_answer(request: Request, kinds: Collection[Kind]) -> LocalAnswer | None:
    """Return the answer to a housekeeping request of one of these kinds; `None` for every other request."""
    if request.tools or request.output is not None or request.prompt is not None:
        return None
    for kind, answer in _ANSWERS.items():
        if kind in kinds and (text := answer(request)) is not None:
            return LocalAnswer(kind, text)
    return None


def _quota_probe(request: Request) -> str | None:
    only = _only_user_text(request)
    asked = request.sampling.max_tokens == 1 and only is not None and only.strip() == _PROBE
    return "Quota check passed." if asked else None


def _title(request: Request) -> str | None:
    system = _text(request, "system")
    return "Conversation" if "new conversation topic" in system and "title" in system else None


def _command_prefix(request: Request) -> str | None:
    only = _only_user_text(request)
    if only is None or _POLICY not in only:
        return None
    found = _last_command(only.rpartition("</policy_spec>")[2])  # the policy itself has examples
    return None if found is None else command_prefix(found)


def _suggestion(request: Request) -> str | None:
    last = request.messages[-1] if request.messages else None
    if last is None or last.role != "user":
        return None
    return "" if _message_text(last).lstrip().startswith(_SUGGESTION) else None


def _file_paths(request: Request) -> str | None:
    only = _only_user_text(request)
    wanted = only is not None and "\nOutput:" in only and "filepaths" in _text(request, "system") + only
    if not wanted or only is None or (found := _last_command(only)) is None:
        return None
    listed = "".join(f"{path}\n" for path in file_paths(found))
    return f"<filepaths>\n{listed}</filepaths>"


_ANSWERS: Final[Mapping[Kind, Callable[[Request], str | None]]] = {
    "quota_probe": _quota_probe,
    "command_prefix": _command_prefix,
    "title": _title,
    "suggestion": _suggestion,
    "file_paths": _file_paths,
}
"""In the order in which they are looked for."""


def command_prefix(command: str) -> str:
    """Return the prefix by which a client may allow a command; never one of a command that could start another."""
    command = command.strip()
    if _UNSAFE.search(command):
        return "command_injection_detected"
    words = _split_command(command)
    if not words or "=" in words[0]:
        return "none"
    if words[0] in _WITH_SUBCOMMAND and len(words) > 1 and not words[1].startswith("-"):
        return f"{words[0]} {words[1]}"
    return words[0]


def file_paths(command: str) -> list[str]:
    """Return the files that a command shows, by its arguments; none for a command that is not known to show files."""
    words = _split_command(command.strip())
    if not words or _UNSAFE.search(command):
        return []
    arguments: list[str] = []
    taken = False
    for word in words[1:]:
        if not taken and not word.startswith("-"):
            arguments.append(word)
        taken = not taken and word in _TAKES_VALUE
    if words[0] in _SHOWING:
        return arguments
    patterns = 0 if {"-e", "-f"} & set(words) else 1
    return arguments[patterns:] if words[0] in _SEARCHING else []


def _split_command(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # a quote without its partner
        return []


def _last_command(text: str) -> str | None:
    """Return the command that the text ends with; those before it are examples."""
    found = [match["command"] for match in _COMMAND.finditer(text)]
    return found[-1] if found else None


def _only_user_text(request: Request) -> str | None:
    """Return the text of the one turn of the user; `None` where there are more turns, or other content."""
    turns = [message for message in request.messages if message.role not in {"system", "developer"}]
    if len(turns) != 1 or turns[0].role != "user" or not all(isinstance(part, Text) for part in turns[0].content):
        return None
    text = _message_text(turns[0])
    return text if len(text) <= LONGEST else None


def _text(request: Request, role: str) -> str:
    return "\n".join(_message_text(message)[:LONGEST] for message in request.messages if message.role == role)


def _message_text(message: Message) -> str:
    return "".join(part.text for part in message.content if isinstance(part, Text))
