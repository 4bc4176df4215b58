"""Defines bugs of revisions, whose names in the history are requested repeatedly."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from kuberuntime.controller import executor
from leaderworkerset.core.leaderworkerset import revisions


@contextmanager
def takes_a_name_for_its_object() -> Iterator[None]:
    """Number revisions without the history, never raise the current one, and accept existing revisions by name."""
    real = revisions.resolve

    def resolve(obj: Any, key: Any, stored: Any, edition: Any = None, _history: Any = None) -> Any:
        resolution = real(obj, key, stored, edition)
        if resolution.is_new or resolution.correction is None:
            return resolution
        change = {name: value for name, value in resolution.correction.items() if name != "revision"}
        return replace(resolution, correction=change or None, corrected=resolution.corrected if change else None)

    with patch.object(revisions, "resolve", resolve), patch.object(executor, "_check_fields", lambda *_: None):
        yield
