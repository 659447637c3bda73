"""Converts a published BERT checkpoint to the GGUF file that the runtime loads.

Tensors are copied byte for byte; only their names change, and the vocabulary gets the runtime's word markers. One
checkpoint therefore always produces the same file, whose hash is known in advance.

Sources: https://github.com/huggingface/safetensors (format), https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
and `conversion/bert.py` in https://github.com/ggml-org/llama.cpp.
"""

from __future__ import annotations

import json
import struct
from math import prod
from os import SEEK_END
from typing import TYPE_CHECKING, BinaryIO, Final, TypeAlias

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

Value: TypeAlias = str | int | float | bool | list[str] | list[int]

ALIGNMENT: Final = 32
COPY_BYTES: Final = 1 << 20
CONTROL: Final = frozenset({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
"""The pieces of the vocabulary that no text has."""

_NORMAL, _CONTROL = 1, 3  # kinds of tokens
_F32 = 0  # the kind of a tensor
_F32_BYTES = 4
_LENGTH = 8  # bytes of the length of a checkpoint's head
_STRING, _ARRAY = 8, 9
_FORMATS: Final = {bool: (7, "<?"), int: (4, "<I"), float: (6, "<f")}
_INT32: Final = 5

_NAMES: Final = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
"""What the parts of the checkpoint are called in the file; the pooler and the position numbers are not needed."""

_LAYER = "encoder.layer."


class _Described(Struct, frozen=True):
    """A tensor's entry in the header of a checkpoint; the checkpoint's metadata entry has none of these fields."""

    dtype: str = ""
    shape: tuple[int, ...] = ()
    data_offsets: tuple[int, int] = (0, 0)


class _Tensor(Struct, frozen=True):
    """Position of one tensor in the checkpoint, and its name in the file."""

    name: str
    shape: tuple[int, ...]
    start: int
    size: int


def make(sources: Sequence[Path], target: Path) -> None:
    """Write the model file `target` from a checkpoint, its vocabulary and its configuration, in this order.

    Raises:
        ValueError: they are not those of a BERT of single-precision numbers.
    """
    checkpoint, vocabulary, configuration = sources
    settings = json.loads(configuration.read_text(encoding="utf-8"))
    tokens = vocabulary.read_text(encoding="utf-8").split("\n")[: settings["vocab_size"]]
    with checkpoint.open("rb") as source, target.open("wb") as file:
        tensors = list(_tensors(source))
        described = {**_architecture(target.stem, settings), **_tokenizer(tokens, settings)}
        file.write(_head(described, tensors))
        for tensor in tensors:
            _pad(file)
            source.seek(tensor.start)
            _copy(source, file, tensor.size)


def _architecture(name: str, settings: dict[str, int]) -> dict[str, Value]:
    return {
        "general.architecture": "bert",
        "general.name": name,
        "bert.block_count": settings["num_hidden_layers"],
        "bert.context_length": settings["max_position_embeddings"],
        "bert.embedding_length": settings["hidden_size"],
        "bert.feed_forward_length": settings["intermediate_size"],
        "bert.attention.head_count": settings["num_attention_heads"],
        "bert.attention.layer_norm_epsilon": float(settings["layer_norm_eps"]),
        "bert.attention.causal": False,
        "bert.pooling_type": 1,  # the mean
    }


def _tokenizer(tokens: list[str], settings: dict[str, int]) -> dict[str, Value]:
    return {
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.token_type_count": settings["type_vocab_size"],
        "tokenizer.ggml.tokens": [_spelled(token) for token in tokens],
        "tokenizer.ggml.token_type": [_CONTROL if token in CONTROL else _NORMAL for token in tokens],
        "tokenizer.ggml.padding_token_id": tokens.index("[PAD]"),
        "tokenizer.ggml.unknown_token_id": tokens.index("[UNK]"),
        "tokenizer.ggml.bos_token_id": tokens.index("[CLS]"),
        "tokenizer.ggml.cls_token_id": tokens.index("[CLS]"),
        "tokenizer.ggml.seperator_token_id": tokens.index("[SEP]"),  # the key's own spelling
        "tokenizer.ggml.mask_token_id": tokens.index("[MASK]"),
    }


def _spelled(token: str) -> str:
    """Return a piece in the runtime's spelling: one that begins a word is marked, rather than one that continues it."""
    if token in CONTROL:
        return token
    return token.removeprefix("##") if token.startswith("##") else f"\u2581{token}"


def _tensors(source: BinaryIO) -> Iterator[_Tensor]:
    """Yield the tensors that the file is to have, each within the checkpoint and of the size of its shape.

    Raises:
        ValueError: one is not.
    """
    size = source.seek(0, SEEK_END)
    source.seek(0)
    length = int.from_bytes(source.read(_LENGTH), "little")
    if length > size - _LENGTH:
        raise ValueError("the checkpoint ends before its head does")
    try:
        head = msgspec.json.decode(source.read(length), type=dict[str, _Described])
    except (msgspec.DecodeError, RecursionError) as error:
        message = f"the head of the checkpoint is not one of tensors: {error}"
        raise ValueError(message) from None
    for name, found in head.items():
        renamed = _renamed(name)
        if renamed is None:
            continue
        if found.dtype != "F32":
            message = f"`{name}`: expected numbers of single precision, found {found.dtype}"
            raise ValueError(message)
        start, end = found.data_offsets
        room, numbers = size - _LENGTH - length, prod(found.shape) if min(found.shape, default=0) >= 0 else -1
        if not 0 <= start <= end <= room or end - start != numbers * _F32_BYTES:
            message = f"`{name}`: its numbers are not where the checkpoint says, or not as many"
            raise ValueError(message)
        yield _Tensor(renamed, found.shape, _LENGTH + length + start, end - start)


def _renamed(name: str) -> str | None:
    """Return what a tensor is called in the file, or `None` if it is not in there."""
    part, _, kind = name.rpartition(".")
    layer, prefix = "", ""
    if part.startswith(_LAYER):
        layer, _, part = part.removeprefix(_LAYER).partition(".")
        prefix = f"blk.{layer}."
    return f"{prefix}{_NAMES[part]}.{kind}" if part in _NAMES else None


def _head(described: dict[str, Value], tensors: Sequence[_Tensor]) -> bytes:
    """Return what stands before the numbers."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(described))
    for key, value in described.items():
        head += _string(key) + _value(value)
    offset = 0
    for tensor in tensors:
        head += _string(tensor.name) + struct.pack("<I", len(tensor.shape))
        head += b"".join(struct.pack("<Q", length) for length in reversed(tensor.shape))
        head += struct.pack("<IQ", _F32, offset)
        offset += tensor.size + -tensor.size % ALIGNMENT
    return head


def _value(value: Value) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _string(value)
    if isinstance(value, list):
        kind = _STRING if isinstance(value[0], str) else _INT32
        return struct.pack("<IIQ", _ARRAY, kind, len(value)) + b"".join(map(_element, value))
    kind, form = _FORMATS[type(value)]
    return struct.pack("<I", kind) + struct.pack(form, value)


def _element(value: str | int) -> bytes:
    return _string(value) if isinstance(value, str) else struct.pack("<i", value)


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _pad(file: BinaryIO) -> None:
    file.write(bytes(-file.tell() % ALIGNMENT))


def _copy(source: BinaryIO, target: BinaryIO, size: int) -> None:
    while size:
        piece = source.read(min(size, COPY_BYTES))
        if not piece:
            message = "the checkpoint ends before its numbers do"
            raise ValueError(message)
        target.write(piece)
        size -= len(piece)
