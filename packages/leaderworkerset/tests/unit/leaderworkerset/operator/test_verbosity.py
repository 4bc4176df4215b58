"""Tests the verbosity of the operator's logs."""

import pytest
import structlog

from leaderworkerset.operator.verbosity import Verbosity


@pytest.mark.parametrize(
    ("level", "method", "passes"), [(2, "info", True), (2, "debug", False), (4, "debug", True), (0, "error", True)]
)
def test_debug_lines_require_the_debug_level(level: int, method: str, passes: bool) -> None:
    verbosity = Verbosity(level)
    if passes:
        assert verbosity(None, method, {"event": "x"}) == {"event": "x"}
    else:
        with pytest.raises(structlog.DropEvent):
            verbosity(None, method, {"event": "x"})
