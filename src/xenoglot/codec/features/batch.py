"""Batches and files: canonical records, and the functions of a dialect that encode and decode them.

The gateway stores and answers them; the wire format is the dialect's. Pure. Times are Unix seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from xenoglot.model.failure import Failure
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.response import Usage

Phase: TypeAlias = Literal["validating", "in_progress", "finalizing", "completed", "failed", "cancelled", "expired"]
Ending: TypeAlias = Literal["completed", "failed", "cancelled", "expired"]
Outcome: TypeAlias = Literal["ok", "error", "left"]
"""What became of a request: an answer, an error, or nothing before the batch was over."""

PARTS: Mapping[str, Sequence[Outcome]] = {"output": ("ok",), "errors": ("error", "left")}
"""What became of the requests whose results stand in each file of a batch."""

FILE_PREFIX: Final = "file-"
"""Begins the ids of all stored files: one id names a file in every dialect."""

UPLOADED: Final = "user_data"
"""The purpose of files that are uploaded in a dialect without purposes: OpenAI's word for them."""

UNTYPED: Final = "application/octet-stream"
"""The media type of a file of an unknown one."""

MAX_INPUT_ERRORS = 100
"""The maximum number of input errors that are reported."""


class BatchInputError(Struct, frozen=True, kw_only=True):
    """An error in the input of a batch, with OpenAI's fields; `line` counts from 1."""

    code: str
    message: str
    line: int | None = None
    param: str | None = None


class Batch(Struct, frozen=True, kw_only=True):
    """A batch of requests that belongs to one client, in the dialect `kind`.

    `asked` is what the client set for them. `moments` are when it came into each phase. `ending` is what it is being
    brought to. `files` are the ids of what came of it. `total` to `usage` are counted apart from the rest, which may be
    older; a batch that is not over has a process at work on it for as long as that vouches for it.
    """

    id: str
    owner: str
    kind: str
    created: float
    deadline: float
    phase: Phase
    endpoint: str
    asked: JSONObject = {}
    headers: list[tuple[str, str]] = []
    moments: dict[str, float] = {}
    ending: Ending | None = None
    mistakes: list[BatchInputError] = []
    files: dict[str, str] = {}
    total: int = 0
    succeeded: int = 0
    errored: int = 0
    cancelled: float | None = None
    """When the cancellation was requested."""
    usage: Usage = Usage()
    """Sums of the reported usage: prompts, cached prompt tokens, answers, and reasoning tokens."""

    @property
    def over(self) -> bool:
        """Whether nothing more comes of it."""
        return self.phase in ("completed", "failed", "cancelled", "expired")


class StoredFile(Struct, frozen=True, kw_only=True):
    """A file uploaded by a client, or made by a batch: `part` of the answers of `batch`.

    `media_type` is what the client called its content, if it did.
    """

    id: str
    owner: str
    created: float
    name: str
    purpose: str
    size: int = 0
    expires: float | None = None
    batch: str | None = None
    part: str | None = None
    media_type: str | None = None


class BatchRequest(Struct, frozen=True, kw_only=True):
    """A request to create a batch: `requests` are (id, body) pairs; alternatively the file `input` holds them.

    `seconds` are those in which it has to be over.
    """

    endpoint: str
    asked: JSONObject
    seconds: float
    input: str | None = None
    requests: Sequence[tuple[str, JSONObject]] = ()


class BatchCodec(Struct, frozen=True, kw_only=True):
    """The functions of a dialect that encode and decode batches."""

    id_prefix: str
    decode: Callable[[JSON], BatchRequest]
    show: Callable[[Batch], JSONObject]
    page: Callable[[Sequence[JSONObject], bool], JSONObject]
    unknown: Callable[[str], Failure]
    not_over: Callable[[], Failure]
    """The results are available when the batch is completed."""
    over: Callable[[Batch], Failure] | None
    """Why a batch that is over cannot be cancelled; without it the request changes nothing."""
    deleted: Callable[[str], JSONObject] | None = None


class FileUpload(Struct, frozen=True, kw_only=True):
    """The fields of an upload: the purpose of the file, and the seconds after which it expires."""

    purpose: str
    seconds: float | None = None


