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

`tests/kubernetes/shipped` starts the manager as its Deployment does. It uses the executable of the image, the arguments, the configuration file, and
the permissions of the service account. The nightly run covers {rows} combinations of settings. `make test` uses {usual} of them, which together
contain every value.
With each combination, a LeaderWorkerSet is created, recreated, rolled out, scaled and deleted. The test verifies the effects of the settings on gang
objects, gates, ports, paths and leases.

| tested | number |
|---|---|
| Kubernetes version | {kubernetes}; the nightly run also uses {newer} |
| manager processes | {usual}; the nightly run starts {rows} |
| configuration fields and their values | {fields} fields, {values} values |
| pairs of values of two fields | {pairs}; the nightly run contains all pairs |
| flags and their values | {flags} flags, {flag_values} values; each value is tested at least once |
| annotations of LeaderWorkerSets and their values | {annotations} annotations, {annotation_values} values; each value is tested at least once |

The tests fail if a setting is not listed on this page. They also fail if a chart value, a field of the operator's object, or an argument of its
operand is unused. If tests replace a part of the released product, `tests/shipped/replaced.py` lists the test that runs the original part.
"""

GANGS = """
## Gang schedulers

The component that places the pods determines whether all pods of a group start together. On both Kubernetes versions, the released manager prepares
groups for these providers:

| provider | scheduler in the tests | test |
|---|---|---|
| `native` | kube-scheduler | `tests/kubernetes/gang` |
| `kubernetes` | kube-scheduler 1.37, because `spec.scheduling` requires this version | `tests/kubernetes/gang/test_workloadaware.py` |
| `built-in` | kube-scheduler, after the gate is removed | `tests/kubernetes/ganggate` |
| `coscheduling` | the scheduler-plugins {plugins} scheduler, if `make extras` has built it | `tests/kubernetes/coscheduling` |
| `volcano` | no scheduler; the test binds the pods itself | `tests/kubernetes/gang` |

The tests do not run the Volcano scheduler, because its Go module was not available when the tests were written. Instead, the tests verify the input of
the scheduler. This input consists of the owner and the `minMember` of each PodGroup, and the pod annotations. The tests also verify that
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
                "Settings in the same row are set together. Values in braces differ between processes.\n",
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
    values = [" + ".join(text(value) for value in choice) for choice in dict.fromkeys(factor.values)]
    yield f"| {', '.join(map(code, factor.names))} | {'; '.join(values)} |"


def text(value: Value) -> str:
    """Return a value as a readable string."""
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
