"""Places of losses: the value of a body that was lost.

Theory of operation. The path of a loss is one of the canonical request or response (`$.messages[1].content[0]`), whose
indexes can differ from those on the wire. The body is decoded again, the value at the path is looked up, and a text in
it is found in the body; the lost field is the one of that name next to it, or around it. A loss without an index in its
path (`$.sampling`) is at the field with its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from xenoglot.codec.dialect import Dialect
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.loss import Loss
from xenoglot.errors import XenoglotError
from xenoglot.gateway.console.inspection.alignment import Node, nodes
from xenoglot.gateway.console.inspection.json_tree import MOST_ROWS
from xenoglot.model.json import JSON

if TYPE_CHECKING:
    from collections.abc import Hashable
    from typing import TypeAlias

    from xenoglot.gateway.console.inspection.alignment import Path

    Places: TypeAlias = "dict[str, dict[Path, tuple[str, tuple[Loss, ...]]]]"

OF_ANSWER: Final = ("$.candidates", "$.usage", "$.error")
"""Beginnings of the paths of losses of an answer."""

ROOT: Final = "$"
"""The path of a field of the whole request, or of the whole answer."""
QUESTION: Final = ("client_request", "upstream_request")
ANSWER: Final = ("upstream_response", "client_response")
"""Bodies, the one before the translation first."""

_STEP: Final = re.compile(r"\.(\w+)|\[(\d+)\]")


class BodyDocument(Struct, frozen=True):
    """A body that was read: its values in document order, and canonical names of its fields."""

    found: Sequence[Node]
    names: Mapping[str, str]
    problem: str
    dialect: Dialect | None
    value: JSON = None


class LossPlace(Struct, frozen=True, kw_only=True):
    """A loss, and the id of the row that it is marked at; empty if no value of a body is known to be the lost one."""

    loss: Loss
    id: str


def loss_places(losses: Sequence[Loss], documents: Mapping[str, BodyDocument]) -> Places:
    """Return where in the bodies each loss is marked, with the id of the place: on the side that had the value.

    A value that only the other side has (a count that its dialect requires) is marked there.
    """
    places: Places = {}
    finders = {part: _Finder(found, is_answer=part in ANSWER) for part, found in documents.items()} if losses else {}
    for number, loss in enumerate(losses):
        for part in _sides(loss):
            path = finders[part].path(loss) if part in finders else None
            if path is not None:
                marked = places.setdefault(part, {})
                name, lost = marked.get(path, (f"loss-{number}", ()))
                marked[path] = (name, (*lost, loss))
                break
    return places


def _sides(loss: Loss) -> tuple[str, ...]:
    """Return the bodies in which a loss can have its place, the likeliest first."""
    if loss.where.startswith(OF_ANSWER):
        return ANSWER
    if loss.where != ROOT:
        return QUESTION
    return (*ANSWER, *QUESTION) if "answer" in loss.why else (*QUESTION, *ANSWER)


def listed(losses: Sequence[Loss], places: Places) -> tuple[LossPlace, ...]:
    """Return all losses with the ids of their places."""
    ids = {loss: name for marked in places.values() for name, lost in marked.values() for loss in lost}
    return tuple(LossPlace(loss=loss, id=ids.get(loss, "")) for loss in losses)


class _Finder:
    """Finds the values of one body that losses name."""

    def __init__(self, document: BodyDocument, *, is_answer: bool) -> None:
        self._document = document
        self._is_answer = is_answer
        self._canonical: object = None
        self._decoded = False
        self._anchors: dict[str, Path | None] = {}
        self._named: dict[str, list[Path]] = {}
        self._children: dict[tuple[Path, str], Path] = {}
        self._meanings: dict[Hashable, list[Path]] = {}
        for node in document.found[:MOST_ROWS]:
            self._meanings.setdefault(node.meaning, []).append(node.path)
            if isinstance(node.path[-1], str):
                for name in {node.key, document.names.get(node.key, node.key)}:
                    self._named.setdefault(name, []).append(node.path)
                    self._children.setdefault((node.path[:-1], name), node.path)

    def path(self, loss: Loss) -> Path | None:
        """Return the path of the value that a loss names; `None` if it is not known."""
        what = loss.what.rpartition(".")[2]
        if "[" in loss.where:
            if loss.where not in self._anchors:
                self._anchors[loss.where] = self._anchor(loss.where)
            anchor = self._anchors[loss.where]
            if anchor is not None:
                around = (anchor[:end] for end in range(len(anchor) - 1, 1, -1))
                return next((found for one in around if (found := self._children.get((one, what)))), anchor)
        outside = [path for path in self._named.get(what, ()) if not any(isinstance(part, int) for part in path)]
        return next(iter(outside), None)

    def _anchor(self, where: str) -> Path | None:
        """Return the path of a text of the value at a canonical path: the first that the body has a single time."""
        value = self._value(where)
        if value is None:
            return None
        first: Path | None = None
        for node in nodes(decode_json(msgspec.json.encode(value, enc_hook=str))):
            paths = self._meanings.get(node.meaning, ()) if isinstance(node.value, str) and node.value else ()
            if len(paths) == 1:
                return paths[0]
            first = first or next(iter(paths), None)
        return first

    def _value(self, where: str) -> object:
        """Return the value at a path of the canonical request or response; `None` without one."""
        value = self._whole()
        for name, index in _STEP.findall(where):
            try:
                value = value[int(index)] if index else getattr(value, name)  # type: ignore[index]
            except (AttributeError, IndexError, TypeError):
                return None
        return value

    def _whole(self) -> object:
        if not self._decoded:
            self._decoded = True
            self._canonical = _decoded(self._document, is_answer=self._is_answer)
        return self._canonical


def _decoded(document: BodyDocument, *, is_answer: bool) -> object:
    dialect, value = document.dialect, document.value
    if dialect is None or not isinstance(value, dict):
        return None
    try:
        if is_answer:
            return dialect.decode_response(value)
        return dialect.decode_request({dialect.model_field: "model", **value})
    except XenoglotError:
        return None
