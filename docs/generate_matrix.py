"""Write docs/reference/matrix.md from the tables of the tests; with `--check` only report whether it is up to date.

python -m docs.generate_matrix [--check]
"""
# ruff: noqa: INP001 - a script of its own, which talks

import sys
from collections.abc import Iterator
from pathlib import Path

from docs import generatedpage
from tests.controlplane import build
from tests.kubernetes.programs import build as packages
from tests.shipped import pairs
from tests.shipped.factors import ALWAYS, ANNOTATIONS, ELSEWHERE, FIELDS, FLAGS, Factor, Value

PAGE = Path(__file__).parent / "reference" / "matrix.md"
LONGEST = 40
"""The maximum characters of a displayed value."""

INTRODUCTION = """\
# What is tried together

<!-- Written by docs/generate_matrix.py from the tables in tests/shipped. Do not edit: make generate. -->

This page lists the combinations of settings that the tests cover.

`tests/kubernetes/shipped` starts the manager as its Deployment does: with the program of the image, the arguments, the file, and the
permissions of the account. It does so for each of {rows} sets of settings every night. `make test` uses {usual} of them, which have every
value. Each time a LeaderWorkerSet is created, recreated, rolled, scaled and deleted. The test looks for the effects of the settings:
gang objects, gates, ports, paths, leases.

| tried | how many |
|---|---|
| Kubernetes | {kubernetes}; {newer} every night |
| processes | {usual}; {rows} every night |
| fields of the configuration, and values of them | {fields}, {values} |
| pairs of values of two fields, all of them every night | {pairs} |
| flags, and values of them, each at least once | {flags}, {flag_values} |
| annotations of LeaderWorkerSets, and values of them, each at least once | {annotations}, {annotation_values} |

A setting without a row fails the tests. So does an unused value of the chart, field of the operator's object, or argument of its operand.
Where tests replace a part of what ships, `tests/shipped/replaced.py` names the
test that runs it as it ships.
"""

GANGS = """
## Gang schedulers

That a group starts whole or not at all depends on who places its pods. On both versions of Kubernetes the manager that ships
prepares groups for:

| provider | who places the pods in tests | test |
|---|---|---|
| `native` | kube-scheduler | `tests/kubernetes/gang` |
| `kubernetes` | kube-scheduler of 1.37, which alone has what `spec.scheduling` needs | `tests/kubernetes/gang/test_workloadaware.py` |
| `built-in` | kube-scheduler, behind the gate | `tests/kubernetes/ganggate` |
| `coscheduling` | the scheduler of scheduler-plugins {plugins}, where `make extras` built it | `tests/kubernetes/coscheduling` |
| `volcano` | the test itself | `tests/kubernetes/gang` |

Volcano's scheduler is not part of the tests: they build programs from Go modules, and its module cannot be fetched where they were made.
The tests check the input of the scheduler: the PodGroups with their numbers and owners, the marks of pods, and the clean-up.
"""


def page() -> str:
    """Return the whole page."""
    numbers = {
        "rows": len(pairs.rows()),
        "usual": len(pairs.usual()),
        "kubernetes": build.VERSIONS[build.DEFAULT].removeprefix("v"),
        "newer": build.VERSIONS[max(build.VERSIONS)].removeprefix("v"),
        "fields": count_names(FIELDS),
        "values": count_values(FIELDS),
        "pairs": sum(len(part) > 1 for part in pairs.wanted(FIELDS)),
        "flags": count_names(FLAGS),
        "flag_values": count_values(FLAGS),
        "annotations": count_names(ANNOTATIONS),
        "annotation_values": count_values(ANNOTATIONS),
    }
    return "\n".join(
        [
            INTRODUCTION.format(**numbers),
            "## Settings\n",
            *(
                "Several settings in one line are set together; in braces is what differs between processes.\n",
                "| setting | values |",
                "|---|---|",
            ),
            *(line for factor in (*FIELDS, *FLAGS, *ANNOTATIONS) for line in settings(factor)),
            *("\nSettings of every process:\n", "| setting | why |", "|---|---|"),
            *(f"| `{name}` | {why} |" for name, why in ALWAYS.items()),
            *("\nSettings that another test sets:\n", "| setting | test |", "|---|---|"),
            *(f"| `{name}` | `tests/{path}` |" for name, path in ELSEWHERE.items()),
            GANGS.format(plugins=required(packages.SCHEDULER_PLUGINS)),
        ]
    )


def required(program: packages.Program) -> str:
    """Return the version of the module that a test program is built from."""
    module = (packages.HERE / program.name / "go.mod").read_text()
    return module.partition(f"/{program.name} ")[2].split(maxsplit=1)[0]


def count_names(factors: tuple[Factor, ...]) -> int:
    """Return the number of settings."""
    return sum(len(factor.names) for factor in factors)


def count_values(factors: tuple[Factor, ...]) -> int:
    """Return the number of tried values; settings that are set together count as one."""
    return sum(len(factor.values) for factor in factors)


def settings(factor: Factor) -> Iterator[str]:
    """Yield the line of a factor."""
    values = [" + ".join(text(value) for value in choice) for choice in dict.fromkeys(factor.values)]
    yield f"| {', '.join(map(code, factor.names))} | {'; '.join(values)} |"


def text(value: Value) -> str:
    """Return a value as readable text."""
    if value is None:
        return "not set"
    if isinstance(value, tuple):
        return f"all {len(value)}"
    literal = str(value).lower() if isinstance(value, bool) else str(value) or '""'
    return code(literal if len(literal) <= LONGEST else f"{literal[:LONGEST]}…")


def code(word: str) -> str:
    """Return a word as code."""
    return f"`{word}`"


if __name__ == "__main__":
    sys.exit(generatedpage.main(PAGE, "the tables in tests/shipped", page))
