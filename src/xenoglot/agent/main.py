"""Main function of `xenoglot agent`: builds an agent from flags, gives it prompts, and returns its exit code."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import secrets
import sys
import time
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot import model_selection
from xenoglot.agent import slash
from xenoglot.agent.agent import Agent, AgentSettings
from xenoglot.agent.answer_schema import RETRIES, AnswerSchema, correction, load_answer_schema, unfenced
from xenoglot.agent.delegate import Delegation
from xenoglot.agent.hooks import Hooks
from xenoglot.agent.permissions import PermissionMode, Permissions, tools_for
from xenoglot.agent.policy import Policy, policy_of
from xenoglot.agent.prompt import AgentEnvironment, notes_name, project_notes, system_prompt
from xenoglot.agent.sandbox.environment import for_command
from xenoglot.agent.sandbox.environment import secrets as secrets_of
from xenoglot.agent.sandbox.file_names import valid_text
from xenoglot.agent.sandbox.workspace import Workspace
from xenoglot.agent.screen import JSONScreen, PlainScreen, Screen
from xenoglot.agent.session.session_files import SessionFile, Sessions, folder_of
from xenoglot.backends.redaction import Redactor, for_log
from xenoglot.client.async_ import AsyncClient
from xenoglot.errors import INTERRUPTED, UNREACHABLE, ConfigurationError, XenoglotError, failure_code
from xenoglot.tools.budget import Budget
from xenoglot.tools.compaction import Compaction
from xenoglot.tools.tool import LocalTool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from xenoglot.tools.result import Outcome, RunResult

CODES: dict[Outcome, int] = {"answered": 0, "limit": 4, "budget": 5, "refused": 6, "cancelled": INTERRUPTED}
"""How a run ended -> the exit code; that of a failure depends on its kind."""

MOST_LISTED = 20
LONGEST_TITLE = 60

HELP = "/exit leaves, /help lists the commands; anything else is a prompt"


class AgentOptions(Struct, frozen=True, kw_only=True):
    """Options from flags, resolved before the model is opened: folder, model, session, permissions, and screen."""

    chosen: model_selection.ModelSelection
    workspace: Workspace
    tools: list[LocalTool]
    settings: AgentSettings
    sessions: Sessions
    screen: Screen
    can_ask: bool
    policy: Policy
    schema: AnswerSchema | None
    hooks: Hooks | None


def run(options: argparse.Namespace, screen_of: Callable[[], Screen] | None) -> int:
    """Run the command; return the exit code.

    Raises:
        ConfigurationError: something of them is wrong.
    """
    if sys.platform == "win32":
        raise ConfigurationError("`xenoglot agent` needs a POSIX system: on Windows, run it in WSL")
    if options.sessions:
        _list_sessions()
        return 0
    setting = _setting(options, screen_of)
    prompt = _prompt(options, setting)
    if prompt is not None and slash.is_command(prompt) and options.resume is None and not options.latest:
        options.no_session = True  # there would be nothing in it
    with _outside(options, setting) as tools, _session(options, setting) as session, asyncio.Runner() as runner:
        client = AsyncClient(setting.chosen.open, on_loss="ignore", prices=model_selection.prices_of(options))
        agent = Agent(client, [*setting.tools, *tools], setting.settings, session, setting.hooks)
        if options.delegate:
            delegate = Delegation(client, agent, options.max_delegated).tool
            agent.tools = [*agent.tools, *setting.policy.applied([delegate], can_ask=setting.can_ask)]
        here = slash.SlashContext(
            agent=agent,
            folder=for_log(Path(setting.workspace.root).name),
            window=client.context_window,
            notes=None if options.no_notes else notes_name(setting.workspace),
            session=None if session is None else session.id,
            outside=tools,
        )
        try:
            if prompt is None:
                return _converse(runner, here, setting)
            lines = slash.run_command(here, prompt)
            if lines is None and setting.schema is not None:
                return _run_to_schema(runner, agent, prompt, setting, setting.schema)
            if lines is None:
                return _run_prompt(runner, agent, prompt, setting)
            screen = setting.screen if options.json else PlainScreen(notes=sys.stdout)
            for line in lines:
                screen.note(line)
            return 0
        finally:
            runner.run(client.aclose())


def _setting(options: argparse.Namespace, screen_of: Callable[[], Screen] | None) -> AgentOptions:
    policy = policy_of(options, os.environ)
    options = policy.narrowed(options)
    chosen = _chosen(options)
    known = frozenset(
        key for value in chosen.config.secrets for key in (value, *value.split())
    )  # a variable may hold several
    redactor = Redactor([*known, *secrets_of(os.environ, known), *policy.secrets])
    workspace = Workspace(Path(options.folder), allow_secrets=options.allow_secrets)
    can_ask = not options.json and sys.stdin.isatty() and sys.stderr.isatty()
    environ = for_command(os.environ, known) | policy.env
    made = tools_for(
        workspace, policy.widened(_permissions(options, can_ask=can_ask)), environ=environ, redactor=redactor
    )
    tools = policy.applied(made, can_ask=can_ask)
    schema = None if options.schema is None else load_answer_schema(options.schema)
    return AgentOptions(
        chosen=chosen,
        workspace=workspace,
        tools=tools,
        settings=_settings(options, workspace, tools, schema),
        sessions=Sessions(folder_of(os.environ), redactor),
        screen=_screen(options, redactor, screen_of),
        can_ask=can_ask,
        policy=policy,
        schema=schema,
        hooks=Hooks(policy.hooks, workspace.root, environ, redactor) if policy.hooks else None,
    )


def _chosen(options: argparse.Namespace) -> model_selection.ModelSelection:
    """Return the model; `--model` is not configured: each request names one, and `/model` may change it."""
    if options.python is not None or (options.config is None and options.upstream is None):
        return model_selection.chosen(options)
    found = model_selection.chosen(argparse.Namespace(**{**vars(options), "model": None}))
    options.model = options.model or model_selection.default_model(found)
    return found


def _permissions(options: argparse.Namespace, *, can_ask: bool) -> Permissions:
    if options.read_only and (options.allow_write or options.allow_shell):
        raise ConfigurationError("`--read-only` and `--allow-write` or `--allow-shell` exclude each other")
    otherwise: PermissionMode = "ask" if can_ask and not options.read_only else "no"
    return Permissions(
        write="yes" if options.allow_write else otherwise, shell="yes" if options.allow_shell else otherwise
    )


def _settings(
    options: argparse.Namespace, workspace: Workspace, tools: list[LocalTool], schema: AnswerSchema | None
) -> AgentSettings:
    surroundings = AgentEnvironment(
        folder=valid_text(Path(workspace.root).name), system=platform.system(), today=time.strftime("%Y-%m-%d")
    )
    notes = None if options.no_notes else project_notes(workspace)
    output = None if schema is None else schema.format
    wanted = {"max_tokens": options.max_tokens, "temperature": options.temperature, "output": output}
    return AgentSettings(
        system=system_prompt(surroundings, {tool.spec.name for tool in tools}, notes, valid_text(options.system or "")),
        max_rounds=options.max_rounds,
        budget=Budget(
            total_tokens=options.max_tokens_total,
            cost=options.max_cost,
            calls=options.max_calls,
            seconds=options.max_seconds,
        ),
        compaction=None if options.no_compaction else Compaction(),
        options={
            "model": options.model or model_selection.ANY_MODEL,
            **{name: value for name, value in wanted.items() if value is not None},
        },
    )


def _screen(options: argparse.Namespace, redactor: Redactor, screen_of: Callable[[], Screen] | None) -> Screen:
    if options.json:
        return JSONScreen(redactor)
    if options.schema is not None:  # standard output is the answer's alone
        return PlainScreen(output=sys.stderr)
    if options.plain or screen_of is None or not sys.stdout.isatty():
        return PlainScreen()
    return screen_of()


def _prompt(options: argparse.Namespace, setting: AgentOptions) -> str | None:
    """Return the prompt; `None` if the user will type it."""
    if options.prompt is None and setting.can_ask:
        if setting.schema is not None:
            raise ConfigurationError("`--schema` needs a prompt: it is for one answer")
        return None
    if options.prompt is not None and options.prompt != "-":
        prompt: str = options.prompt
    else:
        prompt = sys.stdin.buffer.read().decode(errors="replace")
    if not prompt.strip():
        raise ConfigurationError("there is nothing to do: give a prompt")
    return prompt


@contextmanager
def _session(options: argparse.Namespace, setting: AgentOptions) -> Iterator[SessionFile | None]:
    """Open the session; print afterwards how to continue it."""
    if options.no_session:
        yield None
        return
    file = _open_session(options, setting)
    try:
        if options.begun is not None:
            options.begun(setting.sessions.path(file.id))
        if file.session.damaged:
            setting.screen.note(f"[{file.session.damaged} lines of the session cannot be read, and are passed over]")
        yield file
        setting.screen.note(f"[session {file.id}: go on with --resume {file.id}]")
    finally:
        file.close()


def _open_session(options: argparse.Namespace, setting: AgentOptions) -> SessionFile:
    here = valid_text(setting.workspace.root)
    if options.resume is not None or options.latest:
        file = setting.sessions.resume(setting.sessions.newest(here) if options.latest else options.resume)
        if file.session.started.workspace != here:
            file.close()
            raise ConfigurationError("that session is of another folder: name it with `--folder`")
        return file
    now = time.time()
    name = f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}-{secrets.token_hex(3)}"
    return setting.sessions.begin(name, created=now, workspace=here, model=options.model)


@contextmanager
def _outside(options: argparse.Namespace, setting: AgentOptions) -> Iterator[Sequence[LocalTool]]:
    """Give the tools of MCP servers; each call needs approval, or flags allow all."""
    if options.mcp is None:
        yield ()
        return
    if not (options.allow_mcp or setting.can_ask or setting.policy.allow):
        raise ConfigurationError("without a terminal, `--mcp` needs `--allow-mcp`")
    from xenoglot.tools.mcp.tools import mcp_tools  # noqa: PLC0415  an extra

    with mcp_tools(file=options.mcp, needs_approval=not options.allow_mcp) as tools:
        yield setting.policy.applied(tools, can_ask=setting.can_ask, outside=True)


def _run_prompt(runner: asyncio.Runner, agent: Agent, prompt: str, setting: AgentOptions) -> int:
    """Have the agent work on a prompt, and return the exit code."""
    screen = setting.screen
    try:
        result: RunResult = runner.run(agent.work(prompt, screen.feed, screen.approve))
    except KeyboardInterrupt:
        screen.flush()
        screen.note("[interrupted]")
        return INTERRUPTED
    screen.flush()
    if result.outcome != "answered":
        screen.problem(f"{result.outcome}: {result.reason}")
    return CODES[result.outcome] if result.failure is None else failure_code(result.failure)


def _run_to_schema(
    runner: asyncio.Runner, agent: Agent, prompt: str, setting: AgentOptions, schema: AnswerSchema
) -> int:
    """Have the agent work until its answer matches the schema; print that alone, and return the exit code."""
    for attempt in count():
        if code := _run_prompt(runner, agent, prompt, setting):
            return code
        problems = schema.problems(agent.last_text)
        if not problems:
            break
        if attempt == RETRIES:
            setting.screen.problem(f"the answer does not match the schema: {problems[0]}")
            return UNREACHABLE
        prompt = correction(problems)
    if not isinstance(setting.screen, JSONScreen):
        sys.stdout.write(unfenced(agent.last_text) + "\n")
    return 0


def _converse(runner: asyncio.Runner, here: slash.SlashContext, setting: AgentOptions) -> int:
    """Work on one prompt after the other until the person leaves."""
    setting.screen.note(HELP)
    while True:
        line = setting.screen.read_prompt()
        match line if line is None else line.strip():
            case "":
                continue
            case None | "/exit" | "/quit" | "/bye" | "/q" | "exit" | "quit":
                return 0
            case typed:
                try:
                    lines = slash.run_command(here, typed)
                    if lines is None:
                        _run_prompt(runner, here.agent, typed, setting)
                    else:
                        for line in lines:
                            setting.screen.note(line)
                except XenoglotError as error:  # the next prompt may fare better
                    setting.screen.problem(str(error))


def _list_sessions() -> None:
    """Print the newest sessions: the name of each, its start, its folder and its first prompt."""
    listed = Sessions(folder_of(os.environ), Redactor()).listed()
    for _, session in zip(range(MOST_LISTED), listed, strict=False):
        begun = session.started
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(begun.created))
        title = for_log(session.title, LONGEST_TITLE)
        sys.stdout.write(f"{begun.id}  {day}  {for_log(Path(begun.workspace).name)}  {title}\n")
