"""What is known of a server, and of its models where they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.codec.dialect import Target
from xenoglot.codec.patterns import matches

if TYPE_CHECKING:
    from collections.abc import Sequence


class Rule(Struct, frozen=True, kw_only=True):
    """The facts of those models whose names fit one of `names`, in which `*` is any number of characters."""

    names: tuple[str, ...]
    target: Target


class Targets:
    """The facts that hold for each model: those of the first rule that its name fits, else the usual ones."""

    def __init__(self, usual: Target, rules: Sequence[Rule] = ()) -> None:
        self.usual = usual
        self._rules = rules

    def of(self, model: str) -> Target:
        """Return what is known of `model`."""
        for rule in self._rules:
            if any(matches(pattern, model) for pattern in rule.names):
                return rule.target
        return self.usual
