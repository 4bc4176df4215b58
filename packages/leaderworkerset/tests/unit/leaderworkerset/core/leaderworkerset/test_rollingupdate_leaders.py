"""Tests which outdated leaders are deleted, so that maxUnavailable is respected on each cluster."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests import builders

from kuberuntime.objects.meta import UID, JSONObject
from leaderworkerset.api import leaderworkerset
from leaderworkerset.core.leaderworkerset import budget, outdatedleaders
from leaderworkerset.core.leaderworkerset.budget import Budget
from leaderworkerset.core.leaderworkerset.groupindex import index_groups
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts, Workers

SEEN = {"observedGeneration": 3, "updateRevision": "web-new", "currentRevision": "web-old"}


def statefulset(replicas: int, partition: int = 0, *, status: JSONObject | None = None, **rolling: Any) -> JSONObject:
    """Return a leader StatefulSet without `maxUnavailable`, which its controller has observed."""
    strategy = {"rollingUpdate": {"partition": partition} | rolling}
    return {
        "metadata": {"generation": 3},
        "spec": {"replicas": replicas, "updateStrategy": strategy},
        "status": SEEN if status is None else status,
    }


def group(index: int, letter: str) -> GroupFacts:
    """Return a group for a letter of the contract.

    N is new, O is old, n and o are not ready, and x is old and terminating.

    A has an abandoned revision; E and e are exhausted, new and old.
    """
    is_new, is_ready = letter in "NnE", letter in "NOAx"
    return GroupFacts(
        leader=f"web-{index}",
        group_index=str(index),
        index=index,
        is_leader_ready=is_ready,
        revision="new" if is_new else "old",
        workers=Workers(is_ready=is_ready, revision="new" if is_new else "old", group_index=str(index)),
        uid=UID(f"uid-{index}"),
        is_deleting=letter in "xEe",
        is_exhausted=letter in "Ee",
        statefulset_revision="web-new" if is_new else "web-abandoned" if letter in "Aa" else "web-old",
    )


def limits(replicas: int, unavailable: int, surge: int = 0) -> Budget:
    return Budget(replicas=replicas, partition=0, unavailable=unavailable, surge=surge)


def chosen(
    letters: str, budget: Budget, *, partition: int = 0, replicas: int | None = None, **changes: Any
) -> list[int]:
    """Return the indexes of the groups to replace, in order."""
    return outdatedleaders.leaders_to_delete(
        outdatedleaders.RolloutLeaders.from_statefulset(
            statefulset(len(letters) if replicas is None else replicas, partition, **changes),
            index_groups([group(index, letter) for index, letter in enumerate(letters)], "web"),
            budget,
            size=2,
            key="new",
        )
    )


@pytest.mark.parametrize(
    ("letters", "budget", "partition", "expected"),
    [
        ("OOOO", limits(4, 2), 2, [3, 2]),
        ("OOOO", limits(4, 2), 3, [3]),
        ("OOOO", limits(4, 1), 0, [3]),
        ("OOOO", limits(4, 4), 0, [3, 2, 1, 0]),
        ("OOOn", limits(4, 1), 0, []),
        ("OOnn", limits(4, 3), 0, [1]),
        ("OOxO", limits(4, 1), 0, []),
        ("OOxO", limits(4, 2), 0, [3]),
        ("oOOO", limits(4, 1), 0, [0]),
        ("oOoO", limits(4, 3), 0, [2, 0, 3]),
        ("oOoO", limits(4, 2), 1, [2]),
        ("NNNN", limits(4, 4), 0, []),
        ("", limits(4, 4), 0, []),
        ("OOOOnn", limits(4, 2, 2), 2, [3, 2]),
        ("OOOONN", limits(4, 2, 2), 0, [3, 2, 1, 0]),
        ("OOOONN", limits(4, 0, 2), 2, [3, 2]),
        ("OOOONn", limits(4, 0, 2), 2, [3]),
        ("OO", limits(4, 1), 0, []),
    ],
)
def test_leaders_are_selected_within_the_budget(
    letters: str, budget: Budget, partition: int, expected: list[int]
) -> None:
    """Broken groups are first, because their replacement costs nothing. Then the highest indexes follow.

    Surge groups replace others (R-ROLL-1, R-LSTS-2).
    """
    assert chosen(letters, budget, partition=partition) == expected


@pytest.mark.parametrize(
    ("letters", "partition", "expected"),
    [("OaA", 3, [1]), ("aaA", 3, [1]), ("OaA", 2, [1]), ("nAA", 3, []), ("naA", 3, [])],
    ids=["taken back", "several", "a surge group rolls", "a new one is waited for", "one at a time"],
)
def test_differs_from_upstream_abandoned_groups_block_no_others(
    letters: str, partition: int, expected: list[int]
) -> None:
    """Unavailable groups of an abandoned revision are replaced (unlike R-ROLL-7).

    The partition and maxUnavailable still apply.
    """
    status = SEEN | {"currentRevision": "web-new"}
    assert chosen(letters, limits(2, 0, 1), partition=partition, status=status, maxUnavailable=1) == expected


def test_groups_below_the_partition_are_kept() -> None:
    held = replace(limits(4, 0, 1), partition=2)

    assert chosen("aaaO", held, partition=4, maxUnavailable=1) == [2]


def test_gated_group_of_an_abandoned_revision_is_kept() -> None:
    one = replace(group(0, "a"), is_gated=True)

    found = outdatedleaders.leaders_to_delete(
        outdatedleaders.RolloutLeaders.from_statefulset(
            statefulset(1, 1, maxUnavailable=1), index_groups([one], "web"), limits(1, 1), size=2, key="new"
        )
    )

    assert found == []


def test_surplus_groups_are_left_to_the_statefulset() -> None:
    """A group beyond the replicas is deleted in any case, and is not counted (R-ROLL-3)."""
    assert chosen("OOOO", limits(2, 1), replicas=2) == [1]


@pytest.mark.parametrize(
    "changes",
    [
        {"status": {"observedGeneration": 2, "updateRevision": "web-new"}},
        {"status": {"observedGeneration": 3}},
        {"status": {"observedGeneration": 3, "updateRevision": ""}},
        {"status": {}},
        {"maxUnavailable": 2},
    ],
    ids=["not observed", "no revision", "empty revision", "never seen", "honoured"],
)
def test_leaders_are_kept_when_others_would_replace_them(changes: dict[str, Any]) -> None:
    """Without an active StatefulSet controller, no leader is recreated.

    A controller that knows the field replaces leaders itself (R-ARC-4).
    """
    assert chosen("OOOO", limits(4, 4), **changes) == []


def test_set_without_a_strategy_needs_help() -> None:
    assert outdatedleaders.ignores_max_unavailable(statefulset(1) | {"spec": {}})


@pytest.mark.parametrize(
    ("revision", "of_set"), [("new", "web-old"), ("old", "web-new")], ids=["key is current", "made from the update"]
)
def test_updated_leader_is_kept(revision: str, of_set: str) -> None:
    """A leader is not deleted if it would be recreated unchanged or has the current revision (Q-8, R-ROLL-8)."""
    one = GroupFacts("web-0", "0", 0, True, revision, None, UID("u"), statefulset_revision=of_set)

    found = outdatedleaders.leaders_to_delete(
        outdatedleaders.RolloutLeaders.from_statefulset(
            statefulset(1), index_groups([one], "web"), limits(1, 1), size=1, key="new"
        )
    )

    assert found == []


def test_leader_without_an_index_is_kept() -> None:
    """A leader without an index is not deleted (Q-22)."""
    odd = GroupFacts("web-x", "x", None, True, "old", None)

    assert (
        outdatedleaders.leaders_to_delete(
            outdatedleaders.RolloutLeaders.from_statefulset(
                statefulset(1), index_groups([odd], "web"), limits(1, 1), size=1, key="new"
            )
        )
        == []
    )


def test_new_leader_with_previous_workers_is_unavailable() -> None:
    """The group is ready according to R-STAT-6, but unavailable for the limit of unavailable groups."""
    between = replace(group(0, "N"), workers=group(0, "O").workers)
    found = outdatedleaders.leaders_to_delete(
        outdatedleaders.RolloutLeaders.from_statefulset(
            statefulset(2), index_groups([between, group(1, "O")], "web"), limits(2, 1), size=2, key="new"
        )
    )

    assert found == []


def test_percentage_below_one_replaces_one_group() -> None:
    """25 % of 2 groups is one group, not zero (Q-28)."""
    rolling = {"maxUnavailable": "25%"}
    spec = leaderworkerset.decode(builders.leaderworkerset_object(replicas=2, rollout=rolling)).spec

    assert chosen("OO", budget.read(spec)) == [1]


@pytest.mark.parametrize(
    ("letters", "budget", "partition", "expected"),
    [
        ("OeO", limits(3, 1), 2, [2]),
        ("OeON", limits(4, 1), 2, [2]),
        ("Oen", limits(3, 1), 1, []),
        ("OeN", limits(3, 1), 0, [0]),
        ("OEON", limits(4, 1), 2, []),
        ("OOOe", limits(3, 1), 2, [2]),
    ],
)
@pytest.mark.parametrize("rolling", [{}, {"maxUnavailable": 1}], ids=["older Kubernetes", "newer Kubernetes"])
def test_exhausted_groups_of_older_revisions_do_not_block(
    letters: str, budget: Budget, partition: int, expected: list[int], rolling: dict[str, Any]
) -> None:
    """A StatefulSet controller that counts exhausted groups as unavailable replaces none (N-RB-8, N-AT-21)."""
    assert chosen(letters, budget, partition=partition, **rolling) == (
        [] if "e" not in letters and rolling else expected
    )


@pytest.mark.parametrize(
    ("letters", "budget", "partition", "expected"),
    [
        ("oOO", limits(3, 1), 3, [0]),
        ("oOO", limits(3, 1), 2, [0]),
        ("oOn", limits(3, 1), 2, []),
        ("oON", limits(3, 1), 2, [0]),
        ("oNN", limits(3, 1), 0, [0]),
        ("ooOO", limits(4, 1), 4, [1]),
        ("noOO", limits(4, 1), 4, []),
        ("ooOO", limits(4, 2), 4, [1, 0]),
        ("ooON", limits(3, 0, 1), 3, [1]),
        ("ooOn", limits(3, 0, 1), 3, []),
        ("oxOO", limits(4, 1), 4, []),
        ("OOO", limits(3, 1), 3, []),
    ],
)
@pytest.mark.parametrize("rolling", [{}, {"maxUnavailable": 1}], ids=["older Kubernetes", "newer Kubernetes"])
def test_differs_from_upstream_broken_groups_are_replaced_first(
    letters: str, budget: Budget, partition: int, expected: list[int], rolling: dict[str, Any]
) -> None:
    """Broken groups of an earlier revision are replaced first.

    Missing groups, and unready groups with the new template, count as unavailable.
    """
    status = SEEN | {"currentRevision": "web-new"}
    assert chosen(letters, budget, partition=partition, status=status, **rolling) == expected


@pytest.mark.parametrize(
    ("letters", "partition", "budget", "status", "expected"),
    [
        ("oOO", 3, limits(3, 1), SEEN, "web-new"),
        ("aOO", 3, limits(3, 1), SEEN, "web-new"),
        ("oOn", 2, limits(3, 1), SEEN, ""),
        ("OOo", 3, limits(3, 1), SEEN, ""),
        ("eOO", 3, limits(3, 1), SEEN, ""),
        ("NOO", 3, limits(3, 1), SEEN, ""),
        ("oOO", 3, replace(limits(3, 1), partition=1), SEEN, ""),
        ("oOO", 3, limits(3, 1), SEEN | {"currentRevision": "web-new"}, ""),
        ("oOO", 3, limits(3, 1), SEEN | {"observedGeneration": 2}, ""),
    ],
    ids=[
        *("broken", "abandoned", "no place", "reached by the rollout", "exhausted", "none is broken"),
        *("held by the user", "done", "not observed"),
    ],
)
def test_newest_revision_becomes_current_when_groups_are_broken(
    letters: str, partition: int, budget: Budget, status: JSONObject, expected: str
) -> None:
    """A leader below the partition is recreated from the StatefulSet's current revision (docs/adr/0030)."""
    groups = index_groups([group(index, letter) for index, letter in enumerate(letters)], "web")
    live = statefulset(len(letters), partition, status=status)

    leaders = outdatedleaders.RolloutLeaders.from_statefulset(live, groups, budget, size=2, key="new")

    assert outdatedleaders.recreate_revision(leaders) == expected
    assert not expected or outdatedleaders.leaders_to_delete(leaders) == []


