"""Computes exponential back-off delays."""

from msgspec import Struct


class Backoff(Struct, frozen=True):
    """A delay of `base` seconds after the first failure, which doubles with each further failure up to `limit`.

    >>> backoff = Backoff(base=0.005, limit=1000.0)
    >>> [backoff.delay(failures) for failures in (0, 1, 2, 3, 50)]
    [0.0, 0.005, 0.01, 0.02, 1000.0]
    """

    base: float
    limit: float

    def delay(self, failures: int, jitter: float = 1.0) -> float:
        """Return the delay in seconds. `jitter` (0 to 1) shortens it by up to half."""
        if failures <= 0:
            return 0.0
        exponent = min(failures - 1, 64)  # 2 ** 64 exceeds every limit, and floats remain finite
        return min(self.limit, self.base * 2.0**exponent) * (0.5 + 0.5 * jitter)
