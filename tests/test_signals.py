"""The suite can be run in the background, where a shell has SIGINT ignored."""

import signal
import subprocess
import sys

import pytest

from tests.architecture.tree import ROOT
from tests.signals import restore_interrupt


def test_sigint_interrupts_tests_and_their_children() -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    script = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout == b"True\n"


@pytest.mark.parametrize(
    "handler", [pytest.param("SIG_IGN", id="background"), pytest.param("default_int_handler", id="foreground")]
)
def test_an_ignored_sigint_is_restored(handler: str) -> None:
    script = (
        f"import signal; signal.signal(signal.SIGINT, signal.{handler}); "
        "from tests.signals import restore_interrupt; restore_interrupt(); "
        "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, check=True)
    assert done.stdout == b"True\n"


def test_a_handler_of_ones_own_stays() -> None:
    before = signal.signal(signal.SIGINT, own := lambda *_: None)
    try:
        restore_interrupt()
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)
