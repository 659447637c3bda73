"""A program that keeps answers in the file it is given, and says the number of each once it is kept. For a test."""

from __future__ import annotations

import asyncio
import sys
from itertools import count

from xenoglot.store.records import Stored
from xenoglot.store.sqlite import SQLite


async def main(path: str) -> None:
    """Keep answers until killed."""
    store = SQLite(path)
    for number in count():
        body = {"text": "word " * 500}
        answer = Stored(
            id=f"resp_{number}",
            owner="",
            kind="k",
            created=number,
            status="completed",
            items=[],
            response=body,
        )
        await store.put(answer)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
