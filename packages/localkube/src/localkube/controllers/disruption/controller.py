"""Runs the PodDisruptionBudget controller, which observes caches and calls `budgetstatus.py`."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Watch
from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject, ObjectKey
from kuberuntime.objects.resources import DEPLOYMENTS, POD_DISRUPTION_BUDGETS, REPLICA_SETS, STATEFULSETS
from kuberuntime.plan import Plan, changed_status
from localkube.controllers import controllerrefs
from localkube.controllers.disruption import budgetstatus
from localkube.controllers.endpointslices import BY_NAMESPACE


class DisruptionController(Struct, frozen=True, kw_only=True):
    """The driver and its caches: budgets and pods by namespace, and the possible controllers of pods."""

    budgets: Informer
    pods: Informer
    statefulsets: Informer
    replicasets: Informer
    deployments: Informer
    clock: Clock

    def watches(self) -> Sequence[Watch]:
        """Return the watches, with the budgets that a change affects. The pods show changes to the scale."""
        return (
            Watch(self.budgets, lambda change: [meta.key(change.object)]),
            Watch(self.pods, self._budgets_of_pod),
        )

    async def plan(self, key: ObjectKey) -> Plan:
        """Write the status of a budget if it changes."""
        budget = self.budgets.store.get(key)
        if budget is None:
            return Plan()
        observed = self._observe(budget)
        status = budgetstatus.build(observed)
        again = budgetstatus.next_check(status, observed.now)
        return Plan(changed_status(POD_DISRUPTION_BUDGETS, budget, status), requeue_after=again)

    def _observe(self, budget: JSONObject) -> budgetstatus.ObservedBudget:
        selector = controllerrefs.owner_selector(budget)
        inside = self.pods.store.by_index(BY_NAMESPACE, meta.namespace(budget))
        pods = [pod for pod in inside if selector.matches(meta.labels(pod))]
        scale, failure = self._scale(pods)
        return budgetstatus.ObservedBudget(budget=budget, pods=pods, scale=scale, failure=failure, now=self.clock.now())

    def _scale(self, pods: Sequence[JSONObject]) -> tuple[int, str]:
        """Return the desired number of pods according to the pods' controllers, or the reason why it is unknown."""
        scales: dict[UID, int] = {}
        for pod in pods:
            if meta.controller_of(pod) is None:
                continue
            workload = self._workload(pod)
            if workload is None:
                return 0, f'found no controllers for pod "{meta.name(pod)}"'
            scales[meta.uid(workload)] = int(meta.spec(workload).get("replicas") or 0)
        return sum(scales.values()), ""

    def _workload(self, pod: JSONObject) -> JSONObject | None:
        """Return the workload that scales a pod: its StatefulSet or ReplicaSet, or the Deployment of the ReplicaSet."""
        replicaset = _controller(pod, REPLICA_SETS.kind, self.replicasets)
        if replicaset is None:
            return _controller(pod, STATEFULSETS.kind, self.statefulsets)
        return _controller(replicaset, DEPLOYMENTS.kind, self.deployments) or replicaset

    def _budgets_of_pod(self, change: Change) -> Iterator[ObjectKey]:
        for budget in self.budgets.store.by_index(BY_NAMESPACE, meta.namespace(change.object)):
            selector = controllerrefs.owner_selector(budget)
            if any(pod is not None and selector.matches(meta.labels(pod)) for pod in (change.old, change.new)):
                yield meta.key(budget)


def _controller(obj: JSONObject, kind: str, informer: Informer) -> JSONObject | None:
    """Return the controller of an object if it has this kind and exists."""
    owner = meta.controller_of(obj)
    if owner is None or owner["kind"] != kind:
        return None
    controller = informer.store.get(ObjectKey(meta.namespace(obj), owner["name"]))
    return controller if controller is not None and meta.uid(controller) == owner["uid"] else None
