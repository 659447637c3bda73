"""Text completion (legacy API): tokens of the prompt, prompt echo, and the best of several answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.invalid_request import refused
from xenoglot.codec.requests.prompt_echo import is_marked, marked
from xenoglot.engine.errors import context_overflow
from xenoglot.engine.prompting.text_turns import ENGINE
from xenoglot.engine.unsupported import LONGEST_TOKEN
from xenoglot.model.content import Text
from xenoglot.model.fold import unfold_part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.engine.decoding.text_output import CandidateStage
    from xenoglot.engine.server.runtime import Runtime, RuntimeProperties
    from xenoglot.model.content import Logprob
    from xenoglot.model.events import Event
    from xenoglot.model.request import Prompt, Request, Sampling
    from xenoglot.model.response import Candidate, Finish, Response


async def text_tokens(prompt: Prompt, runtime: Runtime, facts: RuntimeProperties) -> list[int]:
    """Return the tokens of the one text of `prompt`, given as such or as a text.

    Raises:
        FailureError: they are none of this model, or too many.
    """
    text = prompt.texts[0] if prompt.texts else ""
    if prompt.suffix:
        raise refused("$.suffix", "the embedded model continues a text, and cannot fill in text before a suffix")
    if isinstance(text, str):
        if len(text) // LONGEST_TOKEN > facts.context:
            raise context_overflow(len(text) // LONGEST_TOKEN, facts.context)
        tokens = await runtime.tokens_of_text(text)
        if not tokens:
            raise refused("$.prompt", "there is nothing in it, and the embedded model has no token to begin with")
        return tokens
    for token in text:
        if not 0 <= token < facts.vocabulary:
            wanted = f"expected the number of a token of this model, 0 to {facts.vocabulary - 1}"
            raise refused("$.prompt", f"found {token}, {wanted}")
    return list(text)


async def echo(prompt: Prompt, tokens: Sequence[int], logprobs: tuple[Logprob, ...] | None, runtime: Runtime) -> Text:
    """Return the text of the prompt as the first part of an answer; `logprobs` are those from the second token on."""
    text = prompt.texts[0] if prompt.texts and isinstance(prompt.texts[0], str) else await runtime.text_of([*tokens])
    if logprobs is None:
        return marked(Text(text=text), ENGINE)
    return marked(Text(text=text, logprobs=logprobs), ENGINE, await runtime.text_of([tokens[0]]))


def checked_length(request: Request) -> Sampling:
    """Return how words are to be drawn; where only the prompt is requested, no words are drawn, which is no mistake."""
    sampling, prompt = request.sampling, request.prompt
    asked = prompt is not None and prompt.echo and not request.messages
    return replace(sampling, max_tokens=1) if sampling.max_tokens == 0 and asked else sampling


def best_of(request: Request) -> int | None:
    """Return how many answers the request wants to be chosen from, where these are more than it wants."""
    wanted = None if request.prompt is None else request.prompt.best_of
    return wanted if wanted is not None and wanted > (request.sampling.n or 1) else None


def of_several(request: Request, count: int) -> Request:
    """Return the request for `count` answers with their likelihoods; without them the client gets no prompt back.

    To weigh that too would be in vain: it is the same in all.
    """
    sampling, prompt = request.sampling, request.prompt
    if prompt is not None:
        heard = prompt.echo if sampling.logprobs else None
        prompt = replace(prompt, best_of=None, echo=heard)
    return replace(request, prompt=prompt, sampling=replace(sampling, n=count, logprobs=True), stream=False)


class PromptEchoStage:
    """A candidate stage that first emits the prompt's text (echo)."""

    def __init__(self, text: Text, speech: CandidateStage, candidate: int) -> None:
        self._before: Sequence[Event] = tuple(unfold_part(text, candidate))
        self._speech = speech

    def feed(self, text: str, logprobs: tuple[Logprob, ...]) -> Sequence[Event]:
        """Return what more text made, after the prompt."""
        return (*self._begin(), *self._speech.feed(text, logprobs))

    def close(self, finish: Finish) -> tuple[Sequence[Event], Finish]:
        """End the candidate."""
        ending, finish = self._speech.close(finish)
        return (*self._begin(), *ending), finish

    def _begin(self) -> Sequence[Event]:
        before, self._before = self._before, ()
        return before


def best(response: Response, sampling: Sampling) -> Response:
    """Return the likeliest candidates, as many as the request wants; the mean over the tokens they add decides."""
    ranked = sorted(response.candidates, key=_likelihood, reverse=True)[: sampling.n or 1]
    if sampling.logprobs or sampling.top_logprobs:
        return replace(response, candidates=tuple(ranked))
    return replace(response, candidates=tuple(map(_unweighed, ranked)))


def _likelihood(candidate: Candidate) -> float:
    made = [part for part in candidate.content if isinstance(part, Text) and not is_marked(part)]
    found = [one.logprob for part in made for one in part.logprobs]
    return sum(found) / len(found) if found else 0.0


def _unweighed(candidate: Candidate) -> Candidate:
    content = tuple(replace(part, logprobs=()) if isinstance(part, Text) else part for part in candidate.content)
    return replace(candidate, content=content)
