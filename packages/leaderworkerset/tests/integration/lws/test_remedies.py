"""Remedies of the catalogue, applied: the set is broken, named by its code, corrected as the cause says, and becomes ready."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest
from testkit.clusters.cluster import ZONE
from tests.explanations.remedies import ON_KUBERNETES, TEMPLATES, TRIED
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import Space
from tests.integration.lws.explanations import named, of_kubernetes, template

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES
from leaderworkerset.api import labels
from leaderworkerset.diagnosis.observed import RESOURCE_QUOTAS

LATER: Final = 10.0
"""Seconds until a scheduler that does not exist counts as silent."""


@pytest.mark.parametrize("code", TEMPLATES)
async def test_correcting_the_template_makes_the_set_ready(space: Space, code: str) -> None:
    if code in ON_KUBERNETES:
        of_kubernetes(space)
    broken = pod_template()
    spec = TEMPLATES[code]
    own = {name: value for name, value in spec.items() if name != "container"}
    broken["spec"] |= own
    broken["spec"]["containers"][0] |= spec.get("container", {})
    await space.create(lws(replicas=1, size=2, template={"workerTemplate": broken}))
    told = await named(space, code, seconds=LATER)
    assert told.steps
    await space.replace_worker_template(pod_template())
    await space.settled()


@asynccontextmanager
async def closed_node(space: Space, **spec: object) -> AsyncIterator[JSONObject]:
    """Close one node for the body; yield the template of pods that only fit there."""
    await space.client.patch(NODES, ObjectKey("", "node-62"), {"spec": spec}, kind="merge")
    try:
        yield template(nodeSelector={"kubernetes.io/hostname": "node-62"})
    finally:
        await space.client.patch(NODES, ObjectKey("", "node-62"), {"spec": dict.fromkeys(spec)}, kind="merge")


async def test_toleration_makes_the_set_ready(space: Space) -> None:
    async with closed_node(space, taints=[{"key": "team", "value": "a", "effect": "NoSchedule"}]) as chosen:
        await space.create(lws(replicas=1, size=1, template=chosen))
        await named(space, "LWS-E039")
        chosen["workerTemplate"]["spec"]["tolerations"] = [{"key": "team", "operator": "Exists"}]
        await space.replace_worker_template(chosen["workerTemplate"])
        await space.settled()


async def test_uncordon_makes_the_set_ready(space: Space) -> None:
    async with closed_node(space, unschedulable=True) as chosen:
        await space.create(lws(replicas=1, size=1, template=chosen))
        await named(space, "LWS-E043")
    await space.settled()


async def test_fewer_groups_make_the_set_ready(space: Space) -> None:
    await space.create(lws(replicas=5, size=1, annotations={labels.EXCLUSIVE_TOPOLOGY: ZONE}))
    await named(space, "LWS-E041", seconds=LATER)
    await space.scale(4)
    await space.settled()


async def test_larger_quota_makes_the_set_ready(space: Space) -> None:
    of_kubernetes(space)
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}}
    await space.create(quota, RESOURCE_QUOTAS)
    await space.eventually(lambda: space.get(RESOURCE_QUOTAS, "few"), lambda one: bool(meta.status(one).get("hard")))
    await space.create(lws(replicas=1, size=2))
    await named(space, "LWS-E020", seconds=LATER)
    await space.patch({"spec": {"hard": {"pods": "9"}}}, "few", resource=RESOURCE_QUOTAS)
    await space.settled()


def test_every_tried_remedy_is_listed() -> None:
    assert {*TEMPLATES, "LWS-E039", "LWS-E043", "LWS-E041", "LWS-E020"} == TRIED
