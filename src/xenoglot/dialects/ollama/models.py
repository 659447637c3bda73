"""The list of models, and the other endpoints that clients call before a request.

Sources: `ListResponse`, `ShowResponse` and `ProcessResponse` in `api/types.go`, and `docs/api.md`.

Requests without a prompt, which load or unload the model; the answer confirms it.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from xenoglot.codec.dialect import ModelEndpoint
from xenoglot.codec.reader import Reader
from xenoglot.dialects.ollama.extras import FAMILY, NAMES
from xenoglot.dialects.ollama.response_envelope import decode_moment, encode_moment
from xenoglot.model.catalog import ModelInfo, modalities_of
from xenoglot.model.response import Candidate, Finish, Response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.catalog import Modality
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request


VERSION = "0.32.15"
"""The server whose interface this is: clients refuse those that are too old for them."""

LATEST = ":latest"
"""The default tag; some clients always send it."""

_ARCHITECTURE = "unknown"
"""What a model is made of; clients read the context length under this name."""

_FOREVER = "9999-12-31T23:59:59Z"

COMPLETION, EMBEDDING = "completion", "embedding"

_INPUTS: dict[str, Modality] = {"vision": "image", "audio": "audio"}
"""Capability (`types/model/capability.go`) -> what a model with it takes."""

_EMBEDDINGS: tuple[Modality, ...] = ("embeddings",)


def decode_models(body: object) -> tuple[ModelInfo, ...]:
    """Return the models of a list; an entry without a name is passed over.

    Raises:
        WireError: it is no list of objects.
    """
    return tuple(
        ModelInfo(
            id=name,
            created=decode_moment(item.take_if("modified_at", str)),
            max_input_tokens=_context(item),
            input_modalities=_modalities(capable := item.take_if("capabilities", list)),
            output_modalities=_EMBEDDINGS if capable is not None and _only_embeds(capable) else None,
            tools=None if capable is None else "tools" in capable,
            reasoning=None if capable is None else "thinking" in capable,
        )
        for item in Reader(body).objects("models")
        if (name := item.take_if("model", str) or item.take_if("name", str))
    )


def _only_embeds(capable: Sequence[JSON]) -> bool:
    return EMBEDDING in capable and COMPLETION not in capable


def _modalities(capable: Sequence[JSON] | None) -> tuple[Modality, ...] | None:
    if capable is None:
        return None
    return modalities_of(("text", *(taken for name, taken in _INPUTS.items() if name in capable)))


def capabilities(model: ModelInfo) -> list[JSON]:
    """Return what can be requested of a model.

    Clients do not offer what is not in the list, while a model that cannot do it reports that when it is called: tools
    and vision are listed unless the model is known not to have them. Thinking is listed only if it is known: clients
    turn it on for all that have it. A model for embeddings has that capability alone.
    """
    if not model.writes_text():
        return [EMBEDDING]
    taken = model.input_modalities
    listed: dict[str, bool] = {
        COMPLETION: True,
        "tools": model.tools is not False,
        "vision": taken is None or "image" in taken,
        "audio": taken is not None and "audio" in taken,
        "thinking": model.reasoning is True,
    }
    return [name for name, has in listed.items() if has]


def encode_models(models: Sequence[ModelInfo]) -> JSONObject:
    """Return the list of models."""
    return {"models": [encode_model(model) for model in models]}


def encode_model(model: ModelInfo) -> JSONObject:
    """Return one entry of the list; a digest of the name stands for that of the model, of which clients show a part."""
    return {
        "name": model.id,
        "model": model.id,
        "modified_at": encode_moment(model.created),
        "size": 0,
        "digest": sha256(model.id.encode("utf-8", "surrogatepass")).hexdigest(),
        "details": _details(model),
    }


def show(asked: JSONObject, models: Sequence[ModelInfo]) -> JSONObject | None:
    """Return what is known of one model, or `None` if it does not exist."""
    name = asked.get("model") or asked.get("name")  # `name` is what older clients say
    if not isinstance(name, str):
        return None
    known = {model.id: model for model in models}
    model = known.get(name) or known.get(name.removesuffix(LATEST)) or known.get(name + LATEST)
    if model is None:
        return None
    info: JSONObject = {"general.architecture": _ARCHITECTURE, "general.basename": model.display_name or model.id}
    if model.max_input_tokens is not None:
        info[f"{_ARCHITECTURE}.context_length"] = model.max_input_tokens
    return {
        "modelfile": "",
        "parameters": "",
        "template": "",
        "details": _details(model),
        "model_info": info,
        "capabilities": capabilities(model),
        "modified_at": encode_moment(model.created),
    }


def running(_: JSONObject, models: Sequence[ModelInfo]) -> JSONObject:
    """Return the models that are loaded: all, for none has to be waited for."""
    return {"models": [_loaded(model) for model in models]}


def version(_: JSONObject, __: Sequence[ModelInfo]) -> JSONObject:
    """Return the version of the server."""
    return {"version": VERSION}


INQUIRIES = (
    ModelEndpoint(method="GET", path="/api/version", answer=version, policy="open"),
    ModelEndpoint(method="POST", path="/api/show", answer=show),
    ModelEndpoint(method="GET", path="/api/ps", answer=running),
)


def _context(item: Reader) -> int | None:
    details = item.take_if("details", dict)
    return None if details is None else Reader(details, item.at("details")).count("context_length")


def _details(model: ModelInfo) -> JSONObject:
    said: JSONObject = {"parent_model": "", "format": "", "family": "", "families": []}
    said |= {"parameter_size": "", "quantization_level": ""}
    return said if model.max_input_tokens is None else said | {"context_length": model.max_input_tokens}


def _loaded(model: ModelInfo) -> JSONObject:
    entry = encode_model(model)
    del entry["modified_at"]
    return {**entry, "expires_at": _FOREVER, "size_vram": 0, "context_length": model.max_input_tokens or 0}


_AT_ONCE = (0, "0", "0s")
"""The times to keep a model that drop it (`Duration` in `api/types.go`)."""


def answer_of_loading(request: Request) -> Response | None:
    """Return the answer to a request without anything to answer, as `ChatHandler` and `GenerateHandler` give it.

    `None` for any other request.
    """
    extra = request.extra
    if extra is None or extra.dialect not in NAMES:
        return None
    if request.prompt is not None or any(message.role != "system" for message in request.messages):
        return None
    if request.messages and extra.dialect == FAMILY:  # a chat of system turns alone is answered
        return None
    raw = "unload" if extra.fields.get("keep_alive") in _AT_ONCE else "load"
    finish = Finish(reason="stop", raw=raw, dialect=FAMILY)
    return Response(model=request.model, candidates=(Candidate(finish=finish),))
