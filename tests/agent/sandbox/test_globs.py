"""Patterns of paths, and the files that say what is ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot.agent.sandbox.globs import MOST_RULES, Ignored, compiled, matches

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", "a.py", True),
        ("*.py", "deep/er/a.py", True),
        ("*.py", "a.pyc", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/*.py", "other/src/a.py", False),
        ("src/**/a.py", "src/a.py", True),
        ("src/**/a.py", "src/b/c/a.py", True),
        ("**/a.py", "a.py", True),
        ("**", "a/b", True),
        ("a/**/b/**/c", "a/b/c", True),
        ("a/**/b/**/c", "a/x/b/y/z/c", True),
        ("a/**/b/**/c", "a/x/c", False),
        ("[ab]?.txt", "b1.txt", True),
        ("[^ab]?.txt", "b1.txt", False),
        ("/src/a.py", "src/a.py", True),
        ("../*", "a", False),
        ("", "a", False),
        ("[", "[", True),
    ],
)
def test_a_pattern_means_what_shells_mean_by_it(pattern: str, path: str, expected: bool) -> None:  # noqa: FBT001  a case
    assert matches(compiled(pattern), path.split("/")) is expected


def test_a_pattern_made_to_take_for_ever_ends() -> None:  # in years, were places tried one after the other
    assert not matches(compiled("**/" * 100 + "*a" * 200 + "b"), ["a" * 255] * 50)


GITIGNORE = """
# a comment
*.log
!keep.log
/build/
docs/*.tmp
\\#odd
trailing   
**/cache/**
"""  # noqa: W291  blanks at the end of a line do not count


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.log", True),
        ("deep/a.log", True),
        ("keep.log", False),
        ("build/", True),
        ("build", False),
        ("deep/build/", False),
        ("docs/a.tmp", True),
        ("docs/deep/a.tmp", False),
        ("#odd", True),
        ("trailing", True),
        ("x/cache/y", True),
        ("node_modules/", True),
        ("plain.txt", False),
    ],
)
def test_ignored_is_what_git_ignores(path: str, expected: bool) -> None:  # noqa: FBT001  a case
    ignored = Ignored().below(0, GITIGNORE)
    assert ignored.ignores(path.rstrip("/").split("/"), is_folder=path.endswith("/")) is expected


FILES = [
    "a",
    "b",
    "c",
    "a.log",
    "b.log",
    "!a",
    "#a",
    "a b",
    "aab",
    "b/a",
    "b/b",
    "b/a.log",
    "c/a/b",
    "c/b/a/b",
    "b/c/c/a.log",
]
GIT = [
    ("*.log", "a.log, b.log, b/a.log, b/c/c/a.log"),
    ("a", "a, b/a, c/a/b, c/b/a/b"),
    ("/a", "a"),
    ("a/", "c/a/b, c/b/a/b"),
    ("a/b", ""),
    ("/a/b", ""),
    ("a/*", ""),
    ("a/**", ""),
    ("**/a", "a, b/a, c/a/b, c/b/a/b"),
    ("**/a/b", "c/a/b, c/b/a/b"),
    ("a/**/b", ""),
    ("*/b", "b/b, c/b/a/b"),
    ("*", "a, b, c, a.log, b.log, !a, #a, a b, aab, b/a, b/b, b/a.log, c/a/b, c/b/a/b, b/c/c/a.log"),
    ("?", "a, b, c, b/a, b/b, b/a.log, c/a/b, c/b/a/b, b/c/c/a.log"),
    ("[ab]", "a, b, b/a, b/b, b/a.log, c/a/b, c/b/a/b, b/c/c/a.log"),
    ("[!ab]", "c, c/a/b, c/b/a/b, b/c/c/a.log"),
    ("[^ab]", "c, c/a/b, c/b/a/b, b/c/c/a.log"),
    ("*.log\n!a.log", "b.log"),
    ("*\n!b", "a, c, a.log, b.log, !a, #a, a b, aab, b/a, b/a.log, c/a/b, c/b/a/b, b/c/c/a.log"),
    ("a\n!a/b", "a, b/a, c/a/b, c/b/a/b"),
    ("\\!a", "!a"),
    ("\\#a", "#a"),
    ("#a", ""),
    ("a ", "a, b/a, c/a/b, c/b/a/b"),
    ("*a*b*", "a b, aab"),
    ("a.log/", ""),
    ("/*\n!/a", "b, c, a.log, b.log, !a, #a, a b, aab, b/a, b/b, b/a.log, c/a/b, c/b/a/b, b/c/c/a.log"),
    ("b/**/a.log", "b/a.log, b/c/c/a.log"),
]
"""Patterns -> which of the files `git check-ignore --no-index` (2.x) says are ignored; none of them is there."""


@pytest.mark.parametrize(("patterns", "expected"), GIT)
def test_the_same_files_are_ignored_as_git_ignores(patterns: str, expected: str) -> None:
    ignored = Ignored().below(0, patterns)
    assert ", ".join(path for path in FILES if any(steps(ignored, path.split("/")))) == expected


def steps(ignored: Ignored, parts: list[str]) -> Iterator[bool]:
    """Yield for each step of a path whether it is ignored: a walk does not go on behind one that is."""
    for depth in range(1, len(parts) + 1):
        yield ignored.ignores(parts[:depth], is_folder=depth < len(parts))


def test_the_file_of_an_inner_folder_has_the_last_word() -> None:
    ignored = Ignored().below(0, "*.log\n").below(1, "!wanted.log\n/here.txt\n")
    assert not ignored.ignores(["inner", "wanted.log"], is_folder=False)
    assert ignored.ignores(["inner", "other.log"], is_folder=False)
    assert ignored.ignores(["inner", "here.txt"], is_folder=False)
    assert not ignored.ignores(["inner", "deep", "here.txt"], is_folder=False)


def test_many_stars_in_a_row_are_one() -> None:
    assert compiled("**/" * 300 + "a") == compiled("**/a")


def test_no_more_rules_hold_than_somebody_writes() -> None:
    ignored = Ignored().below(0, "a\n" * 3000).below(1, "b\n")
    assert len(ignored.rules) == MOST_RULES