@pytest.mark.parametrize(("replicas", "updated", "corrected"), [(3, 0, 0), (3, 1, 1), (3, 2, 2), (0, 0, 0)])
def test_renewal_is_awaited_until_its_count_is_corrected(replicas: int, updated: int, corrected: int) -> None:
    """A controller that has not observed the patch creates leaders with the older revision (docs/adr/0030)."""
    status: JSONObject = SEEN | {"replicas": replicas, "updatedReplicas": updated}
    live = statefulset(3, 3, status=status)

    renewed = status | outdatedleaders.set_current_revision(live, "web-new")

    assert 0 <= renewed["currentReplicas"] <= replicas
    assert chosen("oOO", limits(3, 1), partition=3, status=renewed) == ([0] if not replicas else [])
    assert chosen("oOO", limits(3, 1), partition=3, status=renewed | {"currentReplicas": corrected}) == [0]


@pytest.mark.parametrize(
    ("letters", "partition", "current", "expected"),
    [
        ("OOOaaa", 6, "web-old", []),
        ("OOOaan", 5, "web-old", []),
        ("OOOaaN", 5, "web-old", []),
        ("OOOaaa", 6, "web-new", [5]),
        ("OaOaaa", 6, "web-old", []),
    ],
    ids=["a newer update", "the first one", "the first one is ready", "taken back", "one waits for the renewal"],
)
def test_highest_broken_groups_are_replaced_once(
    letters: str, partition: int, current: str, expected: list[int]
) -> None:
    """A broken update was scaled up and then corrected, so these groups are updated first in any case."""
    status = SEEN | {"currentRevision": current}
    assert chosen(letters, limits(6, 1), partition=partition, status=status, maxUnavailable=1) == expected
