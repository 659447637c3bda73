"""Names of the semantic conventions of OpenTelemetry that are used here.

They are those of version 1.44.0 (https://opentelemetry.io/schemas/1.44.0). The conventions of generative AI are kept in
https://github.com/open-telemetry/semantic-conventions-genai by now (docs/gen-ai/gen-ai-spans.md and gen-ai-metrics.md,
read at commit 004902b8cb70). Their status is "development", so the names are pinned here; a test compares them with
those of the package `opentelemetry-semantic-conventions` 0.66b2.
"""

from __future__ import annotations

from typing import Final

VERSION: Final = "1.44.0"
SCHEMA_URL: Final = f"https://opentelemetry.io/schemas/{VERSION}"

ERROR_TYPE: Final = "error.type"
HTTP_REQUEST_METHOD: Final = "http.request.method"
HTTP_RESPONSE_STATUS_CODE: Final = "http.response.status_code"
HTTP_ROUTE: Final = "http.route"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
SERVICE_NAME: Final = "service.name"
SERVICE_VERSION: Final = "service.version"

GEN_AI_INPUT_MESSAGES: Final = "gen_ai.input.messages"
GEN_AI_OPERATION_NAME: Final = "gen_ai.operation.name"
GEN_AI_OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
GEN_AI_OUTPUT_TYPE: Final = "gen_ai.output.type"
GEN_AI_PROVIDER_NAME: Final = "gen_ai.provider.name"
GEN_AI_REQUEST_CHOICE_COUNT: Final = "gen_ai.request.choice.count"
GEN_AI_REQUEST_FREQUENCY_PENALTY: Final = "gen_ai.request.frequency_penalty"
GEN_AI_REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
GEN_AI_REQUEST_MODEL: Final = "gen_ai.request.model"
GEN_AI_REQUEST_PRESENCE_PENALTY: Final = "gen_ai.request.presence_penalty"
GEN_AI_REQUEST_SEED: Final = "gen_ai.request.seed"
GEN_AI_REQUEST_STREAM: Final = "gen_ai.request.stream"
GEN_AI_REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
GEN_AI_REQUEST_TOP_K: Final = "gen_ai.request.top_k"
GEN_AI_REQUEST_TOP_P: Final = "gen_ai.request.top_p"
GEN_AI_RESPONSE_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
GEN_AI_RESPONSE_ID: Final = "gen_ai.response.id"
GEN_AI_RESPONSE_MODEL: Final = "gen_ai.response.model"
GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
GEN_AI_SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
GEN_AI_TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105  no password
GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS: Final = "gen_ai.usage.cache_creation.input_tokens"
GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
GEN_AI_USAGE_INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
GEN_AI_USAGE_OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"

CHAT: Final = "chat"
EMBEDDINGS: Final = "embeddings"
TEXT_COMPLETION: Final = "text_completion"

CLIENT_OPERATION_DURATION: Final = "gen_ai.client.operation.duration"
CLIENT_TIME_TO_FIRST_CHUNK: Final = "gen_ai.client.operation.time_to_first_chunk"
CLIENT_TOKEN_USAGE: Final = "gen_ai.client.token.usage"  # noqa: S105  no password
SERVER_REQUEST_DURATION: Final = "gen_ai.server.request.duration"
SERVER_TIME_PER_OUTPUT_TOKEN: Final = "gen_ai.server.time_per_output_token"  # noqa: S105  no password
SERVER_TIME_TO_FIRST_TOKEN: Final = "gen_ai.server.time_to_first_token"  # noqa: S105  no password

DURATION_BUCKETS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
TOKEN_BUCKETS: Final = tuple(4.0**power for power in range(14))
FIRST_TOKEN_BUCKETS: Final = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
)
OUTPUT_TOKEN_BUCKETS: Final = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)

XENOGLOT_REQUEST_ID: Final = "xenoglot.request.id"
XENOGLOT_TENANT: Final = "xenoglot.tenant"
XENOGLOT_DIALECT_IN: Final = "xenoglot.dialect.in"
XENOGLOT_DIALECT_OUT: Final = "xenoglot.dialect.out"
XENOGLOT_UPSTREAM: Final = "xenoglot.upstream"
XENOGLOT_TAG: Final = "xenoglot.tag"
XENOGLOT_TRIES: Final = "xenoglot.tries"
XENOGLOT_LOSSES: Final = "xenoglot.losses"
XENOGLOT_COST: Final = "xenoglot.cost"
XENOGLOT_COST_CURRENCY: Final = "xenoglot.cost.currency"
XENOGLOT_USAGE_ESTIMATED: Final = "xenoglot.usage.estimated"
XENOGLOT_CONTENT_TRUNCATED: Final = "xenoglot.content_truncated"
