"""The rules of the contracts in docs/reference and the tests that cite them.

In: the text of a contract; test items as pytest collects them. Out: which rule is proved by which tests, and where
those run: on the core (pure functions and single parts), on the embedded cluster, on Kubernetes.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

STEM: Final = r"(?:[RQ]-(?:[A-Z]+-)?|(?<!N-)AT-\d{3}-|N-(?:[A-Z0-9]+-)+)"
RULE: Final = re.compile(rf"\b{STEM}\d+")
DEFINITION: Final = re.compile(
    rf"^(?:- )?(?:\*\*|\| )({STEM}\d+(?:\.\.\d+)?)[a-z]?†?(?:\*\*| \||(?= [^\n*]{{0,60}}\*\*))", re.MULTILINE
)
RANGE: Final = re.compile(rf"\b({STEM})(\d+) (?:to|and up to) \1(\d+)")

CONTRACTS: Final[Mapping[str, str | tuple[str, ...]]] = {
    "contract.md": "",
    "contract-disaggregatedset.md": "R-DS-",
    "contract-kueue.md": "R-KQ-",
    "contract-operator.md": ("R-OP-", "AT-"),
    "contract-newest.md": "N-",
}
"""The contracts, and how those of their rules begin that are counted: each has a numbering of quirks of its own.

