"""Try one mutant: a fork of this process imports the changed module and runs tests until the first that fails.

In: a module's name, the mutant's source, the tests. Out: whether a test noticed. Forking a process that has pytest and
the libraries loaded saves most of the time; a mutant that runs forever is noticed by the clock.
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
"""Of processor time, so that a busy machine ends no trial: a mutant that runs forever uses them up."""

PATIENCE = 20 * SECONDS
"""In real time, for a mutant that waits forever."""


class TrialError(Exception):
    """No test met the mutant, so that nobody knows whether it would be noticed."""


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
    """Fork a trial; return its process id. It ends with pytest's exit code, 0 where every test passed."""
    if missing := [str(path) for path in tests if not Path(path).exists()]:
        raise TrialError(f"there are no tests at {', '.join(missing)}")
    child = os.fork()
    if child:
        return child
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(PATIENCE)
    sys.meta_path.insert(0, Planted(name, source))
    code: int = pytest.ExitCode.TESTS_FAILED
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *map(str, tests)])
    os._exit(code)


def survived(child: int) -> bool:
    """Wait for a trial; return whether the mutant lived. Raise `TrialError` where no test met it."""
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == pytest.ExitCode.NO_TESTS_COLLECTED:
        raise TrialError("there is no test in the files")
    return code == pytest.ExitCode.OK
