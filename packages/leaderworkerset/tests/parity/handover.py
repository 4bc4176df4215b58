"""Creates recorded objects in the same way as the Go controller, while no other controller runs.

In: a recorded case at rest. Out: writes as the field manager `lws`, in the order of the Go controller: the
LeaderWorkerSet, its revision byte for byte, the leader StatefulSet by server-side apply of what R-LSTS-2 lists, services,
and a worker StatefulSet for each leader pod that came up.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.parity.normal import RACK
from tests.parity.replay import NAMESPACE, Case, Watched

from kuberuntime.client.client import Client
from kuberuntime.objects import intstr, meta, timestamps
from kuberuntime.objects.gotypes.canonicaljson import canonical_json
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, NODES, PODS, SERVICES, STATEFULSETS, Resource
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.api.conditions import AVAILABLE
from leaderworkerset.api.fieldtypes import round_trip
from leaderworkerset.api.resources import LEADERWORKERSETS


def at_rest(cases: list[Case]) -> list[Case]:
    """Return the cases whose LeaderWorkerSet was available at the end of the recording."""
    return [case for case in cases if any(one[0] == "Available" for one in lws_of(case)["status"]["conditions"])]


def lws_of(case: Case) -> JSONObject:
    """Return the recorded LeaderWorkerSet after its change."""
    return next(obj for obj in case["edited"] if obj["kind"] == LEADERWORKERSETS.kind)


@dataclass(frozen=True, slots=True)
class Stage:
    """Simulates the Go controller for one case. `client` writes with the field manager `lws`."""

    client: Client
    watched: Watched
    case: Case

    @property
    def name(self) -> str:
        """Return the name of the LeaderWorkerSet."""
        return meta.name(self.case["input"])

    async def create(self) -> None:
        """Create the objects of the LeaderWorkerSet controller."""
        created = await self.create_spec()
        for revision in self.revisions():
            name = f"{revision['name'].removesuffix('-N')}-1"
            body = self._live(revision, created, data=revision["data"], revision=1)
            body["metadata"]["name"] = name
            await self.client.create(CONTROLLER_REVISIONS, body, body=canonical_json(body))
        await self.apply_leader_set(created)
        for service in self._recorded(SERVICES):
            if service["owners"][0][0] == LEADERWORKERSETS.kind:
                await self._create_service(service, created)

    async def create_spec(self) -> JSONObject:
        """Create only the LeaderWorkerSet."""
        recorded = lws_of(self.case)
        return await self.client.create(LEADERWORKERSETS, self._live(recorded, spec=recorded["spec"]))

    async def apply_leader_set(self, owner: JSONObject) -> JSONObject:
        """Apply the leader StatefulSet."""
        return await self.client.apply(STATEFULSETS, self.leader_set(owner), manager=labels.FIELD_MANAGER)

    def revisions(self) -> list[JSONObject]:
        """Return the recorded revisions."""
        return self._recorded(CONTROLLER_REVISIONS)

    def current_revision(self) -> JSONObject:
        """Return the recorded revision that the leader StatefulSet uses."""
        (leader_set,) = (one for one in self._recorded(STATEFULSETS) if one["name"] == self.name)
        key = leader_set["labels"][labels.TEMPLATE_REVISION_HASH]
        return next(one for one in self.revisions() if one["labels"][labels.TEMPLATE_REVISION_HASH] == key)

    async def follow(self) -> None:
        """Create the objects of the pod controller for the existing leaders."""
        for obj in [*self._recorded(STATEFULSETS), *self._recorded(SERVICES)]:
            if obj["owners"][0][0] == PODS.kind:
                leader = await self.client.get(PODS, ObjectKey(NAMESPACE, obj["owners"][0][1]))
                if obj["kind"] == SERVICES.kind:
                    await self._create_service(obj, leader)
                else:
                    spec = await self._placed(obj["spec"], leader)
                    await self.client.create(STATEFULSETS, self._live(obj, leader, spec=spec))

    async def report(self) -> None:
        """Write the status with a time that is later than the creation of all objects.

        Otherwise, workers that were created later would count as recreated.
        """
        moment = timestamps.render(datetime.now(UTC) + timedelta(seconds=1))
        live = await self.client.get(LEADERWORKERSETS, self.key)
        fields = ("type", "status", "reason", "message", "observedGeneration")
        recorded = lws_of(self.case)["status"]
        conditions = [
            dict(zip(fields, one, strict=True)) | {"lastTransitionTime": moment, "observedGeneration": 1}
            for one in recorded["conditions"]
        ]
        status = recorded | {"conditions": conditions, "observedGeneration": 1}
        await self.client.update(LEADERWORKERSETS, live | {"status": status}, subresource="status")

    @property
    def key(self) -> ObjectKey:
        """Return the key of the LeaderWorkerSet."""
        return ObjectKey(NAMESPACE, self.name)

    def leader_set(self, owner: JSONObject) -> JSONObject:
        """Build the StatefulSet of the Go controller (R-LSTS-2) without API server defaults."""
        recorded = next(one for one in self._recorded(STATEFULSETS) if one["name"] == self.name)
        spec, template = lws_of(self.case)["spec"], lws_of(self.case)["spec"]["leaderWorkerTemplate"]
        field = "leaderTemplate" if template.get("leaderTemplate") else "workerTemplate"
        pods: JSONObject = round_trip("PodTemplateSpec", template[field], f"spec.leaderWorkerTemplate.{field}")
        kept = {
            field: recorded["spec"][field] for field in ("serviceName", "replicas", "podManagementPolicy", "selector")
        }
        strategy = recorded["spec"]["updateStrategy"]
        rolling = strategy["rollingUpdate"] | {"maxUnavailable": max_unavailable(spec)}
        body = kept | {
            "updateStrategy": strategy | {"rollingUpdate": rolling},
            "template": {"metadata": recorded["spec"]["template"]["metadata"], "spec": pods["spec"]},
        }
        return self._live(recorded, owner, spec=body)

    def is_up(self) -> bool:
        """Return whether all recorded pods exist, are ready, and are counted by their StatefulSet."""
        live = {(obj["kind"], meta.name(obj)): obj for obj in self.watched.objects()}
        pods = [live.get((PODS.kind, one["name"])) for one in self._recorded(PODS)]
        sets = [live.get((STATEFULSETS.kind, one["name"])) for one in self._recorded(STATEFULSETS)]
        return all(pod is not None and meta.is_condition_true(pod, "Ready") for pod in pods) and all(
            one is not None and (meta.status(one).get("availableReplicas") or 0) == meta.spec(one)["replicas"]
            for one in sets
        )

    def is_available(self) -> bool:
        """Return whether this project's manager reports all groups as ready.

        A change to `size` may have reduced the groups compared with the recording.
        """
        live = {meta.name(obj): obj for obj in self.watched.objects() if obj["kind"] == LEADERWORKERSETS.kind}
        return self.name in live and meta.is_condition_true(live[self.name], AVAILABLE.type)

    def leaders_are_there(self) -> bool:
        """Return whether all leader pods are scheduled."""
        live = {meta.name(obj): obj for obj in self.watched.objects() if obj["kind"] == PODS.kind}
        leaders = [one["name"] for one in self._recorded(PODS) if one["owners"][0][1] == self.name]
        return all(name in live and meta.spec(live[name]).get("nodeName") for name in leaders)

    def _recorded(self, resource: Resource) -> list[JSONObject]:
        return [obj for obj in self.case["edited"] if obj["kind"] == resource.kind]

    async def _create_service(self, service: JSONObject, owner: JSONObject) -> None:
        await self.client.create(SERVICES, self._live(service, owner, spec=service["spec"] | {"clusterIP": "None"}))

    async def _placed(self, spec: JSONObject, leader: JSONObject) -> JSONObject:
        """Add the leader's rack to the node selector of the pods, if the recorded pods have one."""
        pods = spec["template"]["spec"]
        if RACK not in (pods.get("nodeSelector") or {}):
            return spec
        node = await self.client.get(NODES, ObjectKey("", meta.spec(leader)["nodeName"]))
        selector = pods["nodeSelector"] | {RACK: meta.labels(node)[RACK]}
        return spec | {"template": spec["template"] | {"spec": pods | {"nodeSelector": selector}}}

    def _live(self, recorded: JSONObject, owner: JSONObject | None = None, **fields: Any) -> JSONObject:
        resource = next(one for one in RESOURCES if one.kind == recorded["kind"])
        metadata = {field: recorded[field] for field in ("name", "labels", "annotations")} | {"namespace": NAMESPACE}
        if owner is not None:
            metadata["ownerReferences"] = [meta.controller_reference(owner)]
        return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata} | fields


RESOURCES: Final = (CONTROLLER_REVISIONS, LEADERWORKERSETS, SERVICES, STATEFULSETS)


def max_unavailable(spec: JSONObject) -> int:
    """Compute `maxUnavailable` of the leader StatefulSet (R-LSTS-2) from the recorded spec."""
    config = leaderworkerset.decode({"metadata": {}, "spec": spec}).spec.rollout_strategy.rolling_update_configuration
    replicas: int = spec["replicas"]
    surge = min(intstr.scale(config.max_surge, replicas, up=True), replicas)
    return max(1, intstr.scale(config.max_unavailable, replicas, up=False) + surge)
