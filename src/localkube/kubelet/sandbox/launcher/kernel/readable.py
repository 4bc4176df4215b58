"""Checks whether a descriptor is readable; select() works for descriptors below 1024 only."""

import select


def is_readable(fd: int) -> bool:
    """Return whether reading would not block: there are bytes, or the other end is closed."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))
