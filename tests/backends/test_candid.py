"""What a server says of a key, and what it calls a request: told to those whose own key it is, and to nobody else."""

import pytest
from msgspec.structs import replace

from tests.client.server_scripts import HELLO, HELLO_STREAMED, error_answer
from xenoglot.backends.backend import Answer, Call
from xenoglot.backends.http.client import Transport
from xenoglot.backends.http.timeouts import Deadlines
from xenoglot.backends.remote.backend import Remote
from xenoglot.codec.loss import Losses
from xenoglot.dialect_registry import get
from xenoglot.errors import FailureError
from xenoglot.model.content import Text
from xenoglot.model.failure import Failure
from xenoglot.model.request import Message, Request
from xenoglot.testing import Respond, Steps, Upstream

HI = Request(model="m", messages=(Message(role="user", content=(Text(text="Hi"),)),))


async def answered(script: Steps, *, candid: bool) -> Answer | Failure:
    """What comes of one question to a server that does `script`."""
    transport = Transport()
    try:
        async with Upstream(script) as server:
            remote = Remote("r", get("chat"), server.url, transport=transport, keys=("sk-secret-1",), candid=candid)
            answer = await remote.answer(Call(request=HI, losses=Losses()))
            await answer.aclose()
            return answer
    except FailureError as error:
        return error.failure
    finally:
        await transport.aclose()


@pytest.mark.parametrize(
    ("status", "kind"),
    [pytest.param(401, "authentication", id="401"), pytest.param(403, "permission", id="403")],
)
async def test_a_refused_key(status: int, kind: str) -> None:
    script = error_answer(status, {"message": "the key sk-secret-1 is old", "code": "old_key"})
    told = await answered(script, candid=True)
    assert isinstance(told, Failure)
    assert (told.kind, told.status, told.code, told.request_id) == (kind, status, "old_key", "req-7")
    assert "is old" in told.message
    assert "sk-secret-1" not in told.message
    hidden = await answered(script, candid=False)
    assert isinstance(hidden, Failure)
    assert (hidden.kind, hidden.status, hidden.request_id) == ("upstream", None, None)
    assert "old" not in hidden.message


async def test_a_fault_of_the_server() -> None:
    script = error_answer(500, {"message": "line 3 of /srv/app.py", "type": "server_error"})
    told, hidden = await answered(script, candid=True), await answered(script, candid=False)
    assert isinstance(told, Failure)
    assert isinstance(hidden, Failure)
    assert ("/srv/app.py" in told.message, "/srv/app.py" in hidden.message) == (True, False)


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        pytest.param(b"token expired for sk-secret-1", "token expired for [redacted]", id="text"),
        pytest.param(b'{"errors":["token expired"]}', '{"errors":["token expired"]}', id="errors"),
        pytest.param(
            b"x" * 496 + b" sk-secret-1 " + b"y" * 100_000, "x" * 496 + " [re", id="long-with-a-key-at-the-cut"
        ),
        pytest.param(b"caf\xe9", "caf\ufffd", id="no-utf-8"),
        pytest.param(b" \n", None, id="blank"),
        pytest.param(b"", None, id="empty"),
        pytest.param(b'{"error":{"message":"known"}}', None, id="known"),
    ],
)
@pytest.mark.parametrize("status", [401, 418, 500])
async def test_findings_c9_plain_a_body_without_a_known_error(status: int, body: bytes, kept: str | None) -> None:
    script: Steps = (Respond(status=status, headers=(("content-type", "text/plain"),), body=body),)
    told, hidden = await answered(script, candid=True), await answered(script, candid=False)
    assert isinstance(told, Failure)
    assert isinstance(hidden, Failure)
    known = told.message == "known"
    assert (None if known else told.details) == kept
    assert known or "token" not in told.message
    assert not isinstance(hidden.details, str)
    assert "expired" not in str(replace(hidden, operator_message=None))


@pytest.mark.parametrize("script", [pytest.param(HELLO, id="whole"), pytest.param(HELLO_STREAMED, id="streamed")])
async def test_answers_have_the_id_of_the_request(script: Steps) -> None:
    found = await answered(script, candid=False)
    assert not isinstance(found, Failure)
    assert found.request_id == "req-7"


async def test_other_deadlines_over_the_same_connections() -> None:
    transport = Transport(deadlines=Deadlines(total=9.0))
    async with Upstream(HELLO) as server:
        for one in (transport, transport.with_deadlines(Deadlines(total=3.0)), transport):
            reply = await one.send("GET", server.url, ())
            await reply.read()
        assert len(server.connections) == 1
        await transport.aclose()
        assert transport.deadlines.total == 9.0
