"""Exports rollout limits, rollout steps, outdated groups, and in-place updates."""

from leaderworkerset.capabilities.inplace.inplace import InPlace
from leaderworkerset.capabilities.inplace.inplace import obstacle as in_place_obstacle
from leaderworkerset.capabilities.inplace.inplace import obstacle_between as in_place_obstacle_between
from leaderworkerset.capabilities.inplace.inplace import read as read_in_place
from leaderworkerset.capabilities.inplace.inplacegroups import is_rejected as is_resize_rejected
from leaderworkerset.capabilities.inplace.inplaceresources import PENDING as RESIZE_PENDING
from leaderworkerset.capabilities.inplace.inplaceresources import is_resize_complete as is_resize_settled
from leaderworkerset.core.leaderworkerset.budget import Budget
from leaderworkerset.core.leaderworkerset.budget import read as read_rollout_budget
from leaderworkerset.core.leaderworkerset.groupindex import GroupIndex, States, indexes_below
from leaderworkerset.core.leaderworkerset.groupindex import descending_indexes as highest_indexes
from leaderworkerset.core.leaderworkerset.outdatedleaders import RolloutLeaders, StatefulSetProgress
from leaderworkerset.core.leaderworkerset.outdatedleaders import leaders_to_delete as choose_outdated_leaders
from leaderworkerset.core.leaderworkerset.outdatedleaders import read_progress as rollout_position
from leaderworkerset.core.leaderworkerset.outdatedleaders import recreate_revision as renewal_of
from leaderworkerset.core.leaderworkerset.rollingupdate import next_step as next_rollout_step
