"""Process descriptors: handles of processes that can be passed on and never refer to a later process."""

import os


def parse_pid(fdinfo: str) -> int:
    r"""Return the PID in the text of /proc/self/fdinfo/N of a pidfd; -1 when the process has been reaped.

    >>> parse_pid("pos:\t0\nflags:\t02000002\nPid:\t42\nNSpid:\t42\t1\n")
    42
    """
    for line in fdinfo.splitlines():
        name, _, value = line.partition(":")
        if name == "Pid":
            return int(value)
    raise ValueError(f"not a pidfd: {fdinfo!r}")


def read_pid(pidfd: int, proc: int | None = None) -> int:
    """Return the PID of the process in /proc, or in the /proc of which `proc` is a descriptor."""
    handle = os.open(
        f"self/fdinfo/{pidfd}" if proc is not None else f"/proc/self/fdinfo/{pidfd}", os.O_RDONLY, dir_fd=proc
    )
    with open(handle) as file:
        return parse_pid(file.read())
