"""Reads the notes and the date of a release, and unreleased changes, from CHANGELOG.md.

In: the text of CHANGELOG.md, and the names of the files in changelog.d. Out: values, or SystemExit with what to do.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

HEADING: Final = re.compile(r"^## (?P<version>\d+\.\d+\.\d+) - (?P<day>\d{4}-\d\d-\d\d)$", re.MULTILINE)
"""The heading of release notes."""

UNRELEASED: Final = re.compile(r"^## Unreleased$", re.MULTILINE)
NEXT: Final = re.compile(r"^## ", re.MULTILINE)


def released(changelog: str, version: str) -> tuple[str, int]:
    """Return the notes of a version and its time (midnight UTC, in seconds since 1970).

    SystemExit if they do not exist.
    """
    for heading in HEADING.finditer(changelog):
        if heading["version"] == version:
            day = datetime.fromisoformat(heading["day"]).replace(tzinfo=UTC)
            return _section(changelog, heading.end()) + "\n", int(day.timestamp())
    raise SystemExit(
        f'CHANGELOG.md has no heading "## {version} - YYYY-MM-DD". Write the release notes before the release'
    )


def refuse_unreleased(changelog: str, fragments: Sequence[str], version: str) -> None:
    """Raise SystemExit if the tree has unreleased changes, because its files would have an incorrect version."""
    heading = UNRELEASED.search(changelog)
    unreleased = ['CHANGELOG.md, heading "## Unreleased"'] if heading and _section(changelog, heading.end()) else []
    unreleased += [f"changelog.d/{name}" for name in sorted(fragments)]
    if unreleased:
        raise SystemExit(
            f"this tree contains changes after {version}: "
            f"{', '.join(unreleased[:3])}{f' and {len(unreleased) - 3} more' if len(unreleased) > 3 else ''}. Increase "
            "the version and run `make changelog`, or check out the release tag"
        )


def _section(changelog: str, start: int) -> str:
    return NEXT.split(changelog[start:], maxsplit=1)[0].strip()
