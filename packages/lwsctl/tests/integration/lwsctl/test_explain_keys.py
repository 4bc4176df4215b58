"""Tests `lws explain` for groups with random keys on both clusters.

It reports the missing Deployment step and a remedy.
"""

from tests.integration.clusters.objects import lws, pod_template, slow_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State
from tests.integration.lws.test_hash import HASH, settled
from tests.integration.lwsctl.explanations import diagnosis, follow, named, remedy

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import DEPLOYMENTS, REPLICA_SETS
from localkube.controllers.deployment.sizes import DESIRED
from lwsctl.diagnosis.causes.rollouts import STANDING


def is_starting(state: State) -> None:
    assert [meta.status(pod).get("phase") for pod in state.pods.values()] == ["Pending"]


async def deployment(space: LiveScenario) -> JSONObject:
    return await space.get(DEPLOYMENTS, "web")


@remedy("LWS-E088")
async def test_explain_names_leaders_without_progress(space: LiveScenario, code: str) -> None:
    """It is reported if image pulls exceed the deadline of the Deployment."""
    await space.create(lws(replicas=1, size=1, **HASH))
    await settled(space, 1, 1)
    await space.replace_worker_template(slow_template(15))
    await space.until(is_starting)
    await space.patch({"spec": {"progressDeadlineSeconds": 1}}, resource=DEPLOYMENTS)

    told = await named(space, code, seconds=30)

    assert told.sentence == "the leader Deployment of web exceeded its progress deadline"
    assert told.steps[0].endswith("describe deployment web")
    await follow(space, told, "rollout undo web")
    await settled(space, 1, 1, limit=60)


@remedy("LWS-E089")
async def test_explain_names_a_rollout_mistaken_for_a_size_change(space: LiveScenario, code: str) -> None:
    """The Deployment controller waits for the scaling of a ReplicaSet that already has its size (docs/adr/0017).

    It is named after a minute: a controller may be behind. The rollout continues after the suggested commands.
    """
    await space.create(lws(replicas=2, size=1, **HASH))
    await settled(space, 2, 1)
    found = await space.client.list(REPLICA_SETS, namespace=space.namespace)
    (leaders,) = found.items
    await space.patch({"metadata": {"annotations": {DESIRED: "3"}}}, meta.name(leaders), resource=REPLICA_SETS)
    await space.replace_worker_template(pod_template("app:2"))
    key = "leaderworkerset.sigs.k8s.io/template-revision-hash"

    def is_rolled(found: JSONObject) -> bool:
        template = meta.spec(found)["template"]
        return meta.is_observed(found) and meta.labels(template)[key] != meta.labels(leaders)[key]

    await space.eventually(lambda: deployment(space), is_rolled)

    assert (await diagnosis(space)).code != code
    told = await named(space, code, late=STANDING)

    assert len(told.steps) == 2
    await follow(space, told, "scale web --replicas 3")
    await space.eventually(lambda: deployment(space), lambda found: bool(meta.status(found).get("updatedReplicas")))
    await follow(space, told, "scale web --replicas 2")
    state: State = await settled(space, 2, 1)
    assert {meta.spec(pod)["containers"][0]["image"] for pod in state.of("web").values()} == {"app:2"}
