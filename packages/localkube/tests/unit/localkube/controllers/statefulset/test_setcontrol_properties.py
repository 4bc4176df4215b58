"""Tests StatefulSet plans in random states: one pod per ordinal, the partition, and convergence."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testkit.examples import examples
from testkit.objects import merge
from tests.unit.localkube.controllers.objects import NOW, build_statefulset, build_template, ready_status

from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Create, Delete
from localkube.controllers.statefulset import identity, revisions, setcontrol
from localkube.controllers.statefulset.setcontrol import ObservedStatefulSet

OLD = revisions.build(build_statefulset(), 1, 0)
NEW = revisions.build(build_statefulset(template=build_template("v2")), 2, 0)


@dataclass
class ModeledSet:
    """A StatefulSet and its pods, with a simulated API server and kubelets."""

    statefulset: JSONObject
    pods: dict[str, JSONObject] = field(default_factory=dict)
    serial: int = 0

    def observe(self) -> ObservedStatefulSet:
        """Return the controller's observation."""
        seen = tuple(self.pods.values())
        return ObservedStatefulSet(
            statefulset=self.statefulset, pods=seen, claims={}, current=OLD, update=NEW, collisions=0, now=NOW
        )

    def add(self, pod: JSONObject, status: JSONObject) -> None:
        """Create a pod. Fail if a pod with its name exists."""
        assert meta.name(pod) not in self.pods, "an ordinal was given twice"
        self.serial += 1
        made: JSONObject = {"metadata": {"uid": f"uid-{self.serial}", "resourceVersion": "1"}, "status": status}
        self.pods[meta.name(pod)] = merge(pod, made)

    def perform(self, decided: setcontrol.StatefulSetDecision) -> bool:
        """Perform all phases of the plan. Return whether any action was performed."""
        self.statefulset = self.statefulset | {"status": decided.status}
        steps = [step for phase in decided.phases for steps in phase for step in steps]
        for step in steps:
            if isinstance(step, Create) and step.resource == PODS:
                self.add(step.object, {"phase": "Pending"})
            elif isinstance(step, Delete):
                self.pods[step.key.name] = merge(
                    self.pods[step.key.name], {"metadata": {"deletionTimestamp": "2026-01-01T12:00:00Z"}}
                )
        return bool(steps)

    def advance(self) -> None:
        """Simulate the kubelets, which make pods ready and remove terminating pods."""
        self.pods = {
            name: pod if podstate.has_ended(pod) else pod | {"status": ready_status()}
            for name, pod in self.pods.items()
            if not meta.is_deleting(pod)
        }


ALIVE: list[JSONObject] = [{"phase": "Pending"}, {"phase": "Running"}, ready_status()]
FINISHED: list[JSONObject] = [{"phase": "Failed"}, {"phase": "Succeeded"}]


@st.composite
def worlds(draw: st.DrawFn) -> ModeledSet:
    """Generate a StatefulSet with pods in arbitrary states.

    Pods to be deleted are alive: as in Kubernetes, two finished ones block an ordered scale-down for ever.
    """
    partition = draw(st.integers(0, 6))
    spec = {
        "replicas": draw(st.integers(0, 5)),
        "ordinals": {"start": draw(st.integers(0, 2))},
        "podManagementPolicy": draw(st.sampled_from(["Parallel", "OrderedReady"])),
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}},
    }
    world = ModeledSet(build_statefulset(**spec))
    for ordinal in draw(st.sets(st.integers(0, 8))):
        revision = draw(st.sampled_from([OLD, NEW]))
        states = ALIVE + FINISHED if ordinal in identity.desired_ordinals(world.statefulset) else ALIVE
        world.add(identity.build_pod(world.statefulset, revision, ordinal), draw(st.sampled_from(states)))
    return world


@pytest.mark.slow
@settings(max_examples=examples(50))
@given(worlds())
def test_every_state_converges_to_the_desired_pods(world: ModeledSet) -> None:
    statefulset = world.statefulset
    before = dict(world.pods)
    for _ in range(60):
        acted = world.perform(setcontrol.decide(world.observe()))
        world.advance()
        if not acted and not setcontrol.decide(world.observe()).phases:
            break
    else:
        raise AssertionError("no rest after 60 rounds")
    assert sorted(map(identity.pod_ordinal, world.pods.values())) == list(identity.desired_ordinals(statefulset))
    boundary = identity.start_ordinal(statefulset) + statefulset["spec"]["updateStrategy"]["rollingUpdate"]["partition"]
    for name, pod in world.pods.items():
        if identity.pod_ordinal(pod) >= boundary:
            assert identity.pod_revision(pod) == meta.name(NEW)
        elif name in before and meta.uid(before[name]) != meta.uid(pod):
            assert identity.pod_revision(pod) == meta.name(OLD)


@pytest.mark.slow
@settings(max_examples=examples(50))
@given(worlds())
def test_one_round_deletes_at_most_one_healthy_pod(world: ModeledSet) -> None:
    decided = setcontrol.decide(world.observe())
    deleted = {s.key.name for phase in decided.phases for steps in phase for s in steps if isinstance(s, Delete)}
    wanted = identity.desired_ordinals(world.statefulset)
    healthy = [
        identity.pod_ordinal(world.pods[name])
        for name in deleted
        if identity.pod_ordinal(world.pods[name]) in wanted and not podstate.has_ended(world.pods[name])
    ]
    partition = world.statefulset["spec"]["updateStrategy"]["rollingUpdate"]["partition"]
    assert len(healthy) <= 1
    assert all(ordinal >= wanted.start + partition for ordinal in healthy)
