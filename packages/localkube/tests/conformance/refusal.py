"""Defines a row in the tables of accepted differences (`refused.py`, `refusedwords.py`)."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.conformance.difference import Difference

from kuberuntime.objects.meta import JSON


@dataclass(frozen=True)
class RefusedError:
    """An accepted difference, with its paths in responses, the values of both servers, and the reason.

    `rest`, if given, is the remainder of each side without the difference: both must be equal.
    """

    what: str
    why: str
    path: str = ".*"
    embedded: str = ".*"
    real: str = ".*"
    request: str = ".*"
    rest: Callable[[Any], JSON] | None = None

    def covers(self, found: Difference) -> bool:
        """Return whether this row matches a difference."""
        pairs = (
            (self.request, found.request),
            (self.path, found.path),
            (self.embedded, str(found.embedded)),
            (self.real, str(found.real)),
        )
        if not all(re.fullmatch(pattern, text, re.DOTALL) for pattern, text in pairs):
            return False
        return self.rest is None or self.rest(found.embedded) == self.rest(found.real)
