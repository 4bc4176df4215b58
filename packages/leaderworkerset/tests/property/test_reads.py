"""Tests that decisions change leaders and revisions only after the required reads.

The reads are described in `core/leaderworkerset/outline.py`.
"""

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st
from tests import builders
from tests.decisions import decide
from tests.property.test_capabilities import sets
from tests.unit.leaderworkerset.core.leaderworkerset import test_reconcile as cases

from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS
from kuberuntime.plan import Action, Apply, Create, Delete, Patch, Plan, flatten
from leaderworkerset.capabilities.enabled import ENABLED, EXTENSIONS
from leaderworkerset.core.leaderworkerset.decision import NO_RESULTS, ObservedLeaderWorkerSet
from leaderworkerset.core.leaderworkerset.outdatedleaders import read_progress
from leaderworkerset.core.leaderworkerset.outline import Read, build_outline
from leaderworkerset.core.policies.gang import NO_GANG


def reads_of(observed: ObservedLeaderWorkerSet, action: Action) -> Iterator[Read]:
    """Yield the objects that must be read before an action."""
    workload = observed.leader_workload
    match action:
        case Create(resource=resource) | Delete(resource=resource) | Patch(resource=resource) if (
            resource == CONTROLLER_REVISIONS and workload is not None
        ):
            yield Read.HISTORY
        case Delete(resource=resource, on_success=events) if resource == PODS:
            yield from (Read.LEADERS for event in events if event.reason == "MovingGroup")
        case Apply(object=desired) if workload is not None:
            now, new = read_progress(workload), read_progress(desired)
            if new.partition < now.partition and now.partition >= now.replicas:
                yield Read.LEADERS
            if observed.known.applied is None:
                yield Read.WORKLOAD


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_reads_precede_each_write_that_needs_them(data: st.DataObject) -> None:
    observed = data.draw(sets(ENABLED))
    if data.draw(st.booleans()):
        observed = cases.replace(observed, known=NO_RESULTS)
    outlined = build_outline(observed, builders.NOW, NO_GANG, EXTENSIONS)
    if isinstance(outlined, Plan):
        return

    plan = decide(observed, builders.NOW).plan

    needed = {read for action in flatten(plan.actions) for read in reads_of(observed, action)}
    assert needed <= outlined.reads
