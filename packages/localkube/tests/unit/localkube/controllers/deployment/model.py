"""Simulates a Deployment with its ReplicaSets. Plans are applied to values, and tests set the pod states."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from testkit.objects import merge
from tests.unit.localkube.controllers.objects import NOW, build_template

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import DEPLOYMENTS
from kuberuntime.plan import Create, Delete, Finally, Patch, Plan, PutStatus
from localkube.controllers.deployment import deploymentcontrol
from localkube.controllers.deployment.deploymentcontrol import ObservedDeployment


def build_deployment(change: Any = None, **spec: Any) -> Any:
    """Return a Deployment with four replicas. `change` is merged into it, and the other arguments are spec fields."""
    base = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "uid": "d", "generation": 1, "resourceVersion": "1"},
        "spec": {
            "replicas": 4,
            "selector": {"matchLabels": {"app": "web"}},
            "template": build_template("v1"),
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
        }
        | spec,
    }
    return merge(base, change or {})


def rolling(surge: int | str, unavailable: int | str) -> Any:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


@dataclass
class Model:
    """The stored objects. `pods` is filled only for the `Recreate` strategy."""

    deployment: Any
    sets: dict[str, Any] = field(default_factory=dict)
    pods: list[Any] = field(default_factory=list)
    now: datetime = NOW
    collisions: int = 0
    events: list[str] = field(default_factory=list)

    def change(self, **spec: Any) -> None:
        """Change the Deployment spec."""
        generation = meta.generation(self.deployment) + 1
        self.deployment = merge(self.deployment, {"metadata": {"generation": generation}})
        self.deployment = self.deployment | {"spec": self.deployment["spec"] | spec}

    def plan(self) -> Plan:
        return deploymentcontrol.plan(
            ObservedDeployment(
                deployment=self.deployment,
                sets=[*self.sets.values()],
                pods=self.pods,
                collisions=self.collisions,
                now=self.now,
            )
        )

    def step(self) -> Plan:
        """Plan once, and apply the plan."""
        plan = self.plan()
        for action in plan.actions:
            inner = action.actions[0] if isinstance(action, Finally) else action
            self._perform(inner)
        return plan

    def settle(self, available: Any = None) -> None:
        """Plan until no action is needed. In each ReplicaSet, `available(set)` pods are available, by default all."""
        for _ in range(100):
            if not self.step().actions and not self.run_pods(available or size_of):
                return
        raise AssertionError("the Deployment does not come to rest")

    def run_pods(self, available: Any) -> bool:
        """Update the status of all ReplicaSets. Return whether any status changed."""
        before = dict(self.sets)
        for name, one in before.items():
            size, ready = size_of(one), min(available(one), size_of(one))
            counts = {"replicas": size, "readyReplicas": ready, "availableReplicas": ready, "terminatingReplicas": 0}
            self.sets[name] = one | {"status": counts | {"observedGeneration": meta.generation(one)}}
        return self.sets != before

    def sizes(self) -> dict[str, int]:
        """Return the ReplicaSet sizes by container image."""
        return {image_of(one): size_of(one) for one in self.sets.values()}

    def condition(self, name: str) -> tuple[str, str]:
        found = meta.find_condition(self.deployment, name) or {}
        return str(found.get("status")), str(found.get("reason"))

    def _perform(self, action: Any) -> None:
        match action:
            case Create(object=obj):
                age = (NOW + timedelta(seconds=len(self.sets))).strftime("%Y-%m-%dT%H:%M:%SZ")
                given = {
                    "uid": f"uid-{meta.name(obj)}",
                    "resourceVersion": "1",
                    "generation": 1,
                    "creationTimestamp": age,
                }
                self.sets[meta.name(obj)] = merge(obj, {"metadata": given, "status": {"replicas": 0}})
            case Patch(key=key, patch=patch):
                old = self.sets[key.name]
                new = merge(old, {"metadata": {"annotations": patch["metadata"]["annotations"]}, "spec": patch["spec"]})
                step = int(new["spec"] != old["spec"])
                self.sets[key.name] = merge(new, {"metadata": {"generation": meta.generation(old) + step}})
            case Delete(key=key):
                del self.sets[key.name]
            case PutStatus(resource=resource, object=obj):
                assert resource is DEPLOYMENTS
                self.deployment = obj
        self.events += [event.note for event in action.on_success]


def size_of(replicated: JSONObject) -> int:
    return int(meta.spec(replicated)["replicas"])


def image_of(replicaset: JSONObject) -> str:
    image: str = meta.spec(replicaset)["template"]["spec"]["containers"][0]["image"]
    return image


def later(model: Model, seconds: float) -> Model:
    return replace(model, now=model.now + timedelta(seconds=seconds))
