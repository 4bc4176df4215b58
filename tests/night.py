"""Runs the long test campaigns one after the other, and writes a report.

    make night, or python -m tests.night [--list] [NAME ...]

`make nightly` tests the tree; this command searches for unknown faults, for hours. The report, build/night.md, has a
line for each campaign, and the end of its output. Ends with 1 if a campaign failed.
"""

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from testkit.repository import ROOT

import leaderworkerset

REPORT: Final = ROOT / "build/night.md"
KEPT: Final = 20
"""The number of output lines of a campaign at the end of the report."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """A long test campaign with its name, its purpose, and its command."""

    name: str
    looks_for: str
    command: str

    @property
    def words(self) -> tuple[dict[str, str], list[str]]:
        """Return the environment settings and the arguments of the command.

        >>> Campaign("a", "", "SEEDS=2 python -m x").words
        ({'SEEDS': '2'}, ['python', '-m', 'x'])
        """
        words = shlex.split(self.command)
        settings = [word for word in words[:2] if "=" in word and not word.startswith("-")]
        return dict(word.split("=", 1) for word in settings), words[len(settings) :]


CAMPAIGNS: Final = (
    Campaign(
        "schedules",
        "invariants that users, machines, faults and deaths break together",
        "python -m tests.simulation --crashes --misuse 200 --clocks 200 --keys 200 --seeds 5000 --processes 2",
    ),
    Campaign(
        "scenarios",
        "orders of events in which a named scenario ends otherwise",
        "SEEDS=20 pytest -q packages/leaderworkerset/tests/simulation --ignore=packages/leaderworkerset/tests/simulation/schedules",
    ),
    Campaign(
        "requests",
        "answers of 500, leaks, tracebacks",
        "SEEDS=1000 pytest -q packages/localkube/tests/fuzz/test_requests.py",
    ),
    Campaign(
        "reviews", "the same, of webhooks", "SEEDS=150 pytest -q packages/leaderworkerset/tests/fuzz/test_reviews.py"
    ),
    Campaign(
        "connections",
        "the same, of what is no HTTP",
        "SEEDS=60 pytest -q packages/localkube/tests/fuzz/test_wire.py packages/leaderworkerset/tests/fuzz/test_serving.py",
    ),
    Campaign(
        "texts",
        "YAML, kubeconfigs and objects that end a program",
        "SEEDS=2000 pytest -q packages/lwsctl/tests/fuzz/test_yaml.py packages/lwsctl/tests/fuzz/test_kubeconfig.py",
    ),
    Campaign(
        "tenants",
        "texts of tenants that end a command, freeze a page or hide a failure, for ten minutes",
        "SEEDS=350 pytest -q packages/lwsctl/tests/fuzz/test_foreigntexts.py",
    ),
    Campaign(
        "operator",
        "observations that end the operator",
        "SEEDS=200 pytest -q packages/leaderworkerset/tests/fuzz/test_operator.py",
    ),
    Campaign(
        "properties",
        "inputs for which a property does not hold",
        "EXAMPLES=60 pytest -q packages/kuberuntime/tests packages/localkube/tests/unit packages/leaderworkerset/tests/unit "
        "packages/leaderworkerset/tests/property",
    ),
    Campaign(
        "rules",
        "broken rules that no unit test notices",
        "THOROUGH=1 pytest -q tests/contract/test_broken_rules.py",
    ),
    Campaign("soak", "memory that grows over thousands of cycles", "python -m bench.cluster soak"),
    Campaign("tenant", "what a hostile tenant costs others", "python -m bench.manager hostile"),
    Campaign("fencing", "writes of a leader that lost its lease", "python -m bench.manager fencing"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a campaign with its exit code, its duration in seconds, and its last output."""

    campaign: Campaign
    code: int
    seconds: float
    end: Sequence[str]


def run(campaign: Campaign) -> Outcome:
    """Run a campaign until it completes. Its output is written to build/night-NAME.log."""
    settings, words = campaign.words
    log = REPORT.with_name(f"night-{campaign.name}.log")
    log.parent.mkdir(parents=True, exist_ok=True)
    program = [str(Path(sys.executable).with_name(words[0])), *words[1:]]
    began = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        code = subprocess.run(
            program, cwd=ROOT, env={**os.environ, **settings}, stdout=output, stderr=subprocess.STDOUT, check=False
        ).returncode
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return Outcome(campaign, code, time.monotonic() - began, lines[-KEPT:])


def report(outcomes: Sequence[Outcome]) -> str:
    """Return the nightly report in Markdown."""
    lines = [f"# A night with version {leaderworkerset.__version__}", ""]
    lines += ["| campaign | looks for | outcome | minutes | command |", "|---|---|---|---|---|"]
    for one in outcomes:
        told = "passed" if one.code == 0 else f"FAILED ({one.code})"
        lines.append(
            f"| {one.campaign.name} | {one.campaign.looks_for} | {told} | {one.seconds / 60:.0f} | `{one.campaign.command}` |"
        )
    for one in outcomes:
        lines += ["", f"## {one.campaign.name}", "", "```", *one.end, "```"]
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaigns in the arguments, or all campaigns if there are none. Return the exit code."""
    names = [one.name for one in CAMPAIGNS]
    parser = argparse.ArgumentParser(description="Run the long campaigns, and write a report.")
    parser.add_argument("--list", action="store_true", help="list them, and run none")
    parser.add_argument("campaigns", nargs="*", metavar="NAME", help=f"only these: {', '.join(names)}")
    given = parser.parse_args(arguments)
    if unknown := set(given.campaigns) - set(names):
        parser.error(f"no campaign {min(unknown)}; there are {', '.join(names)}")
    chosen = [one for one in CAMPAIGNS if one.name in (given.campaigns or names)]
    if given.list:
        sys.stdout.write("".join(f"{one.name:<12} {one.looks_for}\n{'':<12} {one.command}\n" for one in chosen))
        return 0
    outcomes = []
    for one in chosen:
        sys.stdout.write(f"{one.name}: {one.command}\n")
        sys.stdout.flush()
        outcomes.append(run(one))
        # a preliminary report, because a nightly run can be interrupted
        REPORT.write_text(report(outcomes), encoding="utf-8")
    sys.stdout.write(
        f"{REPORT.relative_to(ROOT)}: {sum(one.code == 0 for one in outcomes)} of {len(outcomes)} passed\n"
    )
    return int(any(one.code for one in outcomes))


if __name__ == "__main__":
    sys.exit(main())
