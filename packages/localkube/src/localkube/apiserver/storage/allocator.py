"""Returns free memory from the C library to the operating system.

Large requests and responses are allocated between long-lived objects. glibc returns only free memory at the end of its
heap, above a threshold that grows with the freed memory. So a cluster would never release its peak memory.
"""

from collections.abc import Callable
from functools import cache


def trim_memory() -> bool:
    """Return free memory to the operating system, which takes about a millisecond.

    Return whether this C library supports it. musl and macOS do not.
    """
    give_back = _malloc_trim()
    if give_back is None:
        return False
    give_back(0)
    return True


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    try:
        import ctypes  # local import, because it would delay the start by 20 ms

        function = ctypes.CDLL(None).malloc_trim
    except (ImportError, OSError, AttributeError):
        return None
    function.argtypes = [ctypes.c_size_t]
    typed_function: Callable[[int], int] = function
    return typed_function
