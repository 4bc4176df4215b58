"""Writes the feature table in docs/explanation/choose.md. With `--check`, only reports if it is out of date.

python -m docs.generate_choose [--check]

The column of this project is derived from the existing settings, fields, commands and metrics. Other cells are facts
from the documentation and code of other projects, as of the date on the page.
"""
# ruff: noqa: INP001 - a script of its own, which talks

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from docs import generatedpage, stability

from leaderworkerset.api import labels
from leaderworkerset.api.resources import DISAGGREGATED_SETS
from leaderworkerset.api.usersettings import SETTINGS
from leaderworkerset.core.gang import gangs

HERE: Final = Path(__file__).parent
PAGE: Final = HERE / "explanation" / "choose.md"
METRICS: Final = HERE / "reference" / "manager.md"
BEGIN: Final = "<!-- Written by docs/generate_choose.py. Do not edit: make generate. -->\n"
HEAD: Final = ("", "this project", "Go controller", "JobSet", "RoleBasedGroup", "Grove")
NUMBERS: Final = {4: "four", 5: "five", 6: "six", 7: "seven"}


@dataclass(frozen=True, slots=True)
class Feature:
    """A table row, with the cells of all projects, and the settings, fields or command of the feature."""

    name: str
    ours: str
    others: tuple[str, str, str, str]
    settings: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    command: str = ""


def how_to(words: str, page: str) -> str:
    """Return a link to a how-to page."""
    return f"[{words}](../how-to/{page}.md)"


def metrics() -> int:
    """Return the number of metrics of this project in the reference."""
    return len(set(re.findall(r"^\| `(lws_[a-z_]+)`", METRICS.read_text(encoding="utf-8"), re.MULTILINE)))


FEATURES: Final = (
    Feature("support for LeaderWorkerSet manifests", "yes", ("yes", "", "", "")),
    Feature(
        "groups that run to completion",
        f"yes, {how_to('with an annotation', 'progress')}",
        ("", "yes", "", ""),
        settings=(labels.RUN_TO_COMPLETION, labels.COMPLETION_DEADLINE, labels.TTL_AFTER_FINISHED),
    ),
    Feature(
        "gang scheduling",
        how_to(f"{NUMBERS[len(gangs.NAMES)]} methods", "gang-scheduling"),
        ("alpha", "alpha", "yes", "yes"),
        settings=(labels.GANG_SCHEDULER,),
        fields=("LeaderWorkerSetSpec.scheduling",),
    ),
    Feature(
        "topology-aware placement in the API",
        "partial: exclusive placement",
        ("partial: exclusive placement", "partial", "partial", "yes, at three levels"),
        settings=(labels.EXCLUSIVE_TOPOLOGY, labels.SUBGROUP_EXCLUSIVE_TOPOLOGY),
    ),
    Feature("Kueue", "yes", ("yes", "yes", "", "")),
    Feature("`maxUnavailable`, `maxSurge`, partition", "yes", ("yes", "", "yes", "partial: one replica at a time")),
    Feature(
        "coordinated rollout of several roles",
        f"yes, with a {DISAGGREGATED_SETS.kind}",
        ("yes, with a DisaggregatedSet", "partial", "yes, with a skew limit", "alpha"),
    ),
    Feature(
        "in-place image update",
        f"yes, {how_to('with an annotation', 'in-place')}",
        ("", "", "yes, by default", ""),
        settings=(labels.IN_PLACE,),
    ),
    Feature(
        "in-place restart",
        f"yes, {how_to('with an annotation', 'in-place')}, on Kubernetes 1.36 or later",
        ("", "yes", "partial", ""),
        settings=(labels.IN_PLACE_RESTARTS,),
    ),
    Feature(
        "restart back-off",
        "yes",
        ("", "", "yes", ""),
        settings=(
            *(labels.RESTART_BACKOFF, labels.RESTART_FIRST_DELAY),
            *(labels.RESTART_LONGEST_DELAY, labels.RESTART_RESET_AFTER),
        ),
    ),
    Feature(
        "restart limits or failure policies",
        "limits",
        ("limits (unreleased)", "both", "yes", "partial"),
        settings=(labels.MAX_GROUP_RESTARTS, labels.RESUME_GROUP_RESTARTS, labels.RECREATE_GROUP_AFTER_START),
        fields=("LeaderWorkerTemplate.maxGroupRestarts",),
    ),
    Feature("device claims shared by a group", "", ("", "", "", "yes")),
    Feature("autoscaling of groups", "yes", ("yes", "", "yes", "yes, at three levels")),
    Feature(
        "command to undo a rollout",
        "yes",
        ("", "", "yes", ""),
        settings=(labels.REVISION_HISTORY_LIMIT,),
        command="rollout undo",
    ),
    Feature("preview of a rollout", "yes", ("partial: for developers", "", "", ""), command="plan"),
    Feature("diagnosis of sets that are not ready", "yes", ("", "", "", ""), command="explain"),
    Feature("custom metrics", f"[{metrics()}](../reference/manager.md#metrics)", ("0", "2", "0", "0")),
    Feature("use without a cluster", "yes", ("", "", "", ""), command="run"),
    Feature(
        "published scale tests",
        "yes, [on one machine](performance.md)",
        ("", "partial: results in design proposals", "", "yes, published every week"),
    ),
)

NOT_COMPARED: Final = frozenset(
    {
        labels.RELEASE_LOST_PODS_AFTER,
        labels.DISRUPTION_BUDGET,
        labels.DO_NOT_DISRUPT,
        labels.MOVE_OFF_CLOSED_NODES,
        labels.POD_TERMINATION_POLICY,
        labels.STAY_ON_NODES,
        labels.FOLLOW_PROGRESS,
        labels.PROGRESS_TIMEOUT,
        labels.ON_HANG,
        "LeaderWorkerSetSpec.groupIdentity",
        "LeaderWorkerSetSpec.groupReplacementPolicy",
        "LeaderWorkerSetSpec.podTerminationPolicy",
    }
)
"""The settings and fields that were not compared with other projects."""


def compared() -> list[str]:
    """Return the settings and fields in all rows, and the settings and fields without a row."""
    return [*NOT_COMPARED, *(name for row in FEATURES for name in (*row.settings, *row.fields))]


def to_compare() -> set[str]:
    """Return the user settings and fields that the recorded upstream version does not have."""
    return {setting.annotation for setting in SETTINGS} | {*stability.FIELDS}


def table() -> str:
    """Return the table as Markdown."""
    rows = [HEAD, ("---",) * len(HEAD), *((row.name, row.ours, *row.others) for row in FEATURES)]
    return "".join("|" + "|".join(f" {cell} " if cell else " " for cell in row) + "|\n" for row in rows)


def page() -> str:
    """Return the page with the current table."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = re.sub(r"\A\n?(?:\|.*\n)+", "", rest)
    return f"{before}{BEGIN}\n{table()}{after}"


if __name__ == "__main__":
    sys.exit(generatedpage.main(PAGE, "settings, fields and commands", page))
