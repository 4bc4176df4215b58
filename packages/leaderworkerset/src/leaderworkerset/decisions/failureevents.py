"""Defines reconciliation events, and finds failed, starting and waiting pods."""

from leaderworkerset.core.decisionevents import CONTENTION, GROUPS_UPDATING, MOVING_GROUP
from leaderworkerset.core.decisionevents import creating_revision as creating_revision_event
from leaderworkerset.core.decisionevents import recreating_group as recreating_group_event
from leaderworkerset.core.decisionevents import restarted_in_place as restarted_in_place_event
from leaderworkerset.core.decisionevents import unreadable as unreadable_event
from leaderworkerset.core.policies.failures import recreates_groups as is_failure_active
from leaderworkerset.core.policies.failures import waits_for_start
from leaderworkerset.rendezvous.connectionerrors import FailureReason
