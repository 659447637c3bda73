"""Estimates the token counts that an upstream does not report, for clients that compute with them.

Agents compact their history by these counts; where an answer says 0 they never begin to. The prompt is counted as
routing counts it, the answer by its text. Each estimate is reported as a `Loss` and marked in the request log. A server
of the client's own dialect decides what it reports: its answers are not changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from xenoglot.model.events import PIECES, Finished, UsageReported
from xenoglot.model.fold import merge_usage, unfold
from xenoglot.model.response import Usage
from xenoglot.policy.token_estimate import AnswerTokens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.codec.framing.stream_writer import Framer
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.stage import Stage
    from xenoglot.model.events import Event, Piece
    from xenoglot.model.request import Request
    from xenoglot.model.response import Finish, Response

_COUNTS = ("input_tokens", "output_tokens")


class UsageEstimate:
    """A stage from events to events, which at the end adds the counts that were not reported.

    `prompt` gives the tokens of the request, `note` takes what was estimated. Events that an encoder writes without
    this stage are counted by `counted`.
    """

    __slots__ = ("_dialect", "_finish", "_losses", "_note", "_prompt", "_tokens", "_usage")

    def __init__(self, dialect: str, prompt: Callable[[], int], losses: Losses, note: Callable[[Usage], None]) -> None:
        self._dialect = dialect
        self._prompt = prompt
        self._losses = losses
        self._note = note
        self._tokens = AnswerTokens()
        self._usage: Usage | None = None
        self._finish: Finish | None = None

    def feed(self, event: Event, /) -> Sequence[Event]:
        """Return the event."""
        if isinstance(event, PIECES):
            self._tokens.grow(event.text)
        elif isinstance(event, UsageReported):
            self._usage = merge_usage(self._usage, event.usage)
        elif isinstance(event, Finished):
            self._finish = event.finish
        else:
            self._tokens.feed(event)
        return (event,)

    def close(self) -> Sequence[Event]:
        """Return the usage with the missing counts estimated; nothing where none is missing."""
        usage = self._estimated(self._usage, self._finish, self._tokens.count)
        return () if usage is None else (UsageReported(usage=usage),)

    def response(self, response: Response) -> Response:
        """Return a whole answer with the same counts."""
        finish = next((one.finish for one in response.candidates if one.finish is not None), None)
        usage = self._estimated(response.usage, finish, lambda: _tokens_of(response))
        return response if usage is None else replace(response, usage=usage)

    def counted(self, encoder: Stage[Event, ServerSentEvent]) -> Stage[Event, ServerSentEvent]:
        """Return `encoder`, with each piece counted that it writes as a ready frame."""
        return _Counted(encoder, self._tokens.grow) if hasattr(encoder, "frame") else encoder

    def _estimated(self, usage: Usage | None, finish: Finish | None, written: Callable[[], int]) -> Usage | None:
        reported = usage or Usage()
        empty = reported.input_tokens == reported.output_tokens == 0  # no prompt has 0 tokens: it is a placeholder
        missing = [name for name in _COUNTS if empty or getattr(reported, name) is None]
        if not missing or finish is None or finish.dialect == self._dialect:
            return None
        count = {"input_tokens": self._prompt, "output_tokens": written}
        estimated = replace(reported, **{name: count[name]() for name in missing})
        self._losses.approximated("$", "usage", f"the upstream does not report {' and '.join(missing)}: estimated")
        self._note(replace(estimated, estimated=True))
        return estimated


class _Counted:
    """An encoder of ready frames (`codec.framing.stream_writer`) whose pieces are counted."""

    __slots__ = ("_frame", "_grow", "close", "feed")

    def __init__(self, encoder: Stage[Event, ServerSentEvent], grow: Callable[[str], None]) -> None:
        self.feed = encoder.feed
        self.close = encoder.close
        self._frame = cast("Framer", encoder).frame
        self._grow = grow

    def frame(self, piece: Piece, /) -> bytes | None:
        """Return the frame of a piece; `None` where the encoder has none ready: then the piece is fed, and counted."""
        made = self._frame(piece)
        if made is not None:
            self._grow(piece.text)
        return made


def usage_estimate(
    dialect: Dialect, request: Request, prompt: Callable[[], int], losses: Losses, note: Callable[[Usage], None]
) -> UsageEstimate | None:
    """Return what estimates missing counts of the answer to `request`; `None` where the client can do without."""
    requested = dialect.usage_expected == "requested" and request.stream and request.stream_usage
    expected = dialect.usage_expected == "always" or requested
    return UsageEstimate(dialect.name, prompt, losses, note) if expected else None


def _tokens_of(response: Response) -> int:
    tokens = AnswerTokens()
    for event in unfold(response):
        tokens.feed(event)
    return tokens.count()
