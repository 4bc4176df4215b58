"""Counts the modules in the source tree. `python -m tests.layout` prints the numbers for the table in ADR 0007.

A folder is a package with its own modules, not with those below it. Types are public classes of modules.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

from testkit import repository
from testkit.repository import PACKAGES

MOST_MODULES: Final = 24
"""The maximum number of modules in one directory, without `__init__`."""

IMPORT: Final = re.compile(r"^ *from [\w.]+ import (\([^)]*\)|.*)", re.MULTILINE)
TYPE: Final = re.compile(r"^class ([A-Za-z]\w*)", re.MULTILINE)
UNNAMED: Final = frozenset({"__init__", "__main__"})


def modules(package: str, sources: Path | None = None) -> list[Path]:
    """Return the files in a package."""
    sources = sources or repository.sources(package)
    return sorted((sources / package).rglob("*.py"))


@cache
def imports(path: Path) -> list[tuple[str, str]]:
    """Return each imported name in a module, with its source. Parsing whole modules would be ten times slower."""
    text = "\n".join(found[0].strip() for found in IMPORT.finditer(path.read_text()))
    found = [node for node in ast.parse(text).body if isinstance(node, ast.ImportFrom)]
    return [(str(node.module), alias.name) for node in found for alias in node.names]


def sizes(package: str) -> Counter[str]:
    """Return the number of modules in each directory."""
    return Counter(
        str(path.parent.relative_to(repository.sources(package)))
        for path in modules(package)
        if path.stem != "__init__"
    )


def repeated(names: Iterable[str], times: int = 2) -> list[str]:
    """Return names that occur at least `least` times.

    >>> repeated(["pod", "node", "pod"])
    ['pod']
    """
    return sorted(name for name, count in Counter(names).items() if count >= times)


def type_names(package: str) -> Iterator[str]:
    """Yield the name of each public class."""
    for path in modules(package):
        yield from TYPE.findall(path.read_text())


def module_names(package: str) -> Iterator[str]:
    """Yield the name of each module."""
    return (path.stem for path in modules(package) if path.stem not in UNNAMED)


def mutual(package: str, sources: Path | None = None) -> list[tuple[str, str]]:
    """Return pairs of directories that import each other if neither contains the other."""
    sources = sources or repository.sources(package)
    edges = {edge for path in modules(package, sources) for edge in _imports(path, sources)}
    pairs = sorted((one, other) for one, other in edges if one < other and (other, one) in edges)
    return [(one, other) for one, other in pairs if not other.startswith(f"{one}.")]


def unread(package: str, sources: Path | None = None) -> list[str]:
    """Return the modules in a package that no other module in any package imports."""
    readers = [sources] if sources else [repository.sources(name) for name in PACKAGES]
    sources = sources or repository.sources(package)
    names = {".".join(path.relative_to(sources).with_suffix("").parts) for path in modules(package, sources)}
    for path in (path for folder in readers for path in folder.rglob("*.py")):
        for module, name in imports(path):
            names -= {module, f"{module}.{name}"}
    return sorted(name for name in names if name.rpartition(".")[2] not in UNNAMED)


def _imports(path: Path, sources: Path) -> Iterator[tuple[str, str]]:
    """Yield the directory of a module, and each directory in its package from which the module imports."""
    own = ".".join(path.relative_to(sources).parent.parts)
    found = {_folder(f"{module}.{name}", sources) for module, name in imports(path)}
    yield from ((own, one) for one in found if one != own and one.split(".")[0] == own.split(".")[0])


@cache
def _folder(name: str, sources: Path) -> str:
    """Return the directory of an imported name, which is a directory, a module, or an attribute of a module."""
    while name and not sources.joinpath(*name.split(".")).is_dir():
        name = name.rpartition(".")[0]
    return name


def report() -> Iterator[str]:
    """Yield a line for each package, and a total line."""
    for package in PACKAGES:
        lines = sum(len(path.read_text().splitlines()) for path in modules(package))
        (largest, most), *_ = sizes(package).most_common(1)
        types, names = repeated(type_names(package)), repeated(module_names(package))
        yield (
            f"{package}: {lines} lines, {len(mutual(package))} pairs of folders that import each other, "
            f"at most {most} modules in a folder ({largest}), {len(types)} types and {len(names)} modules named alike"
        )
    everywhere = repeated((name for package in PACKAGES for name in module_names(package)), times=3)
    yield (f"module names used three times or more: {len(everywhere)} ({', '.join(everywhere)})")


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in report())
