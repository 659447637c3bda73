"""Requests usage in streams with `stream_options.include_usage`, and takes it out again for clients that did not.

With the option every chunk has `"usage": null`, and one more follows without choices, with the usage of the request
(https://developers.openai.com/api/docs/api-reference/chat/create). Clients that did not ask read `choices[0]` of each
chunk: they must not get it. Usage in a chunk with choices stays: servers that write it there do so in any case.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import DecodeError, Meta, Raw, Struct
from msgspec.json import Decoder

from xenoglot.codec.features.stream_usage import StreamUsage
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.shortcuts import shortcut

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.codec.loss import Losses

_OPTIONS: Final = b'"stream_options"'
_ADDED: Final = b',"stream_options":{"include_usage":true}}'
_USAGE: Final = b'"usage"'

_members = Decoder(dict[str, Raw]).decode

_END: Final = re.compile(rb"(?>\r\n|\n|\r){2}")
"""The end of a frame: two line ends."""
_LAST_END: Final = re.compile(rb"(?s).*(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
"""All frames that have an end."""
_LONGEST_END: Final = 4
_USUAL_NULL: Final = re.compile(rb',"usage":null(?=(?:,"obfuscation":"[^"\\]*")?\}(?:\r|\n))')
"""The field as most servers write it: last, or before the padding. In JSON no string holds an unescaped quote, and
what a line end follows closes the chunk: nothing else is matched."""
_NULLS: Final = re.compile(rb',\s*"usage"\s*:\s*null|"usage"\s*:\s*null\s*,\s*')
_LAST_NULL: Final = b',"usage":null}\n\n'
_FRAME: Final = re.compile(rb"(?s)((?:\r|\n)*)data:[ ]?([^\r\n]*)(.*)")
_ENVELOPE: Final = frozenset({
    "id", "object", "created", "model", "choices", "usage", "service_tier", "system_fingerprint", "obfuscation",
})  # fmt: skip
"""What every chunk has: nothing of it is lost with one of them."""


class _UsageChunk(Struct, forbid_unknown_fields=True, gc=False):
    choices: Annotated[list[Raw], Meta(max_length=0)]
    usage: dict[str, Raw]
    id: Raw = Raw()
    object: Raw = Raw()
    created: Raw = Raw()
    model: Raw = Raw()
    service_tier: Raw = Raw()
    system_fingerprint: Raw = Raw()
    obfuscation: Raw = Raw()


_usage_chunk = Decoder(_UsageChunk).decode


def request_usage(body: bytes) -> bytes:
    """Return the body of a streaming request that asks for usage; one whose options are invalid is unchanged."""
    if _OPTIONS not in body:
        return body.rstrip()[:-1] + _ADDED
    fields = _members(body)
    options = decode_json(bytes(fields.get("stream_options", b"null")))
    if options is None:
        options = {}
    if not isinstance(options, dict):
        return body
    fields["stream_options"] = Raw(encode_json(options | {"include_usage": True}))
    return encode_json(fields)


class UsageChunks:
    """Takes out of a stream what is in it because usage was requested."""

    __slots__ = ("_held", "_losses")

    def __init__(self, losses: Losses) -> None:
        self._held = bytearray()
        """A frame whose end is not here yet."""
        self._losses = losses

    def feed(self, data: bytes, /) -> bytes:
        """Return the frames that are complete, without usage."""
        usual = None if self._held else _without_usual(data)
        if usual is not None:
            return usual
        whole = self._completed(data)
        if _USAGE not in whole:
            return whole
        whole = _USUAL_NULL.sub(b"", whole)
        if _USAGE not in whole:
            return whole
        frames: list[bytes] = []
        at = 0
        for end in _END.finditer(whole):
            frames.append(self._without_usage(whole[at : end.end()]))
            at = end.end()
        return b"".join((*frames, whole[at:]))

    def close(self) -> bytes:
        """Return the frame that has no end."""
        held, self._held = bytes(self._held), bytearray()
        return self._without_usage(held) if _USAGE in held else held

    def _completed(self, data: bytes) -> bytes:
        held = self._held
        if not held and data.endswith(b"\n\n"):  # nearly all reads
            return data
        begin = max(0, len(held) - _LONGEST_END)
        held += data
        found = _LAST_END.match(held, begin)
        if found is None:
            return b""
        self._held = held[found.end() :]
        return bytes(held[: found.end()])

    def _without_usage(self, frame: bytes) -> bytes:
        """Return a frame without usage: nothing of one that has nothing else."""
        found = _FRAME.fullmatch(frame)
        if found is None:
            return frame
        before, data, after = found.groups()
        try:
            fields = _members(data)
        except (DecodeError, UnicodeDecodeError, RecursionError):
            return frame
        usage = bytes(fields.get("usage", b""))
        if usage == b"null":
            return frame[: found.start(2)] + _without_null(data, fields) + after
        if not usage.startswith(b"{") or bytes(fields.get("choices", b"")).translate(None, b" \t") != b"[]":
            return frame
        for name in fields.keys() - _ENVELOPE:
            self._losses.dropped("$", name, "it came with usage that the client did not request")
        return bytes(before)


@shortcut("usage")
def _without_usual(data: bytes) -> bytes | None:
    """Return frames without usage that is null, or is all of the only frame; `None` for what is not as usual."""
    if not data.endswith(b"\n\n"):
        return None
    if _USAGE not in data:
        return data
    if data.endswith(_LAST_NULL):
        return data[: -len(_LAST_NULL)] + b"}\n\n" if data.count(_USAGE) == 1 else None
    if not data.startswith(b"data: {") or data.find(b"\n") != len(data) - 2 or b"\r" in data:
        return None
    try:
        _usage_chunk(data[6:])
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return b""


def _without_null(data: bytes, fields: Mapping[str, Raw]) -> bytes:
    """Return an object, whose members are `fields`, without its usage, which is null.

    Objects inside of it may have the same. Only the first and the last place are tried, so that the work stays linear;
    if the object's own is between them, the object is put together from its members, without the spaces between them.
    """
    rest = {key: value for key, value in fields.items() if key != "usage"}
    expected = {key: bytes(value) for key, value in rest.items()}
    places = [found.span() for found in _NULLS.finditer(data)]
    for begin, end in {*places[:1], *places[-1:]}:
        shorter = data[:begin] + data[end:]
        try:
            if {key: bytes(value) for key, value in _members(shorter).items()} == expected:
                return shorter
        except DecodeError:
            continue
    return encode_json(rest)


STREAM_USAGE: Final = StreamUsage(request_usage, UsageChunks)
