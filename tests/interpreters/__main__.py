"""Runs the fast tests and one `lws run` on each other Python version.

Run it with `python -m tests.interpreters [--list] [--ends]`.

Further means: besides the current one, on which `make test` runs everything. Exits with code 1 if one failed; a machine
with a single Python is not an error, but announced prominently. With `--ends` only the oldest and the newest are tried.
"""

import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.interpreters import environments
from tests.interpreters.discovery import Interpreter, Version, find
from tests.interpreters.environments import ROOT

HANGING: Final = ("-o", "faulthandler_timeout=100", "-o", "faulthandler_exit_on_timeout=true")
"""The timeout of a test, in seconds. A test that exceeds it fails, and shows where it hangs."""

OPTIONS: Final = ("-q", "-n", "logical", "--dist", "worksteal", "--max-worker-restart=0", *HANGING, "--assert=plain")
"""One process for each core. To save time, assertions are only rewritten at the second attempt, to show values."""

PACKAGES: Final = ("kuberuntime", "localkube", "leaderworkerset", "lwsctl")
FOLDERS: Final = (
    *(f"packages/{package}/tests/unit" for package in PACKAGES),
    "packages/leaderworkerset/tests/simulation/test_life.py",
)
"""The fast tests of the packages, and tests of groups in a fully simulated cluster.

The differences of Pythons are in the language and its library, which the unit tests of every module use. Other
simulations and the properties make more inputs for the same code: three times their minutes found nothing of one Python's.
Tests that read the files of this repository (such as `tests/repository/docs`) have the same result on each.
"""

DEMO: Final = ("-f", "examples/allreduce/lws.yaml", "--image", "allreduce=examples/allreduce", "--until", "done")
FAILED: Final = 1
"""The pytest exit code if tests failed."""

LIMIT: Final = 600.0
"""The timeout of a run, in seconds."""

OWN: Final[Version] = tuple(sys.version_info[:3])


def main(arguments: Sequence[str]) -> int:
    """Run the command-line interface."""
    found = find(os.environ, minimum())
    further = [one for one in found if one.version != OWN and not one.unfit]
    if "--ends" in arguments:
        further = further[:1] + further[1:][-1:]
    announce(found, further)
    if "--list" in arguments:
        return 0
    outcomes = {one: attempt(one) for one in further}
    report(found, outcomes)
    return 0 if all(outcome == "passed" for outcome in outcomes.values()) else 1


def minimum() -> Version:
    """Return the oldest supported Python version."""
    project = tomllib.loads((ROOT / "packages/leaderworkerset/pyproject.toml").read_text())["project"]
    return tuple(int(number) for number in project["requires-python"].removeprefix(">=").split("."))


def announce(found: Sequence[Interpreter], further: Sequence[Interpreter]) -> None:
    """Print the Python interpreters before they are tested."""
    say(f"Python {dotted(OWN)} runs this: `make test` runs everything on it.")
    for one in found:
        if one in further:
            say(f"Python {one.name} is tried: {one.path}")
        elif one.unfit:
            say(f"Python {one.name} is not tried, {one.unfit}: {one.path}")
    if not further:
        say("!" * 79)
        say(f"ONLY ONE PYTHON IS ON THIS MACHINE: {dotted(OWN)}. Nothing shows that the others still work.")
        say("Install another one of 3.11 or newer (on PATH, in /usr/bin, or by pyenv), and try again.")
        say("!" * 79)


def attempt(interpreter: Interpreter) -> str:
    """Return the result of the fast tests and one `lws run`: "passed", or the failed step."""
    say(f"\n== Python {interpreter.name} ({interpreter.path})")
    started = time.monotonic()
    try:
        python = environments.prepare(interpreter)
        say(f"environment ready after {time.monotonic() - started:.0f} s: {python.parents[1]}")
        demonstrate([str(python), "-m", "lwsctl.cli", "run", *DEMO, "--timeout", "60"])
        test(python)
    except subprocess.TimeoutExpired as error:
        return f"FAILED: not done after {LIMIT:.0f} s: {shown(error.cmd)}"
    except subprocess.CalledProcessError as error:
        return f"FAILED: exit code {error.returncode}: {shown(error.cmd)}"
    except OSError as error:
        return f"FAILED: {error}"
    return "passed"


def test(python: Path) -> None:
    """Run the fast tests. Failed tests are retried alone, and are reported as unstable if they pass."""
    cache = ("-o", f"cache_dir={python.parents[1] / 'cache'}")
    try:
        run([str(python), "-m", "pytest", *OPTIONS, *FOLDERS, *cache])
    except subprocess.CalledProcessError as error:
        if error.returncode != FAILED:
            raise
        again = ("--second-try", "--last-failed", "--last-failed-no-failures=none")
        run([str(python), "-m", "pytest", "-q", *again, *cache])


def demonstrate(command: Sequence[str]) -> None:
    """Run a command, and print its output only if it fails. If a retry succeeds, report it as unstable."""
    say(f"$ {shown(command)}")
    for attempts_left in (1, 0):
        result = subprocess.run(
            command, cwd=ROOT, check=False, timeout=LIMIT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if result.returncode == 0:
            say(result.stdout.rstrip().rpartition("\n")[2])
            return
        say(f"{result.stdout.rstrip()}\nunstable: exit code {result.returncode}: {shown(command)}")
        if not attempts_left:
            result.check_returncode()


def run(command: Sequence[str]) -> None:
    """Run a command in the repository, and print its command line."""
    say(f"$ {shown(command)}")
    subprocess.run(command, cwd=ROOT, check=True, timeout=LIMIT)


def shown(command: Sequence[str | Path]) -> str:
    """Return a command as a string, without the path of the repository."""
    return " ".join(str(word).replace(f"{ROOT}/", "") for word in command)


def report(found: Sequence[Interpreter], outcomes: dict[Interpreter, str]) -> None:
    """Print a line for each tested interpreter, and the interpreters that were found."""
    say(f"\nPythons found here: {', '.join(sorted({dotted(OWN), *(one.name for one in found)}))}")
    for one, outcome in outcomes.items():
        say(f"Python {one.name}: unit tests, a simulated life, one `lws run`: {outcome}")


def dotted(version: Version) -> str:
    """Return a version as a string."""
    return ".".join(map(str, version))


def say(line: str) -> None:
    """Print before the started processes print more output."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
