"""The embedded engine and own models, without weights: what each request comes to is recorded where it is answered."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from tests.backends.local_models import tiny
from tests.backends.local_models.engines import ChatTokenizer
from tests.exact import exact
from xenoglot.backends.callable import Callable
from xenoglot.backends.local_models.async_engine import Templated
from xenoglot.backends.local_models.prompt_function import Prompted
from xenoglot.backends.local_models.transformers import Transformers
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.engine.backend import Engine
from xenoglot.engine.server.server_process import EngineEndpoint
from xenoglot.engine.server.weights import Weights
from xenoglot.model.json import JSON, JSONObject

if TYPE_CHECKING:
    import collections.abc
    from collections.abc import AsyncIterator

    from xenoglot.backends.backend import Backend

    Record = list[JSON]
    """What a model was asked, each call with its settings."""

CONTEXT = 1000
ROUTES: dict[str, JSON] = {
    "/props": {"default_generation_settings": {"n_ctx": CONTEXT}},
    "/v1/models": {"data": [{"meta": {"n_vocab": 100}}]},
}


class Reply:
    """A body that was ready."""

    def __init__(self, body: JSON, status: int = 200) -> None:
        self.status = status
        self._body = encode_json(body)

    async def read(self) -> bytes:
        """Return all of it."""
        return self._body


class RuntimeTransport:
    """Answers as the engine's process does; a completion is recorded, and refused."""

    def __init__(self, record: Record) -> None:
        self._record = record

    async def send(self, _method: str, url: str, _headers: object, body: bytes = b"", **_: object) -> Reply:
        """Answer one request."""
        path = "/" + url.partition("://")[2].partition("/")[2]
        if path in ROUTES:
            return Reply(ROUTES[path])
        asked: JSONObject = decode_json(body)
        if path == "/apply-template":
            return Reply({"prompt": "".join(f"<{turn['role']}>{turn['content']}" for turn in asked["messages"])})
        if path == "/tokenize":
            return Reply({"tokens": list(asked["content"].encode())})
        self._record.append(asked)
        return Reply({"error": {"message": "recorded"}}, 500)


class Process:
    """A process that runs already."""

    async def ready(self) -> EngineEndpoint:
        """Return where it would listen."""
        return EngineEndpoint(url="http://127.0.0.1:1", socket_path=None, key="k")

    async def lost(self, endpoint: EngineEndpoint) -> None:
        """Do nothing."""

    def hung(self) -> None:
        """Do nothing."""

    async def stop(self) -> None:
        """Do nothing."""


class RecordedEngine:
    """An engine with a tokenizer; `generate_async` takes all settings."""

    def __init__(self, record: Record) -> None:
        self.tokenizer = ChatTokenizer()
        self._record = record

    async def generate_async(self, prompt: str, **settings: Any) -> AsyncIterator[str]:  # noqa: ANN401  as users write
        """Record a call."""
        self._record.append({"prompt": prompt, **settings})
        yield "Hi"


class RecordedModel:
    """A model of the transformers library whose `generate` only records its settings."""

    def __init__(self, record: Record) -> None:
        model = tiny.model()
        self.config, self.generation_config, self.device = model.config, model.generation_config, model.device
        self._record = record

    def generate(self, prompt: torch.Tensor, **settings: Any) -> None:  # noqa: ANN401  as the library has it
        """Record a call."""
        known = {name: exact(value) for name, value in settings.items() if name not in _OBJECTS}
        self._record.append({"prompt": prompt.tolist(), "seed": torch.initial_seed(), **known})


_OBJECTS = ("streamer", "stopping_criteria", "attention_mask")


def _engine(record: Record) -> Backend:
    weights = Weights(path=Path("tiny.gguf"), name="tiny")
    return Engine(weights, transport=RuntimeTransport(record), process=Process())  # type: ignore[arg-type]


def _settings(record: Record) -> Backend:
    def function(prompt: str, **settings: Any) -> str:  # noqa: ANN401  as users write
        record.append({"prompt": prompt, **settings})
        return "Hi"

    return Prompted(function)


def _bare(record: Record) -> Backend:
    def function(prompt: str) -> str:
        record.append(prompt)
        return "Hi"

    return Prompted(function)


def _requests(record: Record) -> Backend:
    def function(request: object) -> str:
        record.append(exact(request))
        return "Hi"

    return Callable(function)


BACKENDS: dict[str, collections.abc.Callable[[Record], Backend]] = {
    "embedded": _engine,
    "function of a prompt and settings": _settings,
    "function of a prompt": _bare,
    "function of a request": _requests,
    "engine with a tokenizer": lambda record: Templated(RecordedEngine(record)),
    "transformers": lambda record: Transformers(RecordedModel(record), tiny.tokenizer(), "tiny"),
}
"""Every kind of backend that is not a server, by what it wraps; each is given the list that it records in."""
