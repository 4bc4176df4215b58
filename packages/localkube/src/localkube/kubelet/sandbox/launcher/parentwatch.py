"""Becomes another program that the kernel kills when its parent process ends, and whose log is bounded.

`python -I -S -c <loader> <directory> <parent's PID> <bytes of a file> PROGRAM ARGUMENT...`
"""

import os
import resource
import signal
import sys

from .kernel import syscalls
from .program import reset_signals


def main() -> None:
    """Request the signal at the parent's end, check that the parent still runs, and exec the program."""
    syscalls.die_with_parent(signal.SIGKILL)
    reset_signals()
    parent, limit, program = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # what exceeds the limit is not written, and the program goes on
    if os.getppid() == parent:
        os.execv(program[0], program)  # noqa: S606 - a shell would change what is run
