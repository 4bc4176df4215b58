"""Tests list requests with selectors, pages, resource versions, and rejected options."""

import pytest
from testkit.customkind import LEADERWORKERSETS
from tests.conformance.conftest import CheckSame
from tests.conformance.objects import container, labeled, named, pod, statefulset
from tests.conformance.transcript import METADATA_LIST, TABLE, Session

from kuberuntime.objects.resources import CONFIG_MAPS, NODES, PODS, SECRETS, STATEFULSETS

LABEL_SELECTORS = (
    "app=web", "app==web", "app!=web", "app", "!app", "app in (web,db)", "app notin (web)", "app in (web),tier=a",
    "tier>1", "tier<3", "", ",", "app in ()", "app=", "a b", "app in web", "=x", "app=web,", "-a=b", "app=-x", "x in (a",
)  # fmt: skip
FIELD_SELECTORS = (
    "metadata.name=a", "metadata.name!=a", "metadata.name==a,metadata.name!=b", "metadata.namespace=x", "spec.nodeName=n",
    "status.phase=Pending", "status.phase!=Pending", "spec.unknown=1", "metadata.uid=1", "metadata.name",
    "metadata.labels.app=web", "spec.restartPolicy=Always,spec.schedulerName=default-scheduler", "status.podIP=",
)  # fmt: skip


@pytest.mark.parametrize("selector", LABEL_SELECTORS)
def test_label_selectors_filter_lists(same: CheckSame, selector: str) -> None:
    async def sequence(session: Session) -> None:
        for name, labels in (("a", {"app": "web", "tier": "2"}), ("b", {"app": "db"}), ("c", {"tier": "a"}), ("d", {})):
            await session.create(CONFIG_MAPS, labeled(name, labels))
        await session.get(CONFIG_MAPS, labelSelector=selector)
        await session.delete(CONFIG_MAPS, labelSelector=selector)
        await session.get(CONFIG_MAPS)

    same(sequence)


@pytest.mark.parametrize("selector", FIELD_SELECTORS)
def test_field_selectors_filter_lists(same: CheckSame, selector: str) -> None:
    async def sequence(session: Session) -> None:
        for name, spec in (("a", {"nodeName": "n"}), ("b", {})):
            await session.create(PODS, pod(name, **spec))
        await session.get(PODS, fieldSelector=selector)
        for resource in (STATEFULSETS, LEADERWORKERSETS, SECRETS, NODES):
            await session.get(resource, fieldSelector=selector)

    same(sequence)


def test_pages_show_one_snapshot(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        for name in "abcde":
            await session.create(CONFIG_MAPS, named(name))
        first = await session.get(CONFIG_MAPS, limit=2)
        await session.delete(CONFIG_MAPS, "d")
        await session.create(CONFIG_MAPS, named("ca"))
        token = first["metadata"]["continue"]
        second = await session.get(CONFIG_MAPS, limit=2, **{"continue": token})
        await session.get(CONFIG_MAPS, limit=2, **{"continue": second["metadata"]["continue"]})
        await session.get(CONFIG_MAPS, limit=2, labelSelector="!x")
        await session.get(CONFIG_MAPS, limit=2, accept=TABLE)
        await session.get(CONFIG_MAPS, limit=2, accept=METADATA_LIST)
        await session.get(CONFIG_MAPS, limit=2, resourceVersion=1, **{"continue": token})
        await session.get(CONFIG_MAPS, limit=0)
        await session.get(CONFIG_MAPS, limit=5)

    same(sequence)


VERSIONS = (
    {"resourceVersion": "0"}, {"resourceVersion": "1"}, {"resourceVersion": "x"}, {"resourceVersionMatch": "Exact"},
    {"resourceVersion": "0", "resourceVersionMatch": "Exact"}, {"resourceVersion": "1", "resourceVersionMatch": "Odd"},
    {"resourceVersion": "0", "resourceVersionMatch": "NotOlderThan"}, {"limit": "x"}, {"limit": "-1"},
    {"sendInitialEvents": "true"}, {"continue": "nonsense"}, {"timeoutSeconds": "x"}, {"resourceVersion": "-1"},
)  # fmt: skip


@pytest.mark.parametrize("query", VERSIONS, ids=str)
def test_list_options_are_validated(same: CheckSame, query: dict[str, str]) -> None:
    async def sequence(session: Session) -> None:
        await session.create(CONFIG_MAPS, named("a"))
        # waits until the cache of kube-apiserver is current, because the cache serves requests for any version
        await session.get(CONFIG_MAPS)
        await session.get(CONFIG_MAPS, **query)
        await session.get(LEADERWORKERSETS, **query)

    same(sequence)


def test_list_of_an_exact_version_is_served(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        made = await session.create(CONFIG_MAPS, named("a"))
        version = made["metadata"]["resourceVersion"]
        await session.create(CONFIG_MAPS, named("b"))
        first = await session.get(CONFIG_MAPS, resourceVersion=version, resourceVersionMatch="Exact")
        assert [one["metadata"]["name"] for one in first["items"]] == ["a"]

    same(sequence)


def test_tables_of_sets_and_pods_are_served(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        await session.create(STATEFULSETS, statefulset("web"))
        waiting = {"name": "first", "ready": False, "restartCount": 2, "image": "i", "imageID": ""}
        for name, status in (
            ("a", {"phase": "Running", "podIP": "10.1.1.1", "conditions": [{"type": "Ready", "status": "True"}]}),
            ("b", {"containerStatuses": [waiting | {"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}),
            ("c", {"containerStatuses": [waiting | {"state": {"terminated": {"exitCode": 3}}}]}),
            ("d", {"containerStatuses": [waiting | {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]}),
            ("e", {"phase": "Failed", "reason": "Evicted"}),
            ("f", {"phase": "Succeeded"}),
            ("g", {"initContainerStatuses": [waiting | {"state": {"waiting": {"reason": "PodInitializing"}}}]}),
            ("h", {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}),
        ):
            await session.create(PODS, pod(name, nodeName="n", initContainers=[container(name="first")]))
            await session.patch(PODS, name, {"status": status}, subresource="status")
        await session.delete(PODS, "a", gracePeriodSeconds=30)
        await session.get(PODS, accept=TABLE, includeObject="None")
        await session.get(STATEFULSETS, accept=TABLE, includeObject="Object")
        await session.get(PODS, "a", accept=TABLE, includeObject="Odd")

    same(sequence)
