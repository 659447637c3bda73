"""Paths of OpenAI's file and batch endpoints; see `files` and `batches`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.features.batch import BatchFeature, FileFeature

if TYPE_CHECKING:
    from xenoglot.codec.features.batch import BatchCodec, FileCodec


def _words() -> BatchCodec:
    from xenoglot.dialects.openai.batches import WORDS  # noqa: PLC0415  most gateways are never asked for a batch

    return WORDS


def _file_words() -> FileCodec:
    from xenoglot.dialects.openai.batches import FILES as WORDS  # noqa: PLC0415  as above

    return WORDS


FILES = FileFeature(path="/v1/files", codec=_file_words)
BATCHING = BatchFeature(path="/v1/batches", words=_words, files_path="/v1/files", file_words=_file_words)
