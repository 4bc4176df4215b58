"""Finds Python interpreters in PATH, in system directories even if they are shadowed, and in pyenv.

This module uses only the standard library of Python 3.11: it runs on the oldest supported Python.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

Version: TypeAlias = tuple[int, ...]

NAME: Final = re.compile(r"python3(\.\d+)?")
SYSTEM: Final = (Path("/usr/local/bin"), Path("/usr/bin"), Path("/bin"))
"""The directories of system executables, which do not depend on PATH."""

SECONDS: Final = 60.0
"""The time that an interpreter has to report its version."""

QUESTION: Final = """
import json, sys
free = "t" in getattr(sys, "abiflags", "")
print(json.dumps([sys.implementation.name, list(sys.version_info), free, getattr(sys, "_base_executable", sys.executable)]))
"""


@dataclass(frozen=True, slots=True, order=True)
class Interpreter:
    """A Python interpreter with its version, its executable, and the reason to skip it, or an empty string."""

    version: Version
    path: Path
    unfit: str = ""

    @property
    def name(self) -> str:
        """Return the version as a string."""
        return ".".join(map(str, self.version))


def find(environment: Mapping[str, str], minimum: Version, *, system: Iterable[Path] = SYSTEM) -> list[Interpreter]:
    """Return each interpreter of at least version `minimum`, ordered by version.

    Only the first one of each version is returned.
    """
    found: dict[Version, Interpreter] = {}
    asked: set[Path] = set()
    for candidate in candidates(environment, system):
        interpreter = ask(candidate, asked)
        if interpreter is None or interpreter.version < minimum:
            continue
        kept = found.get(interpreter.version)
        if kept is None or (kept.unfit and not interpreter.unfit):
            found[interpreter.version] = interpreter
    return sorted(found.values())


def candidates(environment: Mapping[str, str], system: Iterable[Path] = SYSTEM) -> Iterator[Path]:
    """Yield executables that may be Python interpreters, each under its first name."""
    searched = [Path(entry) for entry in environment.get("PATH", "").split(os.pathsep) if entry]
    for directory in [
        *searched,
        *system,
        *(bin_ for root in _pyenv_roots(environment, searched) for bin_ in _bins(root)),
    ]:
        if not _is_of_pyenv(directory):
            yield from _pythons(directory)


def ask(program: Path, asked: set[Path]) -> Interpreter | None:
    """Return the interpreter of an executable, or None if it is not Python or was already returned."""
    real = program.resolve()
    if real in asked:
        return None
    asked.add(real)
    try:
        answer = subprocess.run(
            [real, "-I", "-c", QUESTION],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
            stdin=subprocess.DEVNULL,
        )
        implementation, version, free, executable = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    base = Path(executable).resolve()
    if base in asked - {real}:
        return None  # a script that starts one of the requested interpreters
    asked.add(base)
    return Interpreter(tuple(version[:3]), base, _unfit(implementation, version[3], is_free_threaded=free))


def _unfit(implementation: str, level: str, *, is_free_threaded: bool) -> str:
    if implementation != "cpython":
        return f"it is {implementation}, not CPython"
    if level != "final":
        return f"it is a pre-release ({level})"
    return "it is a build without the global interpreter lock" if is_free_threaded else ""


def _pythons(directory: Path) -> list[Path]:
    try:
        return sorted(path for path in directory.iterdir() if NAME.fullmatch(path.name) and os.access(path, os.X_OK))
    except OSError:
        return []


def _pyenv_roots(environment: Mapping[str, str], searched: Iterable[Path]) -> Iterator[Path]:
    """Yield possible pyenv version directories from the variable, in the home directory, and next to the shims."""
    for name, below in (("PYENV_ROOT", ""), ("HOME", ".pyenv")):
        if environment.get(name):
            yield Path(environment[name], below)
    yield from (directory.parent for directory in searched if _is_of_pyenv(directory))


def _is_of_pyenv(directory: Path) -> bool:
    """Return whether these files are pyenv shims, which start a pyenv version or fail."""
    return directory.name == "shims" and (directory.parent / "versions").is_dir()


def _bins(root: Path) -> list[Path]:
    return sorted((root / "versions").glob("*/bin"))
