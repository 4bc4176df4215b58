"""The comparison with other projects says of this one what the code says."""

import re
from collections.abc import Callable, Mapping
from typing import Final

import pytest
from tests.repository.docs.test_statements import ROOT, rows, text_of

from leaderworkerset.api import labels
from leaderworkerset.api.resources import DISAGGREGATED_SETS
from leaderworkerset.core.gang import gangs
from leaderworkerset.kinds.managed import MANAGED

CHOOSE: Final = "docs/explanation/choose.md"


def has_command(*words: str) -> bool:
    """Return whether `lws` has a command."""
    return f"## lws {' '.join(words)}" in text_of("docs/reference/cli.md").splitlines()


def documented(annotation: str, page: str) -> bool:
    """Return whether the page that the cell links explains the annotation."""
    return annotation.removeprefix(labels.PREFIX) in text_of(page)


def ours() -> dict[str, str]:
    """Return the cells of this project by feature; an empty one has the bar that follows it."""
    return {name: cell.strip("| ") for name, cell, *_ in rows(CHOOSE, "## Beside the others")}


CLAIMS: Final[Mapping[str, tuple[str, Callable[[], bool]]]] = {
    "runs LeaderWorkerSet manifests": ("yes", lambda: bool(MANAGED.defined)),
    "ends when the work is done": ("yes", lambda: documented(labels.RUN_TO_COMPLETION, "docs/how-to/progress.md")),
    "gang scheduling": ("[five ways]", lambda: len(gangs.NAMES) == 5),
    "placement by topology, in its own API": ("part", lambda: bool(labels.EXCLUSIVE_TOPOLOGY)),
    "several roles that roll out together": (DISAGGREGATED_SETS.kind, lambda: DISAGGREGATED_SETS in MANAGED.defined),
    "image updated in place, without new pods": (
        "yes",
        lambda: documented(labels.IN_PLACE, "docs/how-to/update-in-place.md"),
    ),
    "restart in place, without new pods": (
        "yes",
        lambda: documented(labels.IN_PLACE_RESTARTS, "docs/how-to/restart-in-place.md"),
    ),
    "back-off of restarts": ("yes", lambda: documented(labels.RESTART_BACKOFF, "docs/how-to/restarts.md")),
    "limits of restarts, or rules for failures": ("limits", lambda: bool(labels.MAX_GROUP_RESTARTS)),
    "undo of a rollout, as a command": ("yes", lambda: has_command("rollout", "undo")),
    "plan of a rollout before it is done": ("yes", lambda: has_command("plan")),
    "why is it not ready, in one answer": ("yes", lambda: has_command("explain")),
    "without a cluster": ("yes", lambda: has_command("run")),
}
"""By row: how the cell of this project begins, and whether the code has it."""


@pytest.mark.parametrize("feature", CLAIMS)
def test_a_feature_is_claimed_because_it_exists(feature: str) -> None:
    table = ours()
    begin, exists = CLAIMS[feature]
    assert exists()
    assert table[feature].startswith(begin)


def test_an_empty_cell_is_a_feature_that_does_not_exist() -> None:
    """Each row of which the code has a feature is in `CLAIMS`; what else is empty was looked for."""
    assert {name for name, cell in ours().items() if not cell} == {"claims of devices shared by a group"}


def test_metrics_are_counted_as_the_reference_lists_them() -> None:
    table = ours()
    listed = {
        name
        for first, *_ in rows("docs/reference/manager.md", "## Metrics")
        for name in re.findall(r"`(lws_[a-z_]+)`", first)
    }
    defined = {
        name
        for path in (ROOT / "packages").glob("*/src/**/*.py")
        for name in re.findall(r'"(lws_[a-z_]+)"', path.read_text())
    }
    assert {name.removesuffix("_total") for name in listed} == {name.removesuffix("_total") for name in defined}
    assert table["metrics of its own"] == f"[{len(listed)}](../reference/manager.md#metrics)"
