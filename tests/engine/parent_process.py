"""A parent for a worker: prints the socket's path once it listens, then waits to be killed.

`parent.py MODEL` runs an engine; `parent.py MODEL fork` also leaves a fork that holds all of the parent's pipes.
"""

import asyncio
import os
import sys

from xenoglot.engine.server.lifecycle import EngineProcess
from xenoglot.engine.server.weights import from_path


async def main() -> None:
    """Start, tell, and stay."""
    engine = EngineProcess(from_path(sys.argv[1]))
    endpoint = await engine.ready()
    if sys.argv[2:] == ["fork"] and os.fork() == 0:
        os.read(0, 1)
        os._exit(0)
    os.write(1, f"{endpoint.socket_path}\n".encode())
    await asyncio.Event().wait()


asyncio.run(main())
