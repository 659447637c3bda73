"""Questions for a number of tokens, both ways."""

from xenoglot.codec.loss import Losses
from xenoglot.codec.target import Target
from xenoglot.dialects.responses.request.count_tokens import decode_counted, encode_count, encode_count_request
from xenoglot.dialects.responses.request.decoder import decode_count
from xenoglot.model.content import Text
from xenoglot.model.request import Message, Request


def test_a_question_need_not_name_the_model() -> None:
    request = decode_count({"input": "Hi"})
    assert (request.model, request.messages) == ("", (Message(role="user", content=(Text(text="Hi"),)),))


def test_a_question_has_only_what_is_counted() -> None:
    request = Request(model="m", messages=(Message(role="user", content=(Text(text="Hi"),)),), stream=True, user="u")
    items = [{"type": "message", "role": "user", "content": "Hi"}]
    assert encode_count_request(request, Losses(), Target()) == {"model": "m", "input": items}


def test_the_answer() -> None:
    assert encode_count(7) == {"object": "response.input_tokens", "input_tokens": 7}
    assert decode_counted({"object": "response.input_tokens", "input_tokens": 7}) == 7
    assert decode_counted({"x_new": 1}) is None
