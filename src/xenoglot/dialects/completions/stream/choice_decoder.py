"""Decodes one choice of a stream: its text and its other fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.dialects.completions.extras import NAME
from xenoglot.dialects.completions.finish import take_finish
from xenoglot.dialects.completions.logprobs import preceded, silent_columns, take_logprobs, unknown_rows
from xenoglot.dialects.completions.response_text import take_text
from xenoglot.model.content import Extra, Text
from xenoglot.model.events import BlockEnded, BlockStarted, Event, Finished, OpaqueDelta, TextDelta
from xenoglot.model.response import Finish

if TYPE_CHECKING:
    from xenoglot.codec.reader import Reader
    from xenoglot.model.content import Logprob
    from xenoglot.model.json import JSON, JSONObject

_SPELLINGS = ("columns", "logprobs", "unweighed")
"""The form of one chunk's probabilities; the next has its own."""


class ChoiceDecoder:
    """Decodes one choice to the events of a candidate."""

    __slots__ = ("_fields", "_finish", "_form", "_index", "_is_open", "_unknown")

    def __init__(self, index: int) -> None:
        self._index = index
        self._is_open = False
        self._finish: Finish | None = None
        self._fields: JSONObject = {}  # unknown fields of the choice
        self._form: JSONObject = {}
        self._unknown: list[JSON] = []  # tokens without a probability, before the first that has one

    @property
    def is_finished(self) -> bool:
        """Whether the server has sent a finish reason, or any end of the answer."""
        return self._finish is not None

    def assume_end(self) -> None:
        """Take what there is for the whole, unless that is nothing."""
        if self._finish is None and self._is_open:
            self._finish = Finish(reason="stop", dialect=NAME, assumed=True)

    def feed(self, choice: Reader) -> list[Event]:
        """Take one choice of a chunk.

        Raises:
            WireError: a field is of a wrong type.
        """
        text = take_text(choice)
        form: JSONObject = {}
        logprobs = self._weighed(take_logprobs(choice, form), form.pop("silent", {}))
        events: list[Event] = []
        if text or logprobs:
            if not self._is_open:
                events.append(BlockStarted(part=Text(text=""), candidate=self._index))
            self._is_open = True
            events.append(TextDelta(text=text or "", logprobs=logprobs, candidate=self._index))
        finish = take_finish(choice, form)
        if finish is not None:
            self._finish = finish
            self._form |= {key: value for key, value in form.items() if key not in _SPELLINGS}
        return [*events, *self._keep(choice.rest(), last=finish is not None)]

    def close(self) -> list[Event]:
        """Return the end of the candidate."""
        if self._unknown:
            self._fields["logprobs"] = silent_columns(self._unknown)
        ended = [BlockEnded(candidate=self._index)] if self._is_open else []
        extra = Extra(dialect=NAME, fields=self._fields, form=self._form) if self._fields or self._form else None
        finish = self._finish or Finish(reason="unknown")
        return [*ended, Finished(finish=finish, candidate=self._index, extra=extra)]

    def _weighed(self, logprobs: tuple[Logprob, ...], silent: JSONObject) -> tuple[Logprob, ...]:
        """Return the probabilities of a chunk, the tokens of chunks before it that have none with the first."""
        self._unknown += unknown_rows(silent)
        if not logprobs or not self._unknown:
            return logprobs
        unknown, self._unknown = self._unknown, []
        return (preceded(logprobs[0], unknown), *logprobs[1:])

    def _keep(self, rest: JSONObject, *, last: bool) -> list[Event]:
        """Carry the unknown fields: those of the last chunk with the end of the candidate, others as they come."""
        said = {key: value for key, value in rest.items() if value is not None}
        for key in rest.keys() - said.keys() - {"finish_reason", "text"}:
            self._fields.setdefault(key, None)
        if last:
            self._fields |= said
            return []
        if not said:
            return []
        data = {"choices": [{"text": "", "index": self._index, "logprobs": None, "finish_reason": None, **said}]}
        return [OpaqueDelta(dialect=NAME, data=data, candidate=self._index)]
