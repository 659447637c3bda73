"""The first ten minutes of a Python developer, from an empty home: each step is a file that is written and run."""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs.test_examples import PATIENCE, Gateway, environment, gateway, home

__all__ = ["gateway", "home"]


class Step(NamedTuple):
    """A program, and the lines that it prints; `...` stands for any line."""

    name: str
    program: str
    printed: str


STEPS = (
    Step(
        "first answer",
        """
        import xenoglot

        client = xenoglot.Client()
        reply = client.complete("Say hello.", max_tokens=8)
        print(bool(str(reply)), str(reply) == reply.text)
        print(reply.finish.reason, reply.usage.output_tokens)
        print(len(repr(reply)) < 301, "\\n" in repr(reply))
        """,
        """
        True True
        length 8
        True False
        """,
    ),
    Step(
        "help",
        """
        import xenoglot

        help(xenoglot.Client.complete)
        """,
        """
        ...
        max_tokens: Most tokens of the answer, reasoning included.
        ...
        """,
    ),
    Step(
        "stream",
        """
        import xenoglot

        with xenoglot.Client() as client, client.stream("Count to five.", max_tokens=6) as stream:
            pieces = list(stream.texts())
            reply = stream.reply()
        print(len(pieces) > 1, "".join(pieces) == reply.text)
        """,
        "True True",
    ),
    Step(
        "tool",
        """
        import xenoglot

        asked = []


        @xenoglot.tool
        def weather(city: str) -> str:
            '''Tell the weather of a city.'''
            asked.append(city)
            return "sunny"


        with xenoglot.Client() as client:
            options = {"tool_choice": "weather", "max_tokens": 64, "max_rounds": 2}
            result = client.run("How is the weather in Oslo?", [weather], **options)
        print(result.outcome in ("answered", "limit"), len(asked) == result.calls >= 1)
        """,
        "True True",
    ),
    Step(
        "dataclass",
        """
        from dataclasses import dataclass

        import xenoglot


        @dataclass
        class City:
            name: str
            inhabitants: int


        with xenoglot.Client() as client:
            city = client.parse("Tell me about Paris.", City, max_tokens=60, retries=2).value
        print(type(city).__name__, type(city.inhabitants).__name__)
        """,
        "City int",
    ),
    Step(
        "embeddings",
        """
        import xenoglot

        with xenoglot.Client() as client:
            cat, kitten, invoice = client.embed(["a cat", "a kitten", "an unpaid invoice"]).vectors


        def similarity(one, other):
            return sum(a * b for a, b in zip(one, other, strict=True))


        print(similarity(cat, kitten) > similarity(cat, invoice))
        """,
        "True",
    ),
    Step(
        "errors",
        """
        import xenoglot

        with xenoglot.Client("http://127.0.0.1:9", model="any", retry=xenoglot.Retry(attempts=1)) as client:
            try:
                client.complete("Hello")
            except xenoglot.ConnectionFailedError as error:
                print(type(error).__name__, error.retryable)
            try:
                client.complete("Hello", max_token=8)
            except TypeError as error:
                print(error)
            try:
                client.complete("Hello", temperature="hot")
            except xenoglot.InvalidRequestError as error:
                print(error.failure.param)
        try:
            xenoglot.Client("openai", model="gpt-5")
        except xenoglot.ConfigurationError as error:
            print("OPENAI_API_KEY" in str(error))
        """,
        """
        ConnectionFailedError True
        there is no option `max_token`; did you mean `max_tokens`?
        $.temperature
        True
        """,
    ),
    Step(
        "async",
        """
        import asyncio

        import xenoglot


        async def main():
            async with xenoglot.AsyncClient() as client:
                replies = await asyncio.gather(*(client.complete(f"Say {word}.", max_tokens=4) for word in ("a", "b")))
                async with client.stream("Count.", max_tokens=4) as stream:
                    texts = [text async for text in stream.texts()]
            print(len(replies), bool(texts))


        asyncio.run(main())
        """,
        "2 True",
    ),
    Step(
        "another server",
        """
        import xenoglot


        def greet(client):
            with client:
                return client.complete("Say hello.", max_tokens=4).finish.reason


        print(greet(xenoglot.Client()))
        for dialect in ("chat", "responses", "messages", "gemini", "ollama"):
            print(dialect, greet(xenoglot.Client("http://127.0.0.1:8080", dialect=dialect, model="any")))
        """,
        """
        length
        chat length
        responses length
        messages length
        gemini length
        ollama length
        """,
    ),
)


def unindented(text: str) -> list[str]:
    """Return the lines of a text without the indentation that they share."""
    lines = text.strip("\n").splitlines()
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [line[indent:].rstrip() for line in lines]


def fits(printed: list[str], expected: list[str]) -> bool:
    """Return whether the lines are those that are expected; `...` stands for any number of lines."""
    if not expected:
        return not printed
    if expected[0] == "...":
        return any(fits(printed[skipped:], expected[1:]) for skipped in range(len(printed) + 1))
    return bool(printed) and printed[0].strip() == expected[0].strip() and fits(printed[1:], expected[1:])


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name.replace(" ", "-"))
def test_the_first_minutes_of_a_python_developer(step: Step, gateway: Gateway, home: Path) -> None:
    text = "\n".join(unindented(step.program)).strip() + "\n"
    program = home / "program.py"
    program.write_text(text.replace("http://127.0.0.1:8080", gateway.url), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, program.name],
        cwd=home,
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = [line for line in done.stdout.splitlines() if line.strip()]
    assert fits(printed, [line for line in unindented(step.printed) if line]), done.stdout


def test_lines_that_fit() -> None:
    assert fits(["a", "b", "c"], ["...", "b", "..."])
    assert not fits(["a", "c"], ["...", "b", "..."])
    assert not fits(["a", "b"], ["a"])
