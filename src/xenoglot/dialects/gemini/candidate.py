"""Encodes and decodes one candidate of an answer; chunks of a stream use the same functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from msgspec.structs import replace

from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader
from xenoglot.codec.unknown_fields import keep_rest
from xenoglot.dialects.gemini.citations import Grounding, bytes_of, citations_of
from xenoglot.dialects.gemini.extras import NAME, SIGNATURE, with_rest
from xenoglot.dialects.gemini.finish import encode_finish, take_finish
from xenoglot.dialects.gemini.logprobs import decode_logprobs, encode_logprobs
from xenoglot.dialects.gemini.parts.decoder import decode_parts
from xenoglot.dialects.gemini.parts.encoder import PartEncoder
from xenoglot.dialects.gemini.signatures import sign_words, take_answered
from xenoglot.dialects.gemini.tool_calls import CallIds
from xenoglot.model.content import HostedCall, HostedResult, Refusal, Text, ToolCall
from xenoglot.model.response import Candidate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Logprob, Part
    from xenoglot.model.json import JSONObject

BLANK: JSONObject = {"text": ""}
"""The part of a content without parts: the official SDKs treat an empty content as a broken answer."""

LOGPROBS = "logprobsResult"

_ROLE = "model"


def decode_candidate(reader: Reader, place: int, answer_id: str | None) -> Candidate:
    """Return the candidate at `place` of the answer `answer_id`.

    Raises:
        WireError: it is malformed.
    """
    form: JSONObject = {}
    if reader.peek("index") != place or type(reader.peek("index")) is not int:
        form["index"] = reader.take_any("index") if "index" in reader else "absent"
    reader.take("index", int)
    parts = take_content(reader, CallIds(f"{answer_id or ''}:{place}"), form)
    logprobs = take_logprobs(reader, parts, form)
    if logprobs:
        parts = [replace(part, logprobs=logprobs) if is_words(part) else part for part in parts]
    last = parts[-1] if parts else None
    if isinstance(last, Text) and is_words(last):
        parts[-1] = replace(last, citations=citations_of(reader.rest(), last.text))
    calls = any(isinstance(part, ToolCall) for part in parts)
    finish = take_finish(reader, calls=calls)
    return Candidate(content=tuple(parts), finish=finish, extra=reader.extra(NAME, **form))


def take_content(reader: Reader, ids: CallIds, form: JSONObject) -> list[Part]:
    """Take the parts of a candidate; `form` gets how the content around them was spelled."""
    content = reader.object("content")
    if content is None:
        form["content"] = "absent"
        return []
    if content.take_word("role", (_ROLE,)) is None:
        form["role"] = "other"
    value = content.take("parts", list)
    keep_rest(reader, "content", content)
    if value is None:
        form["parts"] = "absent"
        return []
    parts = list(decode_parts(value, content.at("parts"), ids))
    if parts == [Text(text="")]:
        form["parts"] = "blank"
        return []
    if not parts:
        form["parts"] = "empty"
    return parts


def is_words(part: Part) -> TypeGuard[Text]:
    """Whether a part is a text of which nothing else is known than its signature."""
    return isinstance(part, Text) and (part.extra is None or (part.extra.fields.keys() == {SIGNATURE}))


def take_logprobs(reader: Reader, parts: Sequence[Part], form: JSONObject) -> tuple[Logprob, ...]:
    """Take the probabilities of the tokens, if it is clear which text they belong to: the only one."""
    value = reader.peek(LOGPROBS)
    if not isinstance(value, dict) or not value.get("chosenCandidates") or sum(map(is_words, parts)) != 1:
        return ()
    result = Reader(reader.take(LOGPROBS, dict), reader.at(LOGPROBS))
    logprobs = decode_logprobs(result)
    keep_rest(reader, LOGPROBS, result)
    form["logprobs"] = value
    return logprobs


def encode_candidate(candidate: Candidate, place: int, losses: Losses) -> JSONObject:
    """Return one candidate of an answer."""
    where = f"$.candidates[{place}]"
    form = form_of(candidate.extra, NAME)
    home = is_home(candidate)
    written = _Written(losses, where, home=home)
    for index, part in enumerate(candidate.content):
        written.add(part, f"{where}.content[{index}]")
    written.settle()
    extra, signature = take_answered(candidate.extra, where, losses)
    sign_words(written.parts, signature, alone=True)
    own: JSONObject = {} if form.get("content") == "absent" and not written.parts else _content(written.parts, form)
    if form.get("index") != "absent":
        own["index"] = form.get("index", place)
    if candidate.finish is not None:
        own |= encode_finish(candidate.finish, candidate.content, where, losses)
    own |= _probabilities(candidate.content, form, where, losses)
    return with_rest({**own, **written.grounding.metadata(len(written.parts))}, extra, where, losses)


def is_home(candidate: Candidate) -> bool:
    """Whether a candidate came from this dialect."""
    finish, extra = candidate.finish, candidate.extra
    return (finish is not None and finish.dialect == NAME) or (extra is not None and extra.dialect == NAME)


def _content(parts: list[JSONObject], form: JSONObject) -> JSONObject:
    role = {} if form.get("role") == "other" else {"role": _ROLE}
    if parts or form.get("parts") == "empty":
        return {"content": {"parts": parts, **role}}
    return {"content": role if form.get("parts") == "absent" else {"parts": [BLANK], **role}}


def _probabilities(parts: Sequence[Part], form: JSONObject, where: str, losses: Losses) -> JSONObject:
    found = [one for part in parts if isinstance(part, Text | Refusal) for one in part.logprobs]
    if not found:
        return {}
    raw = form.get("logprobs")
    if raw is not None and list(decode_logprobs(Reader(raw))) == found:
        return {LOGPROBS: raw}
    return {LOGPROBS: encode_logprobs(found, where, losses)}


class _Written:
    """The encoded parts of one candidate; parts of another dialect are joined as a reader of the stream joins them."""

    def __init__(self, losses: Losses, where: str, *, home: bool) -> None:
        self.parts: list[JSONObject] = []
        self.grounding = Grounding(where, losses)
        self._encoder = PartEncoder(losses, home=home)
        self._home = home
        self._texts: list[str] = []  # of the last part
        self._bytes = 0  # of these

    def settle(self) -> None:
        """Put the text of the last part together."""
        if len(self._texts) > 1:
            self.parts[-1]["text"] = "".join(self._texts)

    def add(self, part: Part, where: str) -> None:
        if isinstance(part, HostedCall | HostedResult) and not self._home and self.grounding.ran(part, where):
            return
        for encoded in self._encoder.part(part, where, _ROLE):
            before = self._place(encoded)
            if isinstance(part, Text):
                for citation in part.citations:
                    self.grounding.cite(citation, part.text, max(len(self.parts) - 1, 0), before)

    def _place(self, encoded: JSONObject) -> int:
        """Add a part, or join it to the last; return the bytes of text before it."""
        if self._home:
            self.parts.append(encoded)
            return 0
        if says_nothing(encoded):
            return self._bytes
        text = encoded.get("text", "")
        if not goes_on(self.parts[-1] if self.parts else {}, encoded):
            self.settle()
            self.parts.append({**encoded})
            self._texts, self._bytes = [text], bytes_of(text)
            return 0
        self.parts[-1] = {**encoded}
        self._texts.append(text)
        before, self._bytes = self._bytes, self._bytes + bytes_of(text)
        return before


def goes_on(last: JSONObject, encoded: JSONObject) -> bool:
    """Whether a reader of a stream takes the part `encoded` for more of `last`."""
    if last.keys() == {"text"}:
        return encoded.keys() == {"text"}
    if last.keys() != {"text", "thought"} or last["thought"] is not True or not encoded.get("text"):
        return False
    return encoded.keys() <= {"text", "thought", "thoughtSignature"} and encoded.get("thought") is True


def says_nothing(encoded: JSONObject) -> bool:
    """Whether a part is an empty text or empty reasoning, and nothing more."""
    return encoded.get("text") == "" and encoded.keys() <= {"text", "thought"}
