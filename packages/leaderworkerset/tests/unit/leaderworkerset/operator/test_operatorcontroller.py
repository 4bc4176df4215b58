"""Tests the watches and permissions of the operator's controllers."""

import asyncio

import pytest
from testkit.fakes import SmallServer

from kuberuntime.cache.cache import Change
from kuberuntime.client.client import Client
from kuberuntime.clock import SystemClock
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, SECRETS
from kuberuntime.plan import Emit, Plan
from leaderworkerset.controllers.caches import Caches
from leaderworkerset.install.installsettings import ISSUERS, SERVICE_MONITORS
from leaderworkerset.install.operatornames import SINGLETON
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.manager.components import run_in_background
from leaderworkerset.operator import operand, operatorcontroller
from leaderworkerset.operator.operand import OperatorPlace
from leaderworkerset.operator.operatorcontroller import LoggingDriver, established_kind, operand_cache
from leaderworkerset.operator.operatorprocess import registry
from leaderworkerset.operator.verbosity import Verbosity

pytestmark = pytest.mark.virtual_time

PLACE = OperatorPlace(namespace="operators", image="lws:1", version="1.2.3", declared=MANAGED)


def definition(*, established: bool = True, served: bool = True) -> JSONObject:
    return {
        "metadata": {"name": "issuers.cert-manager.io", "uid": "u", "resourceVersion": "1"},
        "spec": {
            "group": "cert-manager.io",
            "names": {"plural": "issuers"},
            "versions": [{"name": "v1", "served": served}],
        },
        "status": {"conditions": [{"type": "Established", "status": str(established)}]},
    }


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (definition(), ("issuers.cert-manager.io",)),
        (definition(established=False), ()),
        (definition(served=False), ()),
    ],
)
def test_kind_is_served_when_its_definition_is_established(obj: JSONObject, expected: tuple[str, ...]) -> None:
    """A kind is served if its CRD is established (R-OP-22)."""
    assert established_kind(obj) == expected


def test_new_or_deleted_kind_enqueues_the_object() -> None:
    """cert-manager is detected within seconds after its installation.

    Its kind is requested while served (R-OP-22).
    """
    spec = operatorcontroller.controllers(PLACE, Verbosity())[0]
    opened = Caches(Client(SmallServer()), spec.caches)
    watches = spec.build(opened, Client(SmallServer()), SystemClock()).watches()
    (watch,) = [one for one in watches if one.informer is opened[operatorcontroller.DEFINITIONS]]
    (served,) = [cache.served for cache in spec.caches if cache.selection.resource == ISSUERS]
    before, after = definition(established=False), definition()
    assert served is not None
    assert list(watch.keys(Change(before, after))) == [SINGLETON]
    assert served.is_set()
    relabeled = after | {"metadata": {"name": "x", "resourceVersion": "2"}}
    assert list(watch.keys(Change(after, relabeled))) == []
    assert served.is_set()
    assert list(watch.keys(Change(after, None))) == [SINGLETON]
    assert not served.is_set()


def test_loss_of_an_optional_kind_is_an_event() -> None:
    """Each optional kind waits for its CRD. Other kinds do not wait."""
    spec = operatorcontroller.controllers(PLACE, Verbosity())[0]
    assert {cache.selection for cache in spec.caches if cache.is_optional} == {
        cache.selection for cache in spec.caches if cache.served is not None
    }


def test_optional_kinds_do_not_block_the_caches() -> None:
    """A cache that waits for optional kinds would block all others (R-OP-23c)."""
    assert operand_cache(SERVICE_MONITORS, "operators").is_optional
    assert operand_cache(ISSUERS, "operators").is_optional
    assert not operand_cache(SECRETS, "operators").is_optional


def test_operator_has_two_loops_that_watch_owned_objects() -> None:
    """A change to any applied object enqueues `cluster`, and its drift is reverted immediately (R-OP-13)."""
    specs = operatorcontroller.controllers(PLACE, Verbosity())
    assert [spec.name for spec in specs] == ["TargetConfigController", "LoggingSyncer"]
    client = Client(SmallServer())
    opened = Caches(client, (cache for spec in specs for cache in spec.caches))
    watches = specs[0].build(opened, client, SystemClock()).watches()
    for kind in operand.ORDER:
        cache = opened[operand_cache(kind, PLACE.namespace)]
        (watch,) = [one for one in watches if one.informer is cache]
        assert list(watch.keys(Change(None, {"metadata": {"name": "x", "namespace": "operators"}}))) == [SINGLETON]


def test_operator_cannot_delete_definitions() -> None:
    """The operator does not have permission to delete CRDs (R-OP-83 (D1))."""
    allowed = [
        one.verbs for one in registry(PLACE, Verbosity()).permissions if one.resource == CUSTOM_RESOURCE_DEFINITIONS
    ]
    assert not [verbs for verbs in allowed if "delete" in verbs]


async def test_verbosity_follows_the_object_and_changes_are_reported() -> None:
    """The initial level is not reported. A level that the schema rejects is treated as `Normal` (R-OP-27)."""
    server = SmallServer()
    opened = Caches(Client(server), (operatorcontroller.CLUSTERS,))
    verbosity = Verbosity()
    driver = LoggingDriver(verbosity, "operators", opened)

    async def plan_at(level: str) -> Plan:
        server.put("cluster", metadata={"namespace": ""}, spec={"operatorLogLevel": level})
        await asyncio.sleep(1)
        return await driver.plan(SINGLETON)

    async with run_in_background(*(informer.run() for informer in opened.all())):
        assert await plan_at("Debug") == Plan()
        assert verbosity.level == 4
        (emitted,) = (await plan_at("TraceAll")).actions
        assert verbosity.level == 8
        assert isinstance(emitted, Emit)
        assert [event.reason for event in emitted.events] == ["OperatorLogLevelChange"]
        assert await plan_at("TraceAll") == Plan()
        (emitted,) = (await plan_at("Loud")).actions
        assert verbosity.level == 2


async def test_objects_of_other_names_are_ignored() -> None:
    """An older CRD may have accepted these values (R-OP-2)."""
    specs = operatorcontroller.controllers(PLACE, Verbosity())
    client = Client(SmallServer())
    opened = Caches(client, (cache for spec in specs for cache in spec.caches))
    for spec in specs:
        driver = spec.build(opened, client, SystemClock())
        assert await driver.plan(ObjectKey("", "other")) == Plan()
    await asyncio.sleep(0)
