"""Tests the Deployment status of leaders with random keys that are rejected, stuck, or in a stuck rollout."""

from typing import Any

import pytest
from tests.explanations.builders import keyed, observed, of_keys

from lwsctl.diagnosis.catalogue import CATALOGUE
from lwsctl.diagnosis.causes import rollouts
from lwsctl.diagnosis.diagnose import diagnose
from lwsctl.diagnosis.observed import Observed
from lwsctl.views.selection import Selection

QUOTA = (
    'pods "web-7d9f8b6c4-x2kkp" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=4, limited: pods=4'
)
WHOLE = {"replicas": 2, "readyReplicas": 2}


def failing(message: str, status: str = "True") -> dict[str, Any]:
    """Return the status of a Deployment whose pods are or were rejected."""
    return {"conditions": [{"type": "ReplicaFailure", "status": status, "message": message}]}


def test_rejected_leader_is_explained_by_the_rejection() -> None:
    """The ReplicaSet repeats the creation silently, and the group has no key yet."""
    found = diagnose(of_keys([keyed()], failing(QUOTA)), Selection("web"))

    assert found.code == "LWS-E020"
    assert "ResourceQuota compute does not allow pod web-7d9f8b6c4-x2kkp: it requests pods=1" in found.sentence
    assert str(found.subject) == "Pod web-7d9f8b6c4-x2kkp"


def test_rejection_without_a_pod_name_is_one_of_the_set() -> None:
    found = diagnose(of_keys([keyed()], failing("Internal error: denied")), Selection("web"))

    assert (found.code, str(found.subject)) == ("LWS-E029", "Pod web")


@pytest.mark.parametrize(
    "observed",
    [of_keys([keyed()], failing(QUOTA, "False")), of_keys([keyed(0), keyed(1)], failing(QUOTA))],
    ids=["it is over", "no leader is missing"],
)
def test_old_rejection_explains_nothing(observed: Observed) -> None:
    assert diagnose(observed, Selection("web")).code != "LWS-E020"


@pytest.mark.parametrize(
    ("key", "told", "replicas"),
    [
        ("new", WHOLE | {"updatedReplicas": 1}, 2),
        ("5b7f", WHOLE, 2),
        ("new", {"replicas": 3, "readyReplicas": 2}, 2),
        ("new", WHOLE, 3),
        ("new", WHOLE | {"observedGeneration": 1}, 2),
    ],
    ids=["rolls", "has rolled", "ends a leader", "waits for a leader", "not observed"],
)
def test_proceeding_rollout_is_not_a_cause(key: str, told: dict[str, Any], replicas: int) -> None:
    seen = of_keys([keyed(0), keyed(1)], told, key=key, replicas=replicas, updating=True)

    assert rollouts.find_stuck_surge.find(seen) is None


def test_sets_without_a_deployment_have_neither_cause() -> None:
    assert rollouts.find_stuck_surge.find(observed()) is None
    assert rollouts.find_exceeded_deadline.find(observed()) is None


def test_reason_of_an_unready_leader_precedes_its_deployment() -> None:
    order = [cause.code for cause in CATALOGUE]

    assert max(map(order.index, ("LWS-E020", "LWS-E041", "LWS-E073"))) < order.index("LWS-E088")
