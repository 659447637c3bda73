"""Request parameters that a dialect puts in the URL instead of the body: the model, and whether to stream."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from xenoglot.codec.requests.path_template import has_model, in_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.codec.dialect import Dialect
    from xenoglot.model.json import JSON, JSONObject


def informed(body: JSON, path: str, variables: Mapping[str, str], dialect: Dialect) -> JSON:
    """Return `body` with the fields from the URL: `path` is its template, `variables` fill the braces."""
    if not isinstance(body, dict):
        return body
    told: JSONObject = {}
    if "model" in variables:
        told["model"] = unquote(variables["model"])
    if dialect.stream_path is not None:
        told["stream"] = _operation(path) == _operation(dialect.stream_path)
    return body | told if told else body


def addressed(body: JSONObject, dialect: Dialect, *, counting: bool = False) -> tuple[str, str, JSONObject]:
    """Return the path and the query to post `body` to, and the remaining body.

    With `counting` the body asks how many tokens it has, and goes to `count_path`.

    Raises:
        WireError: the model's name would lead elsewhere on the server.
    """
    path, query = dialect.path, ""
    if not counting and dialect.stream_path is None and not has_model(path):
        return path, query, body
    body = dict(body)
    streams = body.get("stream") if dialect.stream_in_body else dialect.stream_path and body.pop("stream", False)
    if dialect.stream_path is not None and streams:
        path, query = dialect.stream_path, dialect.stream_query
    if counting:
        path, query = dialect.count_path or path, ""
    if has_model(path):
        path = in_path(path, body.pop("model", ""))
    return path, query, body


def _operation(path: str) -> str:
    """Return what a path asks for, whichever version or project stands before it."""
    return path.rpartition("/")[2]
