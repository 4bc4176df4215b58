"""A policy that adds nothing changes nothing."""

from tests import builders

from leaderworkerset.api import leaderworkerset
from leaderworkerset.core.policies.policy import Member, Policy, Template

OBJECT = builders.leaderworkerset_object()
LWS = leaderworkerset.decode(OBJECT)
LEADER = builders.leader_pod(OBJECT)
NOTHING = Policy()


def test_the_defaults_of_a_policy_change_nothing() -> None:
    assert NOTHING.annotations(Template(spec=LWS.spec.leader_worker_template, live={})) == {}
    assert NOTHING.admit(LEADER, Member(size=2, worker_index=0, is_leader=True)) is LEADER
