"""`xenoglot chat` in a real terminal, as a person sees it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.terminal.tmux import XENOGLOT, Terminal
from xenoglot.errors import UNREACHABLE
from xenoglot.model.failure import Failure
from xenoglot.testing.canned import SILENT, answers, refusal
from xenoglot.testing.script import RequestMatcher, Respond, ScriptRule
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

PAGE = """# Trees

A **binary** tree, in `python`:

```python
class Tree:
    left: "Tree"
```

1. insert
2. find

| op | cost |
|----|------|
| find 木 | log n |

See [the book](https://example.com/trees).
"""
ASKED = RequestMatcher(method="POST")
STATUS = r"scripted · 7 in, 3 out · \d+\.\d s"


@contextmanager
def chat(
    home: Path, *rules: ScriptRule, flags: tuple[str, ...] = (), **settings: object
) -> Generator[tuple[Terminal, Upstream]]:
    """`xenoglot chat` in front of a scripted server, ready to be typed into."""
    with Upstream(*rules, *answers("chat").rules()) as upstream:
        command = [XENOGLOT, "chat", "--upstream", upstream.url, *flags]
        with Terminal(command, home=home, **settings) as terminal:  # type: ignore[arg-type]
            terminal.until(r"^> *$")
            yield terminal, upstream


def once(text: str | tuple[str, ...] = "Hello.", *, pause: float = 0, **said: str) -> ScriptRule:
    """The next answer."""
    return ScriptRule(steps=answers("chat", text=text, **said).streamed(pause=pause), times=1, when=ASKED)  # type: ignore[arg-type]


def steady(screen: str) -> str:
    """A screen without what differs from run to run."""
    return re.sub(r"\d+\.\d s$", "N s", re.sub(r"thought for .*", "thought for N s", screen), flags=re.MULTILINE)


def test_a_conversation_looks_right(home: Path) -> None:
    pieces = tuple(PAGE[at : at + 5] for at in range(0, len(PAGE), 5))
    with chat(home, once(pieces, reasoning="What is a tree?\nLet me see."), width=60, height=40) as (terminal, _):
        terminal.enter("What is a tree?")
        terminal.until(STATUS)
        terminal.enter("/thoughts")
        terminal.until("Let me see")
        terminal.enter("/exit")
        assert steady(terminal.until(r"\[exit code 0\]")) == (
            "You talk with scripted. /help lists what else there is,\n"
            "Ctrl-D leaves.\n"
            "> What is a tree?\n"
            "thought for N s\n"
            "\n"
            "Trees\n"
            "\n"
            "A binary tree, in python:\n"
            "\n"
            "  class Tree:\n"
            '      left: "Tree"\n'
            "\n"
            " 1 insert\n"
            " 2 find\n"
            "\n"
            " op       cost\n"
            " ──────────────\n"
            " find 木  log n\n"
            "\n"
            "See the book (https://example.com/trees).\n"
            "\n"
            "scripted · 7 in, 3 out · N s\n"
            "\n"
            "> /thoughts\n"
            "\n"
            "│ What is a tree?\n"
            "│ Let me see.\n"
            "\n"
            "> /exit\n"
            "[exit code 0]"
        )
        coloured = terminal.screen(colours=True)
        assert re.search(r"\x1b\[[0;]*1;4m(\x1b\[\d+m)*Trees", coloured)
        assert "\x1b[1mbinary" in coloured
        assert re.search(r"\x1b\[[0;]*2m.*│ \x1b\[3mWhat is a tree\?", coloured)


def sent(upstream: Upstream, index: int = -1) -> dict[str, Any]:
    """What the model was asked."""
    body: dict[str, Any] = [request for request in upstream.requests if request.method == "POST"][index].json
    return body


def test_what_is_typed_is_what_is_asked(home: Path) -> None:
    with chat(home) as (terminal, upstream):
        terminal.enter("/system Be brief.")
        terminal.until("instructions: Be brief")
        terminal.enter("/set temperature 0.5")
        terminal.until("temperature 0.5")
        terminal.until_asked()
        terminal.type("/mo", "Tab")
        terminal.until("/models +.*/model|/model +/models|/model$")
        terminal.type("", "C-u")
        terminal.type("/set top", "C-u")
        terminal.type("one", "M-Enter")
        terminal.type("two", "Enter")
        terminal.until(f"{STATUS}\n+> *$")  # without a prompt, lines that are pasted come one by one
        assert sent(upstream)["temperature"] == 0.5
        assert sent(upstream)["messages"] == [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "one\ntwo"},
        ]
        terminal.paste("three\nfour\n")
        terminal.type("//five", "Enter")
        terminal.until(f"{STATUS}[^$]*{STATUS}")
        assert sent(upstream)["messages"][-1]["content"] == "three\nfour\n//five"
        terminal.until_asked()
        terminal.type("", "Up", "Up", "Up", "Up", "Up", "Up")
        terminal.type("", "C-u")
        terminal.enter("//slash")
        terminal.until(f"//slash\n[^>]*{STATUS}")
        assert sent(upstream)["messages"][-1]["content"] == "/slash"
        terminal.enter("/usage")
        terminal.until("3 answers, 21 tokens in, 9 out")
        terminal.enter("/nonsense")
        terminal.until("there is no command `/nonsense`")
        terminal.until_asked()
        terminal.type("", "C-d")
        terminal.until(r"\[exit code 0\]")
    kept = (home / "state" / "xenoglot" / "chat-history").read_text(encoding="utf-8").splitlines()
    assert kept[2:5] == ['"one\\ntwo"', '"three\\nfour\\n//five"', '"//slash"']


def test_ctrl_c_stops_an_answer_and_keeps_what_came(home: Path) -> None:
    begun = answers("chat", text=("The first ", "words")).streamed(upto=3, then=SILENT)
    with chat(home, ScriptRule(steps=begun, times=1, when=ASKED)) as (terminal, upstream):
        terminal.enter("Go on.")
        terminal.until("^The first words$")
        terminal.type("typed meanwhile")
        terminal.type("", "C-c")
        assert "meanwhile" not in terminal.until("^stopped\n\n> *$")
        terminal.until_asked()
        terminal.type("", "C-c")
        terminal.until("Ctrl-C once more leaves")
        terminal.enter("And then?")
        terminal.until(STATUS)
        assert sent(upstream)["messages"] == [
            {"role": "user", "content": "Go on."},
            {"role": "assistant", "content": "The first words [interrupted here]"},
            {"role": "user", "content": "And then?"},
        ]
        terminal.type("", "C-c")
        terminal.until("(?s)once more leaves.*once more leaves")
        terminal.type("", "C-c")
        terminal.until(r"\[exit code 0\]")


WAITING = ScriptRule(steps=answers("chat", text=("The first ", "words")).streamed(upto=3, then=SILENT), when=ASKED)


@pytest.mark.parametrize("asked", [True, False], ids=["answer", "prompt"])
def test_the_terminal_is_left_as_it_was_found(home: Path, asked: bool) -> None:  # noqa: FBT001  a case
    with Upstream(WAITING, *answers("chat").rules()) as upstream:
        chat = f"echo $$ > {home}/pid; exec {XENOGLOT} chat --upstream {upstream.url}"  # which is the same process
        program = f"sh -c '{chat}'; echo \"exit code $?\"; stty -a"
        with Terminal(["sh", "-c", program], home=home) as terminal:
            terminal.until("^> *$")
            if asked:
                terminal.enter("Go on.")
                terminal.until("^The first words$")
            os.kill(int((home / "pid").read_text()), signal.SIGTERM if asked else signal.SIGHUP)
            seen = terminal.until("exit code .*(.|\n)*echo ")
            assert terminal.told("#{cursor_flag}") == "1\n"
    assert f"exit code {143 if asked else 129}" in seen
    assert " echo " in seen
    assert "-icanon" not in seen
    assert "Traceback" not in seen


def test_it_is_stopped_for_a_while(home: Path) -> None:
    shell = Terminal(["bash", "--norc", "-i"], home=home, environ={"PS1": "shell$ "})
    with Upstream(WAITING, *answers("chat").rules()) as upstream, shell as terminal:
        terminal.type(f"{XENOGLOT} chat --upstream {upstream.url}", "Enter")
        terminal.until("^> *$")
        terminal.type("half", "C-z")
        terminal.until("Stopped(.|\n)*^shell\\$ *$")
        terminal.type("fg", "Enter")
        terminal.until("^> half$")
        terminal.type("", "Enter")
        terminal.until("^The first words$")
        terminal.type("", "C-z")
        terminal.until("words\n(.|\n)*Stopped(.|\n)*^shell\\$ *$")
        assert terminal.told("#{cursor_flag}") == "1\n"
        terminal.type("echo hello; fg", "Enter")
        terminal.until("^hello$")
        terminal.until("^[^ ]*xenoglot chat")
        terminal.type("", "C-c")
        seen = terminal.until("^hello\n(.|\n)*The first words(.|\n)*^stopped$")
    assert seen.count("The first words") == 2


def test_ctrl_c_stops_whatever_is_waited_for(home: Path) -> None:
    (home / "things.py").write_text(TOOLS, encoding="utf-8")
    rules = (
        ScriptRule(steps=SILENT, when=RequestMatcher(method="GET")),
        calling("erase", '{"path": "a"}'),
        calling("erase", '{"path": "a"}'),
    )
    with chat(home, *rules, flags=("--model", "m", "--tool", "things:erase")) as (terminal, upstream):
        terminal.enter("/models")
        terminal.until("asking for the models …")
        terminal.type("", "C-c")
        terminal.until("^stopped\n> *$")
        terminal.enter("Erase it.")
        terminal.until("why not:")
        terminal.type("", "C-c")
        terminal.until("why not:.*\nstopped\n> *$")
        terminal.enter("Well then.")
        terminal.until("(?s)why not:.*why not:")
        terminal.type("", "C-d")
        terminal.until(r"scripted · \d+ in")
        assert "[tool error]" in json.dumps(sent(upstream)["messages"][-1])


def test_an_error_is_a_line_and_the_conversation_goes_on(home: Path) -> None:
    down = refusal("chat", Failure(kind="invalid_request", message="not \x1b[31mthis\nway"))
    with chat(home, once("First."), ScriptRule(steps=down, times=1, when=ASKED)) as (terminal, upstream):
        terminal.enter("one")
        terminal.until(STATUS)
        terminal.type("two", "Enter")
        terminal.until("^HTTP 400 from http://.*/v1/chat/completions: not .\\[31mthis way\n/retry asks again")
        terminal.enter("/retry")
        terminal.until(f"/retry\n\nHello.\n\n{STATUS}")
        assert [message["content"] for message in sent(upstream)["messages"]] == ["one", "First.", "two"]
        terminal.enter("/undo")
        terminal.until("taken back: two")
        terminal.enter("/undo")
        terminal.until("taken back: one")
        terminal.enter("/undo")
        terminal.until("there is no question yet")


def test_files_go_along_and_conversations_are_kept(home: Path) -> None:
    (home / "notes.txt").write_text("remember", encoding="utf-8")
    (home / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with chat(home) as (terminal, upstream):
        terminal.enter("/file notes.txt")
        terminal.until("goes along with the next question: notes.txt \\(text\\)")
        terminal.enter("/image notes.txt")
        terminal.until("`notes.txt` is no image")
        terminal.enter("/image 'dot.png'")
        terminal.until("dot.png' \\(image\\)")
        terminal.enter("What is it?")
        terminal.until(STATUS)
        kinds = [part["type"] for part in sent(upstream)["messages"][0]["content"]]
        assert kinds == ["text", "image_url", "text"]
        terminal.enter("/save talk.md")
        terminal.until("saved as talk.md")
        terminal.enter("/save talk.json")
        terminal.until("saved as talk.json")
        terminal.enter("/save notes.txt")
        terminal.until("`notes.txt` already exists")
        terminal.enter("/clear")
        terminal.until("a new conversation")
        terminal.enter("/load talk.json")
        terminal.until("loaded: 2 turns\n> notes.txt: ``` remember ``` What is it.\n\nHello.")
        terminal.enter("Again?")
        terminal.until(f"Again.\n[^>]*{STATUS}")
        assert len(sent(upstream)["messages"]) == 3
        assert sent(upstream)["messages"][0] == sent(upstream, 0)["messages"][0]
    assert "What is it?" in (home / "talk.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("sizes", "left"),
    [
        pytest.param([], 0, id="steady"),
        pytest.param([(72, 20), (60, 20)], 0, id="larger"),
        pytest.param([(30, 8), (64, 14)], 12, id="smaller"),  # what no longer fits on the screen is left above it
    ],
)
def test_no_line_is_lost_or_drawn_twice(home: Path, sizes: list[tuple[int, int]], left: int) -> None:
    items = [f"- item {number} of a long list with wide 木 letters" for number in range(40)]
    code = ["```", *(f"line {number}" for number in range(30)), "```"]
    text = "\n".join(["A list:", "", *items, "", *code, "", "Done."])
    pieces = tuple(text[at : at + 9] for at in range(0, len(text), 9))
    with chat(home, once(pieces, pause=0.004), width=50, height=12) as (terminal, _):
        terminal.enter("Go.")
        for number, (width, height) in enumerate(sizes):
            terminal.until(f"item {15 * number + 5}", all_of_it=True)
            terminal.resize(width, height)
        terminal.until(STATUS)
        seen = terminal.screen(all_of_it=True)
    for word, count in (("item", 40), ("line", 30)):
        found = [int(number) for number in re.findall(rf"{word} (\d+)", seen)]
        assert found[-count:] == list(range(count))
        assert len(found) <= count + left
    assert seen.count("Done.") == 1


def test_what_a_model_writes_is_not_obeyed(home: Path) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J[bold]x[/bold] &#x1b;[8mhidden\x1b[?1049h\r\n\n<script>\u202e"
    with chat(home, once(evil, reasoning="\x1b[2J")) as (terminal, _):
        terminal.enter("Go.")
        seen = terminal.until(STATUS)
        title = terminal.told("#{pane_title} #{alternate_on}")
    assert "> Go." in seen
    assert "�]0;owned��[2J[bold]x[/bold] �[8mhidden�[?1049h" in seen
    assert "<script>�" in seen
    assert "owned" not in title
    assert title.endswith(" 0\n")


@pytest.mark.parametrize(
    ("settings", "colours"),
    [
        pytest.param({"environ": {"NO_COLOR": "1"}}, False, id="no-color"),
        pytest.param({"term": "dumb"}, False, id="dumb"),
        pytest.param({"width": 20}, True, id="narrow"),
        pytest.param({"height": 3}, True, id="low"),
        pytest.param({"environ": {"LANG": "C", "LC_ALL": "C"}}, True, id="ascii"),
    ],
)
def test_odd_terminals(home: Path, settings: dict[str, Any], colours: bool) -> None:  # noqa: FBT001  a case
    with chat(home, once("Some `code` and\n\n> words 木 of **weight**."), **settings) as (terminal, _):
        terminal.enter("Go.")
        terminal.until(r"out · \d|of \*\*weight", all_of_it=True)
        coloured = terminal.screen(colours=True, all_of_it=True)
        terminal.until_asked()
        terminal.type("", "C-d")
        terminal.until(r"\[exit code 0\]")
    assert bool(re.search(r"\x1b\[(?:1;)?3[0-8]m", coloured)) == colours
    assert "weight" in coloured


def test_pipes_work(home: Path) -> None:
    with Upstream(*answers("chat", text="a\x1b[1m**b**").rules()) as upstream:
        command = [XENOGLOT, "chat", "--upstream", upstream.url, "--set", "max_tokens=9"]
        environ = {**os.environ, "XDG_STATE_HOME": str(home)}
        done = subprocess.run(
            command, input=b"one\n/undo\n/system x\ntwo", capture_output=True, check=False, env=environ
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.decode() == "a\x1b[1m**b**\ntaken back: one\ninstructions: x\na\x1b[1m**b**\n"
        assert [sent(upstream)["max_tokens"], len(sent(upstream)["messages"])] == [9, 2]
        upstream.script(ScriptRule(steps=refusal("chat", Failure(kind="overloaded", message="busy"))))
        done = subprocess.run([*command, "--model", "m"], input=b"one\n", capture_output=True, check=False, env=environ)
        told = f"xenoglot: HTTP 503 from {upstream.url}/v1/chat/completions: busy\n"
        assert (done.returncode, done.stdout, done.stderr.decode()) == (UNREACHABLE, b"", told)
    assert list(home.iterdir()) == []


TOOLS = """
from xenoglot.tools.tool import tool

def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

@tool(needs_approval=True)
def erase(path: str) -> str:
    "Erase a file."
    return "erased"
"""


def calling(name: str, arguments: str, text: str = "") -> ScriptRule:
    """The next answer, a call."""
    return ScriptRule(steps=answers("chat", text=text, tool=(name, arguments)).streamed(), times=1, when=ASKED)


def test_tools_are_shown_and_asked_for(home: Path) -> None:
    (home / "things.py").write_text(TOOLS, encoding="utf-8")
    rules = (
        calling("add", '{"a": 2, "b": 3}', "Let me see."),
        calling("erase", '{"path": "a\\nb"}'),
        calling("erase", '{"path": "c"}'),
        once("So be it."),
    )
    with chat(home, *rules, flags=("--tool", "things:add", "--tool", "things:erase"), height=40) as (
        terminal,
        upstream,
    ):
        terminal.enter("Go on.")
        terminal.until("why not:")
        terminal.type("y", "Enter")
        terminal.until("(?s)why not:.*why not:")
        terminal.type("Not that one.", "Enter")
        terminal.until("scripted · 28 in, 12 out")
        seen = terminal.screen()
        terminal.enter("/tools")
        terminal.until("^erase  Erase a file.")
    assert seen[seen.index("> Go on.") : seen.index("loss: ")] == (
        "> Go on.\n"
        "\n"
        "Let me see.\n"
        "\n"
        "● add(a=2, b=3)\n"
        "  └ 5\n"
        "erase wants to run:\n"
        "  path:\n"
        "    a\n"
        "    b\n"
        "allow it? [y]es, [n]o, [a]lways, or say why not: y\n"
        '● erase(path="a\\nb")\n'
        "  └ erased\n"
        "erase wants to run:\n"
        "  path: c\n"
        "allow it? [y]es, [n]o, [a]lways, or say why not: Not that one.\n"
        "  └ not run: the user did not allow this call: Not that one.\n"
        "\n"
        "So be it.\n"
        "\n"
    )
    assert [message["role"] for message in sent(upstream)["messages"]] == ["user", *["assistant", "tool"] * 3]


def test_an_agent_is_seen_at_work(home: Path) -> None:
    work = home / "work"
    work.mkdir()
    (work / "a.py").write_text("x = 1\ny = 2\n", encoding="utf-8")
    rules = (
        calling("edit_file", '{"path": "a.py", "old": "x = 1", "new": "x = 3"}', "I change it."),
        calling("run", '{"command": "seq 1 20; exit 3"}'),
        *answers("chat", text="Done.").rules(),
    )
    with Upstream(*rules) as upstream:
        command = [XENOGLOT, "agent", "--upstream", upstream.url, "--model", "m", "--folder", str(work)]
        with Terminal(command, home=home, height=40) as terminal:
            terminal.until("^> *$")
            terminal.enter("Change it.")
            terminal.until("why not:")
            terminal.type("y", "Enter")
            terminal.until("(?s)why not:.*why not:")
            terminal.type("a", "Enter")
            terminal.until("3 answers")
            terminal.enter("/exit")
            seen = terminal.until(r"\[exit code 0\]")
            coloured = terminal.screen(colours=True)
    assert re.sub(", [^,]* s$", "", seen[seen.index("> Change it.") : seen.index("> /exit")], flags=re.MULTILINE) == (
        "> Change it.\n"
        "\n"
        "I change it.\n"
        "\n"
        "edit_file wants to run:\n"
        "  path: a.py\n"
        "  old: x = 1\n"
        "  new: x = 3\n"
        "allow it? [y]es, [n]o, [a]lways, or say why not: y\n"
        '● edit_file(path="a.py", old="x = 1", new="x = 3")\n'
        "  --- a.py\n"
        "  +++ a.py\n"
        "  @@ -1,2 +1,2 @@\n"
        "  -x = 1\n"
        "  +x = 3\n"
        "   y = 2\n"
        "run wants to run:\n"
        "  command: seq 1 20; exit 3\n"
        "allow it? [y]es, [n]o, [a]lways, or say why not: a\n"
        '● run(command="seq 1 20; exit 3")\n'
        "  └ 19\n"
        "    20\n"
        "    [exit code 3]\n"
        "    … 18 more lines, exit code 3\n"
        "\n"
        "Done.\n"
        "\n"
        "3 answers · 2 calls · 21 in, 9 out\n"
        "\n"
    )
    assert "\x1b[31m  -x = 1" in coloured
    assert "\x1b[32m  +x = 3" in coloured


def test_the_embedded_model_answers(home: Path) -> None:
    with Terminal([XENOGLOT, "chat", "--set", "max_tokens=6"], home=home) as terminal:
        terminal.until("You talk with the embedded model")
        terminal.enter("Say hello.")
        terminal.until(r"^cut off: the longest answer is reached\nsmollm2-135m-instruct · \d+ in, 6 out")
        terminal.enter("/exit")
        terminal.until(r"\[exit code 0\]")


def test_a_terminal_needs_the_extra(home: Path) -> None:
    (home / "rich.py").write_text("raise ModuleNotFoundError(name='rich')\n", encoding="utf-8")
    with Terminal([XENOGLOT, "chat"], home=home, environ={"PYTHONPATH": str(home)}) as terminal:
        told = "xenoglot: rich is not installed: pip install 'xenoglot[terminal]'\n[exit code 2]"
        assert terminal.until(r"exit code") == told


def test_a_model_is_chosen_where_there_are_several(home: Path) -> None:
    rules = answers("chat").rules()
    listed = {"object": "list", "data": [{"id": name, "object": "model"} for name in ("small", "large")]}
    listing = ScriptRule(steps=(Respond(body=json.dumps(listed).encode()),), when=RequestMatcher(method="GET"))
    with Upstream(listing, *rules) as upstream:
        command = [XENOGLOT, "chat", "--upstream", upstream.url]
        with Terminal(command, home=home) as terminal:
            terminal.until("Choose a model with /model NAME: small, large. /help lists more.\n> *$")
            terminal.type("/model l", "Tab")
            terminal.until("/model large")
            terminal.type("", "Enter")
            terminal.until("the model is large")
            terminal.enter("Hello?")
            terminal.until(STATUS)
        assert sent(upstream)["model"] == "large"
        done = subprocess.run(command, input=b"one\n", capture_output=True, check=False)
        assert done.stderr == b"xenoglot: `--model` is needed: `xenoglot models` lists them\n"
