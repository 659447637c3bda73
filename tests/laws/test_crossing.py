"""Away and back: what differs by way of another dialect is what `Losses` says, or a respelling of `essence`."""

from difflib import SequenceMatcher

import pytest
from hypothesis import given, settings

from tests.laws.essence import Thing, things
from tests.laws.strategies import requests
from tests.laws.vectors import Case, cases
from xenoglot.codec.dialect import Target, get, names
from xenoglot.codec.loss import Losses
from xenoglot.errors import WireError
from xenoglot.model.request import Request

TARGET = Target(developer_role=True, tool_result_media=True, cache_marks=True)
"""A server that takes whatever its dialect can say: what does not come through it, the dialect cannot say."""


def unreported(request: Request, name: str) -> list[Thing]:
    """Return what a request said that does not come back from `name`, and of which no loss tells."""
    dialect, losses = get(name), Losses()
    try:
        wire = dialect.encode_request(request, losses, TARGET)
    except WireError:  # refused in words: nothing is silent about that
        return []
    before, after = list(things(request)), list(things(dialect.decode_request(wire)))
    matcher = SequenceMatcher(None, [thing.said for thing in before], [thing.said for thing in after], autojunk=False)
    kept = {index for block in matcher.get_matching_blocks() for index in range(block.a, block.a + block.size)}
    fields = {(thing.path, thing.said) for thing in after}
    return [
        thing
        for index, thing in enumerate(before)
        if index not in kept
        and (thing.path, thing.said) not in fields
        and not any(thing.covered_by(loss) for loss in losses)
    ]


CROSSINGS = [
    pytest.param(case, name, id=f"{case.id}-by-{name}")
    for case in cases()
    if (case.folder / "request.json").exists()
    for name in names()
    if name != case.folder.parent.name
]


@pytest.mark.parametrize(("case", "name"), CROSSINGS)
def test_a_vector_loses_nothing_silently(case: Case, name: str) -> None:
    assert unreported(case.dialect.decode_request(case.request), name) == []


@pytest.mark.parametrize("name", names())
@settings(max_examples=100)
@given(request=requests())
def test_no_request_loses_anything_silently(name: str, request: Request) -> None:
    assert unreported(request, name) == []
