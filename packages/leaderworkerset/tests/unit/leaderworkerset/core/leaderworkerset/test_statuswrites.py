"""Tests that `Available` is False from a failed reconcile until the next success (docs/adr/0030)."""

from datetime import timedelta
from typing import Final

import pytest
from tests import builders
from tests.decisions import reconcile
from tests.unit.leaderworkerset.core.leaderworkerset import test_reconcile as cases

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Plan, PutStatus, flatten
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core import reconcilefailure
from leaderworkerset.core.leaderworkerset import groupstate
from leaderworkerset.core.leaderworkerset.decision import ObservedLeaderWorkerSet
from leaderworkerset.core.policies.policy import NO_SERVICE

AVAILABLE: Final = cases.at_rest()
LWS: Final = AVAILABLE.leaderworkerset or {}
LATER: Final = builders.NOW + timedelta(minutes=1)
STRAY: Final = groupstate.describe(builders.leader_pod(LWS, extra_labels={labels.GROUP_INDEX: "x"}), None)
UNREADABLE: Final = {"annotations": {labels.GROUP_RESTART_COUNTS: "many"}}
FAILURES: Final = {
    "a Service is refused": cases.replace(AVAILABLE, service=NO_SERVICE),
    "a deletion fails": cases.replace(
        AVAILABLE,
        leaderworkerset=LWS | {"metadata": LWS["metadata"] | {"annotations": {labels.REVISION_HISTORY_LIMIT: "0"}}},
        revisions=[builders.revision(builders.leaderworkerset_object(image="app:0"), number=7), *AVAILABLE.revisions],
    ),
    "a label is unreadable": cases.replace(AVAILABLE, groups=builders.by_leader([STRAY])),
    "an annotation is unreadable": cases.replace(
        AVAILABLE, leaderworkerset=LWS | {"metadata": LWS["metadata"] | UNREADABLE}
    ),
}


def failed(plan: Plan) -> list[JSONObject]:
    """Return the statuses that are written if all other actions fail."""
    first = [action for action in flatten(plan.actions) if isinstance(action, PutStatus) and plan.error]
    return [write.object for write in (*first, *flatten(plan.on_failure)) if isinstance(write, PutStatus)]


@pytest.mark.parametrize("observed", FAILURES.values(), ids=FAILURES)
def test_differs_from_upstream_failure_ends_available(observed: ObservedLeaderWorkerSet) -> None:
    """If a reconciliation fails, `Available` becomes False, and the status records the failure once.

    With the Go controller, `Available` remains True.
    """
    (held,) = failed(reconcile(observed, builders.NOW))
    assert not meta.is_condition_true(held, "Available")
    assert reconcilefailure.is_failing(held)
    assert meta.status(held)["readyReplicas"] == 2
    assert failed(reconcile(cases.replace(observed, leaderworkerset=held), LATER)) == []


@pytest.mark.parametrize("observed", FAILURES.values(), ids=FAILURES)
def test_success_after_a_failure_restores_available(observed: ObservedLeaderWorkerSet) -> None:
    (held,) = failed(reconcile(observed, builders.NOW))
    held = held | {"metadata": LWS["metadata"]}
    (write,) = reconcile(cases.replace(AVAILABLE, leaderworkerset=held), LATER).actions
    assert isinstance(write, PutStatus)
    available, progressing = (meta.find_condition(write.object, kind) or {} for kind in ("Available", "Progressing"))
    assert (available["status"], available["reason"]) == ("True", "AllGroupsReady")
    assert (progressing["status"], progressing["reason"]) == ("False", "GroupsProgressing")


def test_status_after_a_failure_follows_what_may_fail_again() -> None:
    """Otherwise, `Available` would alternate between True and False while the failure persists."""
    observed = FAILURES["a deletion fails"]
    (held,) = failed(reconcile(observed, builders.NOW))
    before, after = (reconcile(cases.replace(observed, leaderworkerset=obj), LATER) for obj in (LWS, held))
    assert not any(isinstance(action, PutStatus) for action in flatten(before.actions))
    assert isinstance(after.actions[-1], PutStatus)
    assert len(after.actions) > 1


def test_time_before_the_failure_is_kept() -> None:
    """A manager that starts in the meantime detects workers that were lost before (docs/adr/0014)."""
    (held,) = failed(reconcile(FAILURES["an annotation is unreadable"], LATER))
    before = meta.find_condition(reconcilefailure.without_failure(held), "Available") or {}
    expected = meta.find_condition(LWS, "Available") or {}
    assert (before["status"], before["lastTransitionTime"]) == ("True", expected["lastTransitionTime"])


def test_result_of_a_finished_set_survives_a_failure() -> None:
    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    assert reconcilefailure.report(LEADERWORKERSETS, LWS | {"status": done}, "error", LATER) == ()
