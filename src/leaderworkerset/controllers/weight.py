"""Whether a decision takes so long that it belongs in a thread, beside the event loop.

In: the JSON documents that the decision reads, and how many small facts beside them. Out: whether together they are
above a limit. Documents are weighed by the bytes of their encoding, which runs in C: a usual one takes microseconds, and
as the first that is above the limit ends it, the question itself costs at most 3 ms (1.5 MiB).

A decision is a pure function of values that nobody changes, so it may run in any thread. One LeaderWorkerSet of the
size that etcd takes (1.5 MiB) costs some hundred milliseconds per decision; on the loop, everybody else would wait.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from kuberuntime.objects.meta import JSON

LIMIT: Final = 40_000
"""Bytes of all documents; this much costs about 10 ms. A usual LeaderWorkerSet with its StatefulSet has 8,000."""

FACT: Final = 20
"""Bytes that a fact counts for."""

_ENCODER: Final = msgspec.json.Encoder()


def is_large(documents: Iterable[JSON], facts: int = 0) -> bool:
    """Return whether documents and facts together weigh more than `LIMIT`.

    >>> is_large([{"a": [1, 2]}]), is_large([{"a": ["x" * 20] * 2_000}]), is_large([], facts=2_001)
    (False, True, True)
    """
    left = LIMIT - FACT * facts
    for document in documents:
        if left < 0:
            break
        left -= _weigh(document)
    return left < 0


def _weigh(document: JSON) -> int:
    try:
        return len(_ENCODER.encode(document))
    except RecursionError:  # nested deeper than any API server accepts
        return LIMIT + 1
