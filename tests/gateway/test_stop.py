"""Stop strings of every client, met by a model that knows nothing of them: what each dialect tells, over HTTP."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.gateway.running_gateway import config_for
from xenoglot import dialect_registry as dialects
from xenoglot.backends.callable import Callable
from xenoglot.codec.requests.url_params import addressed
from xenoglot.codec.stage import Pipeline, through
from xenoglot.gateway.config.settings import ModelSettings
from xenoglot.model.content import Text
from xenoglot.model.fold import fold
from xenoglot.model.request import Sampling
from xenoglot.model.response import Finish, Response

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.gateway.running_gateway import RunningGateway
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request

TURN = {"role": "user", "content": "Hi"}
STOPS = ["never", "END"]
GEMINI: JSONObject = {"contents": [{"parts": [{"text": "Hi"}]}], "generationConfig": {"stopSequences": STOPS}}
ASKED: dict[str, JSONObject] = {
    "chat": {"messages": [TURN], "stop": STOPS},
    "completions": {"prompt": "Hi", "stop": STOPS},
    "gemini": GEMINI,
    "llama_stack": {"messages": [TURN], "sampling_params": {"stop": STOPS}},
    "llama_stack_completion": {"content": "Hi", "sampling_params": {"stop": STOPS}},
    "messages": {"messages": [TURN], "max_tokens": 99, "stop_sequences": STOPS},
    "ollama": {"messages": [TURN], "options": {"stop": STOPS}},
    "ollama_generate": {"prompt": "Hi", "options": {"stop": STOPS}},
    "responses": {"input": "Hi"},
}
"""What each client asks; Responses has no field for it, there the configuration says it."""

MET = "stop_sequence"
TOLD: dict[str, tuple[str, str | None, str | None]] = {
    "chat": (MET, "stop", "END"),
    "completions": (MET, "stop", "END"),
    "gemini": ("stop", "STOP", None),
    "llama_stack": ("stop", "end_of_turn", None),
    "llama_stack_completion": ("stop", "end_of_turn", None),
    "messages": (MET, "stop_sequence", "END"),
    "ollama": ("stop", "stop", None),
    "ollama_generate": ("stop", "stop", None),
    "responses": ("stop", "completed", None),
}
"""What the client reads: our word for the end, the wire's, and the string."""


class Endless:
    """A model that knows no stop strings."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def __call__(self, _request: Request) -> Iterator[str]:
        """Write on for ever."""
        try:
            yield from ("Hel", "lo ", "E", "ND of", " it")
            while True:
                yield " all"
        finally:
            self.closed.set()


def decoded(name: str, body: bytes, *, stream: bool) -> object:
    """An answer as a client reads it."""
    dialect = dialects.get(name)
    if stream:
        return fold(through([body], Pipeline(dialect.framing.decoder(), dialect.stream_decoder())))
    return dialect.decode_response(_json(body))


def _json(body: bytes) -> JSON:
    import json  # noqa: PLC0415  beside the dialects' own reading

    return json.loads(body)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("name", ASKED)
def test_the_string_that_was_met(gateway_server: object, name: str, stream: bool) -> None:  # noqa: FBT001  a case
    """A3, A-W3, A-W4, A-W5, pitfall-70."""
    model = Endless()
    config = config_for("own", models=(ModelSettings(name="*", defaults=Sampling(stop=tuple(STOPS))),))
    running: RunningGateway = gateway_server({"own": Callable(model, name="own")}, config)  # type: ignore[operator]
    dialect = dialects.get(name)
    path, query, body = addressed({**ASKED[name], dialect.model_field: "own", "stream": stream}, dialect)
    answer = running.request("POST", f"{path}?{query}", body)
    assert answer.status == 200, answer.body
    response = decoded(name, answer.body, stream=stream)
    assert isinstance(response, Response)
    (candidate,) = response.candidates
    assert [replace(part, extra=None) for part in candidate.content if isinstance(part, Text)] == [Text(text="Hello ")]
    assert isinstance(candidate.finish, Finish)
    assert (candidate.finish.reason, candidate.finish.raw, candidate.finish.stop_sequence) == TOLD[name]
    assert model.closed.wait(120)
