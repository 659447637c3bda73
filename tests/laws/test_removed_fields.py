"""Removed: a field that was taken out of a canonical request is not written from the spelling of the client's body.

A hook, a program and the emulation of what a server lacks take fields out of a request that came in the server's own
dialect. What its encoder remembers of the body must not bring them back.
"""

from types import MappingProxyType

import pytest
from msgspec.structs import replace

from tests.laws.vectors import Case, cases
from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get, names
from xenoglot.model.request import Request

FIELDS = ("media", "metadata", "output", "previous", "service_tier", "store", "thinking", "tool_choice")

STAYS = MappingProxyType(
    {
        ("interactions", "formats", "output"): "the modalities that are requested have the text among them",
        ("messages", "tool-choices-auto", "tool_choice"): "parallel calls are forbidden in the same object",
        ("responses", "codex-additional-tools", "thinking"): "the history updates the configuration",
        ("responses", "configuration-updates", "output"): "the history updates the configuration",
        ("responses", "configuration-updates", "thinking"): "the history updates the configuration",
        ("responses", "configuration-updates-alone", "output"): "the history updates the configuration",
        ("responses", "configuration-updates-alone", "thinking"): "the history updates the configuration",
    }
)
"""Dialect, case and field -> why it comes back all the same."""


def _comes_back(case: Case, request: Request, field: str) -> bool:
    body = case.dialect.encode_request(replace(request, **{field: None}), Losses(), Target())
    return bool(getattr(case.dialect.decode_request(body), field) == getattr(request, field))


@pytest.mark.parametrize("dialect", names())
def test_field_that_was_removed_does_not_come_back(dialect: str) -> None:
    found = set()
    for case in cases():
        if case.dialect is get(dialect) and case.has("request.json"):
            request = case.dialect.decode_request(case.request)
            set_fields = [field for field in FIELDS if getattr(request, field) is not None]
            found |= {(dialect, case.folder.name, field) for field in set_fields if _comes_back(case, request, field)}
    assert found == {key for key in STAYS if key[0] == dialect}
