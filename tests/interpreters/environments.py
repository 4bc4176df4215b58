"""Builds an environment in `.venvs` for each interpreter. Changes to the lock or the interpreter rebuild it."""

import hashlib
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

from testkit import repository
from tests.interpreters.discovery import Interpreter

ROOT: Final = repository.ROOT
ENVIRONMENTS: Final = ROOT / ".venvs"
PACKAGES: Final = ("kuberuntime", "localkube", "leaderworkerset", "lwsctl", "testkit")
QUIET: Final = ("--quiet", "--disable-pip-version-check")
LAZY: Final = "--no-compile"
"""Modules are compiled when tests import them, because tests import only a small part of the packages."""

ELSEWHERE: Final = frozenset({"numpy"})
"""Packages that are required by an example, but not by the fast tests."""

RUNNING: Final = "requirements/local.lock"
"""The runtime requirements, as in `make setup`."""

STAMP: Final = ".installed"
"""The file that is written last. It identifies the content of the environment."""


def prepare(interpreter: Interpreter, *, root: Path = ROOT, parent: Path = ENVIRONMENTS) -> Path:
    """Return the Python executable of the interpreter's environment with the packages for the fast tests."""
    directory = parent / interpreter.name
    python, stamp, made_of = directory / "bin" / "python", directory / STAMP, digest(interpreter, root)
    if stamp.is_file() and stamp.read_text() == made_of:
        return python
    shutil.rmtree(directory, ignore_errors=True)
    # On Debian, ensurepip is a separate package. Therefore, the pip of this environment installs into the other one.
    subprocess.run([str(interpreter.path), "-m", "venv", "--without-pip", str(directory)], check=True)
    lock = directory / "needed.lock"
    lock.write_text(needed((root / "requirements/test.lock").read_text()))
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", *QUIET, "--no-deps"]
    for needed_lock in (root / RUNNING, lock):
        subprocess.run([*install, LAZY, "--require-hashes", "-r", str(needed_lock)], cwd=root, check=True)
    own = [word for name in PACKAGES for word in ("--editable", f"packages/{name}")]
    subprocess.run([*install, "--no-build-isolation", *own], cwd=root, check=True)
    stamp.write_text(made_of)
    return python


def needed(lock: str) -> str:
    """Return the lock entries that the fast tests require."""
    entries = re.split(r"^(?=\S)", lock, flags=re.MULTILINE)
    return "".join(one for one in entries if one.partition("==")[0] not in ELSEWHERE)


def digest(interpreter: Interpreter, root: Path = ROOT) -> str:
    """Return a hash of the inputs of an environment: the interpreter, the path, the lock, and the packages."""
    projects = [tomllib.loads((root / f"packages/{name}/pyproject.toml").read_text()) for name in PACKAGES]
    lock = (root / RUNNING).read_text() + needed((root / "requirements/test.lock").read_text())
    parts = [str(interpreter.path), str(root), lock, repr(projects)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
