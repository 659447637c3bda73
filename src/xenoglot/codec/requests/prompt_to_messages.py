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
        raise WireError(
            "$.suffix", "the target model takes chat messages and cannot complete text before a suffix; leave it out"
        )
    if len(prompt.texts) != 1:
        raise WireError("$.prompt", f"the target model takes one prompt at a time, found {len(prompt.texts)}")
    _check_asked(request, prompt)
    (text,) = prompt.texts
    if not isinstance(text, str):
        raise WireError("$.prompt", "the target model does not accept token ids; send the text")
    if not text.strip():
        raise WireError("$.prompt", "the target model takes chat messages, and the prompt is empty; send a text")
    losses.emulated("$.prompt", "prompt", "written as a turn of the user")
    turn = Message(role="user", content=(Text(text=text),))
    return replace(request, prompt=None, messages=(*request.messages, turn))


def _check_asked(request: Request, prompt: Prompt) -> None:
    """Refuse what only a model that reads the text as it stands can tell."""
    sampling = request.sampling
    if prompt.echo and sampling.logprobs:
        raise WireError("$.echo", "the target model takes chat messages and returns no log probabilities of the prompt")
    if prompt.best_of is not None and prompt.best_of > (sampling.n or 1):
        raise WireError("$.best_of", "the target model returns every answer that it generates; set `n` instead")
    if sampling.max_tokens == 0:
        raise WireError("$.max_tokens", "must be at least 1: the target model takes chat messages")
