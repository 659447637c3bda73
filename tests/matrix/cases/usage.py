"""Token counts: caches inside and beside the prompt's count, reasoning inside the output's, and none at all."""

from tests.matrix.case import (
    HEARD_HELLO,
    Answer,
    answers,
    chat_usage,
    choice,
    delta,
    last_usage,
    message,
    start,
    stop,
    text,
    text_block,
)

CHAT = chat_usage(
    120,
    40,
    prompt_tokens_details={"cached_tokens": 100, "cache_write_tokens": 8, "audio_tokens": 0},
    completion_tokens_details={
        "reasoning_tokens": 25,
        "accepted_prediction_tokens": 0,
        "rejected_prediction_tokens": 0,
        "audio_tokens": 0,
    },
)
MESSAGES = {
    "input_tokens": 12,
    "cache_creation_input_tokens": 8,
    "cache_read_input_tokens": 100,
    "cache_creation": {"ephemeral_5m_input_tokens": 8, "ephemeral_1h_input_tokens": 0},
    "output_tokens": 40,
    "output_tokens_details": {"thinking_tokens": 25},
    "server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 0},
    "service_tier": "standard",
}

CASES = (
    answers(
        "usage-caches-pitfall-78-79",
        {
            "chat": Answer(
                choice({"content": "Hello"}, usage=CHAT),
                (delta(role="assistant", content="Hello"), delta("stop"), last_usage(CHAT)),
            ),
            "messages": Answer(
                message(text("Hello"), usage=MESSAGES),
                (
                    start(MESSAGES | {"output_tokens": 1, "output_tokens_details": {"thinking_tokens": 0}}),
                    *text_block(0, "Hello"),
                    *stop("end_turn", {"output_tokens": 40, "output_tokens_details": {"thinking_tokens": 25}}),
                ),
            ),
        },
        {
            "chat": choice(
                {"content": "Hello"},
                "stop",
                chat_usage(
                    120,
                    40,
                    completion_tokens_details={"reasoning_tokens": 25},
                    prompt_tokens_details={"cache_write_tokens": 8, "cached_tokens": 100},
                    server_tool_use={"web_search_requests": 1},
                ),
            )
            | {"service_tier": "default"},
            "messages": message(
                text("Hello"),
                stop="end_turn",
                usage={
                    "cache_creation_input_tokens": 8,
                    "cache_read_input_tokens": 100,
                    "input_tokens": 12,
                    "output_tokens": 40,
                    "output_tokens_details": {"thinking_tokens": 25},
                },
            ),
        },
        {
            "messages": ("$.usage completion_tokens_details dropped (only chat has it)",),
        },
    ),
    answers(
        "usage-on-the-last-chunk-pitfall-98",
        {
            "chat": Answer(
                choice({"content": "Hello"}, usage=chat_usage(5, 2)),
                (
                    delta(role="assistant", content="Hel") | {"usage": chat_usage(5, 1)},
                    delta(content="lo") | {"usage": chat_usage(5, 2)},
                    delta("stop") | {"usage": chat_usage(5, 2)},
                ),
            )
        },
        {"messages": HEARD_HELLO["messages"]},
    ),
    answers(
        "usage-at-the-end-pitfall-99",
        {
            "messages": Answer(
                message(
                    text("Hello"),
                    usage={
                        "input_tokens": 5,
                        "cache_read_input_tokens": 0,
                        "cache_creation_input_tokens": 0,
                        "output_tokens": 2,
                    },
                ),
                (
                    start({"input_tokens": 0, "output_tokens": 0}),
                    *text_block(0, "Hello"),
                    *stop(
                        "end_turn",
                        {
                            "input_tokens": 5,
                            "cache_read_input_tokens": 0,
                            "cache_creation_input_tokens": 0,
                            "output_tokens": 2,
                        },
                    ),
                ),
            )
        },
        {
            "chat": choice(
                {"content": "Hello"},
                "stop",
                chat_usage(5, 2, prompt_tokens_details={"cache_write_tokens": 0, "cached_tokens": 0}),
            )
        },
    ),
    answers(
        "usage-unsaid",
        {"chat": Answer(choice({"content": "Hello"}), (delta(role="assistant", content="Hello"), delta("stop")))},
        {"messages": message(text("Hello"), stop="end_turn", usage={"input_tokens": 5, "output_tokens": 1})},
        {
            "messages": (
                "$ usage approximated (the upstream does not report input_tokens and output_tokens: estimated)",
            )
        },
    ),
)
