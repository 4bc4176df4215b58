"""Tests `lws explain` for problems of the manager and its records: no leader, and a missing revision."""

from tests.integration.clusters.objects import lws
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State
from tests.integration.lwsctl.explanations import (
    follow,
    named,
    of_kubernetes,
    remedy,
    template,
    unreachable_webhook,
    warned,
)

from kuberuntime.objects import meta
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, DEPLOYMENTS, LEASES, STATEFULSETS
from leaderworkerset.api.metadata import LABELS, LEASE, MANAGER, SELECTOR
from lwsctl.diagnosis.causes.managers import SILENCE
from lwsctl.diagnosis.causes.unreconciled import BUSY


async def test_explain_names_a_lease_without_a_holder(space: LiveScenario) -> None:
    await space.bring_up(lws(replicas=1, size=1))
    lease = {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": LEASE},
        "spec": {"leaseDurationSeconds": 15, "leaseTransitions": 1},
    }
    await space.manager.stop()
    try:
        await space.create(lease, LEASES)
        await space.patch({"spec": {"replicas": 2}})
        told = await named(space, "LWS-E004", late=SILENCE)
        await space.delete(LEASE, LEASES)
    finally:
        await space.manager.start()
    assert told.sentence.startswith("no manager is the leader: the latest spec of web has not been observed for")
    assert f"Lease {space.namespace}/{LEASE} has no holder" in told.evidence


async def test_explain_names_a_manager_without_pods(space: LiveScenario) -> None:
    of_kubernetes(space, lacks="Deployments")
    await space.bring_up(lws(replicas=1, size=1))
    nowhere = template(nodeSelector={"no-such-label": "true"})["workerTemplate"]
    deployment = {
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": DEPLOYMENTS.kind,
        "metadata": {"name": MANAGER, "labels": dict(LABELS)},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": SELECTOR},
            "template": nowhere | {"metadata": {"labels": SELECTOR}},
        },
    }
    await space.manager.stop()
    try:
        await space.create(deployment, DEPLOYMENTS)
        await space.patch({"spec": {"replicas": 2}})
        told = await named(space, "LWS-E003", late=SILENCE)
        await space.delete(MANAGER, DEPLOYMENTS)
    finally:
        await space.manager.start()
    assert told.sentence.startswith("the manager is not running: the latest spec of web has not been observed for")
    assert f"Deployment {space.namespace}/{MANAGER}: 0 of 2 replicas ready" in told.evidence


async def test_explain_names_a_statefulset_without_a_status(space: LiveScenario) -> None:
    """The webhook rejects all status updates, so no API object shows that the controller is running."""
    async with unreachable_webhook(space, STATEFULSETS, subresource="status", operation="UPDATE"):
        await space.create(lws(replicas=1, size=2))
        await space.until(lambda state: state.pods["web-0"])  # type: ignore[arg-type]  # KeyError until then
        told = await named(space, "LWS-E014", late=BUSY)
    assert told.sentence.startswith("the StatefulSet controller has not observed StatefulSet web")
    assert told.evidence == ("metadata.generation 1, status.observedGeneration 0",)
    await space.settled()


@remedy("LWS-E015")
async def test_explain_names_a_missing_revision(space: LiveScenario, code: str) -> None:
    (revision,) = (await space.bring_up(lws(replicas=1, size=2))).revisions

    def has_no_workers(state: State) -> None:
        assert "web-0-1" not in state.pods
        assert not state.revisions

    await space.manager.stop()
    try:
        await space.delete(revision, CONTROLLER_REVISIONS)
        await space.delete("web-0", STATEFULSETS)
        await space.until(has_no_workers)
        told = await named(space, code)
    finally:
        await space.manager.start()
    assert "of leader web-0 does not exist, so its workers cannot be created" in told.sentence
    assert meta.name(await space.get(STATEFULSETS, "web")) == "web"
    await follow(space, told, "restart web/0")
    await space.settled()


async def test_explain_names_a_missing_runtime_class(space: LiveScenario) -> None:
    of_kubernetes(space)
    await space.create(lws(replicas=1, size=2, template=template(runtimeClassName="no-such-runtime")))
    await space.until(warned("no-such-runtime"))
    assert "no-such-runtime" in (await named(space, "LWS-E027")).sentence
