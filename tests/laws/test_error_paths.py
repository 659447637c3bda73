"""Paths of errors: what is wrong with a body is told at a place that is in it, or at a field that an object lacks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.laws.mutations import changed, places
from tests.laws.vectors import ROOT
from xenoglot.codec.json.json_io import decode_json
from xenoglot.dialect_registry import get, names
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from xenoglot.model.json import JSON

WRONG: tuple[JSON, ...] = (None, True, -1, 1.5, "", "x", [], [1], ["x"], {}, {"type": "x"}, [{}], [{"type": "x"}], [[]])
KIND = ("type", "role", "object", "name")
"""Fields that say how those beside them are read."""

Way = tuple[str | int, ...]


class Mutation(NamedTuple):
    """A body with one place of it changed."""

    body: JSON
    told: str


def bodies(folder: Path, part: str) -> list[JSON]:
    """Return the bodies of all vectors in a folder."""
    return [decode_json(file.read_bytes()) for file in sorted(folder.glob(f"*/{part}.json"))]


def mutations(body: JSON, seen: set[object]) -> Iterator[Mutation]:
    """Yield `body` with each of its values dropped and replaced, but for places like those `seen` before."""
    for way in places(body):
        shape = _shape(body, way)
        if shape in seen:
            continue
        seen.add(shape)
        at = "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in way)
        if not way:
            yield from (Mutation(wrong, f"{at} is {wrong}") for wrong in WRONG)
            continue
        yield Mutation(changed(body, way, _drop), f"{at} is dropped")
        for wrong in WRONG:
            yield Mutation(changed(body, way, _putting(wrong)), f"{at} is {wrong}")


def _shape(body: JSON, way: Way) -> object:
    """Return what places that are read alike have in common: their names, and the kinds of the objects around them."""
    shape: list[object] = []
    value = body
    for step in way:
        kinds = tuple(str(value[name]) for name in KIND if name in value) if isinstance(value, dict) else ()
        shape.append(("[]" if isinstance(step, int) else step, kinds))
        value = value[step]
    return tuple(shape), type(value)


def _drop(inside: JSON, key: str | int) -> None:
    del inside[key]


def _putting(value: JSON) -> Callable[[JSON, str | int], None]:
    def put(inside: JSON, key: str | int) -> None:
        inside[key] = value

    return put


def is_in(body: JSON, path: str) -> bool:
    """Whether a path leads to a value of `body`, or to a field that an object in it lacks."""
    return path.startswith("$") and _leads(body, path[1:])


def _leads(value: JSON, rest: str) -> bool:
    if not rest:
        return True
    if found := re.match(r"\[(\d+)\]", rest):
        index = int(found[1])
        return isinstance(value, list) and index < len(value) and _leads(value[index], rest[found.end() :])
    if not isinstance(value, dict) or not rest.startswith("."):
        return False
    named = [key for key in value if re.match(re.escape(f".{key}") + r"(?=[.\[]|$)", rest)]
    return any(_leads(value[key], rest[len(key) + 1 :]) for key in named) or bool(re.fullmatch(r"\.\w+", rest))


def wrong_paths(decode: Callable[[JSON], object], bodies: Iterable[JSON]) -> tuple[list[str], int]:
    """Return the errors whose paths are not in the body, and how many errors there were."""
    found: list[str] = []
    errors = 0
    seen: set[object] = set()
    for body in bodies:
        for mutation in mutations(body, seen):
            try:
                decode(mutation.body)
            except WireError as error:
                errors += 1
                if not is_in(mutation.body, error.path):
                    found.append(f"{mutation.told}: {error}")
    return found, errors


OPERATIONS = {
    f"{folder}/{form.name}": form
    for name in names()
    for form in reversed(get(name).operations)
    for folder in ("embeddings", "rerank")
    if (ROOT / folder / form.name).is_dir()
}


@pytest.mark.parametrize("dialect", names())
def test_the_path_of_an_error_is_in_the_request(dialect: str) -> None:
    found, errors = wrong_paths(get(dialect).decode_request, bodies(ROOT / dialect, "request"))
    assert found == []
    assert errors > 20


@pytest.mark.parametrize("dialect", names())
def test_the_path_of_an_error_is_in_the_answer(dialect: str) -> None:
    found, errors = wrong_paths(get(dialect).decode_response, bodies(ROOT / dialect, "response"))
    assert found == []
    assert errors > 20


@pytest.mark.parametrize("form", OPERATIONS)
def test_the_path_of_an_error_is_in_the_request_of_an_operation(form: str) -> None:
    found, errors = wrong_paths(OPERATIONS[form].decode_request, bodies(ROOT / form, "request"))
    assert found == []
    assert errors > 10


@pytest.mark.parametrize("form", [name for name, form in OPERATIONS.items() if form.calls_upstreams])
def test_the_path_of_an_error_is_in_the_result_of_an_operation(form: str) -> None:
    found, errors = wrong_paths(OPERATIONS[form].decode_response, bodies(ROOT / form, "response"))
    assert found == []
    assert errors > 10


WRAPPED: JSON = {"model": "m", "generate_content_request": {"contents": [{"parts": {"text": "a"}}]}}


def test_the_path_of_an_error_is_in_a_request_that_is_counted() -> None:
    decode = get("gemini").decode_count or get("gemini").decode_request
    assert wrong_paths(decode, [WRAPPED])[0] == []


ONE: JSON = {"model": "m", "content": {"parts": {"text": "a"}}, "output_dimensionality": 3}


@pytest.mark.parametrize(("index", "body"), [(0, {"model": "m", "requests": ONE}), (1, ONE)], ids=["many", "one"])
def test_the_path_of_an_error_is_in_an_embedding_request_of_other_names(index: int, body: JSON) -> None:
    assert wrong_paths(get("gemini").embeddings[index].decode_request, [body])[0] == []


@pytest.mark.parametrize(
    ("path", "there"),
    [
        pytest.param("$", True, id="body"),
        pytest.param("$.a[1].b", True, id="value"),
        pytest.param("$.a[1].c", True, id="missing"),
        pytest.param("$.a[1].c.d", False, id="missing-in-missing"),
        pytest.param("$.a[2]", False, id="beyond"),
        pytest.param("$.x.y", True, id="name-with-a-dot"),
        pytest.param("$.b", True, id="missing-at-the-top"),
        pytest.param("$.a.b", False, id="field-of-a-list"),
        pytest.param("a", False, id="no-path"),
    ],
)
def test_a_path_leads_somewhere_or_nowhere(path: str, there: bool) -> None:  # noqa: FBT001  a case
    assert is_in({"a": [0, {"b": 1}], "x.y": 2}, path) is there
