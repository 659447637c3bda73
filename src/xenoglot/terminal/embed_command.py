"""The command `xenoglot embed`: prints the embedding of a text, or of each line of standard input."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

from xenoglot import model_selection
from xenoglot.codec import loss
from xenoglot.errors import ConfigurationError

if TYPE_CHECKING:
    import argparse

    from xenoglot.client.results.result import EmbeddingReply


def add_command(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    embed = commands.add_parser(
        "embed",
        help="print the embedding of a text",
        description="Print the embedding of a text as a JSON array, or with --lines of each line of standard input. "
        "The text is the words of the command line, or standard input.",
    )
    embed.add_argument("text", nargs="*", metavar="TEXT", help="the text; quotes are optional")
    embed.add_argument("--lines", action="store_true", help="embed each line of standard input; one array per line")
    embed.add_argument("--dimensions", type=int, metavar="N", help="length of the vectors, if the model has a choice")
    embed.add_argument("--json", action="store_true", help="print model, usage and vectors as one JSON object")
    model_selection.add_config(embed)
    model_selection.add_upstream(embed)
    model_selection.add_python(embed)
    embed.set_defaults(run=_embed)


def _embed(options: argparse.Namespace) -> int:
    if options.dimensions is not None and options.dimensions < 1:
        raise ConfigurationError(f"--dimensions: found {options.dimensions}; expected at least 1")
    chosen = model_selection.chosen(options, ready=False)
    texts = _texts(options)
    if chosen.embedded and options.gguf is None:
        from xenoglot.engine.server import weights  # noqa: PLC0415  only where it is embedded
        from xenoglot.terminal.display.progress import progress_bar  # noqa: PLC0415
        from xenoglot.terminal.pull_command import download  # noqa: PLC0415

        if weights.locate(weights.MINILM) is None:
            download(weights.MINILM, progress_bar())
    options.model = options.model or model_selection.default_model(chosen)
    reply = asyncio.run(_reply(chosen, texts, options))
    _print(reply, whole=options.json)
    for line in loss.lines(reply.losses):
        print(line, file=sys.stderr)
    return 0


def _texts(options: argparse.Namespace) -> list[str]:
    from xenoglot.terminal.prompt_input import WAITING, read_prompt, stdin_bytes  # noqa: PLC0415  only this command

    def waiting() -> None:
        print(f"xenoglot: {WAITING}", file=sys.stderr)

    if not options.lines:
        return [read_prompt(options.text, None if options.text else stdin_bytes(), waiting, "embed")]
    if options.text:
        raise ConfigurationError("`--lines` reads standard input; TEXT and `--lines` exclude each other")
    return read_prompt((), stdin_bytes(), waiting, "embed --lines").splitlines()


async def _reply(
    chosen: model_selection.ModelSelection, texts: list[str], options: argparse.Namespace
) -> EmbeddingReply:
    from xenoglot.client.async_ import AsyncClient  # noqa: PLC0415  only this command needs it

    async with AsyncClient(chosen.open, on_loss="ignore") as client:
        return await client.embed(texts, model=options.model, dimensions=options.dimensions)


def _print(reply: EmbeddingReply, *, whole: bool) -> None:
    import msgspec  # noqa: PLC0415  only here

    vectors = [list(vector) for vector in reply.vectors]
    told = [{"model": reply.model, "usage": reply.usage, "embeddings": vectors}] if whole else vectors
    for one in told:
        print(msgspec.json.encode(one).decode())
