"""Tests the errors of the registry, and the guarantees of its declarations."""

import asyncio
from collections.abc import Iterator
from contextlib import closing

import pytest

from kuberuntime.cache.projection import Projection
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection
from kuberuntime.clock import SystemClock
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, SERVICES
from leaderworkerset.capabilities import names
from leaderworkerset.capabilities.disruption.disruptionsettings import DisruptionSettings
from leaderworkerset.capabilities.moves.maintenancesettings import MaintenanceSettings
from leaderworkerset.controllers.caches import Cache, Caches
from leaderworkerset.controllers.indexes import CACHES, POD_CACHE
from leaderworkerset.controllers.spec import ControllerSpec
from leaderworkerset.kinds.kind import Kind
from leaderworkerset.kinds.managedkinds import MANAGED, managed_kinds
from leaderworkerset.kinds.registry import Registry
from localkube.apiserver import builtin
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.server import ApiServer
from localkube.apiserver.storage.store import Store

LEADERWORKERSET, POD = MANAGED.kinds[:2]


@pytest.fixture
def client() -> Iterator[Client]:
    with closing(Store()) as store:
        yield Client(InProcessTransport(ApiServer(store, builtin.kinds(), SystemClock()), "test"))


def by_name(obj: JSONObject) -> list[str]:
    return [str(obj["metadata"]["name"])]


def by_namespace(obj: JSONObject) -> list[str]:
    return [str(obj["metadata"]["namespace"])]


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ((POD, POD), "kind 'pods' is registered twice"),
        ((POD, Kind(resource=SERVICES, controllers=POD.controllers)), "controller 'pod' is registered twice"),
        ((POD, Kind(resource=SERVICES, webhooks=POD.webhooks)), "webhook 'mpod.kb.io' is registered twice"),
    ],
    ids=["kind", "controller", "webhook"],
)
def test_registry_rejects_duplicate_names(kinds: tuple[Kind, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Registry(kinds)


def test_kind_without_controllers_needs_no_permissions() -> None:
    assert Registry((Kind(resource=PODS),)).permissions == ()


def test_selection_of_two_controllers_is_watched_once(client: Client) -> None:
    first = Cache(Selection(PODS, label_selector="a"), {"name": by_name})
    second = Cache(Selection(PODS, label_selector="a"), {"namespace": by_namespace, "name": by_name})
    other = Cache(Selection(PODS))

    caches = Caches(client, (first, second, other))

    assert caches[first] is caches[second]
    assert len(caches.all()) == 2
    assert list(caches[first].store.by_index("namespace", "default")) == []
    assert list(caches[first].store.by_index("name", "web")) == []


def test_shared_cache_keeps_fields_of_both_readers() -> None:
    nodes, phases = Projection("spec.nodeName"), Projection("status.phase")
    one, other = Cache(Selection(PODS), keep=lambda _: nodes), Cache(Selection(PODS), keep=lambda _: phases)
    pod = {"spec": {"nodeName": "n", "priority": 1}, "status": {"phase": "Running", "podIP": "10.0.0.1"}}

    keep = one.merge(other).keep

    assert keep is not None
    assert keep(pod)(pod) == {"spec": {"nodeName": "n"}, "status": {"phase": "Running"}}
    assert keep(pod) is keep(pod)
    assert one.merge(one).keep is one.keep
    assert one.merge(Cache(Selection(PODS))).keep is None


def test_index_with_two_functions_is_rejected(client: Client) -> None:
    declared = (Cache(Selection(PODS), {"name": by_name}), Cache(Selection(PODS), {"name": by_namespace}))
    with pytest.raises(ValueError, match="caches of pods: index 'name' is declared with two functions"):
        Caches(client, declared)


def test_controllers_share_their_caches(client: Client) -> None:
    caches = Caches(client, (*LEADERWORKERSET.controllers[0].caches, *POD.controllers[0].caches))
    assert len(caches.all()) == len(CACHES) + 1  # Deployments are read only for LeaderWorkerSets
    assert caches[POD_CACHE].resource == PODS


def test_leaderworkersets_are_watched_once(client: Client) -> None:
    caches = Caches(client, (cache for spec in MANAGED.controllers for cache in spec.caches))
    followed = [informer.resource.plural for informer in caches.all()]
    assert followed.count("leaderworkersets") == 1
    assert followed.count("services") == 2  # Services of LeaderWorkerSets, and Services of roles


def test_nodes_are_cached_once_for_all_features(client: Client) -> None:
    configured = {names.RECORDER: True, names.DISRUPTION: DisruptionSettings(), names.MOVES: MaintenanceSettings()}
    kinds = managed_kinds("auto", workload_aware=True, configured=configured)
    caches = Caches(client, (cache for spec in kinds.controllers for cache in spec.caches))
    assert [informer.resource.plural for informer in caches.all()].count("nodes") == 1


@pytest.mark.parametrize("spec", MANAGED.controllers, ids=lambda spec: spec.name)
def test_controllers_watch_every_cache_that_they_read(spec: ControllerSpec, client: Client) -> None:
    """Without the watch, a key would be processed before the cache contains the manager's own writes."""

    async def watched() -> set[int]:
        caches = Caches(client, spec.caches)
        driver = spec.build(caches, client, SystemClock())
        watched = {id(watch.informer) for watch in driver.watches()}
        return watched ^ {id(informer) for informer in caches.all()}

    assert asyncio.run(watched()) == set()


def test_only_own_kinds_have_definitions() -> None:
    assert POD.resource not in MANAGED.custom_resources
    assert [obj["metadata"]["name"] for obj in MANAGED.definitions()] == [
        "leaderworkersets.leaderworkerset.x-k8s.io",
        "disaggregatedsets.disaggregatedset.x-k8s.io",
        "disaggregatedsetrolescalers.disaggregatedset.x-k8s.io",
    ]
