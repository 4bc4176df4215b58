"""Tests that the back ends of scenarios have the same verbs, and that the table of ADR 28 lists them."""

import inspect
import re

import pytest
from testkit.repository import ROOT
from tests.integration.clusters.space import LiveScenario
from tests.kubernetes.manager.groups import CheckedNamespace
from tests.scenario import Scenario
from tests.scenarioverbs import VERBS
from tests.simulation.cluster import SimulatedCluster
from tests.unit.leaderworkerset.controllers.cluster import NodelessCluster

BACK_ENDS = (SimulatedCluster, NodelessCluster, LiveScenario, CheckedNamespace)


@pytest.mark.parametrize("kind", BACK_ENDS)
@pytest.mark.parametrize("verb", VERBS)
def test_back_end_has_the_verb_with_the_same_parameters(kind: type[Scenario], verb: str) -> None:
    own, shared = (inspect.signature(getattr(each, verb)).parameters for each in (kind, Scenario))
    assert [(each.name, each.kind, each.default) for each in own.values()] == [
        (each.name, each.kind, each.default) for each in shared.values()
    ]
    assert verb != "fail" or kind.fail is not Scenario.fail


def test_decision_lists_the_verbs_and_the_back_ends() -> None:
    page = (ROOT / "docs/adr/0028-a-workspace.md").read_text().split("all scenarios use the same interface", 1)[1]
    verbs, table = page.split("| back end |", 1)
    assert [kind.__name__ for kind in BACK_ENDS] == re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)[: len(BACK_ENDS)]
    assert set(VERBS) <= set(re.findall(r"`(\w+)`", verbs))
