"""Tests which leaders with random keys may be scheduled while other groups still terminate."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Concurrently, Patch
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.api.recreationrecord import Failure, Recreation
from leaderworkerset.capabilities.preferrednodes import previousnodes
from leaderworkerset.core.leaderworkerset import gatedleaders, groupstate
from leaderworkerset.core.leaderworkerset.gatedleaders import FormerGroups, GatedLeaders
from leaderworkerset.core.policies import recreation

LWS = builders.hash_object(replicas=4)
KEY = builders.key_of(LWS)


class Outcome:
    """A decision by leader letters, with the admitted leaders, the waiting leaders, and the event messages."""

    def __init__(self, patches: Sequence[Patch], surplus: Mapping[str, bool]) -> None:
        self.patches = {patch.key.name[-1]: patch for patch in patches}
        self.ahead = "".join(letter for letter, patch in self.patches.items() if "spec" in patch.patch)
        self.named = {
            letter: meta.annotations(patch.patch).get(labels.REPLACES, "") for letter, patch in self.patches.items()
        }
        self.notes = [event.note for patch in patches for event in patch.on_success]
        self.surplus = surplus


def decide(
    lws: JSONObject = LWS,
    *,
    live: str = "",
    gated: Sequence[JSONObject] = (),
    ending: Mapping[str, str] | None = None,
    surplus: Mapping[str, bool] | None = None,
    records: Sequence[JSONObject] = (),
    old: str = "",
    exhausted: str = "",
) -> Outcome:
    """Make a decision with ready groups by letter.

    `old` groups have an earlier revision. Exhausted groups terminate.
    """
    mark = {labels.GROUP_RESTART_BUDGET_EXHAUSTED: "true"}
    leaders = [builders.hash_leader(lws, letter, annotations=mark, deleting=True) for letter in exhausted]
    leaders += [builders.hash_leader(lws, letter) for letter in live]
    leaders += [builders.hash_leader(lws, letter, key="old") for letter in old]
    groups = [groupstate.describe(leader, None) for leader in (*leaders, *gated)]
    facts = GatedLeaders(leaders=gated, ending=ending or {}, surplus=surplus or {})
    found = gatedleaders.decide(
        lws, leaderworkerset.decode(lws), KEY, groups, facts, FormerGroups(records, previousnodes.leader_preferences)
    )
    together = found.actions[0] if found.actions else Concurrently(sequences=())
    assert isinstance(together, Concurrently)
    patches = [patch for sequence in together.sequences for patch in sequence if isinstance(patch, Patch)]
    return Outcome(patches, found.surplus)


def waiting(letter: str, replaces: str = "", lws: JSONObject = LWS, **fields: Any) -> JSONObject:
    return builders.hash_leader(lws, letter, gated=True, replaces=replaces, **fields)


def test_first_leaders_are_admitted_immediately() -> None:
    """One patch changes the gate and the deletion cost, and retains other gates (N-GATE-3, N-GATE-5)."""
    others = waiting("d")
    others["spec"]["schedulingGates"].append({"name": "other"})

    found = decide(gated=[waiting("a"), waiting("b"), waiting("c"), others])

    assert found.ahead == "abcd"
    assert found.patches["a"].patch == {
        "metadata": {"uid": "uid-of-web-7d9f8b6c4-aaaaa", "annotations": {labels.POD_DELETION_COST: None}},
        "spec": {"schedulingGates": None},
    }
    assert found.patches["d"].patch["spec"] == {"schedulingGates": [{"name": "other"}]}
    assert found.notes[0] == "Leader pod web-7d9f8b6c4-aaaaa admitted for scheduling"


def test_deletion_cost_of_the_user_is_kept() -> None:
    own = waiting("a")
    own["metadata"]["annotations"][labels.POD_DELETION_COST] = "7"

    assert "annotations" not in decide(gated=[own]).patches["a"].patch["metadata"]


def test_replacement_waits_for_a_terminating_group() -> None:
    """A replacement waits for a terminating group (N-GATE-2, N-GATE-13)."""
    ending = {"early": "2026-03-01T12:00:00Z", "late": "2026-03-01T12:00:09Z"}
    new = waiting("x")

    first = decide(live="ab", gated=[new, waiting("y")], ending=ending)
    assert (first.ahead, first.named) == ("", {"x": "late", "y": "early"})
    assert first.notes[0] == (
        "Leader pod web-7d9f8b6c4-xxxxx waits for 2 terminating group(s) to be removed before scheduling"
    )

    assert decide(live="ab", gated=[waiting("x", "late"), waiting("y", "early")], ending=ending).patches == {}
    after = decide(live="ab", gated=[waiting("x", "late"), waiting("y", "early")], ending={"early": ending["early"]})
    assert (after.ahead, after.notes) == ("x", ["Leader pod web-7d9f8b6c4-xxxxx admitted for scheduling"])


def test_older_leader_is_admitted_when_fewer_groups_end() -> None:
    """Exactly one `Deferred` event is recorded, for the younger leader (N-AT-5, N-GATE-8)."""
    found = decide(live="ab", gated=[waiting("y"), waiting("x")], ending={"gone": "~"})

    assert (found.ahead, found.named["y"]) == ("x", "gone")
    assert [note for note in found.notes if "waits" in note] == [
        "Leader pod web-7d9f8b6c4-yyyyy waits for 1 terminating group(s) to be removed before scheduling"
    ]


def test_single_leader_does_not_wait_for_unrelated_groups() -> None:
    assert decide(live="ab", gated=[waiting("x")], ending={"gone": "~"}).ahead == "x"


def test_groups_that_were_scaled_down_delay_no_leader() -> None:
    """The groups are found through the leaders, or later through the names that leaders contain (N-AT-5)."""
    small = builders.hash_object(replicas=2)
    ending = {"one": "~", "two": "~"}

    surplus = decide(small, live="ab", ending=ending).surplus
    assert surplus == {"one": True, "two": True}
    crashed = decide(small, live="a", ending=ending | {"three": "~"}, surplus=surplus)
    assert crashed.surplus == surplus
    held = decide(small, live="a", gated=[waiting("x", lws=small)], ending=ending | {"three": "~"}, surplus=surplus)
    assert held.named == {"x": "three"}
    named = waiting("x", "three", lws=small)
    again = decide(small, live="a", gated=[named], ending=ending | {"three": "~"})
    assert not again.patches
    assert again.surplus == surplus
    assert decide(small, live="a", gated=[named], ending=ending, surplus=again.surplus).ahead == "x"


def test_surge_capacity_is_used_and_not_exceeded() -> None:
    """Three running and two terminating groups are the five permitted groups (N-AT-5)."""
    surging = builders.hash_object(replicas=4, rollout={"maxSurge": 1})
    new = [waiting("x", lws=surging), waiting("y", lws=surging)]

    assert decide(surging, old="abc", gated=new, ending={"d": "~"}).ahead == "x"
    held = decide(surging, old="ab", live="x", gated=[waiting("y", "d", lws=surging)], ending={"d": "~", "c": "~"})
    assert held.ahead == ""
    assert decide(surging, old="abc", live="x", ending={"d": "~"}).surplus == {}
    assert decide(surging, live="wxyz", ending={"d": "~"}).surplus == {"d": False}


def test_last_group_of_a_rollout_occupies_a_place_until_deleted() -> None:
    """After a revert, the last terminating group has no replacement, but it still exists (N-AT-5)."""
    one = builders.hash_object(replicas=1, rollout={"maxSurge": 1})
    left = decide(one, live="b", ending={"a": "~"}).surplus
    assert left == {"a": False}

    held = decide(one, old="b", gated=[waiting("x", lws=one)], ending={"a": "~"}, surplus=left)
    assert (held.ahead, held.patches) == ("", {})
    assert decide(one, old="b", gated=[waiting("x", lws=one)]).ahead == "x"


def test_leader_of_an_older_revision_is_never_admitted() -> None:
    """A leader with an older revision is never admitted (N-AT-22, N-HASH-7)."""
    found = decide(old="ab", gated=[waiting("x", key="old"), waiting("y")])

    assert found.ahead == "y"


def test_admitted_leaders_are_limited_per_revision() -> None:
    """The other leaders wait without an additional event (N-GATE-9)."""
    found = decide(live="abc", gated=[waiting("x"), waiting("y")])

    assert (found.ahead, found.notes) == ("x", ["Leader pod web-7d9f8b6c4-xxxxx admitted for scheduling"])


def test_changed_policy_admits_waiting_leaders() -> None:
    """A change to the policy admits waiting leaders (N-AT-23, N-GATE-1)."""
    at_once = builders.hash_object(replicas=4, policy="Immediate")

    assert decide(at_once, live="abc", gated=[waiting("x", "gone", lws=at_once)], ending={"gone": "~"}).ahead == "x"


def record(letter: str, **changes: Any) -> JSONObject:
    leader = builders.hash_leader(LWS, letter)
    fields: dict[str, Any] = {"revision": KEY, "due_at": builders.NOW} | changes
    made = Recreation(leader=meta.uid(leader), count=3, failure=Failure(pod="x"), **fields)
    return recreation.build(LWS, leader, made)


def test_leader_continues_the_record_of_a_deleted_group() -> None:
    """The back-off applies to the group that replaces the failed group.

    Each record is continued once, the last one first.
    """
    later = builders.NOW + timedelta(seconds=1)
    records = [record("f"), record("g", due_at=later), record("h", revision="old"), record("a")]

    found = decide(live="a", gated=[waiting("x"), waiting("y"), waiting("z")], records=records)

    assert [name[-1:] for name in found.named.values()] == ["g", "f", ""]


def ends(letters: str) -> dict[str, str]:
    """Return terminating groups by letter."""
    return {meta.name(builders.hash_leader(LWS, letter)): "2026-03-01T12:00:00Z" for letter in letters}


def test_exhausted_group_is_not_replaced() -> None:
    """Under both policies, an exhausted group's replacement is not admitted, and has no group to wait for.

    See N-RB-15, N-GATE-7.
    """
    for policy in ("PostTermination", "Immediate"):
        lws = builders.hash_object(replicas=4, policy=policy)
        found = decide(lws, live="abc", gated=[waiting("x", lws=lws)], ending=ends("e"), exhausted="e")
        assert (found.ahead, found.named, found.surplus) == ("", {}, {})


def test_other_groups_are_replaced_next_to_an_exhausted_one() -> None:
    """The manager waits for the terminating group, but not for the exhausted group (N-GATE-7)."""
    both = [waiting("x"), waiting("y")]

    while_it_ends = decide(live="ab", gated=both, ending=ends("ec"), exhausted="e")
    assert (while_it_ends.ahead, [*while_it_ends.named.values()]) == ("", [*ends("c")])
    assert decide(live="ab", gated=both, ending=ends("e"), exhausted="e").ahead == "x"
