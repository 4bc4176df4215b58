"""Controls garbage collection, which is disabled while a command starts a cluster or reads thousands of objects.

Nearly all objects that a start creates are modules, which stay. Traversing them repeatedly would take a tenth of the
processor time of `lws run`.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def put_off() -> Iterator[None]:
    """Disable garbage collection inside the context, except in `resumed`."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def resumed(*, lasting: bool) -> Iterator[None]:
    """Collect only objects that are created after this call. Earlier objects are not traversed, to avoid delays.

    With `lasting`, everything is collected once before: the start of a cluster with thousands of objects leaves
    garbage.
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
