"""The last conversation of `xenoglot ask`, which `--continue` continues: one file, readable by its owner only."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from xenoglot.errors import ConfigurationError
from xenoglot.model.content import Text
from xenoglot.terminal import transcript_file
from xenoglot.terminal.display.history import contains_secret, state_directory

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from xenoglot.terminal.conversation import Conversation

FILE = "ask-conversation.json"


def saved_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the file."""
    return state_directory(environ) / FILE


def load_saved(path: Path) -> Conversation:
    """Return the last conversation.

    Raises:
        ConfigurationError: it does not exist, or cannot be read.
    """
    if not path.exists():
        raise ConfigurationError('`--continue`: no conversation to continue; `xenoglot ask "PROMPT"` starts one')
    return transcript_file.load(str(path))


def save(conversation: Conversation, path: Path, environ: Mapping[str, str] = os.environ) -> str | None:
    """Replace the last conversation; return why not, if it cannot be saved."""
    texts = (part.text for turn in conversation.turns for part in turn.content if isinstance(part, Text))
    if any(contains_secret(text, environ) for text in texts):
        return "it contains a key"
    data = transcript_file.encode(conversation)
    if len(data) > transcript_file.LARGEST:
        return f"it is larger than {transcript_file.LARGEST // 1_000_000} MB"
    work = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(work, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        work.replace(path)
    except OSError as error:
        with suppress(OSError):
            work.unlink(missing_ok=True)
        return f"`{path}` cannot be written: {os.strerror(error.errno or 0)}"
    return None
