"""`xenoglot.serve`: one's own model, asked by the official SDKs, in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from anthropic import Anthropic
from openai import OpenAI

import xenoglot
from tests.gateway.running_gateway import TIMEOUT
from xenoglot.backends.callable import Callable

if TYPE_CHECKING:
    from collections.abc import Generator

PROGRAM = """
import xenoglot
from xenoglot.backends.callable import Callable

async def parrot(request):
    for word in request.messages[-1].content[0].text.split():
        yield word + " "

xenoglot.serve(Callable(parrot), port=0)
"""


def echo(_request: object) -> str:
    """A model."""
    return ""


@pytest.fixture
def parrot() -> Generator[str]:
    """The URL of a process that serves a model of its own; it ends well."""
    command = [sys.executable, "-c", PROGRAM]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout
        greeting, _, url = process.stdout.readline().rpartition(" at ")
        assert greeting == "Xenoglot serves parrot, every model"
        try:
            yield url.strip()
            process.send_signal(signal.SIGTERM)
            assert process.wait(TIMEOUT) == 0
        finally:
            process.kill()


def test_ones_own_model_speaks_every_dialect(parrot: str) -> None:
    with OpenAI(base_url=f"{parrot}/v1", api_key="none", max_retries=0) as openai:
        chat = openai.chat.completions.create(model="parrot", messages=[{"role": "user", "content": "one  two"}])
    with Anthropic(base_url=parrot, api_key="none", max_retries=0) as anthropic:
        streamed = anthropic.messages.stream(
            model="another", max_tokens=9, messages=[{"role": "user", "content": "three four"}]
        )
        with streamed as stream:
            said = list(stream.text_stream)
            headers = stream.response.headers
    assert (chat.model, chat.choices[0].message.content, chat.choices[0].finish_reason) == (
        "parrot",
        "one two ",
        "stop",
    )
    assert (said, headers["x-xenoglot-substituted-model"]) == (["three ", "four "], "parrot")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        pytest.param({"port": -1}, "xenoglot.serve: port: found -1; expected int >= 0", id="port"),
        pytest.param(
            {"client_key_env": "TEST_UNSET"},
            'xenoglot.serve: client_key_env: the environment variable "TEST_UNSET" is not set',
            id="key",
        ),
        pytest.param({"host": "0.0.0.0"}, 'xenoglot.serve: host: found "0.0.0.0", which others', id="R40-open-to-all"),  # noqa: S104
    ],
)
def test_mistakes_are_named_as_arguments(settings: dict[str, object], problem: str) -> None:
    with pytest.raises(xenoglot.ConfigurationError) as error:
        xenoglot.serve(Callable(echo), **settings)  # type: ignore[arg-type]
    assert str(error.value)[: len(problem)] == problem
