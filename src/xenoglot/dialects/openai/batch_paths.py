"""Paths of OpenAI's file and batch endpoints; see `files` and `batches`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.features.batch import BatchFeature, FileFeature

if TYPE_CHECKING:
    from xenoglot.codec.features.batch import BatchCodec, BatchFiles, FileCodec, UploadCodec


def _words() -> BatchCodec:
    from xenoglot.dialects.openai.batches import WORDS  # noqa: PLC0415  most gateways are never asked for a batch

    return WORDS


def _files() -> FileCodec:
    from xenoglot.dialects.openai.batches import FILES as CODEC  # noqa: PLC0415  as above

    return CODEC


def _batch_files() -> BatchFiles:
    from xenoglot.dialects.openai.batches import BATCH_FILES  # noqa: PLC0415  as above

    return BATCH_FILES


def _uploads() -> UploadCodec:
    from xenoglot.dialects.openai.uploads import UPLOADS  # noqa: PLC0415  as above

    return UPLOADS


FILES = FileFeature(path="/v1/files", codec=_files, uploads_path="/v1/uploads", uploads=_uploads)
BATCHING = BatchFeature(path="/v1/batches", words=_words, files_path="/v1/files", file_words=_batch_files)
