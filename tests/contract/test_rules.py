"""Tests the detection of rules and their proofs."""

import re
from pathlib import Path

from testkit.repository import ROOT, files_of_tests
from tests.contract import rules
from tests.contract.rules import Place, Proof

REFERENCE = ROOT / "docs" / "reference"
CONTRACT = (REFERENCE / "contract.md").read_text()
OPERATOR = (REFERENCE / "contract-operator.md").read_text()


def test_rules_are_defined_by_lists_and_tables() -> None:
    text = "- **R-ARC-1** Two.\n| R-VAL-3† | `x` |\n| R-VAL-10..12 | y |\nsee R-ARC-9\n- **Q-5** Odd."

    assert rules.defined(text) == ["R-ARC-1", "R-VAL-3", "R-VAL-10", "R-VAL-11", "R-VAL-12", "Q-5"]


def test_rules_may_start_a_paragraph_and_have_a_title() -> None:
    text = "**R-DS-1** Group.\n**R-DS-50 (floor)** F.\n- **R-KQ-10 (hard requirement)** Kueue.\nand **R-DS-9** too\n"

    assert rules.defined(text) == ["R-DS-1", "R-DS-50", "R-KQ-10"]
    assert rules.defined(text, "R-KQ-") == ["R-KQ-10"]


def test_scenarios_are_counted_like_rules() -> None:
    text = "- **R-OP-57** Installs: AT-000-1.\n- **AT-000-1** Given.\n- **AT-003-2** (title) x.\n**Q-1** Odd.\n"

    assert rules.defined(text, ("R-OP-", "AT-")) == ["R-OP-57", "AT-000-1", "AT-003-2"]
    assert rules.cited("AT-001-1 to AT-001-3, R-OP-43d") == {"AT-001-1", "AT-001-2", "AT-001-3", "R-OP-43"}


def test_all_contracts_are_read() -> None:
    found = rules.required(ROOT / "docs" / "reference")

    assert {"R-ARC-1", "Q-1", "R-DS-1", "R-DS-107", "R-KQ-10", "R-KQ-161"} <= set(found)
    assert {f"R-OP-{number}" for number in range(1, 84)} <= set(found)
    assert {"AT-000-1", "AT-000-6", "AT-001-1", "AT-001-5", "AT-003-1", "AT-003-7"} <= set(found)
    assert len(found) == len(set(found))
    assert rules.OTHERS.keys() <= set(found)


def test_every_cited_rule_of_the_contract_is_defined() -> None:
    spoken = rules.cited(CONTRACT.replace("R-1)", ""))

    assert spoken <= {*rules.defined(CONTRACT), *rules.required(REFERENCE)}
    assert rules.cited(OPERATOR) <= {*rules.defined(OPERATOR), *rules.defined(CONTRACT)}


def test_rules_with_letters_are_counted_by_their_numbers() -> None:
    text = "- **N-K8S-8a** Labels.\n| N-SCH-VAL-4d | x |\n| N-AT-10 | name |\n- **N-117-1** y\n"

    assert rules.defined(text, "N-") == ["N-K8S-8", "N-SCH-VAL-4", "N-AT-10", "N-117-1"]
    assert rules.cited("N-AT-10, AT-000-1") == {"N-AT-10", "AT-000-1"}


def test_every_rule_cited_by_a_test_is_in_its_contract() -> None:
    found = set(rules.required(ROOT / "docs" / "reference"))
    chapters = {one.rpartition("-")[0] for one in found}
    texts = {
        path: path.read_text()
        for name, path in files_of_tests()
        if path.name.startswith("test_") and path.parent != Path(__file__).parent
    }
    unknown = {
        (path.name, rule)
        for path, text in texts.items()
        for rule in rules.cited(text) - found
        if rule.rpartition("-")[0] in chapters
    }
    assert len(texts) > 500
    assert unknown == set()


def test_rule_is_proved_where_its_test_runs() -> None:
    tests = [
        ("tests/unit/core/test_a.py::test_a", "R-ARC-1."),
        ("tests/integration/test_b.py::test_b[embedded]", "R-ARC-1, Q-5"),
        ("tests/integration/test_b.py::test_b[kubernetes]", "R-ARC-1, Q-5"),
    ]
    alone = [("tests/kubernetes/lwsoperator/test_c.py::test_c[as printed]", "R-OP-58")]

    assert rules.prove(tests)["R-ARC-1"] == [Proof(test, place) for (test, _), place in zip(tests, Place, strict=True)]
    assert rules.prove(alone)["R-OP-58"] == [Proof(alone[0][0], Place.KUBERNETES)]
    assert list(rules.uncovered(["R-ARC-1", "R-ARC-2", "R-MGR-1", "Q-20", "R-KQ-73"], rules.prove(tests))) == [
        "R-ARC-2"
    ]


def test_tests_of_differences_exist() -> None:
    """The rules are in section 15 of the contract, and in section 8 of the operator's contract."""
    named = {contract: set(re.findall(r"\| `(test_\w+)` \|", contract)) for contract in (CONTRACT, OPERATOR)}
    there = {
        name
        for name, path in files_of_tests()
        if path.name.startswith("test_")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    }

    assert all(len(one) >= 19 for one in named.values())
    assert set.union(*named.values()) - there == set()
