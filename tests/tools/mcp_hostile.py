"""An MCP server that means ill, in the way that its argument names; it needs no package, and speaks an old revision."""

from __future__ import annotations

import json
import sys
import time
from itertools import count
from typing import Any

CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
TOOL = {"name": "t", "inputSchema": {"type": "object"}}


def send(message: dict[str, Any]) -> None:
    print_line(json.dumps(message))


def print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def listed(way: str, page: int) -> dict[str, Any]:
    """Return a page of tools."""
    if way == "endless":
        time.sleep(0.05)
        return {"tools": [{**TOOL, "name": f"t{page}"}], "nextCursor": str(page)}
    if way == "same":
        return {"tools": [TOOL] * 5000}
    return {"tools": [TOOL]}


def answer(way: str, asked: dict[str, Any], pages: count[int]) -> dict[str, Any]:
    """Return what is said to a request, but for its id."""
    match asked["method"]:
        case "initialize":
            said = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "x", "version": "1"}}
            return {"result": said | {"capabilities": {"tools": {"listChanged": True}}}}
        case "tools/list" if way == "escapes":
            return {"error": {"code": -32000, "message": "\x1b[31mno\nsuch"}}
        case "tools/list" if way == "wrong":
            return {"result": {"tools": "sk-of-theirs"}}
        case "tools/list":
            return {"result": listed(way, next(pages))}
        case "tools/call":
            return {"result": {"content": [{"type": "text", "text": str(next(pages))}]}}
        case _:
            return {"error": {"code": -32601, "message": "not known"}}


def main(way: str) -> None:
    """Answer, until nobody asks any more."""
    pages = count()
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked or way == "silent":
            continue
        if asked["method"] == "tools/call" and way == "flood":
            for _ in range(2000):
                send(CHANGED)
        if asked["method"] == "tools/list" and way == "junk":
            print_line("{ sk-of-theirs")
        send({"jsonrpc": "2.0", "id": asked["id"], **answer(way, asked, pages)})


if __name__ == "__main__":
    main(sys.argv[1])
