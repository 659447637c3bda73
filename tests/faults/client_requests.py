"""Requests as clients of each dialect send them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject


def client_request(client: str, model: str, prompt: str, *, streamed: bool) -> tuple[str, JSONObject]:  # noqa: PLR0911 - one for each dialect
    """Return where a client of the dialect posts its question, and the question."""
    turn: list[JSON] = [{"role": "user", "content": prompt}]
    match client:
        case "converse":
            verb = "converse-stream" if streamed else "converse"
            return f"/model/{model}/{verb}", {"messages": [{"role": "user", "content": [{"text": prompt}]}]}
        case "gemini":
            verb = "streamGenerateContent?alt=sse" if streamed else "generateContent"
            return f"/v1beta/models/{model}:{verb}", {"contents": [{"role": "user", "parts": [{"text": prompt}]}]}
        case "interactions":
            return PATHS[client], {"model": model, "input": prompt, "stream": streamed, "store": False}
        case "llama_stack":
            return PATHS[client], {"model_id": model, "messages": turn, "stream": streamed}
        case "llama_stack_completion":
            return PATHS[client], {"model_id": model, "content": prompt, "stream": streamed}
        case "messages":
            return PATHS[client], {"model": model, "messages": turn, "stream": streamed, "max_tokens": 64}
        case "responses":
            return PATHS[client], {"model": model, "input": turn, "stream": streamed, "store": False}
        case "completions" | "ollama_generate":
            return PATHS[client], {"model": model, "prompt": prompt, "stream": streamed} | usage_option(
                client, streamed
            )
        case _:
            return PATHS[client], {"model": model, "messages": turn, "stream": streamed} | usage_option(
                client, streamed
            )


def usage_option(client: str, streamed: bool) -> JSONObject:  # noqa: FBT001 - as it stands in the request
    """Return the field with which clients of OpenAI's ask what a stream cost."""
    return {"stream_options": {"include_usage": True}} if streamed and client in ("chat", "completions") else {}


PATHS = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "interactions": "/v1beta/interactions",
    "llama_stack": "/v1/inference/chat-completion",
    "llama_stack_completion": "/v1/inference/completion",
    "messages": "/v1/messages",
    "ollama": "/api/chat",
    "ollama_generate": "/api/generate",
    "responses": "/v1/responses",
}
