"""What upstreams answer instead of an answer, and which error of its SDK each client gets. Data for `test_refusals`."""

from __future__ import annotations

from msgspec import Struct, field

from tests.matrix.case import Pair
from tests.matrix.upstream import Reply, json_reply
from xenoglot.model.json import JSON, JSONObject

REQUEST = "<the request's id>"
"""Stands for the id of the request, which is the gateway's own."""

IN_SEVEN_SECONDS = "<in seven seconds>"
"""Stands for a moment, written as `messages` writes it."""


class Refusal(Struct, frozen=True, kw_only=True):
    """One way to be refused; `raised` is the SDK's error as `test_refusals.error_of` tells it."""

    name: str
    answered: dict[str, Reply]
    raised: dict[Pair, JSONObject] = field(default_factory=dict)


def chat_error(message: str, kind: str | None, code: str | None = None, param: str | None = None) -> JSONObject:
    """Return the body of an error in `chat`."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def messages_error(message: str, kind: str, **more: JSON) -> JSONObject:
    """Return the body of an error in `messages`."""
    return {"type": "error", "error": {"type": kind, "message": message, **more}, "request_id": "req_upstream"}


def openai_error(  # noqa: PLR0913, PLR0917  all that an error says
    name: str,
    status: int,
    message: str,
    kind: str | None,
    code: str | None = None,
    param: str | None = None,
    **headers: str,
) -> JSONObject:
    """Return an error of openai; of `headers` the underscores stand for hyphens."""
    body = {"message": message, "type": kind, "param": param, "code": code}
    return {"class": name, "status": status, "body": body} | _hyphenated(headers)


def anthropic_error(name: str, status: int, message: str, kind: str, **headers: str) -> JSONObject:
    """Return an error of anthropic; of `headers` the underscores stand for hyphens."""
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": REQUEST}
    return {"class": name, "status": status, "body": body} | _hyphenated(headers)


def _hyphenated(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def refusal(name: str, chat: Reply, messages: Reply, raised: dict[Pair, JSONObject]) -> Refusal:
    """Return a refusal that both upstreams can say."""
    return Refusal(name=name, answered={"chat": chat, "messages": messages}, raised=raised)


OVERFLOW = (
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. "
    "Please reduce the length of the messages."
)
HTML = Reply(status=502, media_type="text/html", body=b"<html><body>nginx at internal.example:8000</body></html>")

REFUSALS = (
    refusal(
        "400-invalid-request",
        json_reply(
            chat_error("Invalid type for 'messages'.", "invalid_request_error", "invalid_type", "messages"), 400
        ),
        json_reply(messages_error("messages.0.content: Field required", "invalid_request_error"), 400),
        {
            ("chat", "chat"): openai_error(
                "BadRequestError",
                400,
                "Invalid type for 'messages'.",
                "invalid_request_error",
                "invalid_type",
                "messages",
                x_should_retry="false",
            ),
            ("chat", "messages"): openai_error(
                "BadRequestError",
                400,
                "messages.0.content: Field required",
                "invalid_request_error",
                x_should_retry="false",
            ),
            ("messages", "chat"): anthropic_error(
                "BadRequestError", 400, "Invalid type for 'messages'.", "invalid_request_error", x_should_retry="false"
            ),
            ("messages", "messages"): anthropic_error(
                "BadRequestError",
                400,
                "messages.0.content: Field required",
                "invalid_request_error",
                x_should_retry="false",
            ),
        },
    ),
    refusal(
        "400-context-overflow-pitfall-123",
        json_reply(
            chat_error(
                OVERFLOW,
                "invalid_request_error",
                "context_length_exceeded",
                "messages",
            ),
            400,
        ),
        json_reply(messages_error("prompt is too long: 210000 tokens > 200000 maximum", "invalid_request_error"), 400),
        {
            ("chat", "chat"): openai_error(
                "BadRequestError",
                400,
                OVERFLOW,
                "invalid_request_error",
                "context_length_exceeded",
                "messages",
                x_should_retry="false",
            ),
            ("chat", "messages"): openai_error(
                "BadRequestError",
                400,
                "This model's maximum context length is 200000 tokens. "
                "However, your messages resulted in 210000 tokens.",
                "invalid_request_error",
                "context_length_exceeded",
                x_should_retry="false",
            ),
            ("messages", "chat"): anthropic_error(
                "BadRequestError",
                400,
                "prompt is too long: 9000 tokens > 8192 maximum",
                "invalid_request_error",
                x_should_retry="false",
            ),
            ("messages", "messages"): anthropic_error(
                "BadRequestError",
                400,
                "prompt is too long: 210000 tokens > 200000 maximum",
                "invalid_request_error",
                x_should_retry="false",
            ),
        },
    ),
    refusal(
        "401-U40",
        json_reply(
            chat_error(
                "Incorrect API key provided: key-for-chat-9876543210.", "invalid_request_error", "invalid_api_key"
            ),
            401,
        ),
        json_reply(messages_error("invalid x-api-key", "authentication_error"), 401),
        {
            ("chat", "chat"): openai_error(
                "InternalServerError",
                502,
                "the upstream refused the gateway's credentials",
                "server_error",
                "upstream_error",
                x_should_retry="false",
            ),
            ("chat", "messages"): openai_error(
                "InternalServerError",
                502,
                "the upstream refused the gateway's credentials",
                "server_error",
                "upstream_error",
                x_should_retry="false",
            ),
            ("messages", "chat"): anthropic_error(
                "InternalServerError",
                502,
                "the upstream refused the gateway's credentials",
                "api_error",
                x_should_retry="false",
            ),
            ("messages", "messages"): anthropic_error(
                "InternalServerError",
                502,
                "the upstream refused the gateway's credentials",
                "api_error",
                x_should_retry="false",
            ),
        },
    ),
    refusal(
        "402-billing",
        json_reply(chat_error("Insufficient balance", "insufficient_quota", "insufficient_quota"), 402),
        json_reply(messages_error("Your credit balance is too low.", "billing_error"), 402),
        {
            ("chat", "chat"): openai_error(
                "APIStatusError",
                402,
                "Insufficient balance",
                "insufficient_quota",
                "insufficient_quota",
                x_should_retry="false",
            ),
            ("chat", "messages"): openai_error(
                "APIStatusError",
                402,
                "Your credit balance is too low.",
                "insufficient_quota",
                "insufficient_quota",
                x_should_retry="false",
            ),
            ("messages", "chat"): anthropic_error(
                "PaymentRequiredError", 402, "Insufficient balance", "billing_error", x_should_retry="false"
            ),
            ("messages", "messages"): anthropic_error(
                "PaymentRequiredError", 402, "Your credit balance is too low.", "billing_error", x_should_retry="false"
            ),
        },
    ),
    refusal(
        "403-U40",
        json_reply(chat_error("No access to the project of key-for-chat-9876543210.", "permission_error", None), 403),
        json_reply(messages_error("Your key may not use this model.", "permission_error"), 403),
        {
            ("chat", "chat"): openai_error(
                "InternalServerError",
                502,
                "the upstream refused the gateway's credentials",
                "server_error",
                "upstream_error",
                x_should_retry="false",
            ),
            ("chat", "messages"): openai_error(
                "InternalServerError",
                502,
                "the upstream refused the gateway's credentials",
                "server_error",
                "upstream_error",
                x_should_retry="false",
            ),
            ("messages", "chat"): anthropic_error(
                "InternalServerError",
                502,
                "the upstream refused the gateway's credentials",
                "api_error",
                x_should_retry="false",
            ),
            ("messages", "messages"): anthropic_error(
                "InternalServerError",
                502,
                "the upstream refused the gateway's credentials",
                "api_error",
                x_should_retry="false",
            ),
        },
    ),
    refusal(
        "404-U41",
        json_reply(
            chat_error("The model `chat-small` does not exist", "invalid_request_error", "model_not_found", "model"),
            404,
        ),
        json_reply(messages_error("model: messages-small", "not_found_error"), 404),
        {
            ("chat", "chat"): openai_error(
                "NotFoundError",
                404,
                "The model `chat-small` does not exist",
                "invalid_request_error",
                "model_not_found",
                "model",
                x_should_retry="false",
            ),
            ("chat", "messages"): openai_error(
                "NotFoundError",
                404,
                "model: messages-small",
                "invalid_request_error",
                "not_found",
                x_should_retry="false",
            ),
            ("messages", "chat"): anthropic_error(
                "NotFoundError", 404, "The model `chat-small` does not exist", "not_found_error", x_should_retry="false"
            ),
            ("messages", "messages"): anthropic_error(
                "NotFoundError", 404, "model: messages-small", "not_found_error", x_should_retry="false"
            ),
        },
    ),
    refusal(
        "409-conflict",
        json_reply(chat_error("Busy", "invalid_request_error", "conflict"), 409),
        json_reply(messages_error("Busy", "conflict_error"), 409),
        {
            ("chat", "chat"): openai_error(
                "ConflictError", 409, "Busy", "invalid_request_error", "conflict", x_should_retry="false"
            ),
            ("chat", "messages"): openai_error(
                "ConflictError", 409, "Busy", "invalid_request_error", "conflict", x_should_retry="false"
            ),
            ("messages", "chat"): anthropic_error(
                "ConflictError", 409, "Busy", "conflict_error", x_should_retry="false"
            ),
            ("messages", "messages"): anthropic_error(
                "ConflictError", 409, "Busy", "conflict_error", x_should_retry="false"
            ),
        },
    ),
    refusal(
        "413-too-large",
        json_reply(chat_error("Request too large", "invalid_request_error", "request_too_large"), 413),
        json_reply(messages_error("Request exceeds the maximum size", "request_too_large"), 413),
        {
            ("chat", "chat"): openai_error(
                "APIStatusError",
                413,
                "Request too large",
                "invalid_request_error",
                "request_too_large",
                x_should_retry="false",
            ),
            ("chat", "messages"): openai_error(
                "APIStatusError",
                413,
                "Request exceeds the maximum size",
                "invalid_request_error",
                "request_too_large",
                x_should_retry="false",
            ),
            ("messages", "chat"): anthropic_error(
                "ContentTooLargeError", 413, "Request too large", "request_too_large", x_should_retry="false"
            ),
            ("messages", "messages"): anthropic_error(
                "ContentTooLargeError",
                413,
                "Request exceeds the maximum size",
                "request_too_large",
                x_should_retry="false",
            ),
        },
    ),
    refusal(
        "422-unprocessable",
        json_reply({"detail": [{"loc": ["body", "messages"], "msg": "Field required", "type": "missing"}]}, 422),
        json_reply(messages_error("messages: Field required", "invalid_request_error"), 422),
        {
            ("chat", "chat"): openai_error(
                "UnprocessableEntityError",
                422,
                "body.messages: Field required",
                "invalid_request_error",
                x_should_retry="false",
            ),
            ("chat", "messages"): openai_error(
                "BadRequestError", 400, "messages: Field required", "invalid_request_error", x_should_retry="false"
            ),
            ("messages", "chat"): anthropic_error(
                "BadRequestError", 400, "body.messages: Field required", "invalid_request_error", x_should_retry="false"
            ),
            ("messages", "messages"): anthropic_error(
                "UnprocessableEntityError",
                422,
                "messages: Field required",
                "invalid_request_error",
                x_should_retry="false",
            ),
        },
    ),
    refusal(
        "429-pitfall-122",
        json_reply(
            chat_error("Rate limit reached", "requests", "rate_limit_exceeded"),
            429,
            (
                ("retry-after", "7"),
                ("x-ratelimit-limit-requests", "60"),
                ("x-ratelimit-remaining-requests", "0"),
                ("x-ratelimit-reset-requests", "7s"),
            ),
        ),
        json_reply(
            messages_error("This would exceed your rate limit", "rate_limit_error"),
            429,
            (
                ("retry-after", "7"),
                ("anthropic-ratelimit-requests-limit", "60"),
                ("anthropic-ratelimit-requests-remaining", "0"),
            ),
        ),
        {
            ("chat", "chat"): openai_error(
                "RateLimitError",
                429,
                "Rate limit reached",
                "requests",
                "rate_limit_exceeded",
                retry_after="7",
                x_ratelimit_limit_requests="60",
                x_ratelimit_remaining_requests="0",
                x_ratelimit_reset_requests="7s",
            ),
            ("chat", "messages"): openai_error(
                "RateLimitError",
                429,
                "This would exceed your rate limit",
                "rate_limit_error",
                "rate_limit_exceeded",
                retry_after="7",
                x_ratelimit_limit_requests="60",
                x_ratelimit_remaining_requests="0",
            ),
            ("messages", "chat"): anthropic_error(
                "RateLimitError",
                429,
                "Rate limit reached",
                "rate_limit_error",
                retry_after="7",
                anthropic_ratelimit_requests_limit="60",
                anthropic_ratelimit_requests_remaining="0",
                anthropic_ratelimit_requests_reset=IN_SEVEN_SECONDS,
            ),
            ("messages", "messages"): anthropic_error(
                "RateLimitError",
                429,
                "This would exceed your rate limit",
                "rate_limit_error",
                retry_after="7",
                anthropic_ratelimit_requests_limit="60",
                anthropic_ratelimit_requests_remaining="0",
            ),
        },
    ),
    refusal(
        "429-without-a-word",
        json_reply({}, 429),
        json_reply({}, 429),
        {
            ("chat", "chat"): openai_error(
                "RateLimitError",
                429,
                "the server answered with status 429",
                "rate_limit_error",
                "rate_limit_exceeded",
                retry_after="5",
            ),
            ("chat", "messages"): openai_error(
                "RateLimitError",
                429,
                "the upstream answered with status 429",
                "rate_limit_error",
                "rate_limit_exceeded",
                retry_after="5",
            ),
            ("messages", "chat"): anthropic_error(
                "RateLimitError", 429, "the server answered with status 429", "rate_limit_error", retry_after="5"
            ),
            ("messages", "messages"): anthropic_error(
                "RateLimitError", 429, "the upstream answered with status 429", "rate_limit_error", retry_after="5"
            ),
        },
    ),
    refusal(
        "429-quota",
        json_reply(chat_error("You exceeded your current quota", "insufficient_quota", "insufficient_quota"), 429),
        json_reply(messages_error("Monthly limit", "billing_error"), 429),
        {
            ("chat", "chat"): openai_error(
                "RateLimitError",
                429,
                "You exceeded your current quota",
                "insufficient_quota",
                "insufficient_quota",
                x_should_retry="false",
            ),
            ("chat", "messages"): openai_error(
                "APIStatusError",
                402,
                "Monthly limit",
                "insufficient_quota",
                "insufficient_quota",
                x_should_retry="false",
            ),
            ("messages", "chat"): anthropic_error(
                "PaymentRequiredError", 402, "You exceeded your current quota", "billing_error", x_should_retry="false"
            ),
            ("messages", "messages"): anthropic_error(
                "RateLimitError", 429, "Monthly limit", "billing_error", x_should_retry="false"
            ),
        },
    ),
    refusal(
        "500-R32",
        json_reply(chat_error("Traceback: /srv/app.py at 10.0.0.7", "server_error"), 500),
        json_reply(messages_error("Internal server error at 10.0.0.7", "api_error"), 500),
        {
            ("chat", "chat"): openai_error(
                "InternalServerError", 500, "server error: the upstream failed", "server_error", "internal_error"
            ),
            ("chat", "messages"): openai_error(
                "InternalServerError", 500, "server error: the upstream failed", "server_error", "internal_error"
            ),
            ("messages", "chat"): anthropic_error(
                "InternalServerError", 500, "server error: the upstream failed", "api_error"
            ),
            ("messages", "messages"): anthropic_error(
                "InternalServerError", 500, "server error: the upstream failed", "api_error"
            ),
        },
    ),
    refusal(
        "503-overloaded-pitfall-121",
        json_reply(
            chat_error("The engine is currently overloaded", "server_error"), 503, (("retry-after-ms", "1500"),)
        ),
        json_reply(messages_error("Overloaded", "overloaded_error"), 503),
        {
            ("chat", "chat"): openai_error(
                "InternalServerError", 503, "The engine is currently overloaded", "server_error", retry_after="2"
            ),
            ("chat", "messages"): openai_error(
                "InternalServerError", 503, "Overloaded", "server_error", "service_unavailable"
            ),
            ("messages", "chat"): anthropic_error(
                "OverloadedError", 529, "The engine is currently overloaded", "overloaded_error", retry_after="2"
            ),
            ("messages", "messages"): anthropic_error("OverloadedError", 529, "Overloaded", "overloaded_error"),
        },
    ),
    refusal(
        "529-overloaded",
        json_reply(chat_error("Overloaded", "overloaded_error"), 529),
        json_reply(messages_error("Overloaded", "overloaded_error"), 529),
        {
            ("chat", "chat"): openai_error("InternalServerError", 529, "Overloaded", "overloaded_error"),
            ("chat", "messages"): openai_error(
                "InternalServerError", 503, "Overloaded", "server_error", "service_unavailable"
            ),
            ("messages", "chat"): anthropic_error("OverloadedError", 529, "Overloaded", "overloaded_error"),
            ("messages", "messages"): anthropic_error("OverloadedError", 529, "Overloaded", "overloaded_error"),
        },
    ),
    refusal(
        "502-html-R32",
        HTML,
        HTML,
        {
            ("chat", "chat"): openai_error(
                "InternalServerError",
                502,
                "server error: the upstream failed (status 502)",
                "server_error",
                "upstream_error",
            ),
            ("chat", "messages"): openai_error(
                "InternalServerError",
                502,
                "server error: the upstream failed (status 502)",
                "server_error",
                "upstream_error",
            ),
            ("messages", "chat"): anthropic_error(
                "InternalServerError", 502, "server error: the upstream failed (status 502)", "api_error"
            ),
            ("messages", "messages"): anthropic_error(
                "InternalServerError", 502, "server error: the upstream failed (status 502)", "api_error"
            ),
        },
    ),
    refusal(
        "200-with-an-error",
        json_reply(chat_error("Provider returned error", "server_error", "502"), 200),
        json_reply(messages_error("Overloaded", "overloaded_error"), 200),
        {
            ("chat", "chat"): openai_error(
                "InternalServerError", 500, "server error: the upstream failed", "server_error", "internal_error"
            ),
            ("chat", "messages"): openai_error(
                "InternalServerError", 503, "Overloaded", "server_error", "service_unavailable"
            ),
            ("messages", "chat"): anthropic_error(
                "InternalServerError", 500, "server error: the upstream failed", "api_error"
            ),
            ("messages", "messages"): anthropic_error("OverloadedError", 529, "Overloaded", "overloaded_error"),
        },
    ),
    refusal(
        "200-no-json",
        Reply(body=b"<html>captive portal</html>", media_type="text/html"),
        Reply(body=b"<html>captive portal</html>", media_type="text/html"),
        {
            ("chat", "chat"): openai_error(
                "InternalServerError",
                502,
                "server error: the upstream's answer was not understood: $: not valid JSON: invalid character (byte 0)",
                "server_error",
                "upstream_error",
            ),
            ("chat", "messages"): openai_error(
                "InternalServerError",
                502,
                "server error: the upstream's answer was not understood: $: not valid JSON: invalid character (byte 0)",
                "server_error",
                "upstream_error",
            ),
            ("messages", "chat"): anthropic_error(
                "InternalServerError",
                502,
                "server error: the upstream's answer was not understood: $: not valid JSON: invalid character (byte 0)",
                "api_error",
            ),
            ("messages", "messages"): anthropic_error(
                "InternalServerError",
                502,
                "server error: the upstream's answer was not understood: $: not valid JSON: invalid character (byte 0)",
                "api_error",
            ),
        },
    ),
    refusal(
        "302-U42",
        Reply(status=302, headers=(("location", "http://elsewhere.example/"),)),
        Reply(status=302, headers=(("location", "http://elsewhere.example/"),)),
        {
            ("chat", "chat"): openai_error(
                "InternalServerError", 502, "the upstream gave no answer (status 302)", "server_error", "upstream_error"
            ),
            ("chat", "messages"): openai_error(
                "InternalServerError", 502, "the upstream gave no answer (status 302)", "server_error", "upstream_error"
            ),
            ("messages", "chat"): anthropic_error(
                "InternalServerError", 502, "the upstream gave no answer (status 302)", "api_error"
            ),
            ("messages", "messages"): anthropic_error(
                "InternalServerError", 502, "the upstream gave no answer (status 302)", "api_error"
            ),
        },
    ),
)
