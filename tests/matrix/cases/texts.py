"""Plain words, and where those of the system stand."""

from tests.matrix.case import (
    HEARD_HELLO,
    HELLO,
    Answer,
    answers,
    assistant,
    chat_usage,
    choice,
    delta,
    last_usage,
    message,
    requests,
    start,
    stop,
    system,
    text,
    text_block,
    user,
)

USER = {"role": "user", "content": "Hi"}

CASES = (
    answers("text", HELLO, HEARD_HELLO),
    answers(
        "text-unicode-pitfall-92",
        {
            "chat": Answer(
                choice({"content": 'Zoë 👩\u200d🚀 \u2028 "quoted" \\ \t\n'}, usage=chat_usage(5, 9)),
                (
                    delta(role="assistant", content="Zo"),
                    delta(content="ë 👩"),
                    delta(content='\u200d🚀 \u2028 "quo'),
                    delta(content='ted" \\ \t\n'),
                    delta("stop"),
                    last_usage(chat_usage(5, 9)),
                ),
            ),
            "messages": Answer(
                message(text('Zoë 👩\u200d🚀 \u2028 "quoted" \\ \t\n'), usage={"input_tokens": 5, "output_tokens": 9}),
                (
                    start({"input_tokens": 5, "output_tokens": 1}),
                    *text_block(0, "Zo", "ë 👩", '\u200d🚀 \u2028 "quo', 'ted" \\ \t\n'),
                    *stop("end_turn", {"output_tokens": 9}),
                ),
            ),
        },
        {
            "chat": choice({"content": 'Zoë 👩\u200d🚀 \u2028 "quoted" \\ \t\n'}, "stop", chat_usage(5, 9)),
            "messages": message(
                text('Zoë 👩\u200d🚀 \u2028 "quoted" \\ \t\n'),
                stop="end_turn",
                usage={"input_tokens": 5, "output_tokens": 9},
            ),
        },
    ),
    answers(
        "text-empty",
        {
            "chat": Answer(
                choice({"content": ""}, usage=chat_usage(5, 0)),
                (delta(role="assistant", content=""), delta("stop"), last_usage(chat_usage(5, 0))),
            ),
            "messages": Answer(
                message(usage={"input_tokens": 5, "output_tokens": 0}),
                (start({"input_tokens": 5, "output_tokens": 0}), *stop("end_turn", {"output_tokens": 0})),
            ),
        },
        {
            "chat": choice({"content": ""}, "stop", chat_usage(5, 0)),
            "messages": message(stop="end_turn", usage={"input_tokens": 5, "output_tokens": 0}),
        },
    ),
    answers(
        "text-several-blocks",
        {
            "messages": Answer(
                message(text("One. "), text("Two.")),
                (
                    start({"input_tokens": 5, "output_tokens": 1}),
                    *text_block(0, "One. "),
                    *text_block(1, "Tw", "o."),
                    *stop("end_turn", {"output_tokens": 2}),
                ),
            )
        },
        {"chat": choice({"content": "One. Two."}, "stop", chat_usage(5, 2))},
    ),
    requests(
        "system-string",
        {
            "messages": {"system": "Be brief.", "messages": [USER], "max_tokens": 64},
            "chat": {"messages": [system("Be brief."), USER], "max_tokens": 64},
        },
        {
            "chat": {"messages": [system("Be brief."), USER], "max_tokens": 64},
            "messages": {"system": "Be brief.", "messages": [USER], "max_tokens": 64},
        },
    ),
    requests(
        "system-blocks-cached",
        {
            "messages": {
                "system": [text("Be brief."), text("Be kind.", cache_control={"type": "ephemeral"})],
                "messages": [USER],
                "max_tokens": 64,
            },
            "chat": {"messages": [system([text("Be brief."), text("Be kind.")]), USER], "max_tokens": 64},
        },
        {
            "chat": {"messages": [system("Be brief.\n\nBe kind."), USER], "max_tokens": 64},
            "messages": {"system": [text("Be brief."), text("Be kind.")], "messages": [USER], "max_tokens": 64},
        },
        {
            "chat": (
                "$.messages[0].content[1] cache dropped (the server decides what it caches)",
                "$.messages[0] content approximated (its texts are joined)",
            )
        },
    ),
    requests(
        "system-developer",
        {"chat": {"messages": [{"role": "developer", "content": "Be brief."}, USER], "max_completion_tokens": 64}},
        {"messages": {"system": "Be brief.", "messages": [USER], "max_tokens": 64}},
        {"messages": ("$.messages[0] role approximated (`developer` is written as `system`)",)},
    ),
    requests(
        "system-several",
        {
            "chat": {
                "messages": [system("Be brief."), {"role": "developer", "content": "Be kind."}, USER],
                "max_tokens": 64,
            }
        },
        {"messages": {"system": [text("Be brief."), text("Be kind.")], "messages": [USER], "max_tokens": 64}},
        {"messages": ("$.messages[1] role approximated (`developer` is written as `system`)",)},
    ),
    requests(
        "system-mid-conversation-pitfall-3",
        {
            "messages": {
                "system": "Be brief.",
                "messages": [USER, assistant("Hello"), user("More"), system("Be kind.")],
                "max_tokens": 64,
            },
            "chat": {
                "messages": [system("Be brief."), USER, assistant("Hello"), system("Be kind."), user("More")],
                "max_tokens": 64,
            },
        },
        {
            "chat": {
                "messages": [system("Be brief."), USER, assistant("Hello"), user("More"), system("Be kind.")],
                "max_tokens": 64,
            },
            "messages": {
                "system": "Be brief.",
                "messages": [USER, assistant("Hello"), system("Be kind."), user("More")],
                "max_tokens": 64,
            },
        },
    ),
    requests(
        "system-billing-header-pitfall-2",
        {
            "messages": {
                "system": [text("x-anthropic-billing-header: cc_version=2.1.329; cch=1a2b3;"), text("Be brief.")],
                "messages": [USER],
                "max_tokens": 64,
            }
        },
        {"chat": {"messages": [system("Be brief."), USER], "max_tokens": 64}},
        {"chat": ("$.messages[0].content[0] text dropped (only messages has it)",)},
    ),
    requests(
        "turns-of-one-role-pitfall-36",
        {
            "chat": {
                "messages": [USER, user("Again"), assistant("Hello"), user([text("And"), text("more")])],
                "max_tokens": 64,
            },
            "messages": {"messages": [USER, user([text("And"), text("more")])], "max_tokens": 64},
        },
        {
            "messages": {
                "messages": [user([text("Hi"), text("Again")]), assistant("Hello"), user([text("And"), text("more")])],
                "max_tokens": 64,
            },
            "chat": {"messages": [USER, user([text("And"), text("more")])], "max_tokens": 64},
        },
    ),
    requests(
        "prefill",
        {
            "chat": {"messages": [USER, assistant("Hel")], "max_tokens": 64},
            "messages": {"messages": [USER, assistant("Hel")], "max_tokens": 64},
        },
        {
            "messages": {"messages": [USER, assistant("Hel"), user("Continue.")], "max_tokens": 64},
            "chat": {"messages": [USER, assistant("Hel")], "max_tokens": 64},
        },
        {
            "messages": ("$.messages[1] prefill emulated (the server continues no turn: a user turn is added)",),
            "chat": ("$.messages[1] prefill approximated (the server may answer the last turn, not continue it)",),
        },
    ),
    requests(
        "sampling",
        {
            "chat": {
                "messages": [USER],
                "temperature": 1.5,
                "top_p": 0.9,
                "stop": ["END"],
                "seed": 7,
                "presence_penalty": 0.5,
                "frequency_penalty": -0.5,
                "logit_bias": {"50256": -100},
                "n": 1,
                "user": "user-1",
                "metadata": {"team": "a"},
                "store": False,
                "service_tier": "flex",
                "prompt_cache_key": "k",
                "verbosity": "low",
                "extra_body": {"top_k": 40, "min_p": 0.1},
            },
            "messages": {
                "messages": [USER],
                "max_tokens": 64,
                "stop_sequences": ["END"],
                "metadata": {"user_id": "user-1"},
                "service_tier": "standard_only",
                "cache_control": {"type": "ephemeral"},
                "extra_body": {"temperature": 0.5, "top_k": 40, "unheard_of": {"a": None}},
            },
        },
        {
            "messages": {
                "messages": [USER],
                "max_tokens": 4096,
                "top_p": 0.9,
                "top_k": 40,
                "stop_sequences": ["END"],
                "metadata": {"user_id": "user-1"},
                "service_tier": "standard_only",
            },
            "chat": {
                "messages": [USER],
                "temperature": 0.5,
                "max_tokens": 64,
                "stop": ["END"],
                "service_tier": "default",
                "user": "user-1",
            },
        },
        {
            "messages": (
                "$.sampling max_tokens approximated (the dialect requires it; 4096 is written)",
                "$.sampling temperature approximated (the dialect's highest is 1)",
                "$.sampling min_p dropped (the dialect has no such field)",
                "$.sampling seed dropped (the dialect has no such field)",
                "$.sampling frequency_penalty dropped (the dialect has no such field)",
                "$.sampling presence_penalty dropped (the dialect has no such field)",
                "$.sampling logit_bias dropped (the dialect has no such field)",
                "$ service_tier approximated (`flex` is written as `standard_only`)",
                "$ verbosity dropped (the dialect has no such field)",
                "$ metadata dropped (the dialect has no such field)",
                "$ cache_key dropped (the dialect has no such field)",
            ),
            "chat": (
                "$ unheard_of dropped (only messages has it)",
                "$.sampling top_k dropped (the dialect has no such field)",
                "$ cache dropped (the server decides what it caches)",
            ),
        },
    ),
    requests(
        "sampling-either-pitfall-22",
        {"chat": {"messages": [USER], "max_tokens": 64, "temperature": 0.5, "top_p": 0.9}},
        {"messages": {"messages": [USER], "max_tokens": 64, "temperature": 0.5}},
        {"messages": ("$.sampling top_p dropped (not allowed with `temperature`)",)},
    ),
    requests(
        "nulls",
        {
            "chat": {
                "messages": [USER],
                "max_tokens": None,
                "temperature": None,
                "extra_body": {"tools": None, "stop": None, "user": None, "tool_choice": None, "response_format": None},
            }
        },
        {"messages": {"messages": [USER], "max_tokens": 4096}},
        {"messages": ("$.sampling max_tokens approximated (the dialect requires it; 4096 is written)",)},
    ),
)
