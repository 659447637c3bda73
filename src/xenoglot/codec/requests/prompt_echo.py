"""Text of the prompt at the start of its answer (`echo`): whether the server or we have to add it.

A model that reads texts as they stand can begin its answer with the text (`Prompt.echo`), and report its
probabilities. For one that answers turns, the encoder of the answer adds the text. So a backend that has done it
reports that, in the form of the first part; there also stands the first token of the text where the others are weighed,
for nothing comes before it that would make it likely or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.model.content import Extra, Text

if TYPE_CHECKING:
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Prompt, Request

_MARK = "echo"


def marked(text: Text, backend: str, head: str | None = None) -> Text:
    """Return the text of a prompt as the first part of an answer that `backend` made; `head` is its first token."""
    return Text(text=text.text, logprobs=text.logprobs, extra=Extra(dialect=backend, form={_MARK: {"head": head}}))


def is_marked(part: Part | None) -> bool:
    """Whether a part is the text of the prompt."""
    return isinstance(part, Text) and part.extra is not None and _MARK in part.extra.form


def head_of(part: Part | None) -> str | None:
    """Return the token of a prompt's text that could not be weighed; `None` if none was, or it is no prompt."""
    if not isinstance(part, Text) or part.extra is None:
        return None
    mark = part.extra.form.get(_MARK)
    head = mark.get("head") if isinstance(mark, dict) else None
    return head if isinstance(head, str) else None


def made_here(dialect: str, fields: JSONObject) -> Extra:
    """Return what an answer has in `dialect` alone that no server of it made: a prompt in it has its mark."""
    return Extra(dialect=dialect, fields=fields, form={_MARK: True})


def is_echoed(extra: Extra | None, dialect: str) -> bool:
    """Return whether an answer comes from a server of `dialect`, which has put the prompt into it unmarked."""
    return extra is not None and extra.dialect == dialect and _MARK not in extra.form


def missing_echo(request: Request, candidate: int) -> str | tuple[int, ...] | None:
    """Return what the answer `candidate` of a backend that does not echo has to begin with; `None` for nothing."""
    prompt = request.prompt
    if prompt is None or not prompt.echo or not prompt.texts:
        return None
    return prompt.texts[_text_of(prompt, candidate, request.sampling.n or 1)]


def _text_of(prompt: Prompt, candidate: int, each: int) -> int:
    return min(candidate // each, len(prompt.texts) - 1)
