"""JSON mode for servers that have none: the end of the prompt asks for JSON."""

import pytest

from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialect_registry import get
from xenoglot.model.content import Text
from xenoglot.model.request import Message, OutputFormat, Prompt, Request

ASK = (Message(role="user", content=(Text(text="obj"),)),)
PREFILL = (*ASK, Message(role="assistant", content=(Text(text="{"),)))
TOLD = "User: obj\n\nSystem: Answer with JSON alone.\n\nAssistant:"
GONE = "$ output dropped (the dialect has no form of answers)"
NEAR = "$.output kind approximated (described at the end of the prompt, and not enforced)"


@pytest.mark.parametrize(
    ("request_", "prompt", "loss"),
    [
        pytest.param(Request(model="m", messages=ASK), TOLD, NEAR, id="findings-clients-6-turns"),
        pytest.param(Request(model="m", messages=PREFILL), "User: obj\n\nAssistant: {", GONE, id="prefill"),
        pytest.param(Request(model="m", prompt=Prompt(texts=("obj",))), "obj", GONE, id="prompt"),
    ],
)
def test_json_mode(request_: Request, prompt: str, loss: str) -> None:
    losses = Losses()
    asked = Request(model="m", messages=request_.messages, prompt=request_.prompt, output=OutputFormat(kind="json"))
    body = get("completions").encode_request(asked, losses, Target())
    assert body["prompt"] == prompt
    assert [str(one) for one in losses if "output" in (one.what, one.where.removeprefix("$."))] == [loss]
