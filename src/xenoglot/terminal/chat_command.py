"""The command `xenoglot chat`: a conversation in the terminal, or over pipes."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from xenoglot import model_selection
from xenoglot.errors import ConfigurationError, XenoglotError

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncGenerator, Sequence

    from xenoglot.client.async_ import AsyncClient
    from xenoglot.providers.costs import Prices
    from xenoglot.terminal.chat import Chat
    from xenoglot.terminal.conversation import Conversation
    from xenoglot.tools.tool import LocalTool

HISTORY = "chat-history"


def add_command(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    chat = commands.add_parser(
        "chat",
        help="chat with a model in the terminal",
        description="Chat with a model in the terminal; over a pipe each line is a question. /help lists commands.",
    )
    model_selection.add_config(chat)
    model_selection.add_upstream(chat)
    model_selection.add_python(chat)
    model_selection.add_price(chat)
    chat.add_argument("--system", metavar="TEXT", help="instructions for the model")
    chat.add_argument("--load", metavar="FILE", help="continue a saved conversation")
    chat.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="setting as in `/set`, such as temperature=0.2; repeatable",
    )
    chat.add_argument(
        "--tool",
        metavar="MODULE:FUNCTION",
        action="append",
        default=[],
        help="Python function that the model can call; repeatable",
    )
    chat.add_argument(
        "--mcp", metavar="FILE", help="JSON file of MCP servers (`mcpServers`) whose tools the model can call"
    )
    chat.add_argument("--allow-tools", action="store_true", help="run tools of MCP servers without asking")
    chat.add_argument("--plain", action="store_true", help="plain lines, as over a pipe")
    chat.add_argument("--no-history", action="store_true", help="neither read nor keep a history of the input")
    chat.set_defaults(run=_chat)


def _chat(options: argparse.Namespace) -> int:
    model = options.model
    if options.python is None:
        options.model = None  # in the configuration it would stand for every name, `/model` included
    chosen = model_selection.chosen(options, ready=False)
    conversation = _conversation(options, model)
    return asyncio.run(_talk(chosen, conversation, options))


def _conversation(options: argparse.Namespace, model: str | None) -> Conversation:
    from xenoglot.terminal import transcript_file  # noqa: PLC0415  only this command needs it
    from xenoglot.terminal.conversation import Conversation  # noqa: PLC0415

    conversation = Conversation() if options.load is None else transcript_file.load(options.load)
    conversation.model = model or conversation.model
    conversation.system = options.system or conversation.system
    for setting in options.set:
        name, equals, word = setting.partition("=")
        if not equals:
            raise ConfigurationError(f"`--set {setting}`: expected NAME=VALUE")
        conversation.put(name, word)
    return conversation


async def _talk(chosen: model_selection.ModelSelection, conversation: Conversation, options: argparse.Namespace) -> int:
    from xenoglot.client.async_ import AsyncClient  # noqa: PLC0415  only this command needs them
    from xenoglot.terminal.chat import Chat  # noqa: PLC0415
    from xenoglot.terminal.display.frontend import frontend_of  # noqa: PLC0415
    from xenoglot.terminal.display.history import History, state_directory  # noqa: PLC0415
    from xenoglot.terminal.display.terminal_restore import restore_on_exit  # noqa: PLC0415
    from xenoglot.terminal.pull_command import download_missing  # noqa: PLC0415
    from xenoglot.terminal.slash import COMMANDS  # noqa: PLC0415

    history = None if options.no_history else History(state_directory() / HISTORY)
    names: list[str] = []
    face = frontend_of(history, names=tuple(COMMANDS), models=names, plain=options.plain)
    if face.interactive:
        restore_on_exit(face.renderer)
    if chosen.embedded:
        download_missing(chosen.config)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(AsyncClient(chosen.open, on_loss="ignore", prices=_prices(options)))
        tools = await _tools(options, stack)
        embedded = chosen.embedded
        face.renderer.status("asking for the models …", waiting=True)
        conversation.model = conversation.model or await _only_model(
            client, names, any_name=embedded or chosen.python_backend
        )
        if conversation.model is None and not face.interactive:
            conversation.model = chosen.config.first_model
        if conversation.model is None and not face.interactive:
            raise ConfigurationError("`--model` is needed: `xenoglot models` lists them")
        chat = Chat(client, face, conversation, tools=tools)
        chat.models = names
        if options.load is not None:
            chat.saved.add(options.load)
        if face.interactive:
            _greet(chat, names, embedded=embedded)
            chat.show_end()
        if embedded and face.interactive:
            await stack.enter_async_context(_loading(chat))
        return 0 if await chat.run() or face.interactive else chat.exit_code


@asynccontextmanager
async def _loading(chat: Chat) -> AsyncGenerator[None]:
    """Load the embedded model while the first question is typed."""

    async def load() -> None:
        with suppress(XenoglotError):  # the first question will be told
            await chat.client.count_tokens("", model=chat.conversation.model)
        chat.waiting_for = "…"

    chat.waiting_for = "loading the model …"
    task = asyncio.create_task(load())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _only_model(client: AsyncClient, names: list[str], *, any_name: bool) -> str | None:
    """Return the default model if none was named; `names` receives the available ones."""
    if any_name:
        return model_selection.ANY_MODEL
    try:
        names += [model.id for model in await client.models()]
    except XenoglotError:
        return None  # not every server tells; asking it will say what is wrong
    return names[0] if len(names) == 1 else None


def _greet(chat: Chat, names: Sequence[str], *, embedded: bool) -> None:
    from xenoglot.terminal.display.sanitize import in_line  # noqa: PLC0415  only this command needs it

    model = "the embedded model" if embedded else chat.conversation.model
    if model is None:
        shown = ", ".join(in_line(name, 60) for name in names[:8]) + (", …" if len(names) > 8 else "")  # noqa: PLR2004  a line
        chat.note(f"Choose a model with /model NAME{f': {shown}' if shown else ''}. /help lists more.")
    else:
        chat.note(f"You talk with {in_line(model)}. /help lists what else there is, Ctrl-D leaves.")


def _prices(options: argparse.Namespace) -> Prices | None:
    """Return the configured prices, or those of a known provider; no other prices are known."""
    if options.price is not None:
        return model_selection.prices_of(options)
    if options.upstream is None or "://" in options.upstream:
        return None
    from xenoglot.providers.costs import Prices  # noqa: PLC0415  an extra, and a large table

    return Prices()


async def _tools(options: argparse.Namespace, stack: AsyncExitStack) -> tuple[LocalTool, ...]:
    """Return the tools that were named."""
    if not options.tool and options.mcp is None:
        return ()
    found = [*local_tools(options.tool)]
    if options.mcp is not None:
        from xenoglot.tools.mcp.tools import mcp_tools  # noqa: PLC0415  an extra

        found += await stack.enter_async_context(mcp_tools(file=options.mcp, needs_approval=not options.allow_tools))
    return tuple(found)


def local_tools(names: Sequence[str]) -> tuple[LocalTool, ...]:
    """Return the Python functions that `--tool` names as tools.

    Raises:
        ConfigurationError: one of them cannot be imported, or is no function.
    """
    if not names:
        return ()
    from xenoglot.backends.local_models.load_object import load  # noqa: PLC0415  only where there are some
    from xenoglot.tools.tool import LocalTool, tool  # noqa: PLC0415

    loaded = (load(name) for name in names)
    return tuple(one if isinstance(one, LocalTool) else tool(one) for one in loaded)
