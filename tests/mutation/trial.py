"""Try one mutant: a fork of this process imports the changed module and runs tests until the first that fails.

In: a module's name, the mutant's source, the tests. Out: whether a test noticed. Forking a process that has pytest and
the libraries loaded saves most of the time; a mutant that runs for ever is noticed by the clock.
"""

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import os
import signal
import sys
import types
from collections.abc import Sequence
from pathlib import Path

import pytest

SECONDS = 60


class Planted(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from the given source."""

    def __init__(self, name: str, source: str) -> None:
        self._name = name
        self._source = source

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Answer for the one module."""
        return importlib.util.spec_from_loader(fullname, self) if fullname == self._name else None

    def exec_module(self, module: types.ModuleType) -> None:
        """Run the planted source."""
        exec(compile(self._source, f"<mutant of {self._name}>", "exec"), module.__dict__)


def start(name: str, source: str, tests: Sequence[Path]) -> int:
    """Fork a trial; return its process id. It ends with 0 where every test passed."""
    child = os.fork()
    if child:
        return child
    signal.alarm(SECONDS)
    sys.meta_path.insert(0, Planted(name, source))
    code = 1
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *map(str, tests)])
    os._exit(0 if code == pytest.ExitCode.OK else 1)


def survived(child: int) -> bool:
    """Wait for a trial; tell whether the mutant lived."""
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 0
