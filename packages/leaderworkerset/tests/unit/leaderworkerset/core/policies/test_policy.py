"""Tests that a policy without additions does not change a pod, and that all other policies are called."""

from importlib import import_module
from pkgutil import iter_modules

from tests import builders

from leaderworkerset.api import leaderworkerset
from leaderworkerset.core import policies
from leaderworkerset.core.admission.pod import ADMITTING
from leaderworkerset.core.leaderworkerset.statefulsets import ANNOTATING
from leaderworkerset.core.policies.policy import Member, Policy, Template

OBJECT = builders.leaderworkerset_object()
LWS = leaderworkerset.decode(OBJECT)
LEADER = builders.leader_pod(OBJECT)
NOTHING = Policy()


def test_default_policy_changes_nothing() -> None:
    assert NOTHING.annotations(Template(spec=LWS.spec.leader_worker_template, live={})) == {}
    assert NOTHING.admit(LEADER, Member(size=2, worker_index=0, is_leader=True)) is LEADER


def test_every_policy_is_in_the_lists_that_call_it() -> None:
    """A policy that is not in the list would have no effect."""
    modules = [import_module(f"{policies.__name__}.{found.name}") for found in iter_modules(policies.__path__)]
    declared = [value for module in modules for value in vars(module).values() if isinstance(value, Policy)]
    plain = Policy()
    assert [one for one in declared if one.admit is not plain.admit and one not in ADMITTING] == []
    assert [one for one in declared if one.annotations is not plain.annotations and one not in ANNOTATING] == []
    assert declared
