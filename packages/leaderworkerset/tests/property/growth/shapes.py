"""Builds all inputs of decisions for one LeaderWorkerSet in which one part is large.

A `LargeSet` has a shape and a number: `LargeSet("variables", 500)` is a LeaderWorkerSet with 500 variables, its leader
StatefulSet, its revisions, groups and pods.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import msgspec
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core.leaderworkerset import budget, groupindex, groupstate, revisions, statefulsets
from leaderworkerset.core.leaderworkerset.budget import Budget
from leaderworkerset.core.leaderworkerset.decision import ObservedLeaderWorkerSet
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts
from leaderworkerset.core.leaderworkerset.rollingupdate import RolloutCase, RolloutStep
from leaderworkerset.core.policies.policy import LiveGroup
from leaderworkerset.webhooks.review import Review

SHAPES: Final[dict[str, int]] = {
    "accelerators": 60,
    "affinity terms": 120,
    "claims": 130,
    "conditions": 110,
    "containers": 40,
    "groups": 900,
    "labels": 50,
    "long keys": 1,
    "long texts": 1,
    "managers": 90,
    "owners": 110,
    "pods": 900,
    "ports": 40,
    "quantities": 30,
    "revisions": 400,
    "statefulsets": 900,
    "variables": 35,
    "volumes": 110,
}
"""The parts that can be large, and the approximate size of one additional element in bytes of JSON."""

TPU: Final = "google.com/tpu"


@dataclass(frozen=True)
class LargeSet:
    """A LeaderWorkerSet and its related objects. The part that `shape` selects is `n` times as large."""

    shape: str
    n: int

    def many(self, shape: str, few: int = 2) -> range:
        """Return the numbers of elements in the large part. All other parts are small."""
        return range(self.n if self.shape == shape else few)

    @cached_property
    def text(self) -> str:
        return "x" * len(self.many("long texts", 3))

    @cached_property
    def labels(self) -> dict[str, str]:
        key = "k" * len(self.many("long keys", 3))
        return {f"example.com/label-{i:06}": f"value-{i}" for i in self.many("labels")} | {key: "v", "spoiled key": "!"}

    @cached_property
    def template(self) -> JSONObject:
        """Return a pod template."""
        ports = [{"containerPort": 1 + i, "name": f"port-{i}"} for i in self.many("ports")]
        main = {
            "name": "main",
            "image": "app:1",
            "args": [self.text],
            "env": [{"name": f"VARIABLE_{i}", "value": "x"} for i in self.many("variables")],
            "ports": [*ports, {"containerPort": 1, "protocol": "UDP"}],
            "volumeMounts": [{"name": f"v-{i}", "mountPath": f"/v/{i}"} for i in self.many("volumes")],
            "resources": {"limits": {f"example.com/r-{i}": "1Gi" for i in self.many("quantities")}},
        }
        others = [{"name": f"c-{i}", "image": "app:1"} for i in self.many("containers")]
        computing = [{"name": f"t-{i}", "resources": {"limits": {TPU: "4"}}} for i in self.many("accelerators", 0)]
        return {
            "metadata": {"labels": self.labels, "annotations": self.labels},
            "spec": {
                "containers": [main, *others, *computing],
                "volumes": [{"name": f"v-{i}", "emptyDir": {"sizeLimit": "1Mi"}} for i in self.many("volumes")],
                "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": self.terms}},
            },
        }

    @property
    def terms(self) -> list[JSONObject]:
        selector = {"matchLabels": {"a": "b"}}
        return [{"labelSelector": selector, "topologyKey": f"t-{i}"} for i in self.many("affinity terms")]

    @cached_property
    def posted(self) -> JSONObject:
        """Return the LeaderWorkerSet as a user submits it."""
        claims = [
            {"metadata": {"name": f"c-{i}"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
            for i in self.many("claims")
        ]
        owners = [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": f"o-{i}", "uid": f"u-{i}", "controller": True}
            for i in self.many("owners")
        ]
        managed = [
            {"manager": f"m-{i}", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}}
            for i in self.many("managers")
        ]
        conditions = [{"type": f"T-{i}", "status": "True", "reason": "R"} for i in self.many("conditions")]
        return builders.leaderworkerset_object(
            replicas=max(len(self.many("groups")), 1),
            size=1 + len(self.many("pods")),
            template={
                "workerTemplate": self.template,
                "leaderTemplate": self.template,
                "volumeClaimTemplates": claims,
                "restartPolicy": "RecreateGroupAfterStart",
            },
            metadata={
                "labels": self.labels,
                "annotations": self.labels | {labels.EXCLUSIVE_TOPOLOGY: "rack"},
                "ownerReferences": owners,
                "finalizers": [f"example.com/f-{i}" for i in self.many("owners")],
                "managedFields": managed,
            },
            status={"conditions": conditions},
        )

    @cached_property
    def edited(self) -> JSONObject:
        """Return a copy of the LeaderWorkerSet that shares no objects with the original. One value differs."""
        copy: JSONObject = msgspec.json.decode(msgspec.json.encode(self.posted))
        copy["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["image"] = "app:2"
        copy["metadata"]["generation"] = 2
        return copy

    @cached_property
    def lws(self) -> LeaderWorkerSet:
        return leaderworkerset.decode(self.posted)

    @cached_property
    def data(self) -> bytes:
        return revisions.build_data(self.posted)

    @cached_property
    def key(self) -> str:
        return revisions.content_hash(self.data)

    @cached_property
    def revision(self) -> JSONObject:
        return builders.revision(self.posted)

    @cached_property
    def revisions(self) -> list[JSONObject]:
        small = builders.leaderworkerset_object()
        outdated = [builders.revision(small, key=f"key-{i}", number=i) for i in self.many("revisions")]
        return [*outdated, self.revision]

    @cached_property
    def limits(self) -> Budget:
        return budget.read(self.lws.spec)

    @cached_property
    def step(self) -> RolloutStep:
        return RolloutStep(RolloutCase.ROLLING, 1, self.lws.spec.replicas)

    @cached_property
    def desired(self) -> JSONObject:
        """Return the leader StatefulSet as the controller applies it."""
        return statefulsets.build(self.posted, self.lws, key=self.key, limits=self.limits, step=self.step)

    @cached_property
    def statefulset(self) -> JSONObject:
        """Return the existing leader StatefulSet."""
        status = {"observedGeneration": 0, "updateRevision": "r1"}
        return builders.as_applied(self.desired, status=status)

    @cached_property
    def leader(self) -> JSONObject:
        """Return an admitted leader pod."""
        found = builders.leader_pod(
            self.posted, key=self.key, node="n", annotations=self.labels | {labels.SIZE: str(self.lws.size)}
        )
        found["metadata"]["labels"] |= self.labels
        found["spec"] |= self.template["spec"] | {"subdomain": "web"}
        found["status"]["conditions"] += [{"type": f"T-{i}", "status": "True"} for i in self.many("conditions")]
        found["status"]["containerStatuses"] += [{"name": f"c-{i}"} for i in self.many("containers")]
        return found

    @cached_property
    def worker(self) -> JSONObject:
        """Return an admitted worker pod."""
        found = builders.worker_pod(self.leader)
        found["metadata"]["annotations"] = self.labels | {labels.SIZE: str(self.lws.size), labels.LEADER_NAME: "web-0"}
        found["spec"] = self.leader["spec"]
        return found

    @cached_property
    def workers(self) -> list[JSONObject]:
        return [builders.worker_pod(self.bare_leader, 1 + i, restarts=1, phase="Pending") for i in self.many("pods")]

    @cached_property
    def gone(self) -> list[JSONObject]:
        """Return the workers that were deleted with an older leader's StatefulSet."""
        old = builders.worker_statefulset(self.bare_leader, uid="older")
        return [
            builders.worker_pod(self.bare_leader, 1 + i)
            | {"metadata": worker["metadata"] | {"ownerReferences": [meta.controller_reference(old)]}}
            for i, worker in enumerate(self.workers)
        ]

    @cached_property
    def bare_leader(self) -> JSONObject:
        return builders.leader_pod(self.posted, key=self.key)

    @cached_property
    def worker_sets(self) -> list[JSONObject]:
        """Return the StatefulSets with the label of the group. The current one is last."""
        own = builders.worker_statefulset(self.bare_leader)
        others = [own | {"metadata": own["metadata"] | {"name": f"other-{i}"}} for i in self.many("statefulsets")]
        return [*others, own]

    @cached_property
    def groups(self) -> list[GroupFacts]:
        found = []
        for i in self.many("groups"):
            leader = builders.leader_pod(self.posted, i, key=self.key if i % 2 else "old")
            found.append(groupstate.describe(leader, builders.worker_statefulset(leader) if i % 3 else None))
        return found

    @cached_property
    def states(self) -> groupindex.States:
        return self.group_summary.states(self.lws.size, self.key)

    @cached_property
    def group_summary(self) -> groupindex.GroupIndex:
        return groupindex.index_groups(self.groups, "web")

    @cached_property
    def node(self) -> JSONObject:
        return {"metadata": {"name": "n", "labels": self.labels | {"rack": "r1"}}}

    @cached_property
    def observed(self) -> ObservedLeaderWorkerSet:
        return ObservedLeaderWorkerSet(
            leaderworkerset=self.posted,
            leader_workload=self.statefulset,
            revisions=self.revisions,
            groups=builders.by_leader(self.groups),
        )

    @cached_property
    def observed_group(self) -> LiveGroup:
        """Return a failed group."""
        return builders.live_group(
            leader=self.bare_leader,
            obj=self.posted,
            pods=[self.bare_leader, *self.workers],
            gone=self.gone,
            statefulsets=self.worker_sets,
            revisions=self.revisions,
            nodes={"n": self.node},
        )

    @cached_property
    def observed_new_group(self) -> LiveGroup:
        """Return a group without existing workers."""
        return builders.live_group(
            leader=self.leader,
            obj=self.posted,
            pods=[self.leader],
            revisions=self.revisions,
            nodes={"n": self.node},
        )

    @cached_property
    def body(self) -> bytes:
        """Return the review of a change, as an API server sends it."""
        request = {"uid": "u", "operation": "UPDATE", "object": self.posted, "oldObject": self.edited}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        return msgspec.json.encode(review)

    @cached_property
    def review(self) -> Review:
        return Review("u", "UPDATE", self.posted, self.edited)

    def review_of(self, obj: JSONObject) -> Review:
        return Review("u", "CREATE", obj, None)
