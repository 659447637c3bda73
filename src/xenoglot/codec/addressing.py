"""What a dialect says in the URL of a request rather than in its body: which model, and whether to stream."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.codec.dialect import Dialect
    from xenoglot.model.json import JSON, JSONObject

MODEL = "{model}"
"""Where the model's name stands in a path, as one segment of it: a slash in the name is percent-encoded."""

MODEL_PATH = "{+model}"
"""The same for servers whose models have names of several segments, which are those of the path (RFC 6570, 3.2.3)."""

_SEPARATORS = re.compile(r"[/\\]")


def informed(body: JSON, path: str, variables: Mapping[str, str], dialect: Dialect) -> JSON:
    """Return `body` with what the URL says: `path` is the template that was asked, `variables` fill its braces."""
    if not isinstance(body, dict):
        return body
    told: JSONObject = {}
    if "model" in variables:
        told["model"] = unquote(variables["model"])
    if dialect.stream_path is not None:
        told["stream"] = _operation(path) == _operation(dialect.stream_path)
    return body | told if told else body


def addressed(body: JSONObject, dialect: Dialect, *, counting: bool = False) -> tuple[str, str, JSONObject]:
    """Return the path and the query to post `body` to, and what is left to say in it.

    With `counting` the body asks how many tokens it has, and goes to `count_path`.

    Raises:
        WireError: the model's name would lead elsewhere on the server.
    """
    path, query = dialect.path, ""
    if not counting and dialect.stream_path is None and not has_model(path):
        return path, query, body
    body = dict(body)
    if dialect.stream_path is not None and body.pop("stream", False):
        path, query = dialect.stream_path, dialect.stream_query
    if counting:
        path, query = dialect.count_path or path, ""
    if has_model(path):
        path = in_path(path, body.pop("model", ""))
    return path, query, body


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
            raise WireError("$.model", "is no name of a model: it has a slash at an end, or beside another")
        path = path.replace(MODEL_PATH, quote(model, safe="/@"))
    return path.replace(MODEL, quote(model, safe="")) if MODEL in path else path


def _operation(path: str) -> str:
    """Return what a path asks for, whichever version or project stands before it."""
    return path.rpartition("/")[2]
