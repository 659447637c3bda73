"""Where files and batches are served. What serves them is loaded with the first such request: many get none."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.errors import FailureError
from xenoglot.gateway.config.settings import BatchSettings
from xenoglot.gateway.endpoint.request_context import BodyReader
from xenoglot.gateway.endpoint.routes import EndpointRow
from xenoglot.gateway.store_service import OFF, StoreService
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.codec.dialect import Dialect
    from xenoglot.codec.features.batch import FileFeature
    from xenoglot.gateway.auth.keys import Policy
    from xenoglot.gateway.batches.queries import BatchAct, FileAct, ResumableAct, UploadAct
    from xenoglot.gateway.endpoint.request_context import RequestContext

DISABLED = Failure(kind="not_found", message="the gateway takes no files and batches: see `enabled` under [batches]")

_BATCH_ACTS: tuple[tuple[str, str, BatchAct], ...] = (
    ("POST", "", "create"),
    ("GET", "", "list"),
    ("GET", "/{id}", "retrieve"),
    ("POST", "/{id}/cancel", "cancel"),
)
_OWN_RESULTS: tuple[tuple[str, str, BatchAct], ...] = (
    ("DELETE", "/{id}", "delete"),
    ("GET", "/{id}/results", "results"),
)
"""For batches whose answers are not files."""

_FILE_ACTS: tuple[tuple[str, str, FileAct], ...] = (
    ("POST", "", "upload"),
    ("GET", "", "list"),
    ("GET", "/{id}", "retrieve"),
    ("DELETE", "/{id}", "delete"),
    ("GET", "/{id}/content", "content"),
)


_UPLOAD_ACTS: tuple[tuple[str, UploadAct], ...] = (
    ("", "create"),
    ("/{id}/parts", "part"),
    ("/{id}/complete", "complete"),
    ("/{id}/cancel", "cancel"),
)
_RESUMABLE_ACTS: tuple[tuple[str, ResumableAct, Policy], ...] = (("", "start", "key"), ("/{id}", "continue", "open"))
"""The URL of an upload has a secret id: clients send no key with the bytes."""


class BatchEndpoints(Struct, frozen=True):
    """Serves files and batches. `notify` wakes the batch runner."""

    keeper: StoreService | None
    bodies: BodyReader
    settings: BatchSettings
    notify: Callable[[], object]

    def rows(self, dialect: Dialect) -> Iterator[EndpointRow]:
        """Yield what is served of a dialect's files and batches."""
        for files in dialect.files:
            yield from self._file_rows(dialect, files)
        batching = dialect.batching
        if batching is None:
            return
        acts = _BATCH_ACTS if batching.files_path is not None else (*_BATCH_ACTS, *_OWN_RESULTS)
        for method, path, act in acts:
            yield EndpointRow(
                method=method,
                path=batching.path + path,
                policy="key",
                handler=partial(self._batch, act),
                dialect=dialect,
                once=act == "create",
            )

    def _file_rows(self, dialect: Dialect, files: FileFeature) -> Iterator[EndpointRow]:
        for method, path, act in _FILE_ACTS:
            if act == "upload" and files.resumable_path is not None:
                continue
            yield EndpointRow(
                method=method,
                path=files.path + (files.content if act == "content" else path),
                policy="key",
                handler=partial(self._file, act),
                dialect=dialect,
                form=act == "upload",
                marked=files.marked,
            )
        yield from self._upload_rows(dialect, files)

    def _upload_rows(self, dialect: Dialect, files: FileFeature) -> Iterator[EndpointRow]:
        """Yield where files are uploaded in several requests."""
        for path, act in () if files.uploads_path is None else _UPLOAD_ACTS:
            yield EndpointRow(
                method="POST",
                path=f"{files.uploads_path}{path}",
                policy="key",
                handler=partial(self._upload, act),
                dialect=dialect,
                form=act == "part",
            )
        for suffix, step, policy in () if files.resumable_path is None else _RESUMABLE_ACTS:
            yield EndpointRow(
                method="POST",
                path=f"{files.resumable_path}{suffix}",
                policy=policy,
                handler=partial(self._resumable, step),
                dialect=dialect,
                raw=step == "continue",
            )

    async def _batch(self, act: BatchAct, ctx: RequestContext) -> None:
        keeper = self._must_be_on()
        from xenoglot.gateway.batches import endpoints, queries  # noqa: PLC0415  see above

        await endpoints.serve(act, queries.BatchQuery(ctx, keeper, self.bodies, self.settings), self.notify)

    async def _file(self, act: FileAct, ctx: RequestContext) -> None:
        keeper = self._must_be_on()
        from xenoglot.gateway.batches import files, queries  # noqa: PLC0415  see above

        await files.serve(act, queries.BatchQuery(ctx, keeper, self.bodies, self.settings))

    async def _upload(self, act: UploadAct, ctx: RequestContext) -> None:
        keeper = self._must_be_on()
        from xenoglot.gateway.batches import queries, uploads  # noqa: PLC0415  see above

        await uploads.serve(act, queries.BatchQuery(ctx, keeper, self.bodies, self.settings))

    async def _resumable(self, act: ResumableAct, ctx: RequestContext) -> None:
        keeper = self._must_be_on()
        from xenoglot.gateway.batches import queries, resumable  # noqa: PLC0415  see above

        await resumable.serve(act, queries.BatchQuery(ctx, keeper, self.bodies, self.settings))

    def _must_be_on(self) -> StoreService:
        if self.keeper is None:
            raise FailureError(OFF)
        if not self.settings.enabled:
            raise FailureError(DISABLED)
        return self.keeper
