"""Selects the `Target` of a model: the defaults of its server, or those of the first rule that matches its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.codec.glob import matches
from xenoglot.codec.target import Target

if TYPE_CHECKING:
    from collections.abc import Sequence


_MOST, _LONGEST = 1024, 256
"""How many names are remembered with their facts, and how long they may be: where a route leaves the name to the
client, there is no end of them."""


class TargetRule(Struct, frozen=True, kw_only=True):
    """The facts of those models whose names fit one of `names`, in which `*` is any number of characters."""

    names: tuple[str, ...]
    target: Target


class Targets:
    """The facts that hold for each model: those of the first rule that its name fits, else the usual ones."""

    def __init__(self, usual: Target, rules: Sequence[TargetRule] = ()) -> None:
        self.usual = usual
        self._rules = rules
        self._known: dict[str, Target] = {}

    def of(self, model: str) -> Target:
        """Return what is known of `model`."""
        if not self._rules:
            return self.usual
        known = self._known.get(model)
        if known is None:
            known = self._found(model)
            if len(model) <= _LONGEST:
                if len(self._known) >= _MOST:
                    self._known.clear()
                self._known[model] = known
        return known

    def _found(self, model: str) -> Target:
        for rule in self._rules:
            if any(matches(pattern, model) for pattern in rule.names):
                return rule.target
        return self.usual
