"""The LeaderWorkerSet annotations that users can set.

Classes of stability, the comparison with other projects, `lws describe` and the Python client are built from the rows.
"""

from typing import Final, NamedTuple

from leaderworkerset.api import labels


class Setting(NamedTuple):
    """An annotation, its purpose, and its page in `docs`. `is_ours` is true if it does not exist upstream."""

    annotation: str
    description: str
    page: str
    is_ours: bool = True

    @property
    def name(self) -> str:
        """Return the annotation name without the prefix."""
        return self.annotation.removeprefix(labels.PREFIX)


SETTINGS: Final = (
    Setting(
        labels.EXCLUSIVE_TOPOLOGY,
        "node label of which each group has a value alone",
        "reference/contract.md",
        is_ours=False,
    ),
    Setting(
        labels.SUBGROUP_EXCLUSIVE_TOPOLOGY,
        "node label of which each subgroup has a value alone",
        "reference/contract.md",
        is_ours=False,
    ),
    Setting(
        labels.RECREATE_GROUP_AFTER_START,
        "failures do not count while the group has pending pods",
        "how-to/restarts.md",
        is_ours=False,
    ),
    Setting(labels.RESTART_BACKOFF, "whether groups that fail repeatedly wait", "how-to/restarts.md"),
    Setting(labels.RESTART_FIRST_DELAY, "first delay of a recreation", "how-to/restarts.md"),
    Setting(labels.RESTART_LONGEST_DELAY, "longest delay of a recreation", "how-to/restarts.md"),
    Setting(labels.RESTART_RESET_AFTER, "time without a failure that resets the delay", "how-to/restarts.md"),
    Setting(labels.MAX_GROUP_RESTARTS, "maximum of recreations of a group", "how-to/restarts.md"),
    Setting(labels.RESUME_GROUP_RESTARTS, "a change starts waiting and exhausted groups again", "how-to/restarts.md"),
    Setting(labels.RELEASE_LOST_PODS_AFTER, "time until pods of lost nodes are deleted by force", "how-to/restarts.md"),
    Setting(
        labels.IN_PLACE_RESTARTS,
        "time in which a pod that restarts in place has to be ready",
        "how-to/in-place.md",
    ),
    Setting(labels.REVISION_HISTORY_LIMIT, "number of old revisions that are kept", "how-to/roll-out-and-back.md"),
    Setting(labels.IN_PLACE, "whether groups are updated in place", "how-to/in-place.md"),
    Setting(labels.DISRUPTION_BUDGET, "how many groups may be evicted at once", "how-to/drain.md"),
    Setting(labels.DO_NOT_DISRUPT, "when autoscalers leave a group alone", "how-to/drain.md"),
    Setting(labels.MOVE_OFF_CLOSED_NODES, "whether groups leave nodes that are closed", "how-to/drain.md"),
    Setting(labels.GANG_SCHEDULER, "gang scheduler of the groups", "how-to/gang-scheduling.md"),
    Setting(
        labels.POD_TERMINATION_POLICY, "whether workers end after or with their leader", "how-to/places-and-ends.md"
    ),
    Setting(labels.STAY_ON_NODES, "whether a recreated group returns to its nodes", "how-to/places-and-ends.md"),
    Setting(labels.FOLLOW_PROGRESS, "whether the progress of groups is recorded", "how-to/progress.md"),
    Setting(labels.PROGRESS_TIMEOUT, "time without progress after which a group hangs", "how-to/progress.md"),
    Setting(labels.ON_HANG, "what happens to a group that hangs", "how-to/progress.md"),
    Setting(labels.RUN_TO_COMPLETION, "whether the set ends when its leaders exit with code 0", "how-to/progress.md"),
    Setting(
        labels.COMPLETION_DEADLINE, "time after which groups that are not complete are stopped", "how-to/progress.md"
    ),
    Setting(labels.TTL_AFTER_FINISHED, "time from the end until the set is deleted", "how-to/progress.md"),
)
