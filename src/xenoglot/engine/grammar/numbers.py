"""Grammar for numbers between two bounds: digits from the left, as long as the bounds still matter."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.engine.grammar.gbnf import either, literal

if TYPE_CHECKING:
    from collections.abc import Iterator

DIGITS: Final = 15
"""Digits of a whole number without a bound: those that every reader of JSON keeps exactly (RFC 8259 section 6)."""

FRACTIONS: Final = range(2, 10)
"""Digits after the point of a number with bounds: the fewest with which there is one."""

UNITS: Final = tuple(Decimal(1).scaleb(-digits) for digits in range(1, 10))
"""A tenth, a hundredth and so on."""

MOST_LISTED: Final = 1000
"""Multiples of something else are written out one by one; no more than these."""

INTEGER: Final = f'"-"? ("0" | [1-9] [0-9]{{0,{DIGITS - 1}}})'
NUMBER: Final = f'{INTEGER} ("." [0-9]{{1,6}})?'


class Interval(Struct, frozen=True, kw_only=True):
    """The numbers from `low` to `high`, each `None` if unbounded; `above` and `below` exclude the bound itself."""

    low: Decimal | None = None
    high: Decimal | None = None
    above: bool = False
    below: bool = False

    @property
    def endless(self) -> bool:
        """Whether every number is in it."""
        return self.low is None and self.high is None

    def integers(self) -> str | None:
        """Return the expression for its whole numbers; `None` if it has none."""
        return _signed(*_closed(self._first(0), self._last(0), 0), point=0)

    def numbers(self, digits: int | None = None) -> str | None:
        """Return the expression for its numbers; `None` if it has none that can be written.

        With `digits` there are as many after the point, or no point at all.
        """
        whole = self.integers()
        for point in FRACTIONS if digits is None else range(digits, digits + 1):
            if broken := _signed(*_closed(self._first(point), self._last(point), point), point=point):
                return broken if whole is None else either((whole, broken))
        return whole

    def multiples(self, unit: Decimal) -> str | None:
        """Return the expression for the multiples of `unit`, which is above 0; `None` if they are too many."""
        if unit == 1:
            return self.integers()
        if unit in UNITS:
            return self.numbers(UNITS.index(unit) + 1)
        if self.low is None or self.high is None or (self.high - self.low) / unit > MOST_LISTED:
            return None
        first, last = (int((bound / unit).to_integral_value()) for bound in (self.low, self.high))
        fitting = [unit * number for number in range(first - 1, last + 2) if self._holds(unit * number)]
        return either(literal(f"{value.normalize():f}") for value in fitting) if fitting else None

    def _holds(self, value: Decimal) -> bool:
        inside = (self.low is None or value >= self.low) and (self.high is None or value <= self.high)
        return inside and not (self.above and value == self.low) and not (self.below and value == self.high)

    def _first(self, point: int) -> int | None:
        """Return the least number of units of the last of `point` digits after the point."""
        if self.low is None:
            return None
        units = self.low.scaleb(point)
        least = int(units.to_integral_value(ROUND_CEILING))
        return least + 1 if self.above and least == units else least

    def _last(self, point: int) -> int | None:
        if self.high is None:
            return None
        units = self.high.scaleb(point)
        most = int(units.to_integral_value(ROUND_FLOOR))
        return most - 1 if self.below and most == units else most


def _closed(low: int | None, high: int | None, point: int) -> tuple[int, int]:
    """Return two bounds where one is missing: far enough from the other, and from zero."""
    far = 10 ** (DIGITS + point) - 1
    least = (-far if high is None or high > -far else high * 10) if low is None else low
    most = (far if low is None or low < far else low * 10) if high is None else high
    return least, most


def _signed(low: int, high: int, *, point: int) -> str | None:
    found = list(_unsigned(max(low, 0), high, point))
    below_zero = list(_unsigned(max(-high, 1), -low, point))
    if below_zero:
        found.append(f'"-" {either(below_zero)}')
    return either(found) if found else None


def _unsigned(low: int, high: int, point: int) -> Iterator[str]:
    """Yield an expression for each number of digits; `point` of them stand after the decimal point."""
    width = point + 1
    while low <= high:
        last = min(high, 10**width - 1)
        if low <= last:
            yield _between(f"{low:0{width}d}", f"{last:0{width}d}", point)
            low = last + 1
        width += 1


def _between(low: str, high: str, point: int) -> str:
    """Return the expression for the strings of digits from `low` to `high`, which are of one length."""
    if not low:
        return ""
    mark = '"." ' if point and len(low) == point else ""
    if set(low) == {"0"} and set(high) == {"9"}:
        return mark + _any(len(low), 0 if mark else point)
    if low[0] == high[0]:
        return f"{mark}{literal(low[0])} {_between(low[1:], high[1:], point)}".rstrip()
    return mark + either(_branches(low, high, point))


def _branches(low: str, high: str, point: int) -> Iterator[str]:
    first, last = int(low[0]), int(high[0])
    rest = len(low) - 1
    if set(low[1:]) - {"0"}:
        yield f"{literal(low[0])} {_between(low[1:], '9' * rest, point)}"
        first += 1
    tail = set(high[1:]) - {"9"}
    if tail:
        last -= 1
    if first <= last:
        yield f"[{first}-{last}] {_any(rest, point)}".rstrip()
    if tail:
        yield f"{literal(high[0])} {_between('0' * rest, high[1:], point)}"


def _any(count: int, point: int) -> str:
    """Return the expression for `count` digits, with the point where `point` of them are left."""
    if not count:
        return ""
    if point and count >= point:
        before = f"[0-9]{{{count - point}}} " if count > point else ""
        return f'{before}"." [0-9]{{{point}}}'
    return f"[0-9]{{{count}}}"
