"""Estimates the tokens of a text by character classes: linear, and rather too many than too few. Pure.

Byte-pair encodings take a common word for one token and a long or rare one for several; up to three digits, most signs
of punctuation and most line ends are one each; letters of other scripts are between a half and three tokens. The
weights are fitted to OpenAI's cl100k, which is neither the coarsest nor the finest of those in use. The UTF-8 of the
text is mapped to classes in one pass, byte by byte; the rest is counting.
"""

from __future__ import annotations

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
"""Of a text of long words."""
_SAMPLES, _SAMPLE = 16, 2048
"""Of a longer text so many pieces of so many bytes are looked at, at equal distances."""


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
    return bytes_tokens(text.encode("utf-8", "surrogatepass"))


def bytes_tokens(data: bytes) -> int:
    """Return about how many tokens the UTF-8 in `data` is."""
    size = len(data)
    if size <= _SAMPLES * _SAMPLE:
        return max(1, round(_tokens(data))) if data else 0
    step = size // _SAMPLES
    sample = b"".join(data[at : at + _SAMPLE] for at in range(0, step * _SAMPLES, step))
    return round(_tokens(sample) * size / len(sample))


def _tokens(data: bytes) -> float:
    count, in_words = (b"\n" + data.translate(_TABLE)).count, (b" " + data.translate(_WORDS)).count
    words = in_words(b" a")
    letters = max(words + in_words(_LONG), in_words(b"a") / _LETTERS_PER_TOKEN)
    digits = count(b"0") - 2 * count(b"000") + count(b" 0")  # a space is a token of its own before a number
    joined = (
        count(b"..") + count(b"...") + count(b".a")
    )  # `":` and `"},` are one or two; some signs are of the next word
    signs = count(b".") - 0.5 * joined
    lines = count(b"\n") - 1 - count(b"\n\n") + 0.25 * count(b"  ")
    tokens = letters + digits + signs + lines
    if data.isascii():
        return tokens
    return tokens + sum(weight * count(script) for script, weight in _WEIGHTS.items())
