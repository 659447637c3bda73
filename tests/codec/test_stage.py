"""Stages: fed and closed, alone, in a row, from either world."""

from collections.abc import AsyncIterator, Sequence

from xenoglot.codec.stage import Pipeline, athrough, through


class Pairs:
    """Gives items two by two, and the odd one at the end."""

    def __init__(self) -> None:
        self._held: list[str] = []

    def feed(self, item: str, /) -> Sequence[str]:
        self._held.append(item)
        if len(self._held) < 2:
            return ()
        first, second = self._held
        self._held = []
        return (first + second,)

    def close(self) -> Sequence[str]:
        held, self._held = self._held, []
        return held


class Letters:
    """Gives each letter, and a full stop at the end."""

    def feed(self, item: str, /) -> Sequence[str]:
        return list(item)

    def close(self) -> Sequence[str]:
        return (".",)


def test_a_stage_is_fed_and_closed() -> None:
    assert list(through("abc", Pairs())) == ["ab", "c"]
    assert list(through("", Letters())) == ["."]


def test_stages_in_a_row() -> None:
    pipeline = Pipeline(Pairs(), Letters(), Pairs())
    assert [pipeline.feed(item) for item in "abcde"] == [(), ["ab"], (), ["cd"], ()]
    assert pipeline.close() == ["e."]


def test_what_an_early_stage_held_back_passes_the_later_ones_before_they_close() -> None:
    assert list(through("abc", Pipeline(Pairs(), Letters()))) == ["a", "b", "c", "."]
    assert list(through("abc", Pipeline(Letters(), Pairs()))) == ["ab", "c."]


def test_a_row_of_none_passes_all() -> None:
    assert list(through("ab", Pipeline())) == ["a", "b"]


def test_a_row_is_a_stage() -> None:
    assert list(through("abcd", Pipeline(Pipeline(Letters(), Pairs()), Pipeline(Letters())))) == list("abcd..")


async def items(text: str) -> AsyncIterator[str]:
    for item in text:
        yield item


async def test_one_read_gives_one_write() -> None:
    """What one item made comes in one piece; what made nothing gives nothing."""
    assert [made async for made in athrough(items("abc"), Pairs())] == [("ab",), ["c"]]
    assert [made async for made in athrough(items("ab"), Pairs())] == [("ab",)]
    assert [made async for made in athrough(items(""), Letters())] == [(".",)]
