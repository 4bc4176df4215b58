"""Exports the LeaderWorkerSets, target sizes and rollout steps of DisaggregatedSet roles."""

from leaderworkerset.core.disaggregatedset.planner import PlannerStep, RoleState
from leaderworkerset.core.disaggregatedset.planner import simulate as simulate_rollout
from leaderworkerset.core.disaggregatedset.rolehash import revision_of as role_revision
from leaderworkerset.core.disaggregatedset.rolescalers import scaler_name
from leaderworkerset.core.disaggregatedset.roleset import RolePlace
from leaderworkerset.core.disaggregatedset.roleset import build as build_role
from leaderworkerset.core.disaggregatedset.roletargets import role_budget
from leaderworkerset.core.disaggregatedset.roletargets import target_replicas as role_target
