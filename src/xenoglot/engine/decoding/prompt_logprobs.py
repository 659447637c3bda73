"""Logprobs of a prompt, token by token.

The runtime reports logprobs of the tokens that it generates, not of those that it reads. This module therefore makes it
generate the prompt: at each position the runtime reads the tokens before it, which are cached from the position before,
and is forced to generate the token of the prompt. The logprob that it reports is from before the force. A token that is
no whole character is generated without a report: there another token is forced, and the token is looked up in the whole
vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.engine.errors import BROKEN
from xenoglot.errors import FailureError
from xenoglot.model.content import Logprob

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.engine.server.runtime import Runtime, RuntimeProperties, TokenLogprob
    from xenoglot.model.json import JSONObject

_FORCE: Final = 1e6
_WHOLE: Final = "a"
"""A text that is one token in every vocabulary, and a whole character."""
_LIKELIEST: Final = 500
_MOST_TOPS: Final = 20


async def prompt_logprobs(
    tokens: Sequence[int], tops: int, runtime: Runtime, facts: RuntimeProperties
) -> tuple[Logprob, ...]:
    """Return the logprobs of `tokens` from the second on, each with `tops` alternatives."""
    found: list[Logprob] = []
    for place in range(1, len(tokens)):
        before, token = list(tokens[:place]), tokens[place]
        told = await runtime.weigh(_fields(before, token, max(1, tops)))
        likely = told[0] if told else await _look_up(before, token, runtime, facts)
        found.append(logprob_of(likely, tops))
    return tuple(found)


def logprob_of(likely: TokenLogprob, tops: int) -> Logprob:
    """Return the log probability of a token from the runtime."""
    top = tuple(Logprob(token=one.token, logprob=one.logprob, bytes=one.bytes) for one in likely.top_logprobs[:tops])
    return Logprob(token=likely.token, logprob=likely.logprob, bytes=likely.bytes, top=top)


async def _look_up(before: list[int], token: int, runtime: Runtime, facts: RuntimeProperties) -> TokenLogprob:
    """Return the entry of `token` among the likeliest at its place, or otherwise among all."""
    (whole, *_) = await runtime.tokens_of_content(_WHOLE)
    for count in (min(_LIKELIEST, facts.vocabulary), facts.vocabulary):
        told = await runtime.weigh(_fields(before, whole, count))
        tops = told[0].top_logprobs if told else ()
        for likely in tops:
            if likely.id == token:
                return replace(likely, top_logprobs=tops[:_MOST_TOPS])
    raise FailureError(BROKEN)


def _fields(before: list[int], token: int, tops: int) -> JSONObject:
    return {
        "prompt": before,
        "n_predict": 1,
        "logit_bias": [[token, _FORCE]],
        "n_probs": tops,
        "temperature": 0,
        "samplers": [],
        "cache_prompt": True,
        "response_fields": ["completion_probabilities"],
    }
