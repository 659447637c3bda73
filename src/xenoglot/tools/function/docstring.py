"""Parser of docstrings in Google, NumPy and Sphinx style.

Google's (`Args:`), NumPy's (`Parameters` underlined), and Sphinx's (`:param name: ...`).
"""

from __future__ import annotations

import inspect
import re
from typing import Final

_SECTIONS: Final = (
    "args|arguments|parameters|params|keyword args|keyword arguments|other parameters|returns|return|yields|raises|"
    "except|exceptions|warns|examples?|notes?|attributes|references|see also|todo|warnings?"
)
_PARAMETERS: Final = frozenset(
    {"args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters"}
)
_GOOGLE = re.compile(rf"(?P<section>{_SECTIONS}):\s*$", re.IGNORECASE)
_NUMPY = re.compile(rf"(?P<section>{_SECTIONS})\s*$", re.IGNORECASE)
_UNDERLINE = re.compile(r"[-=]{3,}\s*$")
_GOOGLE_ITEM = re.compile(r"\*{0,2}(?P<name>[^\W\d]\w*)\s*(?:\([^)]*\))?\s*:\s*(?P<text>.*)$")
_NUMPY_ITEM = re.compile(r"\*{0,2}(?P<names>[^\W\d]\w*(?:\s*,\s*[^\W\d]\w*)*)\s*(?::.*)?$")
_SPHINX = re.compile(r":(?P<field>\w+)(?P<rest>[^:]*):\s*(?P<text>.*)$")
_SPHINX_PARAMETERS: Final = frozenset({"param", "parameter", "arg", "argument", "key", "keyword"})


def read_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """Return the description of the function, and of each parameter by name."""
    lines = inspect.cleandoc(text or "").splitlines()
    start = next((at for at, _ in enumerate(lines) if _begins_section(lines, at)), len(lines))
    description = "\n".join(lines[:start]).strip()
    return description, _Reading(lines[start:]).parameters()


def _begins_section(lines: list[str], at: int) -> bool:
    line = lines[at]
    if _GOOGLE.match(line) or _SPHINX.match(line):
        return True
    return _NUMPY.match(line) is not None and at + 1 < len(lines) and _UNDERLINE.match(lines[at + 1]) is not None


class _Reading:
    """One walk over the sections of a docstring."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._found: dict[str, list[str]] = {}
        self._names: list[str] = []
        """The parameters that the current text describes."""
        self._style = ""
        """Style of the parameter section being read; empty outside of one."""
        self._indent: int | None = None

    def parameters(self) -> dict[str, str]:
        at = 0
        while at < len(self._lines):
            at += self._line(at)
        return {name: said for name, words in self._found.items() if (said := " ".join(words).strip())}

    def _line(self, at: int) -> int:
        """Read one line, or the two that start a NumPy section; return how many."""
        line = self._lines[at]
        if (field := _SPHINX.match(line)) is not None:
            self._field(field)
        elif (section := _GOOGLE.match(line)) is not None:
            self._begin(section["section"], "google")
        elif _begins_section(self._lines, at):
            self._begin(line, "numpy")
            return 2
        elif line.strip():
            self._text(line)
        return 1

    def _begin(self, section: str, style: str) -> None:
        self._style = style if section.strip().lower() in _PARAMETERS else ""
        self._names, self._indent = [], None

    def _field(self, field: re.Match[str]) -> None:
        words = field["rest"].split()
        self._style = "sphinx" if field["field"] in _SPHINX_PARAMETERS and words else ""
        self._names = words[-1:] if self._style else []
        self._add_text(field["text"])

    def _text(self, line: str) -> None:
        indent = len(line) - len(line.lstrip())
        if self._style and self._style != "sphinx":
            if self._indent is None:
                self._indent = indent
            if indent <= self._indent and self._item(line.strip()):
                return
        if self._style:
            self._add_text(line.strip())

    def _item(self, line: str) -> bool:
        """Start the description of the next parameter, if the line does."""
        if self._style == "google":
            if (item := _GOOGLE_ITEM.match(line)) is None:
                return False
            self._names = [item["name"]]
            self._add_text(item["text"])
            return True
        if (listed := _NUMPY_ITEM.match(line)) is None:
            return False
        self._names = [name.strip() for name in listed["names"].split(",")]
        return True

    def _add_text(self, words: str) -> None:
        for name in self._names:
            self._found.setdefault(name, []).append(words)
