"""One environment for each interpreter, below `.venvs`: made once, made anew when the lock or the interpreter changes."""

import hashlib
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

from tests.interpreters.discovery import Interpreter

ROOT: Final = Path(__file__).parents[2]
ENVIRONMENTS: Final = ROOT / ".venvs"
QUIET: Final = ("--quiet", "--disable-pip-version-check")
LAZY: Final = "--no-compile"
"""What the tests import is compiled as they do; that is a fraction of what is installed."""

STAMP: Final = ".installed"
"""Written last; it says what the environment was made of."""


def prepare(interpreter: Interpreter, *, root: Path = ROOT, parent: Path = ENVIRONMENTS) -> Path:
    """Return the Python of the interpreter's environment, with everything the lock names in it, as `make dev` does."""
    directory = parent / interpreter.name
    python, stamp, made_of = directory / "bin" / "python", directory / STAMP, digest(interpreter, root)
    if stamp.is_file() and stamp.read_text() == made_of:
        return python
    shutil.rmtree(directory, ignore_errors=True)
    # Debian has ensurepip in a package of its own: the pip of this environment installs into the other one.
    subprocess.run([str(interpreter.path), "-m", "venv", "--without-pip", str(directory)], check=True)
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", *QUIET]
    subprocess.run([*install, LAZY, "--require-hashes", "-r", "requirements/dev.lock"], cwd=root, check=True)
    subprocess.run([*install, "--no-deps", "--no-build-isolation", "--editable", "."], cwd=root, check=True)
    stamp.write_text(made_of)
    return python


def digest(interpreter: Interpreter, root: Path = ROOT) -> str:
    """Return what an environment is made of, as a hash: the interpreter, the place, the lock, what is installed."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    parts = [str(interpreter.path), str(root), (root / "requirements/dev.lock").read_text(), repr(project)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
