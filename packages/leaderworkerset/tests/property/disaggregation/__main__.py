"""Runs many histories of DisaggregatedSets, and prints the progress.

Histories are numbered, so that a run can continue where another ended.

    python -m tests.property.disaggregation --rollouts 50000 [--first 1]

Prints a line for every thousand rollouts: the number of the next history, and the counts since `--first`. A history
that breaks a bound, or does not come to rest, ends the run with its number.
"""

import argparse
import sys
import time

from tests.property.disaggregation.test_rollouts import Counts, live

EVERY = 1000


def main() -> None:
    """Run histories until the requested number of rollouts is reached."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollouts", type=int, default=50_000)
    parser.add_argument("--first", type=int, default=1, metavar="NUMBER", help="the first history")
    given = parser.parse_args()
    counts, history, shown, begun = Counts(), given.first, 0, time.process_time()
    while counts.rollouts < given.rollouts:
        try:
            counts += live(history)
        except AssertionError as error:
            raise SystemExit(f"history {history}: {error}") from error
        history += 1
        if counts.rollouts >= shown + EVERY or counts.rollouts >= given.rollouts:
            shown = counts.rollouts
            spent = time.process_time() - begun
            sys.stdout.write(f"next history {history}: {counts}, {spent:.0f} s of a processor\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