Scenarios (AT) are counted as rules are.
"""

ELSEWHERE: Final = {
    "R-MGR": "the manager's flags and endpoints",
    "R-CFG": "the configuration file",
    "R-CERT": "certificates of an installation",
    "R-API-4": "conversion stanza of kustomize and Helm",
    "R-API-6": "the Helm copy of the CRD",
    "R-API-11": "a Go type that only DisaggregatedSet uses",
}
"""Rules that belong to the installation of the manager: not required here."""

OTHERS: Final = {
    "R-KQ-1": "how Kueue is switched on",
    "R-KQ-3": "Kueue's permissions and batches",
    "R-KQ-4": "which objects Kueue manages",
    "R-KQ-14": "an annotation that Kueue writes for itself",
    "R-KQ-19": "Kueue lets go of what is being deleted",
    "R-KQ-20": "names of Kueue's Workloads",
    "R-KQ-22": "content of Kueue's Workloads",
    "R-KQ-23": "pod sets of Kueue's Workloads",
    "R-KQ-24": "a finalizer of Kueue's Workloads",
    "R-KQ-25": "what Kueue does when a Workload is deleted",
    "R-KQ-34": "features of Kueue that no LeaderWorkerSet uses",
    "R-KQ-35": "when Kueue evicts what is not ready",
    "R-KQ-73": "time limits of Kueue's own tests",
    "R-KQ-130": "KAI groups pods by itself",
    "R-KQ-131": "what KAI reads; defaults of the definition are R-API-7",
    "R-KQ-150": "a pattern of the Job controller",
    "R-KQ-151": "plans of the Go project",
    "R-KQ-160": "quota and placement may come from two: advice to users",
    "R-OP-45": "how another vendor builds and scans",
    "R-OP-81": "certification tools of another vendor",
    "R-DS-105": "the Go controller has no metrics of its own",
    **dict.fromkeys([f"N-VER-{number}" for number in range(1, 5)], "which release of the Go project has what"),
    **dict.fromkeys([f"N-117-{number}" for number in range(1, 6)], "what Kubernetes' scheduling API is"),
    **dict.fromkeys(
        ["N-VAL-7", "N-VAL-12", *(f"N-PT-{number}" for number in (1, 2, 3, 5, 6)), "N-CR-2", "N-PP-1"],
        "a draft of the Go project",
    ),
    **dict.fromkeys([f"N-DS-{number}" for number in range(10, 16)], "a draft of the Go project"),
    "N-VAL-9": "the Go controller accepts now what it refused",
    "N-MET-1": "the Go controller has no new metrics",
    "N-AT-13": "two templates that do not fit side by side: advice to users",
}
"""Rules that say what others do, and ask nothing of this project."""

NEWEST: Final = "N-"
"""How the rules begin that LeaderWorkerSet has gained since v0.10 (`contract-newest.md`)."""

BUILT: Final = frozenset(
    [
        *("N-AT-16", "N-AT-24", "N-ST-10"),
        *("N-API-1", "N-API-2", "N-API-3", "N-API-7", "N-AT-18", "N-DEF-1", "N-KEY-1"),
        *("N-VAL-1", "N-VAL-2", "N-VAL-3", "N-VAL-4", "N-VAL-5", "N-VAL-6", "N-VAL-8", "N-VAL-10", "N-VAL-11"),
        *("N-ADM-1", "N-ADM-2", "N-ADM-3", "N-ADM-4", "N-ADM-5", "N-ADM-6", "N-ADM-7", "N-ADM-10", "N-AT-2", "N-AT-3"),
        *("N-AT-17", "N-CFG-1", "N-CFG-3", "N-MGR-1"),
        *(f"N-HASH-{number}" for number in (*range(1, 10), *range(20, 26))),
        *("N-GATE-1", "N-GATE-2", "N-GATE-3", "N-GATE-4", "N-GATE-5", "N-GATE-6", "N-GATE-9", "N-GATE-13"),
        *("N-ST-2", "N-ST-3", "N-AT-1", "N-AT-4", "N-AT-5", "N-AT-7", "N-AT-8", "N-AT-22", "N-AT-23"),
        *("N-AT-6", "N-PT-4"),
        *("N-AT-9", "N-DS-1", "N-DS-2", "N-DS-3", "N-RB-18"),
        *(f"N-API-{number}" for number in (5, *range(10, 16))),
        *(f"N-SCH-VAL-{number}" for number in range(1, 23)),
        *("N-ADM-8", "N-ADM-9", "N-GATE-10", "N-GATE-12", "N-ST-14", "N-CFG-2", "N-CFG-4"),
        *(f"N-K8S-{number}" for number in range(1, 20)),
        *("N-AT-6", "N-AT-10", "N-AT-11", "N-AT-12", "N-AT-15", "N-AT-25"),
        *(f"N-RB-{number}" for number in range(1, 18)),
        *("N-AT-14", "N-AT-19", "N-AT-20", "N-AT-21", "N-GATE-7", "N-KEY-3", "N-RBAC-2"),
        *("N-ST-4", "N-ST-5", "N-ST-6", "N-ST-11", "N-ST-12", "N-ST-13"),
    ]
)
"""The newest rules that are built. All others count as not built, and no test cites them."""

NO_BEHAVIOUR: Final = {
    "R-GANG-8": "the configuration refuses the name before (R-CFG-1)",
    "Q-20": "mismatches within upstream's documentation",
    "Q-29": "remarks in upstream's code",
    "Q-30": "the Helm chart",
}
"""Quirks that nobody can observe in a cluster."""


ON_KUBERNETES: Final = tuple(f"tests/integration/{folder}/" for folder in ("install", "lwsoperator", "manager"))
"""Folders whose tests run on a real control plane only."""


class Place(StrEnum):
    """Where a test runs."""

    CORE = "core"
    EMBEDDED = "embedded"
    KUBERNETES = "Kubernetes"


@dataclass(frozen=True, slots=True)
class Proof:
    """One test: its node id and where it runs."""

    test: str
    place: Place


def defined(contract: str, prefix: str | tuple[str, ...] = "") -> list[str]:
    """Return the ids of all rules and quirks in the order of the contract; later tables may speak of them again."""
    found = (rule for match in DEFINITION.finditer(contract) for rule in _expand(match[1]))
    return list(dict.fromkeys(rule for rule in found if rule.startswith(prefix)))


def required(directory: Path) -> list[str]:
    """Return the rules of all contracts in a directory."""
    texts = ((directory / name, prefix) for name, prefix in CONTRACTS.items())
    return [rule for path, prefix in texts for rule in defined(path.read_text(), prefix)]


def _expand(text: str) -> list[str]:
    """Write out `R-VAL-10..12`."""
    head, separator, last = text.partition("..")
    if not separator:
        return [head]
    stem, first = head.rsplit("-", 1)
    return [f"{stem}-{number}" for number in range(int(first), int(last) + 1)]


def cited(text: str) -> set[str]:
    """Return the rules that a text names, ranges written out.

    >>> sorted(cited("R-ROLL-1 to R-ROLL-3, Q-5, and AT-000-2b"))
    ['AT-000-2', 'Q-5', 'R-ROLL-1', 'R-ROLL-2', 'R-ROLL-3']
    """
    text = " ".join(text.split())
    ranged = {f"{stem}{n}" for stem, first, last in RANGE.findall(text) for n in range(int(first), int(last) + 1)}
    return ranged | {match[0] for match in RULE.finditer(text)}


def place_of(test: str) -> Place:
    """Tell from its id where a test runs."""
    if "kubernetes" in test.partition("[")[2] or test.startswith(ON_KUBERNETES):
        return Place.KUBERNETES
    if "embedded" in test.partition("[")[2] or test.startswith(("tests/unit/controllers/", "tests/e2e/")):
        return Place.EMBEDDED
    return Place.CORE


def prove(tests: Iterable[tuple[str, str]]) -> dict[str, list[Proof]]:
    """Return the proofs by rule; `tests` are ids with what their docstrings and those of their modules say."""
    proofs: dict[str, list[Proof]] = {}
    for test, text in tests:
        for rule in cited(text):
            proofs.setdefault(rule, []).append(Proof(test, place_of(test)))
    return proofs


def is_required(rule: str) -> bool:
    """Return whether a test must cite the rule."""
    if is_unbuilt(rule):
        return False
    return rule not in NO_BEHAVIOUR | OTHERS and not any(rule == key or rule.startswith(f"{key}-") for key in ELSEWHERE)


def is_unbuilt(rule: str) -> bool:
    """Return whether the rule asks for something that is not built yet."""
    return rule.startswith(NEWEST) and rule not in BUILT and rule not in OTHERS


def uncovered(rules: Iterable[str], proofs: dict[str, list[Proof]]) -> Iterator[str]:
    """Yield the required rules that no test cites."""
    return (rule for rule in rules if is_required(rule) and rule not in proofs)
