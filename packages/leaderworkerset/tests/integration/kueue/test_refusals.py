"""Tests that users see rejections by Kueue unchanged, and that webhooks keep the values that Kueue accepts."""

from typing import Any, Final

import pytest
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.kueue.test_run_leaderworkerset import queued
from tests.kueue import refusals
from tests.kueue.reconciler import ROLE, Kueue
from tests.kueue.webhooks import QUEUE

from kuberuntime.errors import ForbiddenError, InvalidError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels

RACK: Final = {refusals.REQUIRED: "rack"}
TOGETHER: Final = RACK | {refusals.TOGETHER: "both"}


def annotated(annotations: dict[str, str]) -> JSONObject:
    return pod_template() | {"metadata": {"annotations": annotations}}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"annotations": {refusals.ELASTIC: "true"}}, "elastic jobs are not supported"),
        (
            {"template": {"workerTemplate": annotated(RACK | {refusals.PREFERRED: "zone"})}},
            "more than one topology annotation",
        ),
        ({"template": {"workerTemplate": annotated(RACK | {refusals.SLICE_SIZE: "2"})}}, "go together"),
        (
            {
                "template": {
                    "workerTemplate": annotated(RACK | {refusals.SLICE_SIZE: "4", refusals.SLICE_TOPOLOGY: "r"})
                }
            },
            "at most the 3 pods",
        ),
        ({"template": {"workerTemplate": annotated(TOGETHER)}}, "two pod sets"),
        ({"template": {"workerTemplate": annotated({refusals.TOGETHER: "both"})}}, "required or preferred"),
    ],
    ids=["elastic", "two topologies", "size alone", "slice too large", "one pod set", "no topology"],
)
async def test_kueue_rejections_reach_the_user_unchanged(
    space: LiveScenario, kueue: Kueue, spec: dict[str, Any], words: str
) -> None:
    """The manager's defaults neither correct nor hide the error.

    Without a queue, there is none (R-KQ-15, R-KQ-55).
    """
    with pytest.raises(ForbiddenError, match=words):
        await space.create(queued(**spec))
    assert kueue.admitted == set()
    await space.create(lws(**spec), dry_run=True)


async def test_replicas_above_the_limit_of_kueue_are_invalid(space: LiveScenario, kueue: Kueue) -> None:
    """The schema limits the number, with and without a queue (R-KQ-15)."""
    assert refusals.MOST_GROUPS == 1_000_000
    for obj in (queued(replicas=refusals.MOST_GROUPS + 1), lws(replicas=refusals.MOST_GROUPS + 1)):
        with pytest.raises(InvalidError, match="less than or equal to 1000000"):
            await space.create(obj)
    assert not kueue.admitted


async def test_queue_name_that_is_not_a_dns_name_is_rejected(space: LiveScenario, kueue: Kueue) -> None:
    """The API server accepts the label value, although it is longer than any queue name (R-KQ-15)."""
    obj = queued(replicas=1)
    obj["metadata"]["labels"] = {QUEUE: "Team_A"}
    with pytest.raises(ForbiddenError, match="DNS subdomain"):
        await space.create(obj)
    assert not kueue.admitted


async def test_leader_and_workers_share_one_topology_domain(space: LiveScenario, kueue: Kueue) -> None:
    """Leaders and workers are two pod sets with their pods' annotations (R-KQ-31, R-KQ-50, R-KQ-52, R-KQ-55)."""
    kueue.quota = 1
    both = {"leaderTemplate": annotated(TOGETHER), "workerTemplate": annotated(TOGETHER)}
    state = await space.bring_up(queued(replicas=1, size=4, template=both))
    for pod in state.of("web").values():
        assert TOGETHER.items() <= meta.annotations(pod).items()
        assert meta.annotations(pod)[ROLE] == ("leader" if meta.labels(pod)[labels.WORKER_INDEX] == "0" else "worker")
    assert {meta.spec(pod)["nodeName"] for pod in state.of("web").values()} == set(kueue.domains[0][:2])
