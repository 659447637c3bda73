"""Losses: recorded once each, in order, in words that are safe to show."""

import pytest

from xenoglot.codec.loss import Loss, Losses, form_of
from xenoglot.errors import LossError
from xenoglot.model.content import Extra


def test_each_loss_is_kept_once_in_its_order() -> None:
    losses = Losses()
    losses.dropped("$.sampling", "seed", "no such field")
    losses.approximated("$.sampling", "temperature", "at most 1")
    losses.dropped("$.sampling", "seed", "no such field")
    losses.emulated("$.messages[2].content[0]", "is_error", "in words")
    assert list(losses) == [
        Loss("$.sampling", "seed", "dropped", "no such field"),
        Loss("$.sampling", "temperature", "approximated", "at most 1"),
        Loss("$.messages[2].content[0]", "is_error", "emulated", "in words"),
    ]
    assert len(losses) == 3
    assert [str(loss) for loss in losses] == [
        "$.sampling seed dropped (no such field)",
        "$.sampling temperature approximated (at most 1)",
        "$.messages[2].content[0] is_error emulated (in words)",
    ]


def test_losses_of_parts_that_were_moved_are_told_where_they_stood() -> None:
    losses = Losses(strict=True)
    put = "$.messages[1].content[0]"
    moved = losses.moved({put: None, "$.messages[1].content[1]": put})
    moved.dropped(put, "reasoning", "nobody said it")
    moved.dropped(f"{put}.citations[0]", "kind", "nobody said it")
    moved.settle()
    moved.dropped("$.messages[1].content[1]", "cache", "no such field")
    moved.dropped("$.messages[1].content[1].content[2]", "image", "no such field")
    moved.emulated("$.messages[2].content[1]", "is_error", "in words")
    moved.approximated("$.sampling", "temperature", "at most 1")
    assert [loss.where for loss in losses] == [put, f"{put}.content[2]", "$.messages[2].content[1]", "$.sampling"]
    with pytest.raises(LossError):
        moved.settle()


def test_paths_of_moved_parts_are_traced_back_through_all_moves() -> None:
    losses = Losses()
    once = losses.moved({"$.messages[1]": "$.messages[3]", "$.messages[0]": None})
    twice = once.moved({"$.messages[1].content[0]": None, "$.messages[1].content[1]": "$.messages[1].content[0]"})
    twice.dropped("$.messages[1].content[1]", "image", "no such field")
    traced = [twice.origin(f"$.messages[{index}].content[{at}].x") for index, at in ((0, 0), (1, 0), (1, 1), (2, 0))]
    assert traced == [None, None, "$.messages[3].content[0].x", "$.messages[2].content[0].x"]
    assert losses.has_dropped("$.messages[3].content[0]", "image")
    assert twice.has_dropped("$.messages[1].content[1]", "image")
    assert not twice.has_dropped("$.messages[1].content[0]", "image")


def test_the_own_dialect_gets_its_fields_and_another_a_loss() -> None:
    extra = Extra(dialect="chat", fields={"a": 1, "b": None, "c": {}}, form={"content": "str"})
    losses = Losses()
    assert losses.carry(extra, "$", "chat") == {"a": 1, "b": None, "c": {}}
    assert losses.carry(None, "$", "chat") == {}
    assert list(losses) == []
    assert losses.carry(extra, "$.messages[0]", "messages") == {}
    assert list(losses) == [
        Loss("$.messages[0]", "a", "dropped", "only chat has it"),
        Loss("$.messages[0]", "c", "dropped", "only chat has it"),
    ]


def test_the_form_is_for_the_own_dialect() -> None:
    extra = Extra(dialect="chat", form={"content": "str"})
    assert form_of(extra, "chat") == {"content": "str"}
    assert form_of(extra, "messages") == {}
    assert form_of(None, "chat") == {}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("a\r\nset-cookie: b", "a\\r\\nset-cookie: b", id="C22-line-ends"),
        pytest.param("ü\u2028\0\x1b[0m", "\\xfc\\u2028\\x00\\x1b[0m", id="C22-control-characters"),
        pytest.param("\ud800", "\\ud800", id="C12-half-a-pair"),
    ],
)
def test_a_loss_is_one_line_of_ascii_whatever_the_field_is_called(name: str, shown: str) -> None:
    losses = Losses()
    losses.carry(Extra(dialect="chat", fields={name: 1}), "$", "messages")
    assert [str(loss) for loss in losses] == [f"$ {shown} dropped (only chat has it)"]


def test_a_strict_crossing_is_refused_once_all_its_losses_are_known() -> None:
    strict, lenient = Losses(strict=True), Losses()
    strict.settle()
    for losses in (strict, lenient):
        losses.dropped("$.sampling", "seed", "not here")
        losses.dropped("$.sampling", "top_k", "no such field")
    lenient.settle()
    with pytest.raises(LossError) as caught:
        strict.settle()
    assert str(caught.value) == (
        "the target cannot express: $.sampling seed dropped (not here); $.sampling top_k dropped (no such field)"
    )
    assert caught.value.losses == ("$.sampling seed dropped (not here)", "$.sampling top_k dropped (no such field)")


def test_c18_strictly_unknown_fields_are_named_at_first() -> None:
    losses = Losses(strict=True)
    losses.dropped("$.sampling", "seed", "not here")
    losses.carry(Extra(dialect="one", fields={"a": 1, "n\n": 2, "nothing": None}), "$.messages[0]", "two")
    with pytest.raises(LossError) as caught:
        losses.settle()
    assert caught.value.unknown == ("$.messages[0].a", "$.messages[0].n\n")
    assert str(caught.value) == (
        "messages[0].a: Extra inputs are not permitted; messages[0].n\\n: Extra inputs are not permitted;"
        " the target cannot express: $.sampling seed dropped (not here); $.messages[0] a dropped (only one has it);"
        " $.messages[0] n\\n dropped (only one has it)"
    )


def test_findings_k_what_is_dropped_is_told_once() -> None:
    losses = Losses()
    losses.dropped("$", "user", "the dialect has no such field")
    losses.dropped("$", "user", "only chat has it")
    losses.dropped("$.messages[0]", "user", "only chat has it")
    assert [(loss.where, loss.why) for loss in losses] == [
        ("$", "the dialect has no such field"),
        ("$.messages[0]", "only chat has it"),
    ]
    losses.rewind(1)
    losses.dropped("$.messages[0]", "user", "again")
    assert len(losses) == 2
