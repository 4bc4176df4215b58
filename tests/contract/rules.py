"""Finds the rules in the contracts in docs/reference, and the tests that cite these rules.

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
"""The contracts, with the prefixes of the rules that are counted. Each contract numbers its quirks separately.

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
"""Rules for installing the manager, for which no tests are required here."""

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
        ["N-VAL-12", "N-PT-6", "N-CR-2", "N-PP-1"],
        "a draft of the Go project",
    ),
    **dict.fromkeys([f"N-DS-{number}" for number in range(10, 16)], "a draft of the Go project"),
    "N-GATE-11": "what wakes the Go controller",
    "N-ST-1": "what N-ST-2 to N-ST-6 replace",
    "N-HELM-1": "what the Go project's chart always installs; ours accepts its value, and installs every kind",
    "N-MGR-2": "what the Go project's documentation says of versions of Kubernetes",
    "N-CR-1": "says R-ROLL-3 and its neighbours anew",
    "N-DS-4": "says R-DS-94 again",
    "N-DS-5": "which release of the Go project reads what",
    "N-VAL-9": "the Go controller accepts now what it refused",
    "N-MET-1": "the Go controller has no new metrics",
    "N-AT-13": "two templates that do not fit side by side: advice to users",
}
"""Rules for other projects, which do not apply to this project."""

NO_BEHAVIOUR: Final = {
    "R-GANG-8": "the configuration refuses the name before (R-CFG-1)",
    "Q-20": "mismatches within upstream's documentation",
    "Q-29": "remarks in upstream's code",
    "Q-30": "the Helm chart",
}
"""Quirks that cannot be observed in a cluster."""


ON_KUBERNETES: Final = ("tests/kubernetes/",)
"""Directories with tests that run only on a real control plane."""


class Place(StrEnum):
    """The environment in which a test runs."""

    CORE = "core"
    EMBEDDED = "embedded"
    KUBERNETES = "Kubernetes"


@dataclass(frozen=True, slots=True)
class Proof:
    """A test, with its node ID and its environment."""

    test: str
    place: Place


def defined(contract: str, prefix: str | tuple[str, ...] = "") -> list[str]:
    """Return the IDs of all rules and quirks in contract order. Later tables may repeat IDs."""
    found = (rule for match in DEFINITION.finditer(contract) for rule in _expand(match[1]))
    return list(dict.fromkeys(rule for rule in found if rule.startswith(prefix)))


def required(directory: Path) -> list[str]:
    """Return the rules of all contracts in a directory."""
    texts = ((directory / name, prefix) for name, prefix in CONTRACTS.items())
    return [rule for path, prefix in texts for rule in defined(path.read_text(), prefix)]


def _expand(text: str) -> list[str]:
    """Expand a range of rules, such as `R-VAL-10..12`."""
    head, separator, last = text.partition("..")
    if not separator:
        return [head]
    stem, first = head.rsplit("-", 1)
    return [f"{stem}-{number}" for number in range(int(first), int(last) + 1)]


def cited(text: str) -> set[str]:
    """Return the rules in a string, with expanded ranges.

    >>> sorted(cited("R-ROLL-1 to R-ROLL-3, Q-5, and AT-000-2b"))
    ['AT-000-2', 'Q-5', 'R-ROLL-1', 'R-ROLL-2', 'R-ROLL-3']
    """
    text = " ".join(text.split())
    ranged = {f"{stem}{n}" for stem, first, last in RANGE.findall(text) for n in range(int(first), int(last) + 1)}
    return ranged | {match[0] for match in RULE.finditer(text)}


def place_of(test: str) -> Place:
    """Return the environment in which a test with this ID runs."""
    if "kubernetes" in test.partition("[")[2] or test.startswith(ON_KUBERNETES):
        return Place.KUBERNETES
    if re.search(r"\[.*(embedded|virtual)", test) or test.startswith("tests/e2e/"):
        return Place.EMBEDDED
    return Place.CORE


def prove(tests: Iterable[tuple[str, str]]) -> dict[str, list[Proof]]:
    """Return the proofs of each rule. `tests` contains test IDs with the docstrings of tests and modules."""
    proofs: dict[str, list[Proof]] = {}
    for test, text in tests:
        for rule in cited(text):
            proofs.setdefault(rule, []).append(Proof(test, place_of(test)))
    return proofs


def is_required(rule: str) -> bool:
    """Return whether a test must cite the rule."""
    return rule not in NO_BEHAVIOUR | OTHERS and not any(rule == key or rule.startswith(f"{key}-") for key in ELSEWHERE)


def uncovered(rules: Iterable[str], proofs: dict[str, list[Proof]]) -> Iterator[str]:
    """Yield the required rules that no test cites."""
    return (rule for rule in rules if is_required(rule) and rule not in proofs)
