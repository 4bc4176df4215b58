"""Executes a program that is killed when its parent exits, and whose log has a limited size.

`python -I -S -c <loader> <directory> <parent's PID> <bytes of a file> PROGRAM ARGUMENT...`
"""

import os
import resource
import signal
import sys

from .kernel import syscalls
from .program import reset_signals


def main() -> None:
    """Request a signal for the exit of the parent, check that the parent is running, and execute the program."""
    syscalls.die_with_parent(signal.SIGKILL)
    reset_signals()
    parent, limit, program = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # data above the limit is not written, and the program continues
    if os.getppid() == parent:
        os.execv(program[0], program)  # noqa: S606 - a shell would change what is run
