"""Becomes another program that the kernel kills when the process that started it ends.

`python -I -S -c <loader> <directory> <parent's PID> PROGRAM ARGUMENT...`
"""

import os
import signal
import sys

from .kernel import syscalls
from .program import reset_signals


def main() -> None:
    """Request the signal at the parent's end, check that the parent still runs, and exec the program."""
    syscalls.die_with_parent(signal.SIGKILL)
    reset_signals()
    parent, program = int(sys.argv[2]), sys.argv[3:]
    if os.getppid() == parent:
        os.execv(program[0], program)  # noqa: S606 - a shell would change what is run
