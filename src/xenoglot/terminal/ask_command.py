"""The command `xenoglot ask`: sends one question to a model and streams the answer."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from xenoglot import model_selection
from xenoglot.codec import loss
from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Generator, Sequence

    from xenoglot.client.results.result import Reply
    from xenoglot.model.request import Message

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
    ask.add_argument("--json", action="store_true", help="print the complete answer as one line of JSON")
    model_selection.add_config(ask)
    model_selection.add_upstream(ask)
    model_selection.add_python(ask)
    ask.set_defaults(run=_ask)
    _collect_words(ask)


def _collect_words(ask: argparse.ArgumentParser) -> None:
    """Accept words of the prompt after flags too; argparse takes only those in one place."""
    parse = ask.parse_known_args

    def collected(args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:  # noqa: ANN401  those of the parser
        options, unknown = parse(args, namespace)
        if not any(word.startswith("-") and word != "-" for word in unknown):
            options.prompt, unknown = [*options.prompt, *unknown], []
        return options, unknown

    ask.parse_known_args = collected  # type: ignore[method-assign, assignment]  # argparse has no other place for it


def _ask(options: argparse.Namespace) -> int:
    if options.max_tokens < 1:
        raise ConfigurationError(f"--max-tokens: found {options.max_tokens}; expected at least 1")
    from xenoglot.terminal.prompt_input import WAITING, read_prompt, stdin_bytes  # noqa: PLC0415  only this command needs them
    from xenoglot.terminal.pull_command import download_missing  # noqa: PLC0415

    chosen = model_selection.chosen(options)
    prompt = read_prompt(options.prompt, stdin_bytes(), lambda: print(f"xenoglot: {WAITING}", file=sys.stderr))
    if chosen.embedded:
        download_missing(chosen.config)
    options.model = options.model or model_selection.default_model(chosen)
    reply = asyncio.run(_answer(chosen, _question(prompt, options), options))
    for line in loss.lines(reply.losses):
        print(line, file=sys.stderr)
    return 0


def _question(prompt: str, options: argparse.Namespace) -> Message:
    from xenoglot.model.content import Text  # noqa: PLC0415  only this command needs them
    from xenoglot.model.request import Message  # noqa: PLC0415
    from xenoglot.terminal.attachments import read_attachment  # noqa: PLC0415

    files = [read_attachment(path) for path in options.file] + [
        read_attachment(path, image=True) for path in options.image
    ]
    return Message(role="user", content=(*files, Text(text=prompt)))


async def _answer(chosen: model_selection.ModelSelection, question: Message, options: argparse.Namespace) -> Reply:
    """Print the answer on standard output; return it."""
    from xenoglot.client.async_ import AsyncClient  # noqa: PLC0415  only this command needs them
    from xenoglot.terminal.display.renderer import PlainRenderer  # noqa: PLC0415

    wanted = {"system": options.system, "max_tokens": options.max_tokens, "temperature": options.temperature}
    said: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    canvas = PlainRenderer(sys.stdout, raw=not sys.stdout.isatty())
    async with AsyncClient(chosen.open, on_loss="ignore") as client:
        stream = client.stream((question,), model=options.model, **said)
        async with AsyncExitStack() as stack:
            with _loading(chosen):
                await stack.enter_async_context(stream)
            if not options.json:
                async for text in stream.texts():
                    canvas.write(text)
            reply = await stream.reply()
    print(_encoded(reply) if options.json else "")
    return reply


@contextmanager
def _loading(chosen: model_selection.ModelSelection) -> Generator[None]:
    """Show that the embedded model is being loaded; the loader reports no progress."""
    from xenoglot.terminal.display.screen import supports_rich  # noqa: PLC0415  only this command needs it

    if not chosen.embedded or not supports_rich(sys.stderr):
        yield
        return
    from xenoglot.terminal.display.progress import progress_bar  # noqa: PLC0415  an extra, where somebody looks on

    progress = progress_bar()
    progress.started("loading the model")
    try:
        yield
    finally:
        progress.done()


def _encoded(reply: Reply) -> str:
    import msgspec  # noqa: PLC0415  only here

    told = {"response": reply.response, "losses": reply.losses, "request_id": reply.request_id}
    return msgspec.json.encode(told).decode()
