"""Tests that rollouts with any budget always preserve availability, and complete.

A small model of the StatefulSet controller stands for the cluster. It creates and deletes leaders, and replaces
outdated ones from the partition up, the highest first: as many at once as permitted or, as most clusters do, one after
the other.
"""

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from testkit.examples import examples

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.core.leaderworkerset import outdatedleaders, rollingupdate
from leaderworkerset.core.leaderworkerset.budget import Budget
from leaderworkerset.core.leaderworkerset.groupindex import GroupIndex, GroupState, States
from leaderworkerset.core.leaderworkerset.outdatedleaders import StatefulSetProgress

OLD, NEW = False, True


@dataclass
class ModeledRollout:
    """The leader StatefulSet and the groups by index, each ready or unready and with the old or new template."""

    limits: Budget
    current: StatefulSetProgress
    groups: list[GroupState]
    honors_max_unavailable: bool = True
    partitions: list[int] = field(default_factory=list)
    current_revision: str = "old"
    """The StatefulSet revision of leaders below the partition."""

    def reconcile(self, *, is_new_revision: bool = False, is_observed: bool = True) -> bool:
        """Perform a step, or wait if the previous step is not observed.

        Return whether the StatefulSet is unchanged.
        """
        step = rollingupdate.next_step(self.limits, self.current, self.states, is_new_revision=is_new_revision)
        step = step if is_observed else rollingupdate.hold_step(step, self.current)
        known, self.current = (
            self.current,
            StatefulSetProgress(step.replicas, step.partition, str(self.limits.replicas)),
        )
        self.partitions.append(step.partition)
        return is_observed and known == self.current

    def replace_outdated(self) -> list[int]:
        """Delete the leaders that this controller replaces itself, or update the current revision."""
        if len(self.groups) != self.current.replicas:
            return []
        ready, updated = self.states[:2]
        old = ((1 << len(self.groups)) - 1) & ~updated
        of_key = {"new": updated, "old": old}
        group_summary = GroupIndex(
            members=updated | old, leader_ready=ready, leaders=of_key, statefulset_revisions=of_key
        )
        replaced, renewal = outdatedleaders.decide(self.statefulset, group_summary, self.limits, size=1, key="new")
        for index in replaced:
            self.groups[index] = self._created(index)
        self.current_revision = renewal or self.current_revision
        return list(replaced)

    @property
    def statefulset(self) -> JSONObject:
        """Return the StatefulSet as its controller has observed it."""
        rolling = {"partition": self.current.partition} | ({"maxUnavailable": 1} if self.honors_max_unavailable else {})
        spec = {"replicas": self.current.replicas, "updateStrategy": {"rollingUpdate": rolling}}
        status = {"observedGeneration": 1, "updateRevision": "new", "currentRevision": self.current_revision}
        return {"metadata": {"generation": 1}, "spec": spec, "status": status}

    def _created(self, index: int) -> GroupState:
        """Return the group of a new leader."""
        is_updated = index >= self.current.partition or self.current_revision == "new"
        return GroupState(is_ready=False, is_updated=is_updated)

    def roll(self) -> None:
        """Run the StatefulSet controller once."""
        del self.groups[self.current.replicas :]
        while len(self.groups) < self.current.replicas:
            self.groups.append(self._created(len(self.groups)))
        for index in reversed(range(self.current.partition, len(self.groups))):
            if self.groups[index].is_updated and (self.groups[index].is_ready or self.honors_max_unavailable):
                continue
            if self.groups[index].is_updated or not self._may_replace(index):
                return
            self.groups[index] = GroupState(is_ready=False, is_updated=True)
            if not self.honors_max_unavailable:
                return

    def _may_replace(self, index: int) -> bool:
        """Return whether maxUnavailable permits replacing an old group.

        An unready group does not reduce availability.
        """
        unavailable = sum(not group.is_ready for group in self.groups)
        allowed = not self.honors_max_unavailable or unavailable < self.limits.max_unavailable
        return allowed or not self.groups[index].is_ready

    def make_ready(self, index: int) -> None:
        if index < len(self.groups):
            self.groups[index] = self.groups[index]._replace(is_ready=True)

    def break_old(self, index: int) -> None:
        """Make an old group unready permanently."""
        if not self.groups[index].is_updated:
            self.groups[index] = self.groups[index]._replace(is_ready=False)

    @property
    def states(self) -> States:
        """Return the state of each group."""
        return States.from_states(dict(enumerate(self.groups)))

    @property
    def available(self) -> int:
        return sum(group.is_ready for group in self.groups)

    @property
    def is_done(self) -> bool:
        at_rest = self.current[:2] == (self.limits.replicas, self.limits.partition)
        wanted = self.groups[self.limits.partition : self.limits.replicas]
        return at_rest and all(group.is_ready and group.is_updated for group in wanted)


