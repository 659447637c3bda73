"""A worker in a process of its own: comes in as often as it is told, says so, and holds on until the end."""

from __future__ import annotations

import asyncio
import sys

from msgspec import json

from xenoglot.errors import FailureError
from xenoglot.gateway.limits.worker_ipc import SharedLimiter
from xenoglot.policy.limits.usage_ledger import Scope


async def main(path: str, scope: Scope, times: int) -> None:
    limiter = SharedLimiter(path)
    held = []
    for _ in range(times):
        try:
            held.append(await limiter.enter([scope], owner="a", tokens=5, patience=0.0))
            print("in", flush=True)  # noqa: T201  how it speaks
        except FailureError as error:
            print(error.failure.kind, flush=True)  # noqa: T201
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for lease in held:
        await lease.leave(0)
    await limiter.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], json.decode(sys.argv[2], type=Scope), int(sys.argv[3])))
