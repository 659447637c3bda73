"""Where a conversation takes place: what its keys do."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from xenoglot.errors import ConfigurationError
from xenoglot.terminal.display.frontend import PlainFrontend, RichFrontend, interruptible
from xenoglot.terminal.display.renderer import PlainRenderer

if TYPE_CHECKING:
    from collections.abc import Generator

    from prompt_toolkit.input import PipeInput


@pytest.fixture
def typed() -> Generator[PipeInput]:
    """What a person types."""
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        yield keys


@pytest.fixture
def face(typed: PipeInput) -> RichFrontend:  # noqa: ARG001  it has to be there
    return RichFrontend(PlainRenderer(io.StringIO()), None)


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        pytest.param("y\r", "y", id="a-word"),
        pytest.param("\r", "", id="nothing"),
        pytest.param("\x04", "", id="end-of-input"),
    ],
)
def test_a_question_is_answered(face: RichFrontend, typed: PipeInput, keys: str, answer: str) -> None:
    typed.send_text(keys)
    assert asyncio.run(face.choose("allow it? ")) == answer


def test_an_interrupt_at_a_question_ends_the_run(face: RichFrontend, typed: PipeInput) -> None:
    typed.send_text("\x03")
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(face.choose("allow it? "))


def test_an_interrupt_at_a_question_of_a_chat_ends_its_answer(face: RichFrontend, typed: PipeInput) -> None:
    async def answer() -> None:
        await face.choose("allow it? ")

    typed.send_text("\x03")
    assert asyncio.run(interruptible(answer())) is False


def test_a_line_that_never_ends_is_not_waited_for() -> None:
    with Path("/dev/zero").open("rb", buffering=0) as endless:
        face = PlainFrontend(io.StringIO(), stdin=endless.fileno())
        with pytest.raises(ConfigurationError, match="longer than 10 MB"):
            asyncio.run(face.read())