@st.composite
def budgets(draw: st.DrawFn, *, partition: bool = False) -> Budget:
    replicas = draw(st.integers(1, 8))
    surge = draw(st.integers(0, replicas))
    unavailable = draw(st.integers(0 if surge else 1, replicas + 2))
    held = draw(st.integers(0, replicas)) if partition else 0
    return Budget(replicas=replicas, partition=held, unavailable=unavailable, surge=surge)


def started(limits: Budget, *, honors_max_unavailable: bool = True) -> ModeledRollout:
    """Return a cluster whose groups are all ready when the template changes."""
    groups = [GroupState(is_ready=True, is_updated=OLD)] * limits.replicas
    current = StatefulSetProgress(limits.replicas, limits.partition, str(limits.replicas))
    cluster = ModeledRollout(limits, current, groups, honors_max_unavailable)
    cluster.reconcile(is_new_revision=True)
    return cluster


@pytest.mark.slow
@given(budgets(), st.booleans(), st.randoms(use_true_random=False))
@settings(max_examples=examples(50))
def test_rollout_keeps_its_bounds_and_ends(limits: Budget, honors: bool, random: Random) -> None:
    """Rollouts preserve availability, limit surge and complete, and the partition only decreases.

    (R-ROLL-3, R-ROLL-6, R-ROLL-7)
    """
    cluster = started(limits, honors_max_unavailable=honors)
    for _ in range(15 * limits.replicas):
        match random.randrange(3):
            case 0:
                cluster.reconcile()
            case 1:
                cluster.roll()
            case _:
                cluster.make_ready(random.randrange(20))
        assert cluster.available >= limits.replicas - limits.unavailable
        assert len(cluster.groups) <= limits.max_groups
    for _ in range(15 * limits.replicas):
        cluster.reconcile()
        cluster.roll()
        cluster.make_ready(random.randrange(len(cluster.groups)))
        assert cluster.available >= limits.replicas - limits.unavailable
    for index in range(len(cluster.groups)):
        cluster.make_ready(index)
    cluster.reconcile()
    assert cluster.partitions == sorted(cluster.partitions, reverse=True)


@pytest.mark.slow
@given(st.data(), st.booleans(), st.randoms(use_true_random=False))
@settings(max_examples=examples(50))
def test_changing_limits_keep_the_weakest_bound(data: st.DataObject, honors: bool, random: Random) -> None:
    """The weakest limit applies, also before the StatefulSet controller observes it.

    (R-ROLL-3, R-ROLL-6, docs/adr/0010)
    """
    limits = data.draw(budgets())
    replicas = limits.replicas
    other = data.draw(budgets().filter(lambda one: one.replicas <= replicas))
    both = (limits, replace(other, replicas=replicas))
    least, most = replicas - max(one.unavailable for one in both), max(one.max_groups for one in both)
    cluster = started(limits, honors_max_unavailable=honors)
    is_observed = False
    for _ in range(20 * replicas):
        match random.randrange(4):
            case 0:
                is_observed = cluster.reconcile(is_observed=is_observed)
            case 1:
                cluster.roll()
                is_observed = True
            case 2:
                cluster.make_ready(random.randrange(20))
            case _:
                cluster.limits = random.choice(both)
        assert cluster.available >= least
        assert len(cluster.groups) <= most


def test_ready_surge_groups_stay_while_the_partition_moves() -> None:
    """In this case, which the property test found, 2 groups were available although 3 are required."""
    cluster = started(Budget(replicas=5, partition=0, unavailable=2, surge=4))
    cluster.reconcile()
    cluster.roll()
    for index in (7, 8, 3):
        cluster.make_ready(index)
    cluster.reconcile()
    cluster.roll()

    assert cluster.available == 3