class FileListQuery(Struct, frozen=True, kw_only=True):
    """A query for a page of files: after an id, before one, or those of `ids`; newest first unless `ascending`."""

    limit: int
    after: str | None = None
    before: str | None = None
    ids: tuple[str, ...] | None = None
    purpose: str | None = None
    ascending: bool = False


class UploadRequest(Struct, frozen=True, kw_only=True):
    """A request to begin an upload; `size` is that of the whole file, `None` if unknown."""

    name: str | None
    media_type: str | None
    purpose: str
    size: int | None
    seconds: float | None = None


class UploadCompletion(Struct, frozen=True, kw_only=True):
    """A request to join parts, in this order; `md5` is the checksum of the file in hexadecimal digits."""

    parts: tuple[str, ...]
    md5: str | None = None


class UploadCodec(Struct, frozen=True, kw_only=True):
    """The functions of a dialect for uploads in parts. `show` gets the status, and the file once it is complete."""

    id_prefix: str
    part_prefix: str
    part_field: str
    """The field of the form with the bytes of a part."""
    decode: Callable[[JSON], UploadRequest]
    decode_completion: Callable[[JSON], UploadCompletion]
    show: Callable[[StoredFile, str, JSONObject | None], JSONObject]
    show_part: Callable[[StoredFile, str], JSONObject]
    unknown: Callable[[str], Failure]


class UploadStep(Struct, frozen=True, kw_only=True):
    """One request of a resumable upload: whether it cancels, only queries, or ends it, and the offset of its bytes."""

    cancels: bool = False
    queries: bool = False
    ends: bool = False
    offset: int = 0


class ResumableCodec(Struct, frozen=True, kw_only=True):
    """The functions of a dialect for resumable uploads. The URL of an upload, with a secret id, needs no key."""

    id_prefix: str
    decode_start: Callable[[Mapping[str, str], JSON], UploadRequest]
    decode_step: Callable[[Mapping[str, str]], UploadStep]
    started: Callable[[str], Sequence[tuple[str, str]]]
    """Headers of the answer that names the URL of the upload."""
    progress: Callable[[int, str], Sequence[tuple[str, str]]]
    """Headers with the bytes received, and the status: `active`, `final` or `cancelled`."""
    show: Callable[[JSONObject], JSONObject]
    """The body of the last answer, of the file."""


class FileCodec(Struct, frozen=True, kw_only=True):
    """The functions of a dialect that encode and decode files.

    `show` gets the base URL of the gateway too; `page` gets items and whether more follow.
    """

    show: Callable[[StoredFile, str], JSONObject]
    decode_query: Callable[[Mapping[str, Sequence[str]]], FileListQuery]
    decode_upload: Callable[[Mapping[str, str]], FileUpload]
    """Decodes the fields of a form, apart from its file."""
    page: Callable[[Sequence[JSONObject], bool], JSONObject]
    deleted: Callable[[str], JSONObject]
    unknown: Callable[[str], Failure]


class BatchFiles(Struct, frozen=True, kw_only=True):
    """The purposes of the files of batches, and the failure for a file that cannot be the input of one."""

    input_purpose: str
    output_purpose: str
    not_input: Callable[[str], Failure]


class FileFeature(Struct, frozen=True, kw_only=True):
    """The paths of a dialect's file endpoints, with a codec that is loaded at first use.

    `marked`: another dialect has files at the same path, and only clients with a mark of this one get these.
    """

    path: str
    codec: Callable[[], FileCodec]
    marked: bool = False
    content: str = "/{id}/content"
    """Ends the path of the bytes of a file."""
    uploads_path: str | None = None
    uploads: Callable[[], UploadCodec] | None = None
    """Uploads in parts, if the dialect has them: where they are, and their codec."""
    resumable_path: str | None = None
    resumable: Callable[[], ResumableCodec] | None = None
    """Resumable uploads in place of forms: where they begin, and their codec."""


class BatchFeature(Struct, frozen=True, kw_only=True):
    """The paths of a dialect's batch and file endpoints, with codecs that are loaded at first use."""

    path: str
    words: Callable[[], BatchCodec]
    files_path: str | None = None
    file_words: Callable[[], BatchFiles] | None = None
