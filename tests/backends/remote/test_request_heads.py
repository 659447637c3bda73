"""Request heads: written once, and the same as if each were written anew."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xenoglot.backends.http.timeouts import TransportError
from xenoglot.backends.remote import request_heads
from xenoglot.backends.remote.request_heads import MOST, RequestHeads

pytestmark = pytest.mark.usefixtures("with_shortcuts")

Passed = tuple[tuple[str, str], ...]

KEYS = [[("authorization", "Bearer one")], [("authorization", "Bearer two")]]
FIXED = {"X-Fixed": "yes"}
URL = "http://h:81/v1/chat"


@pytest.fixture(autouse=True)
def nobody_before() -> None:
    request_heads.arrive(0)


def test_a_head_says_what_is_sent_where_to_with_which_key() -> None:
    prepared = RequestHeads(KEYS, FIXED).post(URL, 1, "text/event-stream", (("x-client", "a"), ("accept", "b")))
    assert prepared.request(b"{}").head == (
        b"POST /v1/chat HTTP/1.1\r\nhost: h:81\r\ncontent-type: application/json\r\naccept: b\r\n"
        b"user-agent: xenoglot\r\nauthorization: Bearer two\r\nx-fixed: yes\r\nx-xenoglot-hops: 1\r\n"
        b"x-client: a\r\naccept-encoding: identity\r\ncontent-length: 2\r\n\r\n"
    )


ASKED = st.tuples(
    st.sampled_from([URL, "http://h:81/v1/other"]),
    st.integers(0, 1),
    st.sampled_from(["application/json", "text/event-stream"]),
    st.lists(st.tuples(st.sampled_from(["x-a", "x-b", "user-agent"]), st.sampled_from("cd")), max_size=2).map(tuple),
    st.integers(0, 4),
)


@given(st.lists(ASKED, max_size=12))
def test_a_head_that_was_kept_is_the_same_as_a_new_one(asked: list[tuple[str, int, str, Passed, int]]) -> None:
    kept = RequestHeads(KEYS, FIXED)
    for url, key, accept, passed, before in asked:
        request_heads.arrive(before)
        assert kept.post(url, key, accept, passed) == RequestHeads(KEYS, FIXED).post(url, key, accept, passed)


def test_what_clients_send_is_kept_within_a_bound_r30() -> None:
    heads = RequestHeads(KEYS, FIXED)
    for number in range(3 * MOST):
        heads.post(URL, 0, "application/json", (("x-client", str(number)),))
        heads.post(URL, 0, "application/json", (("x-client", str(number) * 5_000),))
    assert 0 < len(heads._prepared) <= MOST


def test_a_field_that_would_break_the_message_is_refused_each_time_r60() -> None:
    heads = RequestHeads(KEYS, FIXED)
    for _ in range(2):
        with pytest.raises(TransportError, match="`x-client` has characters"):
            heads.post(URL, 0, "application/json", (("x-client", "a\r\nx-evil: 1"),))
