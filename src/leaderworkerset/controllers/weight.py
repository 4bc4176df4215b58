"""Whether a decision takes so long that it belongs in a thread, beside the event loop.

In: the JSON documents that the decision reads, and how many small facts beside them. Out: whether together they are
above a limit. Counting stops at the limit, so that the question itself costs a bounded time.

A decision is a pure function of values that nobody changes, so it may run in any thread. One LeaderWorkerSet of the
size that etcd takes (1.5 MiB) costs some hundred milliseconds per decision; on the loop, everybody else would wait.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Final

from kuberuntime.objects.meta import JSON

LIMIT: Final = 2_000
"""Values in the documents; this many cost about 10 ms. A usual LeaderWorkerSet with its StatefulSet has 400."""

TEXT: Final = 100
"""Characters of a text that count as one value."""


def is_large(documents: Iterable[JSON], facts: int = 0) -> bool:
    """Return whether documents and facts together hold more than `LIMIT` values.

    >>> is_large([{"a": [1, 2]}]), is_large([{"a": ["x"] * 2_000}]), is_large([], facts=2_001)
    (False, True, True)
    """
    left, pending = LIMIT - facts, list(documents)
    while pending:
        if len(pending) > left:
            return True
        value = pending.pop()
        left -= 1 + (len(value) // TEXT if isinstance(value, str) else 0)
        if isinstance(value, dict):
            pending.extend(islice(value.values(), max(left + 1, 0)))
        elif isinstance(value, list):
            pending.extend(islice(value, max(left + 1, 0)))
    return left < 0
