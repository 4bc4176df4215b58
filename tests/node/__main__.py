"""Runs the scenarios that share the cluster in parallel, and then the outage tests one after the other.

    python -m tests.node [ARGUMENTS OF PYTEST]
    python -m tests.node up

`up` only runs the cluster, until Ctrl-C, and prints the variable by which `pytest tests/node/...` finds it.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from tests.controlplane.build import BuildError
from tests.node import prerequisites, product, programs
from tests.node.cluster import cluster
from tests.node.conftest import VARIABLE
from tests.node.machine import ends_with_parent
from tests.node.prerequisites import AbsentError

HERE: Final = Path(__file__).parent
AT_ONCE: Final = 6
SHARED: Final = HERE / "scenarios"
SIDE_BY_SIDE: Final = [f"--numprocesses={AT_ONCE}", "--dist=worksteal"]
ALONE: Final = HERE / "outages"
SECOND_TRY: Final = ["--second-try", "--last-failed", "--last-failed-no-failures=none"]
FAILED: Final = 1
NOTHING_SELECTED: Final = 5
"""The exit codes of pytest."""


def main(arguments: list[str]) -> int:
    """Run the cluster and the tests on it. Return the exit code."""
    if paths := [argument for argument in arguments if Path(argument.partition("::")[0]).exists()]:
        sys.exit(f"{paths[0]}: select tests with -k or -m, because the outages must not run side by side")
    if reason := prerequisites.obstacle():
        return skip(reason)
    began = time.monotonic()
    try:
        with cluster(programs.say) as running:
            product.install(running)
            start = time.monotonic() - began
            os.environ[VARIABLE] = str(running.directory)
            if arguments == ["up"]:
                sys.stdout.write(f"export {VARIABLE}={running.directory}\n")
                sys.stdout.flush()
                signal.pause()
            with tempfile.TemporaryDirectory() as reports:
                codes = [tests(SHARED, [*SIDE_BY_SIDE, *arguments], reports), tests(ALONE, arguments, reports)]
                number = sum(tests_run(report) for report in Path(reports).iterdir())
            running.check()
    except AbsentError as error:
        return skip(str(error))
    except BuildError as error:
        sys.exit(f"the cluster cannot be built: {error}")
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    took = time.monotonic() - began - start
    sys.stderr.write(f"{number} tests ran on real nodes: {start:.0f} s until the manager ran, {took:.0f} s of tests\n")
    return max((code for code in codes if code != NOTHING_SELECTED), default=NOTHING_SELECTED) or int(number == 0)


def tests_run(report: Path) -> int:
    """Return the number of tests in a JUnit report that were not skipped."""
    suites = ET.parse(report).getroot().iter("testsuite")
    return sum(int(suite.attrib["tests"]) - int(suite.attrib["skipped"]) for suite in suites)


def skip(reason: str) -> int:
    """Print the first and the last line of the reason why a run is skipped. Return the exit code."""
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    sys.stderr.write(f"skipped: {' '.join(dict.fromkeys([lines[0], lines[-1]]))}\n")
    return 0


def tests(folder: Path, arguments: list[str], reports: str) -> int:
    """Run the tests in a directory. Retry failed tests once, one at a time. Return the exit code.

    A file in `reports` has the result of the first run.
    """
    code = pytest(folder, *arguments, f"--junit-xml={reports}/{folder.name}.xml")
    if code != FAILED:
        return code
    sys.stderr.write("What failed is tried once more, alone:\n")
    return pytest(folder, *(word for word in arguments if word not in SIDE_BY_SIDE), *SECOND_TRY)


def pytest(folder: Path, *arguments: str) -> int:
    """Run pytest, and interrupt it if this process is killed. Return its exit code."""
    words = [sys.executable, "-m", "pytest", str(folder), *arguments]
    dying = ends_with_parent(signal.SIGINT)
    return subprocess.run(words, preexec_fn=dying, check=False).returncode


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main(sys.argv[1:]))
