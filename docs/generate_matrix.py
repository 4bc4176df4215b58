"""Writes docs/reference/matrix.md from the test tables. With `--check`, only reports if it is out of date.

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
"""The maximum number of characters in a displayed value."""

INTRODUCTION = """\
# Tested combinations of settings

<!-- Written by docs/generate_matrix.py from the tables in tests/shipped. Do not edit: make generate. -->

This page lists the combinations of settings that the tests cover.

`tests/kubernetes/shipped` starts the manager with the executable, the arguments, the configuration file and the permissions of its Deployment. Each manager
process has a different combination of settings.
With each combination, the test creates, recreates, rolls out, scales and deletes a LeaderWorkerSet. The test verifies the effects of the settings on
PodGroups, scheduling gates, ports, paths and leases.

| tested | `make test-kubernetes` | nightly run |
|---|---|---|
| Kubernetes versions | {kubernetes} | {kubernetes}, {newer} |
| manager processes | {usual} | {rows} |
| configuration fields ({fields}) | all {values} values | all {pairs} combinations of values of any two fields |
| manager flags ({flags}) | all {flag_values} values | all {flag_values} values |
| annotations of LeaderWorkerSets ({annotations}) | all {annotation_values} values | all {annotation_values} values |

The tests fail if a setting is missing from this page. They also verify the settings in the Helm chart, and the settings that the operator passes to the manager.
If the tests replace a component of the released product, `tests/shipped/replaced.py` lists a test that runs the released component.
"""

GANGS = """
## Gang schedulers

The scheduler determines whether all pods of a group start together. The tests run on both Kubernetes versions, and verify that the released
manager prepares groups for these providers:

| provider | scheduler in the tests | test |
|---|---|---|
| `native` | kube-scheduler | `tests/kubernetes/gang` |
| `kubernetes` | kube-scheduler 1.37, because `spec.scheduling` requires this version | `tests/kubernetes/gang/test_workloadaware.py` |
| `built-in` | kube-scheduler, which schedules the pods after the manager has removed the scheduling gates | `tests/kubernetes/ganggate` |
| `coscheduling` | the scheduler of scheduler-plugins {plugins}, if `make extras` has built it | `tests/kubernetes/coscheduling` |
| `volcano` | none, because the tests bind the pods directly | `tests/kubernetes/gang` |

The tests do not run the Volcano scheduler, because the Go module of the scheduler was not available when the tests were written. Instead, the tests verify the owner and the
`minMember` of each PodGroup, and the pod annotations, which are the input of the scheduler. The tests also verify that
PodGroups are deleted together with their leaders.
"""


def page() -> str:
    """Return the complete page."""
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
                "Semicolons separate the tested values. Settings in the same row are always set together. Placeholders in braces have a different value in each process.\n",
                "| setting | values |",
                "|---|---|",
            ),
            *(line for factor in (*FIELDS, *FLAGS, *ANNOTATIONS) for line in settings(factor)),
            *("\nEvery process has these settings:\n", "| setting | reason |", "|---|---|"),
            *(f"| `{name}` | {why} |" for name, why in ALWAYS.items()),
            *("\nOther tests cover these settings:\n", "| setting | test |", "|---|---|"),
            *(f"| `{name}` | `tests/{path}` |" for name, path in ELSEWHERE.items()),
            GANGS.format(plugins=required(packages.SCHEDULER_PLUGINS)),
        ]
    )


def required(program: packages.Program) -> str:
    """Return the version of the module from which a test binary is built."""
    module = (packages.HERE / program.name / "go.mod").read_text()
    return module.partition(f"/{program.name} ")[2].split(maxsplit=1)[0]


def count_names(factors: tuple[Factor, ...]) -> int:
    """Return the number of settings."""
    return sum(len(factor.names) for factor in factors)


def count_values(factors: tuple[Factor, ...]) -> int:
    """Return the number of tested values. Settings that are set together count as one value."""
    return sum(len(factor.values) for factor in factors)


def settings(factor: Factor) -> Iterator[str]:
    """Yield the table row of a factor."""
    values = [combined(choice) for choice in dict.fromkeys(factor.values)]
    yield f"| {', '.join(map(code, factor.names))} | {'; '.join(values)} |"


def combined(values: tuple[Value, ...]) -> str:
    """Return the values of settings that are set together. Settings without a value are omitted."""
    texts = [text(value) for value in values if value is not None]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if texts[1:] else texts) or "not set"


def text(value: Value) -> str:
    """Return a value as a readable string."""
    if isinstance(value, tuple):
        return f"all {len(value)} cipher suites"
    literal = str(value).lower() if isinstance(value, bool) else str(value) or '""'
    return code(literal if len(literal) <= LONGEST else f"{literal[:LONGEST]}…")


def code(word: str) -> str:
    """Return a word as code."""
    return f"`{word}`"


if __name__ == "__main__":
    sys.exit(generatedpage.main(PAGE, "the tables in tests/shipped", page))
