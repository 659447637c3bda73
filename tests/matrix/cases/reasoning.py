"""Thinking: asked for, answered, and brought back."""

from tests.matrix.case import (
    Answer,
    answers,
    assistant,
    block,
    call,
    chat_usage,
    choice,
    delta,
    last_usage,
    message,
    requests,
    result,
    start,
    stop,
    text,
    text_block,
    tool,
    use,
    user,
)
from tests.matrix.cases.tools import CHAT_TOOLS, MESSAGES_TOOLS
from xenoglot.model.json import JSONObject

USER = {"role": "user", "content": "Hi"}
SEAL = "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk="
USAGE = {"input_tokens": 5, "output_tokens": 30}


def thought(index: int, *pieces: str, signature: str | None = SEAL) -> tuple[JSONObject, ...]:
    """Return the events of a block of thinking."""
    seal = [] if signature is None else [{"type": "signature_delta", "signature": signature}]
    return block(
        index,
        {"type": "thinking", "thinking": "", "signature": ""},
        *({"type": "thinking_delta", "thinking": piece} for piece in pieces),
        *seal,
    )


CASES = (
    answers(
        "reasoning-signed-pitfall-50",
        {
            "messages": Answer(
                message({"type": "thinking", "thinking": "They greet.", "signature": SEAL}, text("Hello"), usage=USAGE),
                (
                    start({"input_tokens": 5, "output_tokens": 1}),
                    *thought(0, "They ", "greet."),
                    *text_block(1, "Hello"),
                    *stop("end_turn", {"output_tokens": 30}),
                ),
            ),
            "chat": Answer(
                choice(
                    {
                        "content": "Hello",
                        "reasoning_details": [
                            {
                                "type": "reasoning.text",
                                "text": "They greet.",
                                "signature": SEAL,
                                "format": "anthropic-claude-v1",
                                "index": 0,
                            }
                        ],
                    },
                    usage=chat_usage(5, 30),
                ),
                (
                    delta(
                        role="assistant",
                        content="",
                        reasoning_details=[
                            {"type": "reasoning.text", "text": "They ", "format": "anthropic-claude-v1", "index": 0}
                        ],
                    ),
                    delta(
                        content="",
                        reasoning_details=[
                            {"type": "reasoning.text", "text": "greet.", "format": "anthropic-claude-v1", "index": 0}
                        ],
                    ),
                    delta(
                        content="",
                        reasoning_details=[
                            {"type": "reasoning.text", "signature": SEAL, "format": "anthropic-claude-v1", "index": 0}
                        ],
                    ),
                    delta(content="Hello"),
                    delta("stop"),
                    last_usage(chat_usage(5, 30)),
                ),
            ),
        },
        {
            "chat": choice(
                {
                    "content": "Hello",
                    "reasoning_content": "They greet.",
                    "reasoning_details": [
                        {
                            "type": "reasoning.text",
                            "text": "They greet.",
                            "signature": SEAL,
                            "format": "anthropic-claude-v1",
                            "index": 0,
                        }
                    ],
                },
                "stop",
                chat_usage(5, 30),
            ),
            "messages": message(
                {"signature": SEAL, "thinking": "They greet.", "type": "thinking"},
                text("Hello"),
                stop="end_turn",
                usage={"input_tokens": 5, "output_tokens": 30},
            ),
        },
        thinking=True,
    ),
    answers(
        "reasoning-unsigned-pitfall-77",
        {
            "chat": Answer(
                choice(
                    {"content": "Hello", "reasoning_content": "They greet."},
                    usage=chat_usage(5, 30, completion_tokens_details={"reasoning_tokens": 20}),
                ),
                (
                    delta(role="assistant", content=None, reasoning_content="They "),
                    delta(reasoning_content="greet."),
                    delta(content="Hello"),
                    delta("stop"),
                    last_usage(chat_usage(5, 30, completion_tokens_details={"reasoning_tokens": 20})),
                ),
            ),
            "messages": Answer(
                message({"type": "thinking", "thinking": "They greet.", "signature": ""}, text("Hello"), usage=USAGE),
                (
                    start({"input_tokens": 5, "output_tokens": 1}),
                    *thought(0, "They greet.", signature=None),
                    *text_block(1, "Hello"),
                    *stop("end_turn", {"output_tokens": 30}),
                ),
            ),
        },
        {
            "chat": choice({"content": "Hello", "reasoning_content": "They greet."}, "stop", chat_usage(5, 30)),
            "messages": message(
                {"signature": "xenoglot:unsigned", "thinking": "They greet.", "type": "thinking"},
                text("Hello"),
                stop="end_turn",
                usage={"input_tokens": 5, "output_tokens": 30, "output_tokens_details": {"thinking_tokens": 20}},
            ),
        },
        thinking=True,
    ),
    answers(
        "reasoning-under-another-name-pitfall-76",
        {
            "chat": Answer(
                choice({"content": "Hello", "reasoning": "They greet."}, usage=chat_usage(5, 30)),
                (
                    delta(role="assistant", content="", reasoning="They "),
                    delta(reasoning="greet."),
                    delta(content="Hello"),
                    delta("stop"),
                    last_usage(chat_usage(5, 30)),
                ),
            )
        },
        {
            "messages": message(
                {"signature": "xenoglot:unsigned", "thinking": "They greet.", "type": "thinking"},
                text("Hello"),
                stop="end_turn",
                usage={"input_tokens": 5, "output_tokens": 30},
            )
        },
        thinking=True,
    ),
    answers(
        "reasoning-redacted-pitfall-11",
        {
            "messages": Answer(
                message({"type": "redacted_thinking", "data": "b3BhcXVl"}, text("Hello"), usage=USAGE),
                (
                    start({"input_tokens": 5, "output_tokens": 1}),
                    *block(0, {"type": "redacted_thinking", "data": "b3BhcXVl"}),
                    *text_block(1, "Hello"),
                    *stop("end_turn", {"output_tokens": 30}),
                ),
            )
        },
        {
            "chat": choice(
                {
                    "content": "Hello",
                    "reasoning_details": [
                        {"type": "reasoning.encrypted", "data": "b3BhcXVl", "format": "anthropic-claude-v1", "index": 0}
                    ],
                },
                "stop",
                chat_usage(5, 30),
            )
        },
        thinking=True,
    ),
    answers(
        "reasoning-omitted-pitfall-106",
        {
            "messages": Answer(
                message({"type": "thinking", "thinking": "", "signature": SEAL}, text("Hello"), usage=USAGE),
                (
                    start({"input_tokens": 5, "output_tokens": 1}),
                    *thought(0),
                    *text_block(1, "Hello"),
                    *stop("end_turn", {"output_tokens": 30}),
                ),
            )
        },
        {
            "chat": choice(
                {
                    "content": "Hello",
                    "reasoning_details": [
                        {
                            "type": "reasoning.text",
                            "text": "",
                            "signature": SEAL,
                            "format": "anthropic-claude-v1",
                            "index": 0,
                        }
                    ],
                },
                "stop",
                chat_usage(5, 30),
            )
        },
        thinking=True,
    ),
    answers(
        "reasoning-encrypted-elsewhere",
        {
            "chat": Answer(
                choice(
                    {
                        "content": "Hello",
                        "reasoning_details": [
                            {
                                "type": "reasoning.encrypted",
                                "data": "c2VhbGVk",
                                "id": "rs_1",
                                "format": "openai-responses-v1",
                                "index": 0,
                            }
                        ],
                    },
                    usage=chat_usage(5, 30),
                ),
                (
                    delta(
                        role="assistant",
                        content="",
                        reasoning_details=[
                            {
                                "type": "reasoning.encrypted",
                                "data": "c2VhbGVk",
                                "id": "rs_1",
                                "format": "openai-responses-v1",
                                "index": 0,
                            }
                        ],
                    ),
                    delta(content="Hello"),
                    delta("stop"),
                    last_usage(chat_usage(5, 30)),
                ),
            )
        },
        {
            "messages": message(
                {
                    "signature": "xenoglot:sealed:WyJyZXNwb25zZXMiLG51bGwsbnVsbCwiYzJWaGJHVmsiXQ==",
                    "thinking": "",
                    "type": "thinking",
                },
                text("Hello"),
                stop="end_turn",
                usage={"input_tokens": 5, "output_tokens": 30},
            )
        },
        {
            "messages": (
                "$.candidates[0].content[0] signature emulated (only responses can open it; wrapped to come back)",
            )
        },
        thinking=True,
    ),
    requests(
        "reasoning-effort-pitfall-49",
        {
            "chat": {"messages": [USER], "max_completion_tokens": 4096, "reasoning_effort": "medium"},
            "messages": {
                "messages": [USER],
                "max_tokens": 4096,
                "thinking": {"type": "adaptive", "display": "omitted"},
                "output_config": {"effort": "high"},
            },
        },
        {
            "messages": {
                "messages": [USER],
                "max_tokens": 4096,
                "thinking": {"type": "adaptive"},
                "output_config": {"effort": "medium"},
            },
            "chat": {"messages": [USER], "max_tokens": 4096, "reasoning_effort": "high"},
        },
        {
            "chat": (
                "$.thinking display dropped (the dialect has no such field)",
                "$.thinking mode dropped (the effort stands for it)",
            )
        },
    ),
    requests(
        "reasoning-budget-pitfall-25",
        {
            "messages": {
                "messages": [USER],
                "max_tokens": 20000,
                "thinking": {"type": "enabled", "budget_tokens": 10000},
            }
        },
        {"chat": {"messages": [USER], "max_tokens": 20000, "reasoning_effort": "medium"}},
        {"chat": ("$.thinking budget_tokens approximated (written as the effort `medium`)",)},
    ),
    requests(
        "reasoning-disabled-pitfall-26",
        {
            "messages": {"messages": [USER], "max_tokens": 64, "thinking": {"type": "disabled"}},
            "chat": {"messages": [USER], "max_tokens": 64, "reasoning_effort": "none"},
        },
        {
            "chat": {"messages": [USER], "max_tokens": 64, "reasoning_effort": "none"},
            "messages": {"messages": [USER], "max_tokens": 64, "thinking": {"type": "disabled"}},
        },
    ),
    requests(
        "reasoning-beside-a-forced-tool-pitfall-17",
        {
            "chat": {
                "messages": [USER],
                "max_tokens": 64,
                "reasoning_effort": "low",
                "temperature": 0.2,
                "tools": CHAT_TOOLS,
                "tool_choice": "required",
            }
        },
        {
            "messages": {
                "messages": [USER],
                "max_tokens": 64,
                "temperature": 0.2,
                "tools": MESSAGES_TOOLS,
                "tool_choice": {"type": "any"},
                "output_config": {"effort": "low"},
            }
        },
        {"messages": ("$.thinking thinking dropped (the dialect allows no thinking if a tool is forced)",)},
    ),
    requests(
        "reasoning-beside-a-temperature",
        {"chat": {"messages": [USER], "max_tokens": 64, "reasoning_effort": "low", "temperature": 0.2}},
        {
            "messages": {
                "messages": [USER],
                "max_tokens": 64,
                "thinking": {"type": "adaptive"},
                "output_config": {"effort": "low"},
            }
        },
        {"messages": ("$.sampling temperature dropped (with thinking only 1 is allowed)",)},
    ),
    requests(
        "reasoning-brought-back-pitfall-51",
        {
            "messages": {
                "max_tokens": 64,
                "tools": MESSAGES_TOOLS,
                "messages": [
                    USER,
                    assistant(
                        [
                            {"type": "thinking", "thinking": "They greet.", "signature": SEAL},
                            {"type": "redacted_thinking", "data": "b3BhcXVl"},
                            {"type": "thinking", "thinking": "All mine.", "signature": "xenoglot:unsigned"},
                            text("I look."),
                            use("toolu_1", "weather", {"city": "Rome"}),
                        ]
                    ),
                    user([result("toolu_1", "Sun")]),
                ],
            },
            "chat": {
                "max_tokens": 64,
                "tools": CHAT_TOOLS,
                "messages": [
                    USER,
                    assistant(
                        "I look.",
                        reasoning_details=[
                            {
                                "type": "reasoning.text",
                                "text": "They greet.",
                                "signature": SEAL,
                                "format": "anthropic-claude-v1",
                                "index": 0,
                            },
                            {
                                "type": "reasoning.encrypted",
                                "data": "b3BhcXVl",
                                "format": "anthropic-claude-v1",
                                "index": 1,
                            },
                            {
                                "type": "reasoning.encrypted",
                                "data": "Zm9yZWlnbg==",
                                "format": "openai-responses-v1",
                                "index": 2,
                            },
                        ],
                        tool_calls=[call("toolu_1", "weather", '{"city":"Rome"}')],
                    ),
                    tool("toolu_1", "Sun"),
                ],
            },
        },
        {
            "chat": {
                "messages": [
                    USER,
                    assistant(
                        "I look.",
                        reasoning_content="They greet.\n\nAll mine.",
                        tool_calls=[call("toolu_1", "weather", '{"city":"Rome"}')],
                    ),
                    tool("toolu_1", "Sun"),
                ],
                "tools": CHAT_TOOLS,
                "max_tokens": 64,
            },
            "messages": {
                "messages": [
                    USER,
                    assistant(
                        [
                            {"type": "thinking", "thinking": "They greet.", "signature": SEAL},
                            {"type": "redacted_thinking", "data": "b3BhcXVl"},
                            text("I look."),
                            use("toolu_1", "weather", {"city": "Rome"}),
                        ]
                    ),
                    user([result("toolu_1", "Sun")]),
                ],
                "max_tokens": 64,
                "tools": MESSAGES_TOOLS,
            },
        },
        {
            "chat": (
                "$.messages[1].content[0] signature dropped (only its maker can open it)",
                "$.messages[1].content[1] encrypted dropped (only its maker can open it)",
                "$.messages[1].content[0] reasoning approximated (several parts are written as one)",
            ),
            "messages": ("$.messages[1].content[2] reasoning dropped (the server accepts only its own reasoning)",),
        },
    ),
)
