"""A small checkpoint written as a model file: what stands in it, and what is no checkpoint."""

from __future__ import annotations

import json
import struct
from array import array
from typing import TYPE_CHECKING

import pytest

from xenoglot.engine.server.bert import ALIGNMENT, make

if TYPE_CHECKING:
    from pathlib import Path

    from xenoglot.model.json import JSONObject

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b"]
SETTINGS = {
    "vocab_size": len(PIECES),
    "num_hidden_layers": 1,
    "max_position_embeddings": 8,
    "hidden_size": 2,
    "intermediate_size": 4,
    "num_attention_heads": 1,
    "layer_norm_eps": 1e-12,
    "type_vocab_size": 2,
}
NUMBERS = {
    "embeddings.word_embeddings.weight": [7, 2],
    "encoder.layer.0.attention.self.query.bias": [2],
    "encoder.layer.0.intermediate.dense.weight": [4, 2],
}
PLACES = [("token_embd.weight", (2, 7), 0), ("blk.0.attn_q.bias", (2,), 64), ("blk.0.ffn_up.weight", (2, 4), 96)]
"""What the tensors are called in the file, their lengths innermost first, and where they begin: at multiples of 32."""


def checkpoint(folder: Path, kind: str = "F32", *, cut: int = 0) -> list[Path]:
    """The three files of a checkpoint, with a tensor in it that nobody needs."""
    head: JSONObject = {"__metadata__": {"format": "pt"}}
    data = b""
    for start, (name, shape) in enumerate({**NUMBERS, "pooler.dense.bias": [2]}.items()):
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        numbers = array("f", [start + index / 8 for index in range(count)]).tobytes()
        head[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(numbers)]}
        data += numbers
    packed = json.dumps(head).encode()
    files = [folder / "model.safetensors", folder / "vocab.txt", folder / "config.json"]
    files[0].write_bytes(struct.pack("<Q", len(packed)) + packed + data[: len(data) - cut])
    files[1].write_text("\n".join(PIECES) + "\n")
    files[2].write_text(json.dumps(SETTINGS))
    return files


def test_the_numbers_are_copied_under_the_names_of_the_runtime(tmp_path: Path) -> None:
    make(checkpoint(tmp_path), tmp_path / "tiny.gguf")
    written = (tmp_path / "tiny.gguf").read_bytes()
    magic, version, tensors, _ = struct.unpack_from("<4sIQQ", written)
    assert (magic, version, tensors) == (b"GGUF", 3, 3)
    for name, dimensions, offset in PLACES:
        text = name.encode()
        row = struct.pack("<Q", len(text)) + text + struct.pack("<I", len(dimensions))
        row += b"".join(struct.pack("<Q", length) for length in dimensions) + struct.pack("<IQ", 0, offset)
        assert row in written
    numbers = len(written) - (96 + 32)
    assert numbers % ALIGNMENT == 0
    assert array("f", written[numbers : numbers + 56])[13] == 13 / 8
    assert [*array("f", written[numbers + 64 : numbers + 72])] == [1.0, 1.125]
    assert [*array("f", written[numbers + 96 :])] == [2 + index / 8 for index in range(8)]


def test_pieces_that_begin_a_word_are_marked(tmp_path: Path) -> None:
    make(checkpoint(tmp_path), tmp_path / "tiny.gguf")
    written = (tmp_path / "tiny.gguf").read_bytes()
    told = [b"[PAD]", b"[UNK]", b"[CLS]", b"[SEP]", b"[MASK]", "\u2581a".encode(), b"b"]
    assert b"".join(struct.pack("<Q", len(piece)) + piece for piece in told) in written


def test_the_same_checkpoint_makes_the_same_file(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        make(checkpoint(tmp_path), tmp_path / name / "tiny.gguf")
    assert (tmp_path / "one" / "tiny.gguf").read_bytes() == (tmp_path / "two" / "tiny.gguf").read_bytes()


def test_numbers_of_another_kind_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected numbers of single precision, found F16"):
        make(checkpoint(tmp_path, "F16"), tmp_path / "tiny.gguf")


def test_a_checkpoint_that_is_cut_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="its numbers are not where the checkpoint says"):
        make(checkpoint(tmp_path, cut=12), tmp_path / "tiny.gguf")
