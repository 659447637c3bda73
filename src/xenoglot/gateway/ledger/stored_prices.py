"""Prices of the store, read again every few seconds, so that a change counts at every gateway without a restart."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, TypeVar, cast

from xenoglot.store.ledger.prices import prices
from xenoglot.store.records import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from xenoglot.gateway.ledger.request_cost import PriceList
    from xenoglot.store.queries import Database
    from xenoglot.store.store import TimedStore

    T = TypeVar("T")

REFRESH_SECONDS: Final = 10.0

_logger = logging.getLogger("xenoglot.gateway")


@asynccontextmanager
async def refreshing(price_list: PriceList, keeper: TimedStore) -> AsyncGenerator[None]:
    """Have the price list use the prices of the store, now and as they change."""
    await _refresh(price_list, keeper)
    task = asyncio.get_running_loop().create_task(_keep(price_list, keeper))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _keep(price_list: PriceList, keeper: TimedStore) -> None:
    well = True
    while True:
        await asyncio.sleep(REFRESH_SECONDS)
        well = await _refresh(price_list, keeper, log=well)


async def _refresh(price_list: PriceList, keeper: TimedStore, *, log: bool = True) -> bool:
    """Read the prices, unless nothing was ever stored; return whether that worked. Else the former ones stay."""
    if not keeper.store.has_history():
        return True
    try:
        price_list.use_stored(await keeper.within(cast("Database", keeper.store).read(prices())))
    except StoreError as error:
        if log:
            _logger.error("prices of the store cannot be read: %s", error)  # noqa: TRY400  no texts
        return False
    return True
