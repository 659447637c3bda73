"""Slash commands between two prompts of `xenoglot agent`. None of them sends a request to the model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from xenoglot.agent.agent import Agent
from xenoglot.agent.policy import BUILT_IN
from xenoglot.agent.tools.plan import PlanTool, Step
from xenoglot.errors import ConfigurationError
from xenoglot.model.content import Text, ToolCall
from xenoglot.model.request import Message, Request
from xenoglot.policy.token_estimate import estimate
from xenoglot.tools.compaction import Compaction, shorten
from xenoglot.tools.tool import LocalTool, ToolError

Command: TypeAlias = Callable[["SlashContext", str], Iterator[str]]
"""Runs with the text after its name, and yields lines to show."""

_WORD: Final = re.compile(r"/[a-z-]*")
_MEANT: Final = 0.8
"""How near a word has to be to a command's name to be meant for it, where more words follow."""
_LONGEST: Final = 400
"""Characters of a line that every screen shows."""


class SlashContext(Struct, frozen=True, kw_only=True):
    """State that commands display: the agent, and its configuration.

    `folder` is the name of the workspace, `notes` of the file of notes that was read, `session` of the session;
    `outside` are the tools of MCP servers. `window` returns the context window of a model in tokens, if known.
    """

    agent: Agent
    folder: str
    window: Callable[[str], int | None]
    notes: str | None = None
    session: str | None = None
    outside: Sequence[LocalTool] = ()


def is_command(typed: str) -> bool:
    """Return whether a line is a command, also a misspelt one, and no prompt that begins with a path."""
    name, _, rest = typed.strip().partition(" ")
    return name in COMMANDS or (_WORD.fullmatch(name) is not None and not rest)


def run_command(here: SlashContext, typed: str) -> Iterator[str] | None:
    """Do what was typed, and return the lines to show; `None` where it is a prompt, and no command.

    Raises:
        ConfigurationError: there is no such command, or it cannot be done; also while the lines are read.
    """
    name, _, rest = typed.strip().partition(" ")
    if name not in COMMANDS:
        if not _WORD.fullmatch(name):
            return None
        near = get_close_matches(name, COMMANDS, n=1, cutoff=_MEANT if rest else 0.5)
        if rest and not near:  # a path may begin a prompt
            return None
        meant = f"did you mean `{near[0]}`? " if near else ""
        raise ConfigurationError(f"there is no command `{name[:40]}`; {meant}/help lists what there is")
    takes, _, command = COMMANDS[name]
    if rest.strip() and not takes:
        raise ConfigurationError(f"`{name}` takes no argument; a prompt must begin with another word")
    return _folded(command(here, rest.strip()))


