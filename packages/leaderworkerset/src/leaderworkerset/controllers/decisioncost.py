"""Determines whether a reconciliation is so expensive that it must run in a thread.

Input: the JSON documents that the decision reads, and a number of small values. Output: whether their total size
exceeds a limit. The size of a document is the size of its encoding, which runs in C and usually takes microseconds.
The measurement stops at the limit, so it takes at most 3 ms (1.5 MiB). The last sizes are cached, because a rollout
needs the size of the same LeaderWorkerSet and revision thousands of times.

A reconciliation is a pure function of immutable values, so it can run in any thread. A LeaderWorkerSet of the maximum
size in etcd (1.5 MiB) requires several hundred milliseconds, which would block the event loop.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from kuberuntime.objects.meta import JSON

LIMIT: Final = 40_000
"""The maximum total size of documents in bytes, which takes about 10 ms. A LeaderWorkerSet has about 8,000 bytes."""

FACT: Final = 20
"""The assumed size of a small value in bytes."""

MOST: Final = 64
"""The maximum number of cached document sizes."""

_ENCODER: Final = msgspec.json.Encoder()

_known: Final[dict[int, tuple[JSON, int]]] = {}
"""The document sizes by object identity. Cached objects are never modified."""


def is_large(documents: Iterable[JSON], facts: int = 0) -> bool:
    """Return whether the total size of the documents and small values exceeds `LIMIT`.

    >>> is_large([{"a": [1, 2]}]), is_large([{"a": ["x" * 20] * 2_000}]), is_large([], facts=2_001)
    (False, True, True)
    """
    left = LIMIT - FACT * facts
    for document in documents:
        if left < 0:
            break
        left -= _document_size(document)
    return left < 0


def _document_size(document: JSON) -> int:
    known = _known.get(id(document))
    if known is not None and known[0] is document:
        return known[1]
    try:
        weight = len(_ENCODER.encode(document))
    except RecursionError:  # nested more deeply than any API server accepts
        return LIMIT + 1
    if weight <= LIMIT:
        if len(_known) >= MOST:
            _known.clear()
        _known[id(document)] = (document, weight)
    return weight
