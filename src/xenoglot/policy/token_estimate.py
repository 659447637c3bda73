"""Estimates how many tokens a text, a prompt or an answer has, without a tokenizer.

Byte-pair encodings take a common word for one token and a long or rare one for several; up to three digits, most signs
of punctuation and most line ends are one each; letters of other scripts are between a half and three tokens. The
weights are fitted to OpenAI's cl100k, which is neither the coarsest nor the finest of those in use. The UTF-8 of the
text is mapped to classes in one pass, byte by byte; the rest is counting.

Texts are counted by classes of characters (`policy.token_estimate`). Everything that a model reads is counted: words,
reasoning, tool calls and their results, the tools themselves, and a few tokens for each turn's frame. An image costs
what a large one does after the provider has scaled it down; other media are counted by their size. The estimate is
rather too high than too low: a client that compacts early loses less than one that is refused.

Pieces of text are kept until there are enough of them for an estimate (`policy.token_estimate` looks at words, not at
pieces of words), so memory is bounded and each character is counted once.
"""

from __future__ import annotations

from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from xenoglot.codec.json.json_io import encode_json
from xenoglot.model.content import (
    Audio,
    CodeOutput,
    CompactedHistory,
    File,
    FoundTool,
    HostedCall,
    HostedResult,
    Image,
    Inline,
    Nested,
    Opaque,
    Plain,
    Reasoning,
    Refusal,
    SearchResult,
    Text,
    ToolCall,
    ToolResult,
    Video,
)
from xenoglot.model.events import ArgumentsDelta, AudioDelta, BlockEnded, BlockStarted, ReasoningDelta, TextDelta
from xenoglot.model.hosted import HostedTool

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xenoglot.model.content import Part, Source
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSON
    from xenoglot.model.request import Prompt, Request, RequestTool


_LETTER, _DIGIT, _SPACE, _LINE, _SIGN, _REST = b"a0 \n.-"
_SCRIPTS = (
    (0xC2, 0xC3, b"b"),  # Latin letters with accents
    (0xC4, 0xCD, b"c"),
    (0xCE, 0xCF, b"c"),  # Greek
    (0xD0, 0xD5, b"b"),  # Cyrillic, Armenian
    (0xD6, 0xDF, b"c"),  # Hebrew, Arabic
    (0xE0, 0xE1, b"e"),  # scripts of India and South-East Asia
    (0xE2, 0xE3, b"c"),  # signs, kana
    (0xE4, 0xED, b"d"),  # Han, Hangul; surrogates
    (0xEE, 0xEF, b"c"),  # full-width forms
    (0xF0, 0xF7, b"f"),  # emoji
)
_WEIGHTS = {b"b": 0.55, b"c": 1.0, b"d": 1.25, b"e": 1.5, b"f": 2.5}
"""Tokens of a character beyond ASCII, by the class of its first byte."""
_LONG = b"a" * 6
"""Letters after which a word is one token more."""
_LETTERS_PER_TOKEN = 3.5
"""In a text of long words."""
_SAMPLES, _SAMPLE = 16, 2048
"""Number and size in bytes of the samples of a longer text, at equal distances."""
_WHOLE = _SAMPLES * _SAMPLE
_PROMPT_SAMPLES, _PROMPT_SAMPLE = 64, 192
"""Likewise for the texts of a prompt: a prompt is estimated for limits, before it is sent."""
_MOST_NEW = _PROMPT_SAMPLES * _PROMPT_SAMPLE
"""Bytes of new text that are counted in a prompt; longer new text is sampled."""
_MOST_KNOWN = 16_384

_MOST_HASHED, _END, _STRIDE = 512, 64, 61
"""Characters of a text that is hashed whole; a longer one is hashed by its length, its ends and each 61st character."""

_content = attrgetter("content")

_known: dict[int, int] = {}
"""Estimates by the hash of their text, no texts: each request of a conversation brings all earlier turns again."""


def _classes() -> bytes:
    table = bytearray([_SIGN]) * 0x80 + bytearray([_REST]) * 0x80
    table[ord("a") : ord("z") + 1] = table[ord("A") : ord("Z") + 1] = bytes([_LETTER]) * 26
    table[ord("0") : ord("9") + 1] = bytes([_DIGIT]) * 10
    table[ord(" ")] = table[ord("\t")] = _SPACE
    table[ord("\n")] = table[ord("\r")] = _LINE
    for first, last, script in _SCRIPTS:
        table[first : last + 1] = script * (last + 1 - first)
    return bytes(table)


_TABLE = _classes()
_WORDS = bytes(_LETTER if one == _LETTER else _SPACE for one in _TABLE)


