"""Models a cluster as a dictionary. Plans are performed immediately, and other controllers act on request.

Everything is deterministic and nothing waits, so that properties can be tried on thousands of histories.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from msgspec.structs import replace
from tests import builders, decisions, kept

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS, SERVICES, STATEFULSETS, Resource
from kuberuntime.plan import Apply, Create, Delete, Patch, Plan, PutStatus, flatten
from leaderworkerset.api import labels, recreationrecord
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.capabilities import deciding
from leaderworkerset.core.leaderworkerset import groupstate
from leaderworkerset.core.leaderworkerset.cachedapply import Identity, LastApply
from leaderworkerset.core.leaderworkerset.decision import Decision, ObservedLeaderWorkerSet, PreviousResults
from leaderworkerset.core.policies.policy import HeadlessService
from localkube.apiserver.patch import merge


class Crashed(Exception):
    """The manager crashed while it performed a plan."""


@dataclass
class ModeledCluster:
    """All objects by resource and key. `writes_left` is the number of writes before the manager crashes.

    Its API server drops `maxUnavailable`, as the feature is off by default; its StatefulSets roll one pod at a time.
    """

    objects: dict[tuple[Resource, ObjectKey], JSONObject] = field(default_factory=dict)
    now: datetime = builders.NOW
    writes_left: int | None = None
    deleted_leaders: list[str] = field(default_factory=list)
    remembered: Decision = field(default_factory=lambda: Decision(Plan()))
    applied: LastApply | None = None
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    # The view of the controllers.

    def all(self, resource: Resource, **wanted: str) -> list[JSONObject]:
        """Return the objects of a kind with these values of the labels `name` and `group_index`."""
        keys = {"name": labels.NAME, "group_index": labels.GROUP_INDEX, "worker_index": labels.WORKER_INDEX}
        return [
            obj
            for (kind, _), obj in self.objects.items()
            if kind == resource and all(meta.labels(obj).get(keys[name]) == value for name, value in wanted.items())
        ]

    def get(self, resource: Resource, name: str) -> JSONObject | None:
        return self.objects.get((resource, ObjectKey(builders.NAMESPACE, name)))

    def plan_leaderworkerset(self, name: str = "web") -> Plan:
        leaders = self.all(PODS, name=name, worker_index="0")
        observed = ObservedLeaderWorkerSet(
            leaderworkerset=self.get(LEADERWORKERSETS, name),
            leader_workload=self.get(STATEFULSETS, name),
            revisions=self.all(CONTROLLER_REVISIONS, name=name),
            service=HeadlessService(is_settled=self.get(SERVICES, name) is not None),
            groups=builders.by_leader(
                kept.checked(groupstate.describe)(leader, self.get(STATEFULSETS, meta.name(leader)))
                for leader in leaders
            ),
        )
        anew = kept.checked(decisions.decide)(observed, self.now)
        self.remembered = decisions.decide(
            replace(
                observed,
                known=PreviousResults(revision_generation=self.remembered.revision_generation, applied=self.applied),
            ),
            self.now,
        )
        self.check_memory(anew.plan, self.remembered.plan)
        return self.remembered.plan

    def restart(self) -> None:
        """Replace the manager by a new process without cached state."""
        self.remembered, self.applied = Decision(Plan()), None

    def check_memory(self, anew: Plan, plan: Plan) -> None:
        """Fail if cached facts have any other effect than skipping applies that would change nothing."""
        applied = [one for one in anew.actions if isinstance(one, Apply)]
        if [one for one in plan.actions if isinstance(one, Apply)] or not applied:
            assert plan == anew
            return
        live = self.get(STATEFULSETS, meta.name(applied[0].object))
        assert live is not None
        after = self._merged(STATEFULSETS, builders.as_applied(_without_max_unavailable(applied[0].object)))
        assert after | {"metadata": live["metadata"]} == live, "an apply that is left out would change the StatefulSet"
        assert Identity.from_object(after) == Identity.from_object(live)

    def plan_group(self, leader: JSONObject, gone: tuple[JSONObject, ...] = ()) -> Plan:
        name, index = meta.labels(leader)[labels.NAME], meta.labels(leader)[labels.GROUP_INDEX]
        observed = builders.live_group(
            leader=leader,
            obj=self.get(LEADERWORKERSETS, name) or {},
            now=self.now,
            pods=self.all(PODS, name=name, group_index=index),
            gone=gone,
            statefulsets=self.all(STATEFULSETS, name=name, group_index=index),
            revisions=self.all(CONTROLLER_REVISIONS, name=name),
            service=HeadlessService(is_settled=self.get(SERVICES, meta.name(leader)) is not None),
            record=self.get(CONTROLLER_REVISIONS, recreationrecord.record_name(leader)),
        )
        return kept.checked(deciding.reconcile_group)(observed)

    # The methods of the executor.

    def perform(self, plan: Plan) -> None:
        assert plan.error is None, plan.error
        for action in flatten(plan.actions):
            if self.writes_left == 0:
                raise Crashed
            self.writes_left = None if self.writes_left is None else self.writes_left - 1
            match action:
                case Apply(resource=resource, object=obj):
                    self.put(resource, self._merged(resource, builders.as_applied(_without_max_unavailable(obj))))
                    if resource == STATEFULSETS and self.remembered.source is not None:
                        self.applied = LastApply(
                            self.remembered.source, Identity.from_object(self.objects[resource, meta.key(obj)])
                        )
                case Create(resource=resource, object=obj):
                    assert self.get(resource, meta.name(obj)) is None, f"{meta.name(obj)} exists"
                    self.put(resource, self._new(obj))
                case PutStatus(resource=resource, object=obj):
                    self.put(resource, obj)
                case Patch(resource=resource, key=key, patch=patch):
                    self.put(resource, merge.apply(self.objects[resource, key], patch))
                case Delete(resource=resource, key=key, uid=uid):
                    found = self.objects.get((resource, key))
                    if found is not None and meta.uid(found) == uid:
                        self._delete(resource, found)

    def put(self, resource: Resource, obj: JSONObject) -> None:
        metadata = obj["metadata"] | {"resourceVersion": str(next(self.numbers))}
        self.objects[resource, meta.key(obj)] = obj | {"metadata": metadata}

    def edit(self, **changes: Any) -> None:
        """Replace the spec of the LeaderWorkerSet with the spec of `builders.leaderworkerset_object(**changes)`."""
        before, after = self.get(LEADERWORKERSETS, "web"), builders.leaderworkerset_object(**changes)
        generation = 1 if before is None else meta.generation(before) + 1
        kept = {} if before is None else {"status": meta.status(before)}
        metadata = after["metadata"] | {"generation": generation}
        self.put(LEADERWORKERSETS, after | {"metadata": metadata} | kept)

    # The behavior of the cluster.

    def collect_garbage(self) -> None:
        """Remove objects whose controller is deleted, until none remains."""
        uids = {meta.uid(obj) for obj in self.objects.values()}
        orphans = [
            key
            for key, obj in self.objects.items()
            if (owner := meta.controller_of(obj)) is not None and owner["uid"] not in uids
        ]
        for key in orphans:
            del self.objects[key]
        if orphans:
            self.collect_garbage()

    def run_statefulsets(self) -> None:
        """Make every StatefulSet delete surplus and outdated pods, and create missing pods."""
        for statefulset in self.all(STATEFULSETS):
            self._scale(statefulset)
            self._roll(statefulset)

    def report_statefulsets(self) -> None:
        """Make every StatefulSet update the pod counts in its status."""
        for statefulset in self.all(STATEFULSETS):
            pods = self._pods_of(statefulset)
            ready = sum(groupstate.is_pod_ready(pod) for pod in pods.values())
            template = statefulset["spec"]["template"]
            older = self._older_template(statefulset)
            status = {
                "observedGeneration": meta.generation(statefulset),
                "replicas": len(pods),
                "availableReplicas": ready,
                "currentRevision": _revision(template if older is None else older),
                "updateRevision": _revision(template),
            }
            if meta.status(statefulset) != status:
                self.put(STATEFULSETS, statefulset | {"status": status})

    def start_pods(self) -> None:
        """Make every pod ready."""
        for pod in self.all(PODS):
            self.set_ready(pod, ready=True)

    def set_ready(self, pod: JSONObject, *, ready: bool, restarts: int = 0) -> None:
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        status = {"phase": "Running", "conditions": [condition], "containerStatuses": [{"restartCount": restarts}]}
        if meta.status(pod) != status:
            self.put(PODS, pod | {"status": status})

    def remove(self, pod: JSONObject) -> None:
        """Delete a pod immediately, as `kubectl delete --now` does."""
        self.objects.pop((PODS, meta.key(pod)), None)

    def settle(self, rounds: int = 60) -> None:
        """Run all controllers until there are no changes. Fail if that takes too long."""
        for _ in range(rounds):
            before = dict(self.objects)
            self.reconcile()
            self.collect_garbage()
            self.run_statefulsets()
            self.start_pods()
            self.report_statefulsets()
            if self.objects == before:
                return
            self.now += timedelta(seconds=1)
        raise AssertionError("the world does not come to rest")

    def reconcile(self) -> None:
        """Run a reconcile of all objects once."""
        self.perform(self.plan_leaderworkerset())
        for leader in self.all(PODS, worker_index="0"):
            self.perform(self.plan_group(leader))

    def available(self, size: int) -> int:
        """Count the groups whose pods are all ready."""
        leaders = self.all(PODS, worker_index="0")
        found = [groupstate.describe(leader, self.get(STATEFULSETS, meta.name(leader))) for leader in leaders]
        return sum(builders.is_group_ready(group, size) for group in found)

    def _merged(self, resource: Resource, applied: JSONObject) -> JSONObject:
        before = self.objects.get((resource, meta.key(applied)))
        if before is None:
            return self._new(applied)
        generation = meta.generation(before) + (applied.get("spec") != before.get("spec"))
        return applied | {
            "metadata": applied["metadata"] | {"uid": meta.uid(before), "generation": generation},
            "status": meta.status(before),
        }

    def _new(self, obj: JSONObject) -> JSONObject:
        return obj | {"metadata": {"generation": 1} | obj["metadata"] | {"uid": f"uid-{next(self.numbers)}"}}

    def _delete(self, resource: Resource, obj: JSONObject) -> None:
        if resource == PODS:
            self.deleted_leaders.append(meta.name(obj))
        del self.objects[resource, meta.key(obj)]

    def _pods_of(self, statefulset: JSONObject) -> dict[int, JSONObject]:
        owned = [p for p in self.all(PODS) if (meta.controller_of(p) or {}).get("uid") == meta.uid(statefulset)]
        return {int(meta.name(pod).rpartition("-")[2]): pod for pod in owned}

    def _scale(self, statefulset: JSONObject) -> None:
        self._older_template(statefulset)  # determined before any pod is deleted
        spec, pods = statefulset["spec"], self._pods_of(statefulset)
        start = (spec.get("ordinals") or {}).get("start", 0)
        wanted = range(start, start + spec["replicas"])
        for index, pod in pods.items():
            if index not in wanted:
                self.remove(pod)
        for index in wanted:
            name = f"{meta.name(statefulset)}-{index}"
            if index not in pods and self.get(PODS, name) is None:
                self.put(PODS, self._new_pod(statefulset, name, self._template_for(statefulset, index)))

    def _template_for(self, statefulset: JSONObject, index: int) -> JSONObject:
        """Return the template of the set. Below the partition, return the template of the older pods."""
        older = self._older_template(statefulset)
        rolling = (statefulset["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
        template: JSONObject = statefulset["spec"]["template"]
        return older if older is not None and index < rolling.get("partition", 0) else template

    def _older_template(self, statefulset: JSONObject) -> JSONObject | None:
        """Record the last template that was rolled out completely, as StatefulSet revisions do."""
        key = (CONTROLLER_REVISIONS, ObjectKey("of-statefulsets", str(meta.uid(statefulset))))
        history: JSONObject = self.objects.setdefault(key, {"metadata": {}, "templates": []})
        template = statefulset["spec"]["template"]
        templates = history["templates"] if template in history["templates"] else [*history["templates"], template]
        templates = [one for one in templates if one != template] + [template]
        pods = self._pods_of(statefulset).values()
        updated = [pod for pod in pods if _revision(pod) == _revision(template) and groupstate.is_pod_ready(pod)]
        if len(updated) == len(pods) == statefulset["spec"]["replicas"]:
            templates = [template]
        self.objects[key] = history | {"templates": templates}
        return templates[0] if len(templates) > 1 else None

    def _new_pod(self, statefulset: JSONObject, name: str, template: JSONObject) -> JSONObject:
        own = meta.labels(template) | {labels.STATEFULSET_REVISION: _revision(template)}
        metadata = template["metadata"] | {
            "name": name,
            "labels": own,
            "namespace": builders.NAMESPACE,
            "ownerReferences": [meta.controller_reference(statefulset)],
        }
        spec = template["spec"] | {"subdomain": statefulset["spec"]["serviceName"]}
        return self._new(deciding.admit_pod({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}))

    def _roll(self, statefulset: JSONObject) -> None:
        """Replace the highest outdated pod after the previous one is ready, as Kubernetes does by default."""
        rolling = (statefulset["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
        for index, pod in sorted(self._pods_of(statefulset).items(), reverse=True):
            if index < rolling.get("partition", 0):
                return
            if _revision(pod) != _revision(statefulset["spec"]["template"]):
                self.remove(pod)
                return
            if not groupstate.is_pod_ready(pod):
                return


def _without_max_unavailable(obj: JSONObject) -> JSONObject:
    spec = obj.get("spec") or {}
    rolling = (spec.get("updateStrategy") or {}).get("rollingUpdate")
    if rolling is None:
        return obj
    kept = {field: value for field, value in rolling.items() if field != "maxUnavailable"}
    return obj | {"spec": spec | {"updateStrategy": spec["updateStrategy"] | {"rollingUpdate": kept}}}


def _revision(obj: JSONObject) -> str:
    return meta.labels(obj).get(labels.TEMPLATE_REVISION_HASH, "")
