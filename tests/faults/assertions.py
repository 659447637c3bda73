"""Assertions about what a client received: an error, an aborted stream, a complete response."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.faults.client_view import read_error, read_stream, response_text

if TYPE_CHECKING:
    from tests.faults.client_view import ReceivedError, ReceivedStream
    from tests.faults.raw_client import RawResponse
    from xenoglot.model.json import JSON


def assert_refused(client: str, answer: RawResponse, words: tuple[JSON, ...], status: int) -> ReceivedError:
    """Assert that an answer is an error of that status in the client's words; return what it tells."""
    assert answer.status == status, answer.raw
    told = read_error(client, answer.body)
    assert told.codes == words, answer.raw
    assert answer.complete
    assert answer.headers["x-request-id"].startswith("req_")
    return told


def assert_aborted(client: str, answer: RawResponse, words: tuple[JSON, ...], text: str) -> ReceivedError:
    """Assert that a stream was broken off behind `text` with an error in the client's words; return what it tells."""
    assert answer.status == 200, answer.raw
    said = read_stream(client, answer.body)
    assert said.error is not None, answer.raw
    assert (said.text, said.ended, said.error.codes) == (text, False, words), answer.raw
    assert not answer.complete, answer.raw
    return said.error


def assert_completed(client: str, answer: RawResponse, *, streamed: bool, text: str = "Hello") -> None:
    """Assert that an answer is whole, and says `text`."""
    assert (answer.status, answer.complete) == (200, True), answer.raw
    if streamed:
        said: ReceivedStream = read_stream(client, answer.body)
        assert (said.text, said.error) == (text, None), answer.raw
        assert said.ended, answer.raw
    else:
        assert response_text(client, answer.body) == text, answer.raw
