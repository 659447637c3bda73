"""The registry of dialects: found by entry points, so that others can add theirs."""

import pytest

from xenoglot.codec.dialect import Dialect, get, names
from xenoglot.errors import ConfigurationError


def test_the_dialects_of_this_release() -> None:
    assert names() == ("chat", "messages")


@pytest.mark.parametrize("name", ["chat", "messages"])
def test_a_dialect_is_known_by_its_name(name: str) -> None:
    dialect = get(name)
    assert isinstance(dialect, Dialect)
    assert dialect.name == name
    assert get(name) is dialect


def test_an_unknown_dialect_says_which_there_are() -> None:
    with pytest.raises(ConfigurationError) as caught:
        get("latin")
    assert str(caught.value) == "there is no dialect `latin`; installed: chat, messages"
