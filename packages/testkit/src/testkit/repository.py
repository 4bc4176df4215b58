"""Defines the paths of the repository, and of the sources and tests of each package."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[4]
PACKAGES: Final = ("kuberuntime", "localkube", "leaderworkerset", "lwsctl")
TESTS: Final = (
    ROOT / "tests",
    *(ROOT / "packages" / package / "tests" for package in PACKAGES),
    ROOT / "packages/testkit/src",
)
"""The test directories of several packages, of each package, and of the shared test code."""

PATHS: Final = (
    *(ROOT / "packages" / package / "src" for package in (*PACKAGES, "testkit")),
    *(ROOT / "packages" / package for package in PACKAGES),
    ROOT,
)
"""The Python path for the packages and their tests."""


def sources(package: str) -> Path:
    """Return the source directory of a package."""
    return ROOT / "packages" / package / "src"


def modules(*packages: str) -> Iterator[tuple[str, Path]]:
    """Yield the modules of packages, or of all packages by default.

    Each has a name such as `localkube/kubelet/nodeloop.py`.
    """
    for package in packages or PACKAGES:
        for path in sorted((sources(package) / package).rglob("*.py")):
            yield path.relative_to(sources(package)).as_posix(), path


def files_of_tests() -> Iterator[tuple[str, Path]]:
    """Yield the Python files of all test directories. Each has a name such as `e2e/harness.py`."""
    for folder in TESTS:
        for path in sorted(folder.rglob("*.py")):
            yield path.relative_to(folder).as_posix(), path
