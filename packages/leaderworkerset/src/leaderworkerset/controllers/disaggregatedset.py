"""Implements the DisaggregatedSet controller, which observes objects and calls the core (R-DS-28).

Services are also watched, so that a deleted Service is recreated immediately, and a pass observes the writes of the
previous pass. A scaler enqueues the set that needs its name, even if the set does not own the scaler.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from kuberuntime.cache.informer import Change
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Watch
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import SERVICES
from kuberuntime.plan import Actions, Plan
from leaderworkerset.api.disaggregatedset import SET_NAME, has_scaler
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS, ROLE_SCALERS
from leaderworkerset.controllers import cachedfields, permissions
from leaderworkerset.controllers.caches import Cache, Caches
from leaderworkerset.controllers.decisioncost import is_large
from leaderworkerset.controllers.spec import ControllerSpec, Driver
from leaderworkerset.core import reconcilefailure
from leaderworkerset.core.disaggregatedset.reconcile import ObservedDisaggregatedSet, reconcile
from leaderworkerset.core.disaggregatedset.rolescalers import scaler_name

NAME: Final = "disaggregatedset"
BY_SET: Final = "disaggregatedset"
BY_SCALER: Final = "scaler"


def disaggregatedset_index(obj: JSONObject) -> Iterable[str]:
    """Index an object by the DisaggregatedSet in its label."""
    name = meta.labels(obj).get(SET_NAME)
    return () if name is None else (str(ObjectKey(meta.namespace(obj), name)),)


def scaler_values(obj: JSONObject) -> Iterable[str]:
    """Index a DisaggregatedSet by the names of its required scalers."""
    namespace, name = meta.key(obj)
    return [
        str(ObjectKey(namespace, scaler_name(name, role.get("name") or "")))
        for role in meta.spec(obj).get("roles") or []
        if has_scaler(role)
    ]


SET_CACHE: Final = Cache(Selection(DISAGGREGATED_SETS), {BY_SCALER: scaler_values}, is_optional=True)
LEADERWORKERSET_CACHE: Final = Cache(
    Selection(LEADERWORKERSETS), {BY_SET: disaggregatedset_index}, keep=cachedfields.leaderworkerset
)
SCALER_CACHE: Final = Cache(Selection(ROLE_SCALERS), {BY_SET: disaggregatedset_index}, is_optional=True)
SERVICE_CACHE: Final = Cache(
    Selection(SERVICES, label_selector=SET_NAME),
    {BY_SET: disaggregatedset_index},
    keep=cachedfields.same_fields(cachedfields.ROLE_SERVICE),
)


class DisaggregatedSetDriver(Driver):
    """Observes DisaggregatedSets in the caches."""

    def __init__(self, caches: Caches, clock: Clock) -> None:
        self._sets = caches[SET_CACHE]
        self._leaderworkersets = caches[LEADERWORKERSET_CACHE]
        self._scalers = caches[SCALER_CACHE]
        self._services = caches[SERVICE_CACHE]
        self._clock = clock
        self._lock = asyncio.Lock()

    async def plan(self, key: ObjectKey) -> Plan:
        """Reconcile one DisaggregatedSet. Large objects are processed in a thread, one after the other."""
        observed = self.observe(key)
        if not is_large((observed.disaggregatedset, *observed.scalers), len(observed.leaderworkersets)):
            return reconcile(observed, self._clock.now())
        async with self._lock:
            return await asyncio.to_thread(reconcile, self.observe(key), self._clock.now())

    def report_failure(self, key: ObjectKey) -> Actions:
        """Report a failed reconciliation in the status of the object."""
        return reconcilefailure.unavailable_status(DISAGGREGATED_SETS, self._sets.store.get(key), self._clock.now())

    def observe(self, key: ObjectKey) -> ObservedDisaggregatedSet:
        """Collect the objects of one DisaggregatedSet from the caches."""
        obj = self._sets.store.get(key)
        scalers = {meta.key(scaler): scaler for scaler in self._scalers.store.by_index(BY_SET, str(key))}
        for name in () if obj is None else scaler_values(obj):
            namespace, _, own = name.rpartition("/")
            scaler = self._scalers.store.get(ObjectKey(namespace, own))
            if scaler is not None:
                scalers[meta.key(scaler)] = scaler
        return ObservedDisaggregatedSet(
            disaggregatedset=obj,
            leaderworkersets=self._leaderworkersets.store.by_index(BY_SET, str(key)),
            services=self._services.store.by_index(BY_SET, str(key)),
            scalers=tuple(scalers.values()),
        )

    def watches(self) -> Sequence[Watch]:
        """Return the watches, and the DisaggregatedSets that are enqueued after changes."""
        return (
            Watch(self._sets, lambda change: (meta.key(change.object),)),
            Watch(self._leaderworkersets, keys_of_owned),
            Watch(self._scalers, self._keys_of_scaler),
            Watch(self._services, keys_of_owned),
        )

    def _keys_of_scaler(self, change: Change) -> Iterable[ObjectKey]:
        asking_sets = self._sets.store.by_index(BY_SCALER, str(meta.key(change.object)))
        return {*keys_of_owned(change), *(meta.key(obj) for obj in asking_sets)}


def keys_of_owned(change: Change) -> Iterable[ObjectKey]:
    """Map an object to its current and its previous controlling DisaggregatedSet."""
    owners = [meta.controller_of(obj) for obj in (change.old, change.new) if obj is not None]
    namespace = meta.namespace(change.object)
    return {
        ObjectKey(namespace, owner["name"]) for owner in owners if owner and owner["kind"] == DISAGGREGATED_SETS.kind
    }


def build(caches: Caches, client: Client, clock: Clock) -> DisaggregatedSetDriver:
    """Build the driver, for which all required objects are cached."""
    del client
    return DisaggregatedSetDriver(caches, clock)


SPEC: Final = ControllerSpec(
    name=NAME,
    caches=(SET_CACHE, LEADERWORKERSET_CACHE, SCALER_CACHE, SERVICE_CACHE),
    build=build,
    writes=permissions.DISAGGREGATED_SET,
)
