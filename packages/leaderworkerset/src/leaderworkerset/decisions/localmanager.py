"""Exports the manager for an embedded cluster process, with controllers, webhooks and recorder."""

from leaderworkerset.capabilities.names import DISRUPTION, MOVES
from leaderworkerset.manager.lwsmanager import controllers as manager_controllers
from leaderworkerset.manager.lwsmanager import webhooks as manager_webhooks
from leaderworkerset.recording.logsource import ReadFiles
from leaderworkerset.recording.progressfollower import ProgressFollower
from leaderworkerset.recording.recorder import recording as record_failures
