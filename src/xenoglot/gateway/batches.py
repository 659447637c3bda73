"""Where files and batches are served. What serves them is loaded with the first such request: many get none."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from xenoglot.errors import FailureError
from xenoglot.gateway.keeper import OFF
from xenoglot.gateway.routes import Endpoint
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.codec.dialect import Dialect
    from xenoglot.gateway.batches_asked import BatchAct, FileAct
    from xenoglot.gateway.exchange import Exchange
    from xenoglot.gateway.gateway import Gateway
    from xenoglot.gateway.observe import Record

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


def rows(dialect: Dialect) -> Iterator[Endpoint]:
    """Yield what is served of a dialect's files and batches."""
    batching = dialect.batching
    if batching is None:
        return
    acts = _BATCH_ACTS if batching.files_path is not None else (*_BATCH_ACTS, *_OWN_RESULTS)
    for method, path, act in acts:
        yield Endpoint(
            method=method,
            path=batching.path + path,
            policy="key",
            handler=partial(_batch, act),
            dialect=dialect,
            once=act == "create",
        )
    for method, path, file_act in _FILE_ACTS if batching.files_path is not None else ():
        yield Endpoint(
            method=method,
            path=f"{batching.files_path}{path}",
            policy="key",
            handler=partial(_file, file_act),
            dialect=dialect,
            form=file_act == "upload",
        )


async def _batch(act: BatchAct, exchange: Exchange, dialect: Dialect, gateway: Gateway, record: Record) -> None:
    _must_be_on(gateway)
    from xenoglot.gateway import batches_endpoints  # noqa: PLC0415  see above

    await batches_endpoints.serve(act, exchange, dialect, gateway, record)


async def _file(act: FileAct, exchange: Exchange, dialect: Dialect, gateway: Gateway, record: Record) -> None:
    _must_be_on(gateway)
    from xenoglot.gateway import files_endpoints  # noqa: PLC0415  see above

    await files_endpoints.serve(act, exchange, dialect, gateway, record)


def _must_be_on(gateway: Gateway) -> None:
    if gateway.keeper is None:
        raise FailureError(OFF)
    if not gateway.config.batches.enabled:
        raise FailureError(DISABLED)
