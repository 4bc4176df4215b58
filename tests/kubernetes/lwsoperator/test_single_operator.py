"""Tests the lease, the events, recreated pods, and the single object of the operator as a process."""

import time

import pytest
from tests.kubernetes.lwsoperator.conftest import IN, MANAGER, OBJECT, OperatorCluster
from tests.kubernetes.lwsoperator.waiting import until

from leaderworkerset.install.operatornames import LEASE

pytestmark = pytest.mark.slow

PODS = ("pods", *IN, "-l", "control-plane=controller-manager")


def holder(site: OperatorCluster) -> str:
    return str(site.administrator.there(f"lease/{LEASE}", *IN)["spec"].get("holderIdentity") or "")


def test_operator_holds_its_lease_while_it_runs(available: OperatorCluster) -> None:
    """The lease durations are shorter than on OpenShift. The operator releases the lease when it exits (R-OP-12)."""
    found = available.administrator.there("lease/openshift-lws-operator-lock", *IN)["spec"]
    assert found["leaseDurationSeconds"] == 30
    assert holder(available)
    available.stop()
    assert holder(available) == ""
    available.start()
    until(lambda: holder(available) != "", "a leader")


def test_second_replica_leads_soon_after_a_kill(available: OperatorCluster) -> None:
    """The lease expires, and edits in the meantime are reverted (R-OP-12)."""
    leader = holder(available)
    assert available.process is not None
    killed = available.process
    available.start()
    killed.kill()
    started = time.monotonic()
    available.administrator.kubectl("scale", *MANAGER, "--replicas=3")
    until(lambda: holder(available) not in ("", leader), "another leader")
    assert time.monotonic() - started < 45
    until(lambda: available.manager()["spec"]["replicas"] == 2, "replicas")


def test_events_of_the_operator_name_written_objects(available: OperatorCluster) -> None:
    """The event about a restored object is an example of the second type of event (R-OP-14)."""
    administrator = available.administrator
    administrator.kubectl("delete", "service/lws-webhook-service", *IN)
    until(lambda: administrator.get("service/lws-webhook-service", *IN) is not None, "the service")

    def notes() -> set[tuple[str, str]]:
        listed = administrator.there("events.events.k8s.io", *IN)["items"]
        return {(one["reason"], one["note"]) for one in listed if one["regarding"]["name"] == "openshift-lws-operator"}

    text = "Created Service/lws-webhook-service -n openshift-lws-operator because it was missing"
    until(lambda: ("ServiceCreated", text) in notes(), "the event")


def test_deleted_pods_of_the_operand_are_recreated(available: OperatorCluster) -> None:
    """The number of pods does not change, and all new pods have different names (R-OP-43c)."""
    before = {one["metadata"]["uid"] for one in available.administrator.there(*PODS)["items"]}
    available.administrator.kubectl("delete", *PODS, "--wait=false")

    def are_replaced() -> bool:
        found = (available.administrator.get(*PODS) or {"items": []})["items"]
        running = {one["metadata"]["uid"] for one in found if one["status"].get("phase") == "Running"}
        return len(running - before) == 2 and not before & {one["metadata"]["uid"] for one in found}

    until(are_replaced, "two other pods")
    available.await_available()


def test_single_object_is_not_degraded(available: OperatorCluster) -> None:
    """The conditions are the same as in a functioning installation (R-OP-43a)."""
    kind = OBJECT.partition("/")[0]
    assert [one["metadata"]["name"] for one in available.administrator.there(kind)["items"]] == ["cluster"]
    found = available.conditions()
    assert {status for name, (status, _) in found.items() if name.endswith("Degraded")} == {"False"}
    assert found["Available"] == ("True", "AsExpected")
    assert available.manager()["status"]["availableReplicas"] == 2


def test_objects_of_the_operand_are_owned_by_the_cluster_object(available: OperatorCluster) -> None:
    """The owner reference does not control the object or block its deletion (R-OP-16, R-OP-64, AT-001-2)."""
    uid = available.cluster()["metadata"]["uid"]
    head = {"apiVersion": "operator.openshift.io/v1", "kind": "LeaderWorkerSetOperator"}
    for words in (MANAGER, ("configmap/lws-manager-config", *IN), ("clusterrole/lws-manager-role",)):
        owners = available.administrator.there(*words)["metadata"]["ownerReferences"]
        assert owners == [{**head, "name": "cluster", "uid": uid}]


def test_api_server_validates_states_and_log_levels(available: OperatorCluster) -> None:
    """Invalid values are rejected, and unknown fields are dropped (R-OP-4)."""
    kubectl = available.administrator.kubectl
    for field, value in (("managementState", "Paused"), ("managementState", ""), ("logLevel", "Loud")):
        words = ("patch", OBJECT, "--type=merge", "--dry-run=server", "-p", f'{{"spec": {{"{field}": "{value}"}}}}')
        assert f"spec.{field}" in kubectl(*words, code=1)
    more = '{"spec": {"replicas": 3}}'
    kubectl("patch", OBJECT, "--type=merge", "-p", more)
    assert "replicas" not in available.cluster()["spec"]
