"""The text of an object in pieces: complete when all of it says so, wherever it is cut, and decoded once."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.codec.json import json_io
from xenoglot.codec.json.json_io import ObjectText, decode_json
from xenoglot.model.json import JSON

TEXTS = st.one_of(
    st.dictionaries(st.text(max_size=3), st.text('"\\{}[] a', max_size=6) | st.lists(st.integers()), max_size=3).map(
        json.dumps
    ),
    st.text('{}[]" \\a1:,', max_size=12),
)


def is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except json.JSONDecodeError:
        return False


@given(TEXTS, st.sets(st.integers(0, 40)), st.sampled_from(["", " ", "\n", "x"]))
def test_it_is_complete_where_the_whole_text_is_an_object(text: str, cuts: set[int], behind: str) -> None:
    text += behind
    grown, said, before = ObjectText(), "", 0
    for cut in [*sorted(cut for cut in cuts if cut < len(text)), len(text)]:
        grown.pieces.append(text[before:cut])
        said, before = text[:cut], cut
        assert grown.is_complete() == is_object(said)
    assert str(grown) == text


def test_an_object_is_decoded_once_however_often_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str] = []

    def counted(text: str) -> JSON:
        decoded.append(text)
        return decode_json(text)

    monkeypatch.setattr(json_io, "decode_json", counted)
    grown = ObjectText('{"a": "')
    for _ in range(100):
        grown.pieces.append("}")
        assert not grown.is_complete()
    grown.pieces.append('"}')
    assert [grown.is_complete() for _ in range(100)] == [True] * 100
    assert decoded == ['{"a": "' + "}" * 100 + '"}']
