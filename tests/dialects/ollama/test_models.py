"""Lists of models and the other questions, as python's SDK reads the answers."""

import ollama
import pytest

from xenoglot.dialects.ollama import OLLAMA
from xenoglot.dialects.ollama.models import INQUIRIES, VERSION, running, show, version
from xenoglot.model.catalog import ModelInfo

MODELS = (ModelInfo(id="large", created=1761499281, max_input_tokens=8192, display_name="Large"), ModelInfo(id="a:b"))


def test_the_list_is_read_as_it_was_written() -> None:
    written = OLLAMA.encode_models(MODELS)
    assert OLLAMA.decode_models(written) == (
        ModelInfo(id="large", created=1761499281, max_input_tokens=8192),
        MODELS[1],
    )
    assert [model.model for model in ollama.ListResponse(**written).models] == ["large", "a:b"]


def test_clients_show_the_head_of_a_digest() -> None:
    """`cmd/cmd.go` cuts it off without looking whether there is one."""
    digests = [OLLAMA.encode_model(model)["digest"] for model in MODELS]
    assert [len(digest) for digest in digests] == [64, 64]
    assert len(set(digests)) == 2


@pytest.mark.parametrize(
    "asked", [{"model": "large"}, {"name": "large"}, {"model": "large:latest"}, {"model": "large", "verbose": True}]
)
def test_a_model_is_shown(asked: dict[str, object]) -> None:
    shown = ollama.ShowResponse(**(show(asked, MODELS) or {}))
    assert shown.modelinfo == {
        "general.architecture": "unknown",
        "general.basename": "Large",
        "unknown.context_length": 8192,
    }
    assert shown.capabilities == ["completion", "tools", "vision"]


@pytest.mark.parametrize("asked", [{}, {"model": "small"}, {"model": 1}])
def test_a_model_that_is_not_there_is_not_shown(asked: dict[str, object]) -> None:
    assert show(asked, MODELS) is None


def test_all_models_are_loaded() -> None:
    loaded = ollama.ProcessResponse(**running({}, MODELS)).models
    assert [(model.model, model.context_length) for model in loaded] == [("large", 8192), ("a:b", 0)]


def test_the_version_is_open_to_all() -> None:
    assert version({}, MODELS) == {"version": VERSION}
    assert [(inquiry.method, inquiry.path, inquiry.policy) for inquiry in INQUIRIES] == [
        ("GET", "/api/version", "open"),
        ("POST", "/api/show", "key"),
        ("GET", "/api/ps", "key"),
    ]


def test_a_key_is_shown_where_there_is_one() -> None:
    assert (OLLAMA.authorize(None), OLLAMA.authorize("k")) == ((), (("authorization", "Bearer k"),))
