"""A server that the official SDKs ask without knowing: each gets our bytes instead of an answer from far away."""

import anthropic
import httpx2
import openai

from xenoglot.codec.framing.sse import ServerSentEvent, SSEEncoder
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.stage import through
from xenoglot.model.json import JSON


class Wire:
    """What the next request is answered with."""

    def __init__(self) -> None:
        self._answer = httpx2.Response(500)

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self._answer.request = request
        return self._answer

    def stream(self, events: list[ServerSentEvent]) -> None:
        body = b"".join(through(events, SSEEncoder()))
        self._answer = httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body)

    def whole(self, body: JSON, status: int) -> None:
        self._answer = httpx2.Response(status, headers={"content-type": "application/json"}, content=encode_json(body))


WIRE = Wire()
CLIENT = httpx2.Client(transport=httpx2.MockTransport(WIRE))
OPENAI = openai.OpenAI(api_key="k", base_url="http://oracle.test/v1", http_client=CLIENT, max_retries=0)
ANTHROPIC = anthropic.Anthropic(api_key="k", base_url="http://oracle.test", http_client=CLIENT, max_retries=0)


def to_json(answer: openai.BaseModel | anthropic.BaseModel) -> JSON:
    """Return the answer as JSON; kinds of blocks that the SDK does not know yet are no mistake."""
    return answer.to_dict(mode="json", warnings=False)
