"""Records accepted differences that occurred, and checks that the tests observed each row of the table."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.conformance import refused
from tests.conformance.difference import Difference

HERE = Path(__file__).parent
NARROWED = pytest.StashKey[bool]()
"""Whether some of these tests were deselected."""


@dataclass
class Witness:
    """Records completed tests and their accepted differences."""

    ran: set[str] = field(default_factory=set)
    met: set[str] = field(default_factory=set)

    def is_refused(self, found: Difference) -> bool:
        """Return whether the difference is accepted, and record that it occurred."""
        entries = {one.what for one in refused.covering(found)}
        self.met |= entries
        return bool(entries)

    def unmet(self) -> list[str]:
        """Return the accepted differences that did not occur."""
        return [one.what for one in refused.TABLE if one.what not in self.met]

    def saw_everything(self, session: pytest.Session) -> bool:
        """Return whether all tests ran in this process, without selection or distribution."""
        config = session.config
        if config.stash.get(NARROWED, False) or any("::" in one for one in config.args):
            return False
        items = list(comparing(session.items))
        return {item.nodeid for item in items} == self.ran and {item.path for item in items} == comparing_files()


def comparing(items: Iterable[pytest.Item]) -> Iterable[pytest.Function]:
    """Yield the tests in this directory that compare the two API servers."""
    for item in items:
        if isinstance(item, pytest.Function) and item.path.parent == HERE and "same" in item.fixturenames:
            yield item


def comparing_files() -> set[Path]:
    """Return the files in this directory that contain such tests."""
    return {path for path in HERE.glob("test_*.py") if "CheckSame" in path.read_text()}
