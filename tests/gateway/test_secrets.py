"""Canaries: what must never be read in a log or an error, looked for after everything that can go wrong."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from tests.gateway.running_gateway import config_for, endpoint_rows, read_until, run_gateway
from tests.gateway.scripted_backends import FIRST_EVENTS, HELLO, MESSAGES, PATHS, BlockingBackend, FailingBackend
from xenoglot.backends.scripted import Scripted
from xenoglot.backends.user_traceback import USER_CODE
from xenoglot.gateway.config.file_permissions import Secrets
from xenoglot.gateway.config.settings import KeySettings, ServerSettings, UpstreamSettings
from xenoglot.model.events import Failed
from xenoglot.model.failure import Failure
from xenoglot.policy.target_health import Retry

if TYPE_CHECKING:
    from xenoglot.backends.backend import Backend
    from xenoglot.model.json import JSON

CLIENT_KEY, WRONG_KEY, UPSTREAM_KEY = "canary-client-key", "canary-wrong-key", "canary-upstream-key"
PROMPT = "canary-of-the-prompt"
CANARIES = (CLIENT_KEY, WRONG_KEY, UPSTREAM_KEY, PROMPT)
HEADERS = {"authorization": f"Bearer {CLIENT_KEY}"}
FAILED = Failed(failure=Failure(kind="upstream", message="connection lost: the upstream closed it"))

CONFIG = config_for(
    upstreams={
        "main": UpstreamSettings(
            dialect="chat", base_url="http://upstream.invalid", key_env="UP", retry=Retry(attempts=1)
        )
    },
    keys=KeySettings(env=("CLIENTS",)),
    secrets=Secrets({"CLIENTS": CLIENT_KEY, "UP": UPSTREAM_KEY}),
    server=ServerSettings(body_limit=10_000, drain_seconds=0.0),
)

BACKENDS: dict[str, Backend] = {
    "answers": Scripted(HELLO),
    "refuses": Scripted(Failure(kind="rate_limit", message="slow down")),
    "fails": Scripted((*FIRST_EVENTS, FAILED)),
    "is-broken": FailingBackend(),
}

BODIES: dict[str, JSON] = {
    "whole": {},
    "stream": {"stream": True},
    "wrong-type": {"temperature": PROMPT},
    "wrong-content": {"messages": [{"role": "user", "content": {PROMPT: PROMPT}}]},
    "unknown-field": {PROMPT: PROMPT},
    "too-large": {"padding": PROMPT * 1000},
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("path", [*PATHS, "/v1/messages/count_tokens"])
def test_s06_r30_r31_nothing_gets_into_the_logs(caplog: pytest.LogCaptureFixture, backend: str, path: str) -> None:
    spoken = [{"role": "user", "content": PROMPT}]
    with caplog.at_level(logging.DEBUG), run_gateway({"main": BACKENDS[backend]}, CONFIG) as running:
        for change in BODIES.values():
            running.request("POST", path, {**MESSAGES, "messages": spoken, **change}, HEADERS)
        for broken in (PROMPT.encode(), b'{"model": "m", "messages": "' + PROMPT.encode()):
            running.request("POST", path, broken, HEADERS)
        refused = running.request("POST", f"{path}?key={WRONG_KEY}", MESSAGES, {"x-api-key": WRONG_KEY})
        ambiguous = running.request("POST", path, MESSAGES, {**HEADERS, "x-api-key": WRONG_KEY})
    assert (refused.status, ambiguous.status) == (401, 400)
    records = [record for record in caplog.records if record.name.startswith(("xenoglot", "uvicorn"))]
    # What the operator's own code raises is printed as it is, but for keys: it may quote what it was given.
    raised = [record.getMessage() for record in records if record.name == USER_CODE.name]
    written = [record.getMessage() for record in records if record.name != USER_CODE.name]
    assert len(written) + len(raised) >= len(BODIES) + 4
    assert bool(raised) is (backend == "is-broken" and path in PATHS)
    assert [line for line in raised for canary in CANARIES if canary != PROMPT and canary in line] == []
    # A field that nobody knows is named in the losses: a name, but not what it held.
    assert [line for line in written for canary in CANARIES if canary in line.replace(f"{PROMPT} dropped", "")] == []
    assert all(canary not in (refused.body + ambiguous.body).decode() for canary in CANARIES)


def test_s06_a_client_that_leaves(caplog: pytest.LogCaptureFixture) -> None:
    backend = BlockingBackend(FIRST_EVENTS)
    with caplog.at_level(logging.DEBUG), run_gateway({"main": backend}, config_for("main")) as running:
        with running.connect() as connection:
            body = b'{"model": "m", "max_tokens": 1, "stream": true, "messages": [{"role": "user", "content": "%s"}]}'
            data = body % PROMPT.encode()
            head = f"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n"
            connection.sendall(head.encode() + data)
            read_until(connection, b"Hel")
        assert backend.cancelled.wait(120)
    assert PROMPT not in caplog.text


def test_r12_each_route_has_one_policy() -> None:
    rows = [(row.method, row.path, row.policy) for row in endpoint_rows()]
    project = "projects/{project}/locations/{location}/publishers/google/models/{model}"
    assert sorted(rows) == sorted(
        [
            ("DELETE", "/admin/v1/{path}", "manage"),
            ("DELETE", "/v1/chat/completions/{id}", "key"),
            ("DELETE", "/v1/conversations/{id}", "key"),
            ("DELETE", "/v1/conversations/{id}/items/{item}", "key"),
            ("DELETE", "/v1/files/{id}", "key"),
            ("DELETE", "/v1/interactions/{id}", "key"),
            ("DELETE", "/v1/messages/batches/{id}", "key"),
            ("DELETE", "/v1/responses/{id}", "key"),
            ("DELETE", "/v1alpha/interactions/{id}", "key"),
            ("DELETE", "/v1beta/files/{id}", "key"),
            ("DELETE", "/v1beta/interactions/{id}", "key"),
            ("DELETE", "/v1beta1/interactions/{id}", "key"),
            ("GET", "/", "key"),
            ("GET", "/admin/v1/{path}", "view"),
            ("GET", "/api/ps", "key"),
            ("GET", "/api/tags", "key"),
            ("GET", "/api/version", "open"),
            ("GET", "/console", "open"),
            ("GET", "/console/{path}", "open"),
            ("GET", "/foundation-models", "key"),
            ("GET", "/health", "open"),
            ("GET", "/health/ready", "open"),
            ("GET", "/livez", "open"),
            ("GET", "/metrics", "admin"),
            ("GET", "/openapi.json", "open"),
            ("GET", "/readyz", "open"),
            ("GET", "/v1/batches", "key"),
            ("GET", "/v1/batches/{id}", "key"),
            ("GET", "/v1/chat/completions", "key"),
            ("GET", "/v1/chat/completions/{id}", "key"),
            ("GET", "/v1/chat/completions/{id}/messages", "key"),
            ("GET", "/v1/conversations/{id}", "key"),
            ("GET", "/v1/conversations/{id}/items", "key"),
            ("GET", "/v1/conversations/{id}/items/{item}", "key"),
            ("GET", "/v1/files", "key"),
            ("GET", "/v1/files/{id}", "key"),
            ("GET", "/v1/files/{id}/content", "key"),
            ("GET", "/v1/files/{id}:download", "key"),
            ("GET", "/v1/health", "open"),
            ("GET", "/v1/interactions/{id}", "key"),
            ("GET", "/v1/key", "key"),
            ("GET", "/v1/messages/batches", "key"),
            ("GET", "/v1/messages/batches/{id}", "key"),
            ("GET", "/v1/messages/batches/{id}/results", "key"),
            ("GET", "/v1/models", "key"),
            ("GET", "/v1/models/{model}", "key"),
            ("GET", "/v1/organization/costs", "view"),
            ("GET", "/v1/organization/usage/completions", "view"),
            ("GET", "/v1/responses", "key"),
            ("GET", "/v1/responses/{id}", "key"),
            ("GET", "/v1/responses/{id}/input_items", "key"),
            ("GET", "/v1/tokenizer_info", "key"),
            ("GET", "/v1/usage", "key"),
            ("GET", "/v1/version", "open"),
            ("GET", "/v1alpha/interactions/{id}", "key"),
            ("GET", "/v1beta/files", "key"),
            ("GET", "/v1beta/files/{id}", "key"),
            ("GET", "/v1beta/files/{id}:download", "key"),
            ("GET", "/v1beta/interactions/{id}", "key"),
            ("GET", "/v1beta/models", "key"),
            ("GET", "/v1beta/models/{model}", "key"),
            ("GET", "/v1beta1/interactions/{id}", "key"),
            ("HEAD", "/", "open"),
            ("HEAD", "/api/hello", "open"),
            ("PATCH", "/admin/v1/{path}", "manage"),
            ("POST", "/admin/v1/{path}", "manage"),
            ("POST", "/api/chat", "key"),
            ("POST", "/api/embed", "key"),
            ("POST", "/api/embeddings", "key"),
            ("POST", "/api/generate", "key"),
            ("POST", "/api/show", "key"),
            ("POST", "/console", "open"),
            ("POST", "/console/{path}", "open"),
            ("POST", "/model/{model}/converse", "key"),
            ("POST", "/model/{model}/converse-stream", "key"),
            ("POST", "/model/{model}/count-tokens", "key"),
            ("POST", "/model/{model}/invoke", "key"),
            ("POST", "/model/{model}/invoke-with-response-stream", "key"),
            ("POST", "/rerank", "key"),
            ("POST", "/upload/v1/files", "key"),
            ("POST", "/upload/v1/files/{id}", "open"),
            ("POST", "/upload/v1beta/files", "key"),
            ("POST", "/upload/v1beta/files/{id}", "open"),
            ("POST", "/v1/audio/speech", "key"),
            ("POST", "/v1/audio/transcriptions", "key"),
            ("POST", "/v1/audio/translations", "key"),
            ("POST", "/v1/batches", "key"),
            ("POST", "/v1/batches/{id}/cancel", "key"),
            ("POST", "/v1/chat/completions", "key"),
            ("POST", "/v1/chat/completions/input_tokens", "key"),
            ("POST", "/v1/chat/completions/{id}", "key"),
            ("POST", "/v1/chat/moderations", "key"),
            ("POST", "/v1/completions", "key"),
            ("POST", "/v1/conversations", "key"),
            ("POST", "/v1/conversations/{id}", "key"),
            ("POST", "/v1/conversations/{id}/items", "key"),
            ("POST", "/v1/decisions", "key"),
            ("POST", "/v1/detokenize", "key"),
            ("POST", "/v1/embeddings", "key"),
            ("POST", "/v1/files", "key"),
            ("POST", "/v1/images/edits", "key"),
            ("POST", "/v1/images/generations", "key"),
            ("POST", "/v1/images/variations", "key"),
            ("POST", "/v1/inference/chat-completion", "key"),
            ("POST", "/v1/inference/completion", "key"),
            ("POST", "/v1/inference/embeddings", "key"),
            ("POST", "/v1/interactions", "key"),
            ("POST", "/v1/interactions/{id}/cancel", "key"),
            ("POST", "/v1/messages", "key"),
            ("POST", "/v1/messages/batches", "key"),
            ("POST", "/v1/messages/batches/{id}/cancel", "key"),
            ("POST", "/v1/messages/count_tokens", "key"),
            ("POST", "/v1/models/{model}:batchEmbedContents", "key"),
            ("POST", "/v1/models/{model}:countTokens", "key"),
            ("POST", "/v1/models/{model}:embedContent", "key"),
            ("POST", "/v1/models/{model}:generateContent", "key"),
            ("POST", "/v1/models/{model}:streamGenerateContent", "key"),
            ("POST", "/v1/moderations", "key"),
            ("POST", "/v1/openai/v1/embeddings", "key"),
            ("POST", "/v1/parse", "key"),
            ("POST", "/v1/publishers/google/models/{model}:countTokens", "key"),
            ("POST", "/v1/publishers/google/models/{model}:generateContent", "key"),
            ("POST", "/v1/publishers/google/models/{model}:streamGenerateContent", "key"),
            ("POST", "/v1/rerank", "key"),
            ("POST", "/v1/reranking", "key"),
            ("POST", "/v1/responses", "key"),
            ("POST", "/v1/responses/compact", "key"),
            ("POST", "/v1/responses/input_tokens", "key"),
            ("POST", "/v1/responses/{id}/cancel", "key"),
            ("POST", "/v1/tokenize", "key"),
            ("POST", "/v1/uploads", "key"),
            ("POST", "/v1/uploads/{id}/cancel", "key"),
            ("POST", "/v1/uploads/{id}/complete", "key"),
            ("POST", "/v1/uploads/{id}/parts", "key"),
            ("POST", "/v1alpha/interactions", "key"),
            ("POST", "/v1alpha/interactions/{id}/cancel", "key"),
            ("POST", "/v1beta/interactions", "key"),
            ("POST", "/v1beta/interactions/{id}/cancel", "key"),
            ("POST", "/v1beta/models/{model}:batchEmbedContents", "key"),
            ("POST", "/v1beta/models/{model}:countTokens", "key"),
            ("POST", "/v1beta/models/{model}:embedContent", "key"),
            ("POST", "/v1beta/models/{model}:generateContent", "key"),
            ("POST", "/v1beta/models/{model}:streamGenerateContent", "key"),
            ("POST", "/v1beta/tunedModels/{model}:countTokens", "key"),
            ("POST", "/v1beta/tunedModels/{model}:generateContent", "key"),
            ("POST", "/v1beta/tunedModels/{model}:streamGenerateContent", "key"),
            ("POST", "/v1beta1/interactions", "key"),
            ("POST", "/v1beta1/interactions/{id}/cancel", "key"),
            ("POST", "/v1beta1/publishers/google/models/{model}:countTokens", "key"),
            ("POST", "/v1beta1/publishers/google/models/{model}:generateContent", "key"),
            ("POST", "/v1beta1/publishers/google/models/{model}:streamGenerateContent", "key"),
            ("POST", "/v2/rerank", "key"),
            *(
                ("POST", f"/{version}/{project}:{action}", "key")
                for version in ("v1", "v1beta1")
                for action in ("countTokens", "generateContent", "streamGenerateContent")
            ),
        ]
    )
