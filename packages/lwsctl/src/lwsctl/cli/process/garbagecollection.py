"""Disables garbage collection while a command starts a cluster or reads thousands of objects.

Nearly all objects that are created at startup are modules, which are never deleted. Traversing them repeatedly would
use a tenth of the CPU time of `lws run`.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def disable_collection() -> Iterator[None]:
    """Disable garbage collection while the context is active, except in `exclude_existing_objects`."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def exclude_existing_objects(*, lasting: bool) -> Iterator[None]:
    """Exclude existing objects from garbage collection, to avoid delays. Only later objects are collected.

    With `lasting`, all objects are collected once at the start, because starting a cluster creates thousands of
    unused objects.
    """
    was_enabled = gc.isenabled()
    if lasting:
        gc.collect()
    gc.freeze()
    gc.enable()
    try:
        yield
    finally:
        if not was_enabled:
            gc.disable()
        gc.unfreeze()
