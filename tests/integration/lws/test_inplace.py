"""Updates in place: new images come to the pods that are there, and the StatefulSet controller deletes none (ADR 24)."""

import pytest
from tests.controlplane import build
from tests.integration.clusters.objects import lws
from tests.integration.clusters.space import Space
from tests.integration.clusters.state import State, revision_of
from tests.integration.lws.explanations import named
from tests.integration.lws.test_rollout import at_least, images, new_worker

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels


def in_place(way: str, replicas: int, size: int) -> JSONObject:
    """Return a LeaderWorkerSet that is updated in this way."""
    made = lws(replicas=replicas, size=size)
    return made | {"metadata": made["metadata"] | {"annotations": {labels.IN_PLACE: way}}}


def none_is_deleted(state: State) -> None:
    """No pod is on its way out."""
    assert not [name for name, pod in state.pods.items() if meta.is_deleting(pod)]


@pytest.mark.parametrize("running", ["embedded", *build.CLUSTERS], indirect=True)
async def test_images_change_and_pods_stay(space: Space) -> None:
    """R-ARC-4: as many groups at a time as may be unavailable; StatefulSets end as if they had created the pods."""
    await space.create(in_place("Only", replicas=3, size=3))
    before = (await space.settled()).uids("web")
    space.always(none_is_deleted)
    space.always(at_least(2))
    await space.edit_template(**new_worker())
    state = await space.settled()
    assert state.uids("web") == before
    assert set(images(state).values()) == {"app:2"}
    assert len({revision_of(pod) for pod in state.of("web").values()}) == 1
    for one in state.statefulsets.values():
        status = meta.status(one)
        assert status["currentRevision"] == status["updateRevision"]
        assert status["updatedReplicas"] == status["replicas"] == meta.spec(one)["replicas"]
        rolling = meta.spec(one)["updateStrategy"]
        assert (rolling["type"], rolling["rollingUpdate"].get("partition", 0)) == ("RollingUpdate", 0)
    assert "Updating the group of leader pod web-2 in place" in " ".join(state.notes("GroupsUpdating"))


async def test_what_is_no_image_recreates_groups_or_holds_the_rollout(space: Space) -> None:
    """The first field that is not an image is named; taken back, nothing has happened."""
    await space.create(in_place("Only", replicas=2, size=2))
    before = (await space.settled()).uids("web")
    await space.edit_template(size=3)
    why = (
        "Cannot update groups in place, {}: spec.leaderWorkerTemplate.size differs, and is not the image of a container"
    )

    def is_told(state: State) -> None:
        assert why.format("holds the rollout") in state.notes("GroupsUpdating")

    assert (await space.until(is_told)).uids("web") == before
    told = await named(space, "LWS-E096")
    assert "held at group 0: spec.leaderWorkerTemplate.size differs" in told.sentence
    await space.patch({"metadata": {"annotations": {labels.IN_PLACE: "IfPossible"}}})
    state = await space.settled()
    assert not set(state.uids("web").values()) & set(before.values())
    assert len(state.of("web")) == 6
