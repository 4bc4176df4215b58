"""Runs autoscalers: reads scales and metrics, and computes replicas every `PERIOD` seconds.

Earlier recommendations and changes are in memory only, so an autoscaler starts without them after a restart, as in
Kubernetes.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Watch
from kuberuntime.errors import KubeError
from kuberuntime.objects import meta, selectors
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import POD_METRICS, Resource
from kuberuntime.plan import Plan
from localkube.controllers.autoscaling import autoscalercontrol
from localkube.controllers.autoscaling.autoscalercontrol import ObservedAutoscaler, ScaleDecision
from localkube.controllers.autoscaling.scalingbehavior import History, ReplicaRecord

AS_JSON: Final = {"accept": "application/json"}


NOTHING: Final = History()
_NO_METRICS: Final[Sequence[JSONObject] | str] = ()


class AutoscalerState(msgspec.Struct, frozen=True):
    """The state of an autoscaler: the time of its last decision, the spec, and the scale (from, to) that it wrote."""

    at: datetime
    uid: str
    spec: JSONObject
    history: History = NOTHING
    written: tuple[int, int] | None = None


class Autoscalers(msgspec.Struct, frozen=True, kw_only=True):
    """The driver, with caches of autoscalers and pods, and a client."""

    autoscalers: Informer
    pods: Informer
    client: Client
    clock: Clock
    memories: dict[ObjectKey, AutoscalerState] = msgspec.field(default_factory=dict)

    def watches(self) -> Sequence[Watch]:
        """Return the watch of autoscalers. The scale of their targets is requested for every decision."""
        return (Watch(self.autoscalers, lambda change: [meta.key(change.object)]),)

    async def plan(self, key: ObjectKey) -> Plan:
        """Return the plan for an autoscaler. The plan is empty if it is not due and its spec is unchanged."""
        autoscaler, now = self.autoscalers.store.get(key), self.clock.now()
        if autoscaler is None:
            self.memories.pop(key, None)
            return Plan()
        memory = self._load_state(key, autoscaler, now)
        passed = (now - memory.at).total_seconds()
        if _has_decided(memory, autoscaler) and 0 <= passed < autoscalercontrol.PERIOD:
            return Plan(requeue_after=autoscalercontrol.PERIOD - passed)
        self.memories[key] = replace(memory, at=now, spec=meta.spec(autoscaler), written=None)
        try:
            target = await self._find_resource(meta.spec(autoscaler)["scaleTargetRef"])
            scale = await self.client.get(
                target, ObjectKey(key.namespace, meta.spec(autoscaler)["scaleTargetRef"]["name"]), subresource="scale"
            )
        except KubeError as error:
            return autoscalercontrol.unreadable(autoscaler, str(error), now)
        observed = await self._observe(autoscaler, target, scale, _confirm_last_change(memory, scale))
        decided = autoscalercontrol.decide(observed)
        self._store_state(key, decided, autoscalercontrol.desired_replicas(scale))
        return autoscalercontrol.plan(observed, decided)

    def _load_state(self, key: ObjectKey, autoscaler: JSONObject, now: datetime) -> AutoscalerState:
        """Return the state of an autoscaler, or an empty state for a new one."""
        memory = self.memories.get(key)
        if memory is None or memory.uid != meta.uid(autoscaler):
            return AutoscalerState(now, meta.uid(autoscaler), {})
        return memory

    def _store_state(self, key: ObjectKey, decided: ScaleDecision, current: int) -> None:
        change = (current, decided.replicas) if decided.replicas != current else None
        self.memories[key] = replace(self.memories[key], history=decided.history, written=change)

    async def _find_resource(self, reference: JSONObject) -> Resource:
        """Return the resource of a kind. Raise `KubeError` if it is not served."""
        api_version = reference.get("apiVersion", "")
        root = "/apis" if "/" in api_version else "/api"
        response = await self.client.send(Request("GET", f"{root}/{quote(api_version)}", headers=AS_JSON))
        group, _, version = api_version.rpartition("/")
        for entry in msgspec.json.decode(response.body)["resources"]:
            if entry["kind"] == reference["kind"] and "/" not in entry["name"]:
                return Resource(group, version, entry["name"], entry["kind"], namespaced=entry["namespaced"])
        raise KubeError(f'no matches for kind "{reference["kind"]}" in group "{group}"')

    async def _observe(
        self, autoscaler: JSONObject, target: Resource, scale: JSONObject, history: History
    ) -> ObservedAutoscaler:
        namespace, text = meta.namespace(autoscaler), str(meta.status(scale).get("selector") or "")
        selector, metrics = selectors.NOTHING, _NO_METRICS
        try:
            if text:
                selector = selectors.parse_labels(text)
                metrics = (await self.client.list(POD_METRICS, namespace=namespace, label_selector=text)).items
        except (KubeError, selectors.SelectorError) as error:
            metrics = str(error)
        pods = [
            pod
            for pod in self.pods.store.list()
            if meta.namespace(pod) == namespace and selector.matches(meta.labels(pod))
        ]
        return ObservedAutoscaler(
            autoscaler=autoscaler,
            target=target,
            scale=scale,
            pods=pods,
            metrics=metrics,
            history=history,
            now=self.clock.now(),
        )


def _has_decided(memory: AutoscalerState, autoscaler: JSONObject) -> bool:
    """Return whether the last decision was for this spec, and its scale was written."""
    is_written = memory.written is None or meta.status(autoscaler).get("desiredReplicas") == memory.written[1]
    return is_written and memory.spec == meta.spec(autoscaler)


def _confirm_last_change(memory: AutoscalerState, scale: JSONObject) -> History:
    """Return the history. Include the last change if the scale shows that it was written."""
    if memory.written is None or autoscalercontrol.desired_replicas(scale) != memory.written[1]:
        return memory.history
    before, after = memory.written
    return replace(memory.history, changed=(*memory.history.changed, ReplicaRecord(memory.at, after - before)))
