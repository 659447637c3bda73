"""Signal handlers of the test process, independent of how it was started."""

import signal


def restore_interrupt() -> None:
    """Install Python's handler of SIGINT if SIGINT is ignored.

    A shell without job control starts background commands with SIGINT ignored (POSIX, Shell Command Language, 2.11),
    and child processes inherit that. Tests that interrupt themselves or a child process would wait forever.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
