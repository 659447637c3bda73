"""Converts a prompt without turns to a user message, for dialects that have messages only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.errors import WireError
from xenoglot.model.content import Text
from xenoglot.model.request import Message

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.request import Prompt, Request


def as_turns(request: Request, losses: Losses) -> Request:
    """Return `request` with its prompt, if it has one, as a turn of the user.

    `echo` is for whoever writes the answer: the client's dialect knows the prompt.

    Raises:
        WireError: the prompt cannot be said in turns: token ids, several texts at once, a text around a gap, or a
            question about the prompt itself.
    """
    prompt = request.prompt
    if prompt is None:
        return request
    if prompt.suffix:
        raise WireError("$.suffix", "the model behind answers turns, and cannot fill in before a suffix; leave it out")
    if len(prompt.texts) != 1:
        raise WireError("$.prompt", f"the model behind answers one prompt at a time, found {len(prompt.texts)}")
    _check_asked(request, prompt)
    (text,) = prompt.texts
    if not isinstance(text, str):
        raise WireError("$.prompt", "token ids mean nothing to the model behind; send the text")
    if not text.strip():
        raise WireError("$.prompt", "the model behind answers turns, and there is nothing to answer; send a text")
    losses.emulated("$.prompt", "prompt", "written as a turn of the user")
    turn = Message(role="user", content=(Text(text=text),))
    return replace(request, prompt=None, messages=(*request.messages, turn))


def _check_asked(request: Request, prompt: Prompt) -> None:
    """Refuse what only a model that reads the text as it stands can tell."""
    sampling = request.sampling
    if prompt.echo and sampling.logprobs:
        raise WireError("$.echo", "the model behind answers turns, and does not tell how likely its prompt is")
    if prompt.best_of is not None and prompt.best_of > (sampling.n or 1):
        raise WireError("$.best_of", "the model behind gives every answer it makes; ask for `n` of them")
    if sampling.max_tokens == 0:
        raise WireError("$.max_tokens", "the model behind answers turns: must be at least 1")
