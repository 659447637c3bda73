"""Recordings and screenshots of the terminal programs, from real runs in tmux, and of the console: `make docs-images`.

    python scripts/docs_images.py

They are written to `build/docs-images/`, and `make docs-site` shows them. Behind each program is a scripted server on
this machine. `run-claude` needs Claude Code on the path, or in `.venv/clients` (`make drive` installs it); without it
that picture is left out.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts import console_pictures  # noqa: E402  found from the root
from scripts.docs_pictures import FOLDER, RECORDED  # noqa: E402  found from the root
from scripts.terminal_svg import Frame, picture, recording  # noqa: E402
from tests.terminal.tmux import Terminal  # noqa: E402
from xenoglot.testing import RequestMatcher, ScriptRule, Upstream, answers  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROMPT = r"^> *$"
STEP = 0.15
"""Seconds between two looks while something is recorded."""
LONGEST = 1.2
"""Seconds that a screen without a change is shown at most."""
PATIENCE = 90.0
"""Seconds until what is waited for is given up."""
CLAUDE_PROMPT = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}"
SHOWN_URL = "http://127.0.0.1:8000"
BIN = Path(sys.executable).parent

ANSWER = """\
Two structures keep keys in order:

| structure | insert | find |
|-----------|--------|------|
| sorted list | O(n) | O(log n) |
| balanced tree | O(log n) | O(log n) |

A **sorted list** is enough for few changes:

```python
from bisect import insort

keys: list[int] = []
insort(keys, 7)
```

