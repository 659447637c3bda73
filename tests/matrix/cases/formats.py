"""Answers in a form: JSON, and JSON by a schema."""

from tests.matrix.case import requests

USER = {"role": "user", "content": "Hi"}
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}

CASES = (
    requests(
        "format-schema-pitfall-47",
        {
            "chat": {
                "messages": [USER],
                "max_tokens": 64,
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "place", "description": "A place.", "schema": SCHEMA, "strict": True},
                },
            },
            "messages": {
                "messages": [USER],
                "max_tokens": 64,
                "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}, "effort": "low"},
            },
        },
        {
            "messages": {
                "messages": [USER],
                "max_tokens": 64,
                "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
            },
            "chat": {
                "messages": [USER],
                "max_tokens": 64,
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "response", "schema": SCHEMA, "strict": True},
                },
                "reasoning_effort": "low",
            },
        },
        {
            "messages": (
                "$.output name dropped (the dialect gives a schema none)",
                "$.output description dropped (the dialect gives a schema none)",
                "$.output strict approximated (the dialect holds to every schema strictly)",
            )
        },
    ),
    requests(
        "format-json",
        {"chat": {"messages": [USER], "max_tokens": 64, "response_format": {"type": "json_object"}}},
        {"messages": {"system": "Answer with JSON alone.", "messages": [USER], "max_tokens": 64}},
        {"messages": ("$.output kind approximated (requested at the end of the system prompt, not enforced)",)},
    ),
    requests(
        "format-text",
        {"chat": {"messages": [USER], "max_tokens": 64, "response_format": {"type": "text"}}},
        {"messages": {"messages": [USER], "max_tokens": 64}},
    ),
)
