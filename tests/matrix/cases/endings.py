"""Why answers end: refused, too long, at a stop string, and for reasons that only one side has."""

from tests.matrix.case import (
    Answer,
    answers,
    assistant,
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
from xenoglot.model.json import JSON

ENDING = {"input_tokens": 5, "output_tokens": 2}


def ended(finish: str, **fields: JSON) -> Answer:
    """Return an answer of `chat` that ends in a certain way; `fields` are those of its choice."""
    whole = choice({"content": "Hel"}, finish, chat_usage(5, 2))
    whole["choices"][0] |= fields
    last = delta(finish)
    last["choices"][0] |= fields
    return Answer(whole, (delta(role="assistant", content="Hel"), last, last_usage(chat_usage(5, 2))))


def stopped(reason: str, **fields: JSON) -> Answer:
    """Return an answer of `messages` that ends in a certain way."""
    return Answer(
        message(text("Hel"), stop=reason, usage=ENDING, **fields),
        (
            start({"input_tokens": 5, "output_tokens": 1}),
            *text_block(0, "Hel"),
            *stop(reason, {"output_tokens": 2}, **fields),
        ),
    )


CASES = (
    answers(
        "ending-length-pitfall-68",
        {"chat": ended("length"), "messages": stopped("max_tokens")},
        {
            "chat": choice({"content": "Hel"}, "length", chat_usage(5, 2)),
            "messages": message(text("Hel"), stop="max_tokens", usage={"input_tokens": 5, "output_tokens": 2}),
        },
        {},
        {"chat": {"raised": "LengthFinishReasonError"}},
    ),
    answers(
        "ending-context-pitfall-71",
        {"messages": stopped("model_context_window_exceeded")},
        {
            "chat": choice(
                {"content": "Hel"},
                "length",
                chat_usage(5, 2),
                native_finish_reason="model_context_window_exceeded",
            )
        },
        {"chat": ("$.candidates[0] finish approximated (`context` is written as `length`)",)},
        {"chat": {"raised": "LengthFinishReasonError"}},
    ),
    answers(
        "ending-pause-pitfall-71",
        {"messages": stopped("pause_turn")},
        {"chat": choice({"content": "Hel"}, "stop", chat_usage(5, 2), native_finish_reason="pause_turn")},
        {"chat": ("$.candidates[0] finish approximated (`pause` is written as `stop`)",)},
        {
            "chat": {
                "id": "msg_1",
                "choices": [{"finish_reason": "stop", "index": 0, "message": assistant("Hel")}],
                "created": "now",
                "model": "messages-small-0101",
                "object": "chat.completion",
                "usage": {"completion_tokens": 2, "prompt_tokens": 5, "total_tokens": 7},
            }
        },
    ),
    answers(
        "ending-unknown",
        {"chat": ended("tired"), "messages": stopped("tired")},
        {
            "chat": choice({"content": "Hel"}, "stop", chat_usage(5, 2), native_finish_reason="tired"),
            "messages": message(text("Hel"), stop="end_turn", usage={"input_tokens": 5, "output_tokens": 2}),
        },
        {
            "chat": ("$.candidates[0] finish approximated (`unknown` is written as `stop`)",),
            "messages": ("$.candidates[0].finish reason approximated (unknown to the dialect; written as `end_turn`)",),
        },
        {
            "chat": {
                "id": "msg_1",
                "choices": [{"finish_reason": "stop", "index": 0, "message": assistant("Hel")}],
                "created": "now",
                "model": "messages-small-0101",
                "object": "chat.completion",
                "usage": {"completion_tokens": 2, "prompt_tokens": 5, "total_tokens": 7},
            }
        },
    ),
    answers(
        "ending-stop-string-pitfall-70",
        {"chat": ended("stop", stop_reason="END"), "messages": stopped("stop_sequence", stop_sequence="END")},
        {
            "chat": choice({"content": "Hel"}, "stop", chat_usage(5, 2), stop_reason="END"),
            "messages": message(
                text("Hel"), stop="stop_sequence", usage={"input_tokens": 5, "output_tokens": 2}, stop_sequence="END"
            ),
        },
        {},
        {
            "chat": {
                "id": "msg_1",
                "choices": [{"finish_reason": "stop", "index": 0, "message": assistant("Hel")}],
                "created": "now",
                "model": "messages-small-0101",
                "object": "chat.completion",
                "usage": {"completion_tokens": 2, "prompt_tokens": 5, "total_tokens": 7},
            }
        },
    ),
    answers(
        "ending-filter-pitfall-72",
        {"chat": ended("content_filter")},
        {"messages": message(text("Hel"), stop="refusal", usage={"input_tokens": 5, "output_tokens": 2})},
    ),
    answers(
        "ending-refusal-pitfall-72",
        {
            "chat": Answer(
                choice({"content": None, "refusal": "I will not."}, "stop", chat_usage(5, 2)),
                (
                    delta(role="assistant", content="", refusal=None),
                    delta(refusal="I will"),
                    delta(refusal=" not."),
                    delta("stop"),
                    last_usage(chat_usage(5, 2)),
                ),
            ),
            "messages": stopped(
                "refusal", stop_details={"type": "refusal", "category": "cyber", "explanation": "Not that."}
            ),
        },
        {
            "chat": choice({"content": "Hel", "refusal": "Not that."}, "content_filter", chat_usage(5, 2)),
            "messages": message(text("I will not."), stop="refusal", usage={"input_tokens": 5, "output_tokens": 2}),
        },
        {
            "chat": (
                "$.candidates[0].finish explanation emulated (written as the `refusal` of the message)",
                "$.candidates[0].finish stop_details dropped (only messages has it)",
            ),
            "messages": ("$.candidates[0].content[0] refusal approximated (written as text)",),
        },
        {"chat": {"raised": "ContentFilterFinishReasonError"}},
    ),
)
