"""Exports the pod selection and name resolution of LeaderWorkerSet Services."""

from leaderworkerset.core.leaderworkerset.services import HEADLESS, UNRESOLVED
from leaderworkerset.core.leaderworkerset.services import is_settled as is_service_settled
from leaderworkerset.core.leaderworkerset.services import selects as service_selects
