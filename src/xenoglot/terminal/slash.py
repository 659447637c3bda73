"""Slash commands of `xenoglot chat`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

from xenoglot.errors import ConfigurationError
from xenoglot.terminal import transcript_file
from xenoglot.terminal.attachments import read_attachment
from xenoglot.terminal.conversation import SETTINGS
from xenoglot.terminal.display.sanitize import in_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from xenoglot.terminal.chat_state import ChatState

EXITS = ("exit", "quit", "/quit", "/bye", "/q")
"""Other names of `/exit`, from other programs; the first two need no slash."""

Command: TypeAlias = "Callable[[ChatState, str], Awaitable[bool]]"
"""Runs; returns whether the last question is to be answered now."""


async def run(chat: ChatState, typed: str) -> bool:
    """Run a command; return whether the last question must be answered now.

    Raises:
        XenoglotError: the command failed.
    """
    name, _, rest = typed.strip().partition(" ")
    known = COMMANDS.get("/exit" if name in EXITS else name)
    if known is None:
        hint = "/help lists what there is, and // begins a text with a slash"
        raise ConfigurationError(f"there is no command `{in_line(name, 40)}`; {hint}")
    return await known[2](chat, rest.strip())


async def _help(chat: ChatState, _: str) -> bool:
    shown = [(f"{name} {what}".rstrip(), does) for name, (what, does, _) in COMMANDS.items()]
    width = max(len(name) for name, _ in shown)
    chat.frontend.renderer.line("\n".join(f"{name.ljust(width)}  {does}" for name, does in shown))
    chat.note("Alt-Enter begins another line, Ctrl-C stops an answer, Ctrl-D leaves")
    return False


async def _model(chat: ChatState, name: str) -> bool:
    if name:
        chat.conversation.model = name
    chat.note(f"the model is {in_line(chat.conversation.model or '-')}")
    return False


async def _models(chat: ChatState, _: str) -> bool:
    chat.frontend.renderer.status("asking for the models …", waiting=True)
    found = await chat.client.models()
    chat.models[:] = [model.id for model in found]
    chat.frontend.renderer.line("\n".join(in_line(model.id) for model in found) or "nobody tells of any")
    return False


async def _system(chat: ChatState, text: str) -> bool:
    if text:
        chat.conversation.system = None if text == "off" else text
    chat.note(f"instructions: {chat.conversation.system or 'none'}")
    return False


async def _set(chat: ChatState, words: str) -> bool:
    name, _, word = words.partition(" ")
    if word:
        chat.conversation.put(name, word.strip())
    elif name:
        raise ConfigurationError(f"`/set {in_line(name, 40)}` needs a value, or `off`")
    told = ", ".join(f"{name} {value}" for name, value in chat.conversation.settings.items())
    chat.note(told or f"nothing is set; there are {', '.join(SETTINGS)}")
    return False


async def _clear(chat: ChatState, _: str) -> bool:
    chat.conversation.clear()
    chat.note("a new conversation")
    return False


async def _retry(chat: ChatState, _: str) -> bool:
    if chat.conversation.retry() is None:
        raise ConfigurationError("there is no question yet")
    return True


async def _undo(chat: ChatState, _: str) -> bool:
    asked = chat.conversation.undo()
    if asked is None:
        raise ConfigurationError("there is no question yet")
    said = " ".join(part.text for part in asked.content if hasattr(part, "text") and part.text)
    chat.note(f"taken back: {in_line(said, 60)}")
    return False


async def _file(chat: ChatState, path: str) -> bool:
    return await _attach(chat, path, image=False)


async def _image(chat: ChatState, path: str) -> bool:
    return await _attach(chat, path, image=True)


async def _attach(chat: ChatState, path: str, *, image: bool) -> bool:
    if not path:
        raise ConfigurationError("name a file")
    part = await asyncio.to_thread(read_attachment, _unquoted(path), image=image)
    chat.conversation.waiting = (*chat.conversation.waiting, part)
    chat.note(f"goes along with the next question: {in_line(path)} ({type(part).__name__.lower()})")
    return False


async def _save(chat: ChatState, path: str) -> bool:
    if not path:
        raise ConfigurationError("name a file: one that ends in .md is for reading, any other can be loaded")
    path = _unquoted(path)
    await asyncio.to_thread(transcript_file.save, chat.conversation, path, replace=path in chat.saved)
    chat.saved.add(path)
    chat.note(f"saved as {in_line(path)}")
    return False


async def _load(chat: ChatState, path: str) -> bool:
    if not path:
        raise ConfigurationError("name a file that was saved as JSON")
    path = _unquoted(path)
    loaded = await asyncio.to_thread(transcript_file.load, path)
    loaded.model = chat.conversation.model or loaded.model
    chat.conversation = loaded
    chat.saved.add(path)
    chat.note(f"loaded: {len(loaded.turns)} turns")
    chat.show_end()
    return False


async def _reasoning(chat: ChatState, word: str) -> bool:
    if word in ("on", "off"):
        chat.view.show_reasoning = word == "on"
        chat.note(f"thoughts are {'shown' if word == 'on' else 'folded'}")
    elif chat.view.reasoning:
        chat.frontend.renderer.write("\n\n".join(chat.view.reasoning), "thought")
        chat.frontend.renderer.end_text()
    else:
        chat.note("the last answer has no thoughts that are shown")
    return False


async def _tools(chat: ChatState, word: str) -> bool:
    if word == "show":
        for result in chat.view.results or ["no tool was called"]:
            chat.frontend.renderer.line(result, "quiet")
    elif chat.tools:
        told = [
            f"{in_line(tool.spec.name)}  {in_line(tool.spec.description or '', 80)}".rstrip() for tool in chat.tools
        ]
        chat.frontend.renderer.line("\n".join(told))
    else:
        chat.note("no tools: `xenoglot chat --tool MODULE:FUNCTION` and `--mcp FILE` bring some")
    return False


async def _usage(chat: ChatState, _: str) -> bool:
    chat.note(str(chat.spent))
    return False


async def _exit(chat: ChatState, _: str) -> bool:
    chat.exit()
    return False


def _unquoted(path: str) -> str:
    """Return a path without quotes or escaped spaces, which terminals add to dropped files."""
    if len(path) > 1 and path[0] == path[-1] and path[0] in "\"'":
        return path[1:-1]
    return path.replace("\\ ", " ")


COMMANDS: dict[str, tuple[str, str, Command]] = {
    "/help": ("", "this list", _help),
    "/model": ("[NAME]", "which model answers", _model),
    "/models": ("", "the models that can be asked", _models),
    "/system": ("[TEXT|off]", "instructions for the model", _system),
    "/set": ("[NAME VALUE|off]", "temperature, max_tokens, thinking ...", _set),
    "/file": ("PATH", "send a text or a PDF along", _file),
    "/image": ("PATH", "send an image along", _image),
    "/retry": ("", "answer the last question again", _retry),
    "/undo": ("", "take the last question back", _undo),
    "/clear": ("", "begin a new conversation", _clear),
    "/save": ("FILE", "write the conversation: .md to read, else to load", _save),
    "/load": ("FILE", "go on with one that was saved", _load),
    "/thoughts": ("[on|off]", "show the last thoughts, or all as they come", _reasoning),
    "/tools": ("[show]", "the tools there are, or their last results", _tools),
    "/usage": ("", "the tokens so far", _usage),
    "/exit": ("", "leave; so do exit, quit, /quit, /bye and /q", _exit),
}
"""Name -> its argument, its description, and its function."""
