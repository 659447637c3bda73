"""A prompt without turns, for dialects that have nothing else: it becomes what the user says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.errors import WireError
from xenoglot.model.content import Text
from xenoglot.model.request import Message

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.request import Request


def as_turns(request: Request, losses: Losses) -> Request:
    """Return `request` with its prompt, if it has one, as a turn of the user.

    `echo` is for whoever writes the answer: the client's dialect knows the prompt.

    Raises:
        WireError: the prompt cannot be said in turns: token ids, several texts at once, or a text around a gap.
    """
    prompt = request.prompt
    if prompt is None:
        return request
    if prompt.suffix:
        raise WireError("$.suffix", "the model behind answers turns, and cannot fill in before a suffix; leave it out")
    if len(prompt.texts) != 1:
        raise WireError("$.prompt", f"the model behind answers one prompt at a time, found {len(prompt.texts)}")
    (text,) = prompt.texts
    if not isinstance(text, str):
        raise WireError("$.prompt", "token ids mean nothing to the model behind; send the text")
    losses.emulated("$.prompt", "prompt", "written as a turn of the user")
    turn = Message(role="user", content=(Text(text=text),))
    return replace(request, prompt=None, messages=(*request.messages, turn))
