"""Plays random schedules, or one schedule with its trace.

Examples: `python -m tests.simulation --seeds 2000`, `--seed 12.3`.
"""

import os
import sys

from tests.simulation.schedules.command import main

HASHES = "PYTHONHASHSEED"

if __name__ == "__main__":
    if os.environ.get(HASHES) != "0":  # otherwise, the order of sets of strings would differ in each process
        os.execve(
            sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]], {**os.environ, HASHES: "0"}
        )
    sys.exit(main(sys.argv[1:]))
