"""The canaries' own alarm: a look that finds nothing must be able to find something (R30)."""

from __future__ import annotations

import base64
import logging
from typing import TYPE_CHECKING

import pytest

from tests.faults.canaries import Canaries, capture_logs, fragments

if TYPE_CHECKING:
    from collections.abc import Callable

CANARIES = Canaries("test")
EVERY = (CANARIES.client_key, CANARIES.upstream_key, CANARIES.prompt, CANARIES.tool_output)


@pytest.mark.parametrize("canary", EVERY, ids=lambda canary: canary.rpartition("-")[0])
@pytest.mark.parametrize(
    "shown",
    [
        pytest.param(lambda canary: f"key {canary}.", id="whole"),
        pytest.param(lambda canary: f"{canary[:8]}...{canary[-18:]}", id="in-part"),
        pytest.param(lambda canary: base64.b64encode(f"user:{canary}".encode()).decode(), id="base64"),
        pytest.param(lambda canary: canary.encode().hex(), id="hexadecimal"),
    ],
)
def test_r30_s06_a_canary_is_heard(canary: str, shown: Callable[[str], str]) -> None:
    with pytest.raises(AssertionError, match=canary):
        CANARIES.check(["nothing here", shown(canary)])


def test_r30_s06_keys_are_for_nobody_and_words_for_the_client() -> None:
    CANARIES.check_answers([CANARIES.prompt, CANARIES.tool_output.encode()])
    with pytest.raises(AssertionError, match=CANARIES.client_key):
        CANARIES.check_answers([f"authorization: Bearer {CANARIES.client_key}".encode()])


def test_r30_s06_no_two_canaries_are_alike() -> None:
    every = [trace for seed in ("", "other") for canary in vars(Canaries(seed)).values() for trace in fragments(canary)]
    assert len(set(every)) == len(every)


def test_r30_s06_every_log_is_overheard_with_its_exceptions() -> None:
    with capture_logs() as overheard:
        try:
            raise ValueError(CANARIES.prompt)  # noqa: TRY301  what is to be overheard
        except ValueError:
            logging.getLogger("xenoglot.anything").debug("failed", exc_info=True)
        logging.getLogger("asyncio").debug("%s", CANARIES.client_key)
    for text, canary in zip(overheard.texts, (CANARIES.prompt, CANARIES.client_key), strict=True):
        with pytest.raises(AssertionError, match=canary):
            CANARIES.check([text])
