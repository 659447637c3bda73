"""Large requests are read beside the event loop, small ones on it (R51)."""

from __future__ import annotations

import asyncio
import threading

import pytest

from xenoglot.errors import WireError
from xenoglot.gateway.apart import LARGE, apart


@pytest.mark.parametrize(("size", "beside"), [(0, False), (LARGE - 1, False), (LARGE, True)])
async def test_r51_what_takes_long_is_done_beside_the_loop(size: int, beside: bool) -> None:  # noqa: FBT001  a case
    thread = await apart(size, threading.get_ident)
    assert (thread != threading.get_ident()) is beside


async def test_r51_the_loop_goes_on_meanwhile() -> None:
    gone_on = threading.Event()
    reading = asyncio.ensure_future(apart(LARGE, lambda: gone_on.wait(20)))
    await asyncio.sleep(0)
    gone_on.set()  # while the work waits for that, this is the loop's own turn
    assert await reading


async def test_what_goes_wrong_beside_the_loop_is_raised_on_it() -> None:
    def fail() -> None:
        raise WireError("$", "no")

    with pytest.raises(WireError, match="no"):
        await apart(LARGE, fail)
