"""Memory that the C library keeps free for reuse, given back to the system.

Large requests and answers come and go between what lives. glibc gives back only what is free at the very end of its heap, and that
only beyond a threshold which grows with what was freed; so a cluster would keep the most that it ever held.
"""

from collections.abc import Callable
from functools import cache


def trim() -> bool:
    """Give free memory back; return whether this C library can (musl and macOS cannot). It takes about a millisecond."""
    give_back = _malloc_trim()
    if give_back is None:
        return False
    give_back(0)
    return True


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    try:
        import ctypes  # not before it is needed: a start would take 20 ms longer

        function = ctypes.CDLL(None).malloc_trim
    except (ImportError, OSError, AttributeError):
        return None
    function.argtypes = [ctypes.c_size_t]
    found: Callable[[int], int] = function
    return found