See [bisect](https://docs.python.org/3/library/bisect.html).
"""

CODE_ANSWER = """\
This project is empty so far. I can:

1. lay out a package
2. write the first test

Which one do you want?
"""


def pieces(text: str) -> tuple[str, ...]:
    """Return a text as a model streams it."""
    return tuple(text[at : at + 6] for at in range(0, len(text), 6))


def chat(home: Path) -> str:
    """Return a conversation: a table, code and a link."""
    rules = answers("chat", text=pieces(ANSWER), model="qwen3-coder").rules()
    with Upstream(*rules) as upstream:
        command = [str(BIN / "xenoglot"), "chat", "--upstream", upstream.url, "--model", "qwen3-coder"]
        with Terminal(command, home=home, height=32, environ=environment(home)) as terminal:
            terminal.until(PROMPT)
            terminal.type("How do I keep numbers in order?", "Enter")
            terminal.until(r"(?s)See bisect.* out.*^> *$")
            return picture(terminal.screen(colours=True), "xenoglot chat")


def agent(home: Path) -> str:
    """Return an agent that asks for permission, and the change it makes."""
    work = home / "project"
    work.mkdir()
    (work / "total.py").write_text("def total(prices):\n    return sum(prices) / len(prices)\n", encoding="utf-8")
    edit = {
        "path": "total.py",
        "old": "    return sum(prices) / len(prices)",
        "new": "    return sum(prices)",
    }
    asked = RequestMatcher(method="POST")
    first = answers(
        "chat", text="`total` divides by the number of prices. I remove that.", tool=("edit_file", json.dumps(edit))
    )
    rules = (
        ScriptRule(steps=first.streamed(), times=1, when=asked),
        *answers("chat", text="Done: `total` is a sum.").rules(),
    )
    with Upstream(*rules) as upstream:
        command = [
            str(BIN / "xenoglot"),
            "agent",
            "--upstream",
            upstream.url,
            "--model",
            "qwen3-coder",
            "--folder",
            str(work),
        ]
        with Terminal(command, home=home, height=30, environ=environment(home)) as terminal:
            terminal.until(PROMPT)
            terminal.type("The total is too small. Mend it.", "Enter")
            terminal.until(r"allow it\?")
            terminal.type("y", "Enter")
            terminal.until(r"(?s)Done.*^> *$")
            return picture(terminal.screen(colours=True), "xenoglot agent")


def run_claude(home: Path) -> str:
    """Return a recording of Claude Code on a server that speaks Chat Completions."""
    work = home / "project"
    work.mkdir()
    seen = {"hasCompletedOnboarding": True, "theme": "dark", "projects": {str(work): {"hasTrustDialogAccepted": True}}}
    (home / ".claude.json").write_text(json.dumps(seen), encoding="utf-8")
    rules = answers("chat", text=pieces(CODE_ANSWER), model="qwen3-coder").rules()
    with Upstream(*rules) as upstream:
        typed = f"xenoglot run claude --upstream {upstream.url} --model qwen3-coder --context 131072"
        shell = ["bash", "--norc", "--noprofile", "-i"]
        with Terminal(shell, home=home, height=32, environ=environment(home) | {"PS1": "$ "}) as terminal:
            terminal.until(r"^\$ *$")
            terminal.type(f"cd {work}; clear", "Enter")
            terminal.until(r"\A\$ *\Z")
            frames = [Frame(0.8, terminal.screen(colours=True))]
            frames += typing(typed.replace(upstream.url, SHOWN_URL))
            terminal.type(typed, "Enter")
            watch(terminal, rf"^[│ ]*[>{CLAUDE_PROMPT}]", frames, upstream.url)
            terminal.type("What is in this project?")
            terminal.until("What is in this project")
            frames.append(Frame(1.0, terminal.screen(colours=True)))
            terminal.type("", "Enter")
            watch(terminal, r"Which one do you want\?", frames, upstream.url)
            terminal.type("", "C-c", "C-c")
            return recording([*frames, Frame(4.0, frames[-1].screen)], "xenoglot run claude", height=32)


def typing(text: str) -> Iterator[Frame]:
    """Yield the screens of a command that is typed."""
    for end in range(4, len(text) + 4, 4):
        yield Frame(0.12, f"$ {text[:end]}")
    yield Frame(0.6, f"$ {text}")


def watch(terminal: Terminal, pattern: str, frames: list[Frame], url: str) -> None:
    """Add the screens that are seen until `pattern` is; the server has the address of the examples in them."""
    deadline = time.monotonic() + PATIENCE
    while True:
        screen, plain = terminal.screen(colours=True).replace(url, SHOWN_URL), terminal.screen()
        if screen != frames[-1].screen:
            frames.append(Frame(STEP, screen))
        elif frames[-1].seconds < LONGEST:
            frames[-1] = Frame(frames[-1].seconds + STEP, screen)
        if re.search(pattern, plain, re.MULTILINE):
            return
        if time.monotonic() > deadline:
            sys.exit(f"{pattern!r} was never seen; the screen is\n{plain}")
        time.sleep(STEP)


def environment(home: Path) -> dict[str, str]:
    """Return variables for programs that write into `home` alone and report nothing to their makers."""
    clients = ROOT / ".venv" / "clients"
    places = (BIN, clients / "bin", clients / "node_modules" / ".bin", os.environ["PATH"])
    return {
        "HOME": str(home),
        "PATH": os.pathsep.join(map(str, places)),
        "XDG_DATA_HOME": str(home / "data"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
    }


PICTURES: dict[str, Callable[[Path], str]] = {"run-claude": run_claude, "chat": chat, "agent": agent}


def main(names: list[str]) -> None:
    """Write the pictures of these names; all, if there are none."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    chosen = names or [*RECORDED]
    for name, text in console_pictures.screenshots([name for name in chosen if name in console_pictures.SCENES]):
        write(name, text)
    for name in (name for name in chosen if name in PICTURES):
        path = environment(Path())["PATH"]
        if name == "run-claude" and shutil.which("claude", path=path) is None:
            sys.stdout.write("run-claude is left out: there is no Claude Code\n")
            continue
        with tempfile.TemporaryDirectory() as home:
            text = PICTURES[name](Path(home))
        write(name, text)


def write(name: str, text: str) -> None:
    """Write a picture, and report its size."""
    (FOLDER / f"{name}.svg").write_text(text, encoding="utf-8")
    sys.stdout.write(f"{name}.svg: {len(text) // 1024} KiB\n")


if __name__ == "__main__":
    main(sys.argv[1:])
