"""Lists the LeaderWorkerSet annotations that users can set.

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
        "node label for the exclusive topology domain of each group",
        "reference/contract.md",
        is_ours=False,
    ),
    Setting(
        labels.SUBGROUP_EXCLUSIVE_TOPOLOGY,
        "node label for the exclusive topology domain of each subgroup",
        "reference/contract.md",
        is_ours=False,
    ),
    Setting(
        labels.RECREATE_GROUP_AFTER_START,
        "whether failures are ignored while the group has pending pods",
        "how-to/restarts.md",
        is_ours=False,
    ),
    Setting(
        labels.RESTART_BACKOFF, "whether recreations of repeatedly failing groups are delayed", "how-to/restarts.md"
    ),
    Setting(labels.RESTART_FIRST_DELAY, "initial delay before a failed group is recreated", "how-to/restarts.md"),
    Setting(labels.RESTART_LONGEST_DELAY, "maximum delay before a failed group is recreated", "how-to/restarts.md"),
    Setting(labels.RESTART_RESET_AFTER, "time without a failure that resets the delay", "how-to/restarts.md"),
    Setting(labels.MAX_GROUP_RESTARTS, "maximum number of recreations of a group", "how-to/restarts.md"),
    Setting(labels.RESUME_GROUP_RESTARTS, "a change resumes delayed and exhausted groups", "how-to/restarts.md"),
    Setting(labels.RELEASE_LOST_PODS_AFTER, "time until pods on lost nodes are force-deleted", "how-to/restarts.md"),
    Setting(
        labels.IN_PLACE_RESTARTS,
        "time limit for a pod to become ready after an in-place restart",
        "how-to/in-place.md",
    ),
    Setting(labels.REVISION_HISTORY_LIMIT, "number of retained old revisions", "how-to/roll-out-and-back.md"),
    Setting(labels.IN_PLACE, "whether groups are updated in place", "how-to/in-place.md"),
    Setting(labels.DISRUPTION_BUDGET, "number of groups that can be evicted at the same time", "how-to/drain.md"),
    Setting(labels.DO_NOT_DISRUPT, "when autoscalers must not disrupt a group", "how-to/drain.md"),
    Setting(labels.MOVE_OFF_CLOSED_NODES, "whether groups are moved from closed nodes", "how-to/drain.md"),
    Setting(labels.GANG_SCHEDULER, "gang scheduler of the groups", "how-to/gang-scheduling.md"),
    Setting(
        labels.POD_TERMINATION_POLICY,
        "whether workers terminate after or with their leader",
        "how-to/places-and-ends.md",
    ),
    Setting(labels.STAY_ON_NODES, "whether a recreated group returns to its nodes", "how-to/places-and-ends.md"),
    Setting(labels.FOLLOW_PROGRESS, "whether group progress is tracked", "how-to/progress.md"),
    Setting(
        labels.PROGRESS_TIMEOUT,
        "time without progress after which a group is considered hanging",
        "how-to/progress.md",
    ),
    Setting(labels.ON_HANG, "response to a hanging group", "how-to/progress.md"),
    Setting(
        labels.RUN_TO_COMPLETION, "whether the set is complete when its leaders exit with code 0", "how-to/progress.md"
    ),
    Setting(labels.COMPLETION_DEADLINE, "time after which incomplete groups are terminated", "how-to/progress.md"),
    Setting(labels.TTL_AFTER_FINISHED, "time until a finished set is deleted", "how-to/progress.md"),
)
