"""Texts are given to the runtime a few at a time, by their number and their length."""

import pytest

from xenoglot.engine.embedding import AT_ONCE, TOKENS_AT_ONCE, pieces


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param([TOKENS_AT_ONCE + 1], [[TOKENS_AT_ONCE + 1]], id="one-that-is-longer"),
        pytest.param([1] * (AT_ONCE + 1), [[1] * AT_ONCE, [1]], id="many-short-ones"),
        pytest.param([TOKENS_AT_ONCE - 1, 1, 1], [[TOKENS_AT_ONCE - 1, 1], [1]], id="to-the-brim"),
        pytest.param([1, TOKENS_AT_ONCE, 1], [[1], [TOKENS_AT_ONCE], [1]], id="a-long-one-between"),
    ],
)
def test_pieces(lengths: list[int], expected: list[list[int]]) -> None:
    texts = [[number] * length for number, length in enumerate(lengths)]
    found = [*pieces(texts)]
    assert [[len(text) for text in piece] for piece in found] == expected
    assert [text for piece in found for text in piece] == texts