@given(budgets(partition=True), st.booleans())
@settings(max_examples=examples(50))
def test_rollout_stops_at_the_partition(limits: Budget, honors: bool) -> None:
    """A rollout stops at the partition (R-ROLL-2, R-STAT-17)."""
    cluster = started(limits, honors_max_unavailable=honors)
    for _ in range(6 * (limits.max_groups + 2)):
        cluster.reconcile()
        cluster.roll()
        for index in range(len(cluster.groups)):
            cluster.make_ready(index)
    assert all(group.is_updated for group in cluster.groups[limits.partition :])
    assert all(not group.is_updated for group in cluster.groups[: limits.partition])
    assert cluster.current.partition == limits.partition


@given(budgets(), st.lists(st.booleans(), min_size=8, max_size=8), st.randoms(use_true_random=False))
@settings(max_examples=examples(100))
def test_broken_old_groups_are_replaced_first(limits: Budget, ready: list[bool], random: Random) -> None:
    """With any budget, additional old groups fail during the rollout (W-14, W-15, W-24, docs/adr/0030)."""
    cluster = started(limits, honors_max_unavailable=random.random() < 0.5)
    cluster.groups = [group._replace(is_ready=is_ready) for group, is_ready in zip(cluster.groups, ready, strict=False)]
    for _ in range(20 * (limits.max_groups + 2)):
        match random.randrange(4):
            case 0:
                before, groups = cluster.current, list(cluster.groups)
                replaced = cluster.replace_outdated() if cluster.reconcile() else []
                assert_ready_groups_stay(cluster, before, groups, replaced)
            case 1:
                cluster.roll()
            case 2:
                updated = [index for index, group in enumerate(cluster.groups) if group.is_updated]
                cluster.make_ready(random.choice(updated) if updated else limits.max_groups)
            case _ if random.random() < 0.1:
                cluster.break_old(random.randrange(limits.replicas))
    for _ in range(8 * (limits.max_groups + 2)):
        if cluster.reconcile():
            cluster.replace_outdated()
        cluster.roll()
        for index, group in enumerate(cluster.groups):
            if group.is_updated:
                cluster.make_ready(index)
    assert cluster.is_done


def assert_ready_groups_stay(
    cluster: ModeledRollout, before: StatefulSetProgress, groups: list[GroupState], replaced: list[int]
) -> None:
    """Assert that no ready group is replaced while unavailable groups, including broken ones, are at the limit.

    A release gives up all ready groups from the partition on. Those that were released before and are still ready stay
    until the StatefulSet controller, or the manager, deletes them within the limit.
    """
    ready = {index for index, group in enumerate(groups[: before.replicas]) if group.is_ready}
    old = {index for index in ready if not groups[index].is_updated}
    going = {index for index in old if index >= cluster.current.partition}
    released = {index for index in going if index < before.partition}
    least = cluster.limits.replicas - cluster.limits.unavailable
    assert not released or len(ready - going - set(replaced)) >= least
    assert ready.isdisjoint(replaced) or len(ready - set(replaced)) >= least


@pytest.mark.slow
@given(budgets(), st.integers(0, 8), st.integers(0, 8), st.lists(st.sampled_from("NOno."), max_size=9), st.booleans())
@settings(max_examples=examples(100))
def test_rollout_step_is_bounded_and_idempotent(
    limits: Budget, replicas: int, partition: int, letters: list[str], is_new: bool
) -> None:
    """The limits apply from any state, and a written step is not proposed twice (R-ROLL-2, R-ROLL-3)."""
    table = {"N": (True, NEW), "O": (True, OLD), "n": (False, NEW), "o": (False, OLD), ".": (False, OLD)}
    groups = States.from_states({index: GroupState(*table[letter]) for index, letter in enumerate(letters)})
    current: StatefulSetProgress | None = StatefulSetProgress(replicas, partition, str(limits.replicas))
    for attempt in range(20):
        step = rollingupdate.next_step(limits, current, groups, is_new_revision=is_new and attempt == 0)
        assert limits.replicas <= step.replicas <= max(limits.max_groups, replicas)
        assert step.partition >= limits.partition
        written = StatefulSetProgress(step.replicas, step.partition, str(limits.replicas))
        if attempt and written == current:
            return
        current = written
    raise AssertionError(f"no fixed point: {current}")
