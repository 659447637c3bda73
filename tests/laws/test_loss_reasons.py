"""No loss claims that only one dialect has a field where another has it too, by the types of the official SDKs."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import anthropic
import openai
import pytest
from google.genai import types as google

from tests.laws.test_crossing import ANSWERS, ASKED, TARGET, answer_of
from tests.laws.vectors import Case, cases
from xenoglot.codec.loss import SHARED, Losses
from xenoglot.codec.requests.adapt_request import fitted
from xenoglot.dialect_registry import get
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from xenoglot.codec.loss import Loss

_ONLY = re.compile(r"only \w+ (has|understands) it\b.*")
_FIELD = re.compile(r"^    (\w+): ", re.MULTILINE)

OTHER_MEANINGS = {
    "compaction": "an item of one, the name of an edit of the other",
    "context": "how much of the reasoning is kept; a note on a document",
    "description": "of a namespace; of a function",
    "detail": "a level that is no word",
    "effort": "a level that is no word",
    "encrypted_content": "of a search result; of reasoning",
    "file_id": "of a citation; of a file",
    "image": "a kind of block; a field of a tool's result",
    "index": "the place of a citation; of a choice",
    "message": "a kind of part; a choice's message",
    "metadata": "fields that are the client's own; `user_id` and those to come",
    "mime_type": "the type of a stored file",
    "mode": "how much thinking, or whether calls are held to their schemas",
    "output_tokens_details": "counts to come",
    "part": "a kind to come",
    "prompt_cache_breakpoint": "one of a mode to come",
    "request_id": "the id of a call of the provider's API, in a header of the other",
    "search_context_size": "in the usage of an answer; of a tool",
    "source": "of an odd block",
    "stream_options": "options to come",
    "text": "a kind of block, or options to come",
    "tool_choice": "one of a kind to come",
    "type": "thinking of a kind to come",
    "usage": "options of one server",
    "user": "a second id of the user",
    "x": "a field of a test",
    "allowed_callers": "callers of a kind that one of them has",
    "caller": "a caller of a kind that one of them has",
    "context_management": "edits of a kind that one of them has",
    "defer_loading": "of a tool of a kind that one of them has",
}
"""Names that two dialects use for different things, or that stand for a value to come of a shared field."""


def fields(paths: Iterable[Path]) -> frozenset[str]:
    """Return the names of all fields in these modules of types."""
    return frozenset(name for path in paths for name in _FIELD.findall(path.read_text(encoding="utf-8")))


@cache
def known() -> dict[str, frozenset[str]]:
    """Return the names of the fields of each dialect with an official SDK."""
    ours, theirs = Path(openai.__file__).parent / "types", Path(anthropic.__file__).parent / "types"
    camel = (re.sub(r"_(\w)", lambda match: match[1].upper(), name) for name in fields([Path(google.__file__)]))
    beta = [*(theirs / "beta").glob("beta_*.py"), theirs / "beta" / "message_create_params.py"]
    return {
        "chat": fields((ours / "chat").glob("*.py")),
        "responses": fields((ours / "responses").glob("*.py")),
        "messages": fields([*theirs.glob("*.py"), *beta]),
        "gemini": frozenset(camel),
    }


def crossings(case: Case, other: str) -> Iterator[Loss]:
    """Yield the losses of a vector on its way to another dialect."""
    losses = Losses()
    if (case.folder / "request.json").exists():
        try:
            request = case.dialect.decode_request(case.request)
            get(other).encode_request(fitted(request, other, TARGET, losses), losses, TARGET)
        except WireError:  # refused in words
            pass
    for file in ANSWERS:
        response = answer_of(case, file, case.dialect) if (case.folder / file).exists() else None
        if response is not None:
            get(other).encode_response(response, ASKED, losses)
    yield from losses


@pytest.mark.parametrize("dialect", ["chat", "messages", "responses", "gemini"])
def test_no_reason_says_that_only_one_has_it_where_another_does(dialect: str) -> None:
    wrong = {
        f"{dialect} to {other}: {loss.what} ({case.folder.name})"
        for case in cases()
        if case.folder.parent.name == dialect
        for other in known().keys() - {dialect}
        for loss in crossings(case, other)
        if _ONLY.fullmatch(loss.why) and (name := loss.what.rpartition(".")[2]) in known()[other]
        if name not in OTHER_MEANINGS
    }
    assert sorted(wrong) == []


def test_shared_fields_have_a_reason_of_their_own() -> None:
    assert not [why for why in SHARED.values() if _ONLY.search(why)]
