"""The command `xenoglot ask`: sends one question to a model and streams the answer."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

from xenoglot import model_selection
from xenoglot.codec import loss
from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from xenoglot.client.results.result import Reply
    from xenoglot.model.request import Message
    from xenoglot.terminal.conversation import Conversation
    from xenoglot.terminal.prompt_run import PromptOptions

LONGEST_ANSWER = 512


def add_command(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    ask = commands.add_parser(
        "ask",
        help="send one prompt and stream the answer",
        description="Send one prompt to a model and stream the answer. Text on standard input is added to the prompt.",
    )
    ask.add_argument("prompt", nargs="*", metavar="PROMPT", help="the prompt; quotes are optional")
    ask.add_argument("--system", metavar="TEXT", help="instructions for the model")
    ask.add_argument("--file", metavar="PATH", action="append", default=[], help="text or PDF to send; repeatable")
    ask.add_argument("--image", metavar="PATH", action="append", default=[], help="image to send; repeatable")
    ask.add_argument(
        "--max-tokens",
        type=int,
        metavar="N",
        default=LONGEST_ANSWER,
        help=f"most tokens of the answer (default: {LONGEST_ANSWER})",
    )
    ask.add_argument("--temperature", type=float, metavar="T", help="0 to 2; higher is more random")
    ask.add_argument("--continue", dest="continued", action="store_true", help="continue the last conversation")
    ask.add_argument("--no-history", action="store_true", help="do not keep the conversation for --continue")
    ask.add_argument(
        "--schema", metavar="FILE", help="JSON Schema of the answer, which is validated before it is printed"
    )
    ask.add_argument(
        "--tool", metavar="MODULE:FUNCTION", action="append", default=[], help="Python function to call; repeatable"
    )
    ask.add_argument("--json", action="store_true", help="print the complete answer as one line of JSON")
    model_selection.add_config(ask)
    model_selection.add_upstream(ask)
    model_selection.add_python(ask)
    ask.set_defaults(run=_ask)
    ask.set_defaults(takes_words="prompt")  # after flags too, where argparse takes only those in one place


def _ask(options: argparse.Namespace) -> int:
    if options.max_tokens < 1:
        raise ConfigurationError(f"--max-tokens: found {options.max_tokens}; expected at least 1")
    from xenoglot.terminal.prompt_input import WAITING, read_prompt, stdin_bytes  # noqa: PLC0415
    from xenoglot.terminal.prompt_run import run_prompt  # noqa: PLC0415  only this command needs them
    from xenoglot.terminal.pull_command import download_missing  # noqa: PLC0415

    chosen = model_selection.chosen(options)
    prompt = read_prompt(options.prompt, stdin_bytes(), lambda: print(f"xenoglot: {WAITING}", file=sys.stderr))
    conversation = _conversation(options)
    plan = _plan(options, conversation)
    question = _question(prompt, options)
    if chosen.embedded:
        download_missing(chosen.config)
    conversation.model = plan.options["model"] = options.model or model_selection.default_model(chosen)
    reply, conversation.turns = asyncio.run(run_prompt(chosen, (*conversation.turns, question), plan))
    if options.json:
        print(_encoded(reply))
    for line in _notes(reply, options, conversation):
        print(line, file=sys.stderr)
    return 0


def _conversation(options: argparse.Namespace) -> Conversation:
    from xenoglot.terminal.conversation import Conversation  # noqa: PLC0415  only this command needs them
    from xenoglot.terminal.saved_conversation import load_saved, saved_path  # noqa: PLC0415

    conversation = load_saved(saved_path()) if options.continued else Conversation()
    conversation.system = options.system or conversation.system
    return conversation


def _plan(options: argparse.Namespace, conversation: Conversation) -> PromptOptions:
    from xenoglot.terminal.chat_command import local_tools  # noqa: PLC0415
    from xenoglot.terminal.prompt_run import PromptOptions  # noqa: PLC0415  as above

    schema = None
    if options.schema is not None:
        from xenoglot.agent.answer_schema import load_answer_schema  # noqa: PLC0415  an extra

        schema = load_answer_schema(options.schema)
    wanted = {
        "system": conversation.system,
        "max_tokens": options.max_tokens,
        "temperature": options.temperature,
        "output": None if schema is None else schema.format,
    }
    known = {name: value for name, value in wanted.items() if value is not None}
    return PromptOptions(known, local_tools(options.tool), schema, silent=options.json)


def _notes(reply: Reply, options: argparse.Namespace, conversation: Conversation) -> Iterator[str]:
    """Keep the conversation, and yield the notes for standard error after the answer."""
    from xenoglot.terminal.saved_conversation import save, saved_path  # noqa: PLC0415  as above

    yield from loss.lines(reply.losses)
    if reply.finish is not None and reply.finish.reason == "length":
        yield f"note: the answer is cut off after {options.max_tokens} tokens; `--max-tokens N` allows more"
    if not options.no_history and (problem := save(conversation, saved_path())):
        yield f"note: this conversation is not kept for `--continue`: {problem}"


def _question(prompt: str, options: argparse.Namespace) -> Message:
    from xenoglot.model.content import Text  # noqa: PLC0415  only this command needs them
    from xenoglot.model.request import Message  # noqa: PLC0415
    from xenoglot.terminal.attachments import read_attachment  # noqa: PLC0415

    files = [read_attachment(path) for path in options.file] + [
        read_attachment(path, image=True) for path in options.image
    ]
    return Message(role="user", content=(*files, Text(text=prompt)))


def _encoded(reply: Reply) -> str:
    import msgspec  # noqa: PLC0415  only here

    told = {"response": reply.response, "losses": reply.losses, "request_id": reply.request_id}
    return msgspec.json.encode(told).decode()
