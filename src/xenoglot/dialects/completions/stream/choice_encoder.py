"""Encodes one choice of a stream: the chunk for each event of a candidate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.loss import form_of
from xenoglot.codec.requests.prompt_echo import head_of, is_marked
from xenoglot.dialects.completions.extras import NAME, own_fields
from xenoglot.dialects.completions.finish import encode_finish
from xenoglot.dialects.completions.logprobs import encode_logprobs
from xenoglot.dialects.completions.response_text import echo_of, note_citation, words_of
from xenoglot.model.content import Audio, Opaque, Refusal, Text
from xenoglot.model.events import AudioDelta, BlockEnded, BlockStarted, CitationDelta, Event, Finished, TextDelta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Logprob, Part
    from xenoglot.model.json import JSON
    from xenoglot.model.request import Request


class ChoiceEncoder:
    """Encodes the chunks of one candidate as bytes; `around` surrounds the choices of each chunk.

    `request` is that of a client that may still have to be given its prompt again.
    """

    def __init__(self, index: int, around: tuple[bytes, bytes], request: Request | None, losses: Losses) -> None:
        self._index = index
        self._head, self._tail = around
        self._request = request
        self._losses = losses
        self._where = f"$.candidates[{index}]"
        self._before = self._head + b'[{"text":'
        self._after = b',"index":%d,"logprobs":null,"finish_reason":null}]' % index + self._tail
        self._speaks = False
        self._blocks = 0
        self._length = 0  # characters so far
        self._begun = False
        self._refused = False
        self._opaque: Opaque | None = None
        self._unweighed: str | None = None
        self.is_finished = False

    def text(self, text: str) -> bytes | None:
        """Return the chunk of the commonest event, a piece of text for the open block; `None` if it takes none."""
        if not self._speaks or self._unweighed is not None:
            return None
        self._length += len(text)
        return self._before + encode_json(text) + self._after

    def feed(self, event: Event) -> list[bytes]:
        """Return the chunks of one event of this candidate."""
        echo = self._echo(event)
        match event:
            case TextDelta(text=text, logprobs=logprobs):
                return [*echo, *self._words(text, logprobs)]
            case AudioDelta(transcript=transcript):
                return [*echo, *self._words(transcript, ())]
            case BlockStarted(part=part):
                return [*echo, *self._start_block(part)]
            case BlockEnded(part=whole):
                return [*echo, *self._end_block(whole)]
            case CitationDelta(citation=citation):
                note_citation(citation.kind, self._block, self._losses)
            case Finished():
                return [*echo, self._finish(event)]
            case _:
                pass  # grows what was lost when its block began
        return echo

    @property
    def _block(self) -> str:
        return f"{self._where}.content[{self._blocks - 1}]"

    def _echo(self, event: Event) -> list[bytes]:
        """Return the client's prompt before anything else of the answer, where its maker left it out."""
        if self._begun:
            return []
        self._begun = True
        if self._request is None or (isinstance(event, BlockStarted) and is_marked(event.part)):
            return []
        text = echo_of(self._request, self._index, self._losses)
        self._length = len(text)
        return [self._before + encode_json(text) + self._after] if text else []

    def _start_block(self, part: Part) -> list[bytes]:
        self._blocks += 1
        if isinstance(part, Opaque):
            self._opaque = part  # its words may be known at its end alone
            return []
        words = words_of(part, self._block, self._losses)
        self._unweighed = head_of(part)
        logprobs = part.logprobs if isinstance(part, Text | Refusal) else ()
        self._speaks = isinstance(part, Text | Refusal | Audio)
        self._refused |= isinstance(part, Refusal)
        return self._words(words or "", logprobs) if words or logprobs else []

    def _end_block(self, whole: Part | None) -> list[bytes]:
        part, self._opaque = whole or self._opaque, None
        self._speaks = isinstance(part, Opaque)
        if isinstance(whole, Text):
            own_fields(whole.extra, self._block, self._losses)
        words = words_of(part, self._block, self._losses) if isinstance(part, Opaque) else None
        said = self._words(words, ()) if words else []
        self._speaks = False
        return said

    def _words(self, text: str, logprobs: Sequence[Logprob]) -> list[bytes]:
        if not self._speaks:
            return []
        start, self._length = self._length, self._length + len(text)
        placed = [(f"{self._block}.logprobs", logprob) for logprob in logprobs]
        head, self._unweighed = self._unweighed, None
        found: JSON = None
        if placed or head is not None:
            found = encode_logprobs(placed, start, self._losses, head=head)
        said = {"text": text, "index": self._index, "logprobs": found, "finish_reason": None}
        return [self._head + encode_json([said]) + self._tail]

    def _finish(self, event: Finished) -> bytes:
        self.is_finished = True
        form, own = form_of(event.extra, NAME), own_fields(event.extra, self._where, self._losses)
        said = {"text": "", "index": self._index, "logprobs": None}
        said |= {**encode_finish(event.finish, form, self._where, self._losses, refused=self._refused), **own}
        return self._head + encode_json([said]) + self._tail
