"""Types of the client, checked twice: by mypy, for which each `ignore` has to be needed, and at run time."""

from typing import TYPE_CHECKING, assert_type

import pytest

import xenoglot
from xenoglot.backends.callable import Callable
from xenoglot.errors import InvalidRequestError

if TYPE_CHECKING:
    from xenoglot.client.tool_loop.run import RunStream


@pytest.fixture
def client() -> xenoglot.Client:
    return xenoglot.Client(Callable(lambda _: '{"value": [1, 2]}'))


def test_what_calls_return(client: xenoglot.Client) -> None:
    reply = assert_type(client.complete("Hi", temperature=0.5, stop=["x"], thinking="low"), xenoglot.Reply)
    assert_type(reply.tool_calls, tuple[xenoglot.ToolCall, ...])
    parsed = assert_type(client.parse("Hi", list[int], max_tokens=9), xenoglot.Parsed[list[int], xenoglot.Reply])
    assert assert_type(parsed.value, list[int]) == [1, 2]
    assert assert_type(client.run("Hi", [], max_rounds=1), xenoglot.RunResult).outcome == "answered"
    with client.run_stream("Hi", [], on_limit="answer") as stream:
        if TYPE_CHECKING:
            assert_type(stream, RunStream)
        assert list(stream)
    assert_type(client.count_tokens("Hi"), int | None)


def test_an_unknown_option_is_an_error(client: xenoglot.Client) -> None:
    with pytest.raises(TypeError, match="did you mean `max_tokens`"):
        client.complete("Hi", max_token=9)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="did you mean `max_tokens`"):
        client.stream("Hi", max_token=9).reply()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="did you mean `max_tokens`"):
        client.parse("Hi", list[int], max_token=9)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="did you mean `max_rounds`"):
        client.run("Hi", [], max_round=9)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="did you mean `max_rounds`"):
        list(client.run_stream("Hi", [], max_round=9))  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="modell"):
        xenoglot.Client(modell="m")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="modell"):
        xenoglot.AsyncClient(modell="m")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="time_limits"):
        xenoglot.tool(time_limits=3)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="timeout"):
        xenoglot.mcp_tools(["server"], timeout=3)  # type: ignore[call-arg]


def test_an_option_of_a_wrong_type_is_an_error(client: xenoglot.Client) -> None:
    with pytest.raises(InvalidRequestError, match="temperature"):
        client.complete("Hi", temperature="hot")  # type: ignore[arg-type]
    with pytest.raises(xenoglot.ConfigurationError, match="max_rounds"):
        client.run("Hi", [], max_rounds="many")  # type: ignore[arg-type]
    with pytest.raises(xenoglot.ConfigurationError, match="on_limit"):
        client.run("Hi", [], on_limit="stop")  # type: ignore[arg-type]
    with pytest.raises(xenoglot.ConfigurationError, match="on_loss"):
        xenoglot.Client(on_loss="raise")  # type: ignore[arg-type]
