"""Losses as a report: the table, the lines, and what they make of odd names."""

from xenoglot.codec.loss import Losses, json_lines, lines, table


def losses() -> Losses:
    """Three losses, one of a field with a line break and a letter that is not ASCII in its name."""
    found = Losses()
    found.dropped("$.sampling", "seed", "the dialect has no such field")
    found.emulated("$.messages[10].content[0]", "is_error", "the text begins with `[tool error]`")
    found.dropped("$", "x\né", "only chat has it")
    return found


def test_a_table_has_columns_and_a_sum() -> None:
    assert list(table(losses())) == [
        "where                      what      how       why",
        "$.sampling                 seed      dropped   the dialect has no such field",
        "$.messages[10].content[0]  is_error  emulated  the text begins with `[tool error]`",
        "$                          x\\n\\xe9   dropped   only chat has it",
        "3 losses: 2 dropped, 1 emulated",
    ]


def test_no_losses_are_told_too() -> None:
    assert list(table(Losses())) == ["no losses"]
    assert list(lines(Losses())) == []
    assert list(json_lines(Losses())) == []


def test_one_loss_is_one() -> None:
    one = Losses()
    one.dropped("$", "user", "why not")
    assert list(table(one))[-1] == "1 loss: 1 dropped"


def test_a_line_is_one_whatever_is_in_it() -> None:
    assert list(lines(losses()))[2] == "loss: $ x\\n\\xe9 dropped (only chat has it)"
    assert list(json_lines(losses()))[2] == '{"where":"$","what":"x\\né","how":"dropped","why":"only chat has it"}'
