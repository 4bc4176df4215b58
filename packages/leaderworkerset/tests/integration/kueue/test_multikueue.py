"""Tests both clusters of MultiKueue, which are ordinary clusters for the manager.

On one cluster, groups never start, and on the other cluster, their copies run.

Kueue copies a LeaderWorkerSet to another cluster, and keeps its pods at home gated for good. A LeaderWorkerSet has no
field that would say so: the manager reconciles both, and all that it must not do is to take the waiting for a failure.
"""

from typing import Final

from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State
from tests.integration.kueue.test_run_leaderworkerset import queued, run
from tests.kueue.reconciler import Kueue
from tests.kueue.webhooks import PREFIX, QUEUE

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject

ORIGIN: Final = PREFIX + "multikueue-origin"
ORIGIN_UID: Final = PREFIX + "multikueue-origin-uid"


def copied(obj: JSONObject) -> JSONObject:
    """Return the copy that Kueue creates on another cluster, with spec, labels, annotations, and its origin."""
    own = {
        "name": meta.name(obj),
        "labels": {**meta.labels(obj), ORIGIN: "home"},
        "annotations": {**meta.annotations(obj), ORIGIN_UID: meta.uid(obj)},
    }
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": own, "spec": meta.spec(obj)}


async def test_managed_set_writes_nothing_while_its_groups_wait(space: LiveScenario, kueue: Kueue) -> None:
    """No group is ready or recreated, and a restarted manager does not act (R-KQ-68)."""
    kueue.quota = 0
    await space.create(queued(replicas=2))

    def all_wait(state: State) -> None:
        run(state, replicas=2)
        assert all(PREFIX + "managed" in meta.labels(pod) for pod in state.of("web").values())
        status = meta.status(state.leaderworkersets["web"])
        assert status["replicas"] == 2
        assert not status.get("readyReplicas")

    state = await space.until(all_wait)
    uids, before = state.uids("web"), await space.versions()
    await space.manager.stop()
    await space.manager.start()
    await space.edit(replicas=3)
    await space.until(lambda state: run(state, replicas=3))
    after = await space.versions()
    assert uids.items() <= space.state.uids("web").items()
    changed = {name for name, version in before.items() if after.get(name) != version}
    assert changed <= {"LeaderWorkerSet web", "StatefulSet web"}


async def test_copied_set_behaves_like_any_other(space: LiveScenario, kueue: Kueue) -> None:
    """The copy has the labels of the other cluster. Its origin is neither lost nor passed on (R-KQ-40, R-KQ-68)."""
    home = await space.create(queued(replicas=2))
    await space.delete("web")
    await space.until(is_gone)
    kueue.quota = 2
    created = await space.create(copied(home))
    assert meta.spec(created) == meta.spec(home)
    await space.settled()
    found = space.state.leaderworkersets["web"]
    assert (meta.labels(found)[ORIGIN], meta.annotations(found)[ORIGIN_UID]) == ("home", meta.uid(home))
    for pod in space.state.of("web").values():
        assert meta.labels(pod)[QUEUE] == "team"
        assert ORIGIN not in meta.labels(pod)
        assert ORIGIN_UID not in meta.annotations(pod)


def is_gone(state: State) -> None:
    assert not state.leaderworkersets
    assert not state.statefulsets
    assert not state.pods
