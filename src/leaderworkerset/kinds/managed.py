"""The kinds that the manager serves: a new one is added here."""

from typing import Final

from leaderworkerset.kinds.disaggregatedset import DISAGGREGATED_SET, ROLE_SCALER
from leaderworkerset.kinds.leaderworkerset import LEADERWORKERSET
from leaderworkerset.kinds.pod import POD
from leaderworkerset.kinds.registry import Registry

MANAGED: Final = Registry((LEADERWORKERSET, POD, DISAGGREGATED_SET, ROLE_SCALER))
