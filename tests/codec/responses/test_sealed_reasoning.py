"""Seals of others: wrapped, and unwrapped again."""

import pytest

from xenoglot.codec.responses.reasoning import SEALED, Seal, pack, unpack
from xenoglot.model.content import Origin, Reasoning


@pytest.mark.parametrize(
    "seal",
    [
        Seal(origin=Origin(dialect="messages", provider="acme"), signature="s"),
        Seal(origin=Origin(dialect="responses"), encrypted="e"),
        Seal(origin=Origin(dialect="x"), signature="\u00e9", encrypted=""),
    ],
)
def test_what_was_wrapped_comes_out(seal: Seal) -> None:
    part = Reasoning(signature=seal.signature, encrypted=seal.encrypted, origin=seal.origin)
    assert unpack(pack(part)) == seal


@pytest.mark.parametrize("text", ["", "gAAAAABo", SEALED, f"{SEALED}!", f"{SEALED}W10=", f"{SEALED}WzEsMiwzLDRd"])
def test_anything_else_is_no_wrapping(text: str) -> None:
    assert unpack(text) is None