def _folded(lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines, long ones as several."""
    for text in lines:
        for line in text.split("\n"):
            yield from (line[at : at + _LONGEST] for at in range(0, max(1, len(line)), _LONGEST))


def _help(_: SlashContext, __: str) -> Iterator[str]:
    shown = [(f"{name} {takes}".rstrip(), does) for name, (takes, does, _) in COMMANDS.items()]
    width = max(len(name) for name, _ in shown)
    yield from (f"{name.ljust(width)}  {does}" for name, does in shown)
    yield "anything else is a prompt"


def _status(here: SlashContext, _: str) -> Iterator[str]:
    manner, spent = here.agent.settings, here.agent.spent
    yield f"model {_model_of(here)}, folder {here.folder}, {manner.max_rounds} answers to a prompt"
    budget = manner.budget
    for what, used in (
        ("total_tokens", spent.total_tokens),
        ("cost", spent.cost),
        ("calls", spent.calls),
        ("seconds", spent.seconds),
    ):
        limit = getattr(budget, what, None)
        if limit is not None:
            left = "not known" if used is None else f"{max(0, limit - used):g} of {limit:g}"
            yield f"{what.removeprefix('total_')} left: {left}"


def _usage(here: SlashContext, _: str) -> Iterator[str]:
    spent = here.agent.spent
    yield (
        f"{spent.input_tokens} tokens in, {spent.output_tokens} out, {spent.model_calls} answers, {spent.calls} calls"
    )


def _context(here: SlashContext, _: str) -> Iterator[str]:
    window = here.window(_model_of(here))
    yield f"{len(here.agent.messages)} turns, about {_size(here, here.agent.messages)} tokens with what goes before"
    yield f"the model holds {window}" if window else "how many tokens the model holds is not known"


def _prompt(here: SlashContext, _: str) -> Iterator[str]:
    yield here.agent.settings.system


def _memory(here: SlashContext, _: str) -> Iterator[str]:
    yield f"{here.notes} was read" if here.notes else "no notes of the project were read"


def _model(here: SlashContext, name: str) -> Iterator[str]:
    if name:
        manner = here.agent.settings
        here.agent.settings = replace(manner, options={**manner.options, "model": name})
    yield f"the model is {_model_of(here)}"


def _tools(here: SlashContext, _: str) -> Iterator[str]:
    yield _listed(here.agent.tools)


def _mcp(here: SlashContext, _: str) -> Iterator[str]:
    yield _listed(here.outside) if here.outside else "no tools of MCP servers: `--mcp FILE` brings some"


def _permissions(here: SlashContext, _: str) -> Iterator[str]:
    tools = here.agent.tools
    given = {tool.spec.name for tool in tools}
    for what, names in (
        ("allowed", [tool.spec.name for tool in tools if not tool.needs_approval]),
        ("asks", [tool.spec.name for tool in tools if tool.needs_approval]),
        ("not given", [name for name in BUILT_IN if name not in given]),
    ):
        yield f"{what}: {', '.join(names) or '-'}"


def _plan(here: SlashContext, _: str) -> Iterator[str]:
    yield next(_plans(here.agent.messages), "there is no plan")


def _session(here: SlashContext, _: str) -> Iterator[str]:
    yield f"{here.session}: go on with --resume {here.session}" if here.session else "nothing is kept: `--no-session`"


def _compact(here: SlashContext, _: str) -> Iterator[str]:
    settings, messages = here.agent.settings.compaction or Compaction(), here.agent.messages

    def weigh(some: tuple[Message, ...]) -> int:
        return estimate(Request(model="", messages=some))

    before = weigh(messages)
    cut = shorten(messages, settings.keep_turns, int(before * settings.target), weigh).join()
    after = weigh(cut)
    if after >= before:
        yield "there is nothing to shorten"
        return
    here.agent.rewrite(cut)
    yield f"the conversation was shortened: about {before} tokens, now {after}"


def _clear(here: SlashContext, _: str) -> Iterator[str]:
    here.agent.rewrite(())
    yield "a new conversation; what was spent still counts"


def _exit(_: SlashContext, __: str) -> Iterator[str]:
    """Show nothing; the loop that reads prompts ends before this."""
    yield from ()


def _model_of(here: SlashContext) -> str:
    return str(here.agent.settings.options.get("model", "-"))


def _size(here: SlashContext, messages: Sequence[Message]) -> int:
    """Return the approximate tokens of the next prompt, without its text."""
    system = Message(role="system", content=(Text(text=here.agent.settings.system),))
    tools = tuple(tool.spec for tool in here.agent.tools)
    return estimate(Request(model="", messages=(system, *messages), tools=tools))


def _listed(tools: Sequence[LocalTool]) -> str:
    return ", ".join(f"{tool.spec.name} (asks)" if tool.needs_approval else tool.spec.name for tool in tools)


class _Steps(Struct, frozen=True):
    steps: list[Step]


def _plans(messages: Sequence[Message]) -> Iterator[str]:
    """Yield the plans that were noted, the newest first."""
    for message in reversed(messages):
        for part in reversed(message.content):
            if isinstance(part, ToolCall) and part.name == "plan":
                try:
                    noted = PlanTool().plan(msgspec.json.decode(part.arguments, type=_Steps).steps)
                except (msgspec.DecodeError, RecursionError, ToolError):  # the tool has refused it, too
                    continue
                yield "".join(piece.text for piece in noted.content if isinstance(piece, Text))


COMMANDS: Final[dict[str, tuple[str, str, Command]]] = {
    "/help": ("", "this list", _help),
    "/status": ("", "the model, the folder, and what is left of the budget", _status),
    "/usage": ("", "what was spent", _usage),
    "/context": ("", "how long the conversation is", _context),
    "/compact": ("", "shorten the conversation", _compact),
    "/clear": ("", "begin a new conversation in the same session", _clear),
    "/model": ("[NAME]", "which model answers from now on", _model),
    "/prompt": ("", "the instructions the model is given", _prompt),
    "/memory": ("", "which notes of the project were read", _memory),
    "/plan": ("", "the plan as it was noted last", _plan),
    "/tools": ("", "what the model may use", _tools),
    "/mcp": ("", "the tools of MCP servers", _mcp),
    "/permissions": ("", "what is allowed, what is asked, what is not given", _permissions),
    "/session": ("", "the session, and how to go on with it", _session),
    "/exit": ("", "leave", _exit),
}
"""Name -> its argument, its description, and its function."""
