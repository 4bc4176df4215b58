"""Tests `lws must-gather` on both clusters with all objects of a LeaderWorkerSet, and with missing kinds."""

from tests.integration.clusters.objects import lws
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import pod_names

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, STATEFULSETS, Resource
from leaderworkerset.api.resources import LEADERWORKERSETS
from lwsctl.cli.commands.inspect.must_gather import Gatherer


async def test_gathering_collects_all_objects_of_a_set(space: LiveScenario) -> None:
    """A cluster without operator and cert-manager is also supported (R-OP-42)."""
    await space.bring_up(lws(replicas=2, size=2))
    found: dict[Resource, set[str]] = {}
    logs: dict[str, bytes] = {}

    def write(kind: Resource, obj: JSONObject) -> None:
        if meta.namespace(obj) == space.namespace:
            found.setdefault(kind, set()).add(meta.name(obj))

    gatherer = Gatherer(space.client, write, logs.__setitem__)
    await gatherer.gather([space.namespace])
    assert found[LEADERWORKERSETS] == {"web"}
    assert found[PODS] == pod_names("web", 2, 2)
    assert found[STATEFULSETS] == {"web", "web-0", "web-1"}
    assert {"leaderworkersetoperators.operator.openshift.io", "certificates.cert-manager.io"} <= gatherer.unserved
    assert not [note for note in gatherer.notes if "/pods/" not in note]  # kwok does not provide logs
    if space.cluster.name == "embedded":
        assert len(logs) == len(pod_names("web", 2, 2))
