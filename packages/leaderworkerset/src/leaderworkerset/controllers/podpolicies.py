"""Implements the controller of the pod admission policy in kube-apiserver (`core/admission/podpolicy.py`).

It has one key, and watches the policy, its binding, and the webhook configurations. It runs only in a manager whose
configuration allows policies. If the API server does not serve policies, it has no effect.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

from kuberuntime.client.client import Client
from kuberuntime.client.requests import select_one
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Watch
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import MUTATING_WEBHOOK_CONFIGURATIONS, Resource
from kuberuntime.plan import Plan
from leaderworkerset.api.metadata import MUTATING_WEBHOOKS
from leaderworkerset.controllers import permissions
from leaderworkerset.controllers.caches import Cache, Caches
from leaderworkerset.controllers.spec import ControllerSpec, Driver
from leaderworkerset.core.admission import podpolicy

NAME: Final = "podpolicies"
"""The only key, and the name of both objects."""

CONFIGURATION: Final = ObjectKey("", MUTATING_WEBHOOKS)
CONFIGURATION_CACHE: Final = Cache(select_one(MUTATING_WEBHOOK_CONFIGURATIONS, CONFIGURATION))
POLICY_CACHES: Final = {kind: Cache(select_one(kind, podpolicy.KEY), is_optional=True) for kind in podpolicy.KINDS}

Objects: TypeAlias = Sequence[tuple[Resource, JSONObject]]


class PodPolicyDriver(Driver):
    """Compares the stored objects with the desired objects."""

    def __init__(self, caches: Caches, built: Objects) -> None:
        self._built = built
        self._configurations = caches[CONFIGURATION_CACHE]
        self._stored = {kind: caches[cache] for kind, cache in POLICY_CACHES.items()}

    async def plan(self, _key: ObjectKey) -> Plan:
        """Write missing and modified objects, if the API server serves their kinds."""
        if not all(informer.is_served for informer in self._stored.values()):
            return Plan()
        stored = {kind: informer.store.get(podpolicy.KEY) for kind, informer in self._stored.items()}
        return podpolicy.reconcile(self._built, stored, self._configurations.store.get(CONFIGURATION))

    def watches(self) -> Sequence[Watch]:
        """Return the watches. All changes enqueue the only key."""
        informers = (self._configurations, *self._stored.values())
        return [Watch(informer, lambda _: (podpolicy.KEY,)) for informer in informers]


def specify(built: Objects) -> ControllerSpec:
    """Return the controller for these objects."""

    def build(caches: Caches, _client: Client, _clock: Clock) -> PodPolicyDriver:
        return PodPolicyDriver(caches, built)

    return ControllerSpec(
        name=NAME,
        caches=(CONFIGURATION_CACHE, *POLICY_CACHES.values()),
        build=build,
        writes=permissions.POD_POLICIES,
    )
