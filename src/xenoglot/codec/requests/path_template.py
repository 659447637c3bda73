"""Path templates that contain the model name: filled in and validated."""

from __future__ import annotations

import re
from urllib.parse import quote

from xenoglot.errors import WireError

MODEL = "{model}"
"""Where the model's name stands in a path, as one segment of it: a slash in the name is percent-encoded."""

MODEL_PATH = "{+model}"
"""The same for servers whose models have names of several segments, which are those of the path (RFC 6570, 3.2.3)."""

_SEPARATORS = re.compile(r"[/\\]")


def has_model(path: str) -> bool:
    """Return whether the model is named in `path`, a template."""
    return "model}" in path


def in_path(path: str, model: str) -> str:
    """Return `path` with the name of the model in it.

    Raises:
        WireError: the model's name would lead elsewhere on the server.
    """
    segments = _SEPARATORS.split(model)
    if "." in segments or ".." in segments:  # a step in place or up (RFC 3986 section 5.2.4), also when encoded
        raise WireError("$.model", "is no name of a model: it has a `.` or `..` between slashes")
    if MODEL_PATH in path:
        if "" in segments:
            raise WireError("$.model", "is no name of a model: it has a slash at an end, or two in a row")
        path = path.replace(MODEL_PATH, quote(model, safe="/@"))
    return path.replace(MODEL, quote(model, safe="")) if MODEL in path else path