def text_tokens(text: str) -> int:
    """Return about how many tokens `text` is."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > _WHOLE:
        return _sampled(data, _SAMPLES, _SAMPLE)
    return (round(_tokens(data)) or 1) if data else 0


def bytes_tokens(data: bytes) -> int:
    """Return about how many tokens the UTF-8 in `data` is."""
    return _sampled(data, _SAMPLES, _SAMPLE)


def _sampled(data: bytes, samples: int, sample: int) -> int:
    """Return the tokens of `data`, estimated from `samples` pieces of `sample` bytes each."""
    size = len(data)
    if size <= samples * sample:
        return max(1, round(_tokens(data))) if data else 0
    step = size // samples
    seen = b"".join(data[at : at + sample] for at in range(0, step * samples, step))
    return round(_tokens(seen) * size / len(seen))


def _tokens(data: bytes) -> float:
    count, in_words = (b"\n" + data.translate(_TABLE)).count, (b" " + data.translate(_WORDS)).count
    words = in_words(b" a")
    letters: float = words + in_words(_LONG)
    least = in_words(b"a") / _LETTERS_PER_TOKEN
    if letters < least:  # noqa: PLR1730  `max` costs as much as a count
        letters = least
    digits: float = count(b"0")
    if digits:
        digits += count(b" 0") - 2 * count(b"000")  # a space is a token of its own before a number
    signs: float = count(b".")
    if signs:  # `":` and `"},` are one or two; some signs are of the next word
        signs -= 0.5 * (count(b"..") + count(b"...") + count(b".a"))
    lines: float = count(b"\n") - 1
    if lines:
        lines -= count(b"\n\n")
    tokens = letters + digits + signs + lines + 0.25 * count(b"  ")
    if data.isascii():
        return tokens
    return tokens + sum(weight * count(script) for script, weight in _WEIGHTS.items())


MESSAGE_TOKENS = 4
TOOL_TOKENS = 8
IMAGE_TOKENS = 1600
MEDIA_TOKENS = 1600
"""A file or a sound of unknown size."""
MEDIA_CHARACTERS_PER_TOKEN = 32
"""Characters of base64."""


def estimate(request: Request) -> int:
    """Return about how many tokens the prompt of `request` is, at least 1."""
    texts: list[str] = []
    tokens = MESSAGE_TOKENS * len(request.messages)
    add = texts.append
    for part in chain.from_iterable(map(_content, request.messages)):
        kind = type(part)
        if kind is Text:
            add(part.text)
        elif kind is ToolCall:
            add(part.name)
            add(part.arguments)
            tokens += TOOL_TOKENS
        elif kind is ToolResult:
            tokens += TOOL_TOKENS
            for inner in part.content:
                if type(inner) is Text:
                    add(inner.text)
                else:
                    tokens += _part(inner, texts)
        else:
            tokens += _part(part, texts)
    for tool in request.tools:
        tokens += _tool(tool, texts)
    if request.prompt is not None:
        tokens += _prompt(request.prompt, texts)
    return max(1, tokens + _all_tokens(texts))


def estimate_part(part: Part) -> int:
    """Return about how many tokens one part of a turn is."""
    texts: list[str] = []
    return _part(part, texts) + sum(map(text_tokens, texts))


def _key(text: str) -> int:
    """Return the key of a long text: hashing all of it would cost more than counting a sample."""
    return hash((len(text), text[:_END], text[-_END:], text[::_STRIDE]))


def _all_tokens(texts: list[str]) -> int:
    """Return about how many tokens `texts` are; those that were seen before are looked up."""
    keys = [hash(text) if len(text) <= _MOST_HASHED else _key(text) for text in texts]
    looked_up = [*map(_known.get, keys)]
    if None not in looked_up:
        return sum(looked_up)  # type: ignore[arg-type]  # as was seen
    tokens = counted = 0
    rest: list[str] = []
    for text, key in zip(texts, keys):  # noqa: B905  each text has one
        known = _known.get(key)
        if known is None:
            if counted >= _MOST_NEW:
                rest.append(text)
                continue
            data = text.encode("utf-8", "surrogatepass")
            counted += len(data)
            known = _sampled(data, _PROMPT_SAMPLES, _PROMPT_SAMPLE)
            if len(_known) >= _MOST_KNOWN:
                _known.clear()
            _known[key] = known
        tokens += known
    if rest:
        tokens += _sampled("".join(rest).encode("utf-8", "surrogatepass"), _PROMPT_SAMPLES, _PROMPT_SAMPLE)
    return tokens


# The functions below return what the size of a text does not tell, and add the texts that are to be counted.


def _prompt(prompt: Prompt, texts: list[str]) -> int:
    tokens = _text(prompt.suffix, texts)
    for text in prompt.texts:
        tokens += _text(text, texts) if isinstance(text, str) else len(text)
    return tokens


def _parts(parts: Iterable[Part], texts: list[str]) -> int:
    tokens = 0
    for part in parts:
        if type(part) is Text:
            texts.append(part.text)
        else:
            tokens += _part(part, texts)
    return tokens


def _part(part: Part, texts: list[str]) -> int:  # noqa: C901, PLR0911  one for each kind
    match part:
        case ToolCall():
            texts += (part.name, part.arguments)
            return TOOL_TOKENS
        case ToolResult():
            return TOOL_TOKENS + _parts(part.content, texts)
        case Text(text=text) | Refusal(text=text):
            return _text(text, texts)
        case Reasoning():
            texts += part.summary or ()
            return _text(part.text, texts) + _text(part.encrypted, texts)
        case Image():
            return IMAGE_TOKENS
        case Audio(source=None):
            return _text(part.transcript, texts)
        case Audio(source=source) | Video(source=source) | File(source=source):
            return _media(source, texts)
        case HostedCall() | HostedResult():
            return TOOL_TOKENS + _hosted(part, texts)
        case CompactedHistory():
            return _text(part.text or part.encrypted, texts)
        case Opaque():
            return _json(part.data, texts)


def _hosted(part: HostedCall | HostedResult, texts: list[str]) -> int:
    if isinstance(part, HostedCall):
        return _text(part.arguments, texts)
    tokens = 0
    for one in part.content:
        match one:
            case SearchResult():
                tokens += _text(one.title, texts) + _text(one.url, texts) + _text(one.text, texts)
            case FoundTool():
                tokens += _text(one.name, texts)
            case CodeOutput():
                tokens += _text(one.stdout, texts) + _text(one.stderr, texts)
            case _:
                tokens += _part(one, texts)
    return tokens


def _tool(tool: RequestTool, texts: list[str]) -> int:
    if isinstance(tool, Opaque):
        return TOOL_TOKENS + _json(tool.data, texts)
    if isinstance(tool, HostedTool):
        return TOOL_TOKENS
    texts.append(tool.name)
    _text(tool.description, texts)
    if tool.parameters is not None:
        _json(tool.parameters, texts)
    if tool.format is not None:
        _json(tool.format, texts)
    return TOOL_TOKENS


def _media(source: Source | None, texts: list[str]) -> int:
    match source:
        case Inline(data=data):
            return max(1, len(data) // MEDIA_CHARACTERS_PER_TOKEN)
        case Plain(text=text):
            return _text(text, texts)
        case Nested(parts=parts):
            return _parts(parts, texts)
        case _:
            return MEDIA_TOKENS


def _json(value: JSON, texts: list[str]) -> int:
    return 0 if value is None else _text(encode_json(value).decode(), texts)


def _text(text: str | None, texts: list[str]) -> int:
    if text:
        texts.append(text)
    return 0


MOST_KEPT: Final = 8192
"""Characters after which the pieces that are kept are counted."""

_GROWING = (Text, Refusal, Reasoning, ToolCall, Audio)


class AnswerTokens:
    """The tokens of the events fed so far; the same for an answer that is fed whole (`unfold`) and in pieces."""

    __slots__ = ("_grew", "_header", "_kept", "_pending", "_size", "_texts", "_tokens")

    def __init__(self) -> None:
        self._tokens = 0
        self._texts: list[str] = []
        """Texts not yet counted, `_kept` characters in all: the count is seldom needed."""
        self._kept = 0
        self._pending: list[str] = []
        self._size = 0
        self._header: Part = Text(text="")
        self._grew = False

    def count(self) -> int:
        """Return the tokens, at least 1."""
        self._flush()
        self._count_kept()
        return max(1, self._tokens)

    def grow(self, text: str) -> None:
        """Add a piece of the open block."""
        self._pending.append(text)
        self._size += len(text)
        if self._size >= MOST_KEPT:
            self._flush()

    def feed(self, event: Event) -> None:
        """Add an event."""
        match event:
            case TextDelta(text=text) | ReasoningDelta(text=text) | ArgumentsDelta(text=text):
                self.grow(text)
            case AudioDelta(transcript=text):
                self.grow(text)
            case BlockStarted(part=part):
                self._begin(part)
            case BlockEnded(part=part):
                self._end(part)
            case _:
                pass

    def _begin(self, part: Part) -> None:
        self._flush()
        self._header, self._grew = part, False
        if isinstance(part, ToolCall):
            self._tokens += TOOL_TOKENS
            self._keep(part.name)
        self.grow(_part_text(part))

    def _end(self, whole: Part | None) -> None:
        part = self._header if whole is None else whole
        if not isinstance(part, _GROWING):
            self._tokens += estimate_part(part)
        elif whole is not None and not self._grew and not self._size:  # no delta had its words
            self.grow(_part_text(whole))
        self._flush()
        self._grew = False

    def _flush(self) -> None:
        if self._size:
            self._keep("".join(self._pending))
            self._grew = True
        self._pending.clear()
        self._size = 0

    def _keep(self, text: str) -> None:
        self._texts.append(text)
        self._kept += len(text) + 1  # an empty one takes its place, too
        if self._kept >= MOST_KEPT:
            self._count_kept()

    def _count_kept(self) -> None:
        self._tokens += sum(map(text_tokens, self._texts))
        self._texts.clear()
        self._kept = 0


def _part_text(part: Part) -> str:
    match part:
        case Text(text=text) | Refusal(text=text) | ToolCall(arguments=text):
            return text
        case Reasoning(text=text, summary=summary):
            return (text or "") + "".join(summary or ())
        case Audio(transcript=text):
            return text or ""
        case _:
            return ""
