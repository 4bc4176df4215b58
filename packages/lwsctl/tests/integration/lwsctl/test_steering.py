"""Tests all `lws rollout` commands on both clusters, from history and diff to restart and status."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.disaggregated import disaggregatedset_object, role
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, assert_pods, revision_of
from tests.integration.lwsctl.test_commands import apply, session_of

from kuberuntime import timeouts
from kuberuntime.errors import flatten
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.capabilities.history import revisionhistory
from leaderworkerset.core.leaderworkerset.previousrevisions import revision_content
from lwsctl.cli.applying import applier
from lwsctl.cli.commands.rollout import diff, plan
from lwsctl.cli.commands.rollout.pause import pause, resume_rollout
from lwsctl.cli.commands.rollout.restart import restart_all
from lwsctl.cli.commands.rollout.rolloutstatus import RolloutFollower, SetFollower
from lwsctl.cli.commands.rollout.undo import undo
from lwsctl.cli.errors import CommandError, TimedOutError, UsageError
from lwsctl.cli.reading.manifests import Document
from lwsctl.cli.rollouts import rollouttargets
from lwsctl.cli.rollouts.grouprestart import Restart, RestartRequest
from lwsctl.cli.sets.causes import CauseMonitor, StuckError
from lwsctl.cli.watchwarnings import following
from lwsctl.rollout import patches

ODD = ["echo", "<a> & 'b' \u2028 \u00e9"]
"""A revision with characters that Go's JSON encoder escapes is adopted without a data change."""

STUCK = 3.0

MISSING_CLASS = "PriorityClass urgent does not exist, so pod web-0 cannot be created"


def with_image(image: str) -> dict[str, object]:
    template = pod_template(image)
    template["spec"]["containers"][0]["args"] = ODD
    return template


async def numbers(space: LiveScenario) -> list[tuple[int, bool]]:
    found = await rollouttargets.read_history(session_of(space), "web")
    return [(entry.number, entry.is_current) for entry in found]


@contextmanager
def raises_one(kind: type[CommandError], match: str) -> Iterator[None]:
    """Expect the error of a task that follows objects. It is raised in an exception group."""
    with pytest.raises(ExceptionGroup) as caught:
        yield
    (found,) = flatten(caught.value)
    assert isinstance(found, kind)
    assert re.search(match, str(found)), found


def follower(space: LiveScenario, stuck_after: float = 600.0) -> RolloutFollower:
    return RolloutFollower(session_of(space), space.key("web"), stuck_after)


def image_of(state: State, pod: str) -> str:
    return str(state.pods[pod]["spec"]["containers"][0]["image"])


async def test_undo_returns_to_a_revision_that_is_kept(space: LiveScenario) -> None:
    session = session_of(space)
    first = lws(replicas=2, size=2, template={"workerTemplate": with_image("app:1")})
    await space.bring_up(first)
    (original,) = space.state.revisions.values()
    await space.replace_worker_template(with_image("app:2"))
    await space.settled()

    await space.until(_assert_one_revision)
    (kept,) = await _history(space)
    assert kept["data"] == original["data"]
    assert kept["revision"] == 1
    assert await numbers(space) == [(1, False), (2, True)]
    old, new = await rollouttargets.read_history(session, "web")
    assert (old.groups, new.groups) == ((), (0, 1))
    assert "app:1" in str(revision_content(old))

    assert await undo(session, "web") == "web rolled back to revision 1"
    assert await follower(space).follow(60) == "web: rollout complete, 2 groups updated and ready"
    state = await space.settled()
    assert image_of(state, "web-1") == "app:1"
    await space.until(_assert_one_revision)
    assert await numbers(space) == [(2, False), (3, True)]
    assert await undo(session, "web", 3) == "web already has revision 3"
    with pytest.raises(CommandError, match=r"web has no revision 9 \(existing: 2, 3\)"):
        await undo(session, "web", 9)


async def test_dry_run_of_a_verb_shows_its_effect_and_writes_nothing(space: LiveScenario) -> None:
    session = session_of(space)
    await space.bring_up(lws(replicas=3, size=2))
    await space.replace_worker_template(pod_template("app:2"))
    await space.settled()
    before = await space.get(LEADERWORKERSETS, "web")

    undone = (await undo(session, "web", is_trial=True)).splitlines()
    assert undone[:2] == ["--- web, now", "+++ web, then"]
    assert {line[0] + line[1:].strip() for line in undone if "image:" in line and line[0] in "+-"} == {
        "-image: app:2",
        "+image: app:1",
    }
    assert "  spec.leaderWorkerTemplate.workerTemplate.spec.containers[main].image: app:2 -> app:1" in undone
    assert "a new revision: 3 groups of 2 pods would be created" in undone
    assert undone[-1] == "no changes were made (dry run)"
    assert await undo(session, "web", 2, is_trial=True) == "web already has revision 2: no changes were made (dry run)"

    restarted = (await restart_all(session, "web", is_trial=True)).splitlines()
    assert any(line.strip().startswith("+") and patches.RESTARTED_AT in line for line in restarted)
    assert "a new revision: 3 groups of 2 pods would be created" in restarted

    assert await Restart(session, RestartRequest("web", (0, 2))).preview() == (
        "web groups 0,2 would be recreated, at most 1 group unavailable at a time, in this order:\n"
        "  group 2: pod web-2 and 1 worker\n"
        "  group 0: pod web-0 and 1 worker\n"
        "no changes were made (dry run)"
    )
    assert (await Restart(session, RestartRequest("web", (1,), 1), force=True).preview()).splitlines() == [
        "web rank 1/1 would be recreated, all at the same time, in this order:",
        "  rank 1/1: pod web-1-1",
        "with the restart policy RecreateGroupOnPodRestart, all ranks of the group are recreated",
        "no changes were made (dry run)",
    ]
    with pytest.raises(CommandError, match="no groups were restarted, because web has no pod for group 7"):
        await Restart(session, RestartRequest("web", (7,))).preview()
    after = await space.get(LEADERWORKERSETS, "web")
    assert (meta.generation(after), meta.annotations(after)) == (meta.generation(before), meta.annotations(before))


async def test_undone_change_can_be_applied_again(space: LiveScenario) -> None:
    await apply(space, lws(replicas=1, size=1))
    await space.settled()
    await apply(space, lws(replicas=1, size=1, image="app:2"))
    assert "complete" in await follower(space).follow(60)
    assert await undo(session_of(space), "web", 1) == "web rolled back to revision 1"
    (told,) = await apply(space, lws(replicas=1, size=1, image="app:2"))
    assert told.startswith("leaderworkerset/web configured (taken over from lws rollout: spec.leaderWorkerTemplate.")


async def _history(space: LiveScenario) -> list[JSONObject]:
    selector = revisionhistory.selector("web")
    return list(
        (await space.client.list(CONTROLLER_REVISIONS, namespace=space.namespace, label_selector=selector)).items
    )


def _assert_one_revision(state: State) -> None:
    assert len([one for one in state.revisions.values() if meta.labels(one).get(labels.NAME) == "web"]) == 1


async def test_paused_rollout_holds_until_it_is_resumed(space: LiveScenario) -> None:
    session = session_of(space)
    await space.bring_up(lws(replicas=3, size=1))
    tried = await pause(session, "web", is_trial=True)
    assert tried == "web paused; the partition blocks 3 groups (dry run)"
    assert await pause(session, "web") == "web paused; the partition blocks 3 groups"
    assert await pause(session, "web") == "web is already paused"
    before = space.state.uids("web")
    await space.until(lambda state: _assert_held(state, 3))
    await space.replace_worker_template(pod_template("app:2"))
    with pytest.raises(
        CommandError, match=r"no changes were made, because the rollout of web is paused.*rollout resume web"
    ):
        await undo(session, "web")
    with pytest.raises(CommandError, match="paused"):
        await restart_all(session, "web")
    state = await space.until(_assert_observed)
    assert state.uids("web") == before

    assert await resume_rollout(session, "web", is_trial=True) == "web resumed (dry run)"
    assert await resume_rollout(session, "web") == "web resumed"
    assert await resume_rollout(session, "web") == "web is not paused"
    assert "rollout complete, 3 groups updated and ready" in await follower(space).follow(60)
    state = await space.settled()
    assert {image_of(state, pod) for pod in state.of("web")} == {"app:2"}
    assert not patches.is_paused(await space.get(LEADERWORKERSETS, "web"))


def _assert_observed(state: State) -> None:
    lws = state.leaderworkersets["web"]
    assert meta.status(lws)["observedGeneration"] == meta.generation(lws)
    _assert_held(state, 3)
    assert revision_of(state.statefulsets["web"]) != revision_of(state.pods["web-0"])


def _assert_held(state: State, partition: int) -> None:
    assert meta.spec(state.statefulsets["web"])["updateStrategy"]["rollingUpdate"]["partition"] == partition


async def test_rollout_status_names_the_reason_when_it_stalls(space: LiveScenario) -> None:
    await space.create(lws(replicas=2, size=1, gated=True))
    stuck = r"no group changed for 3 s \(web: 0/2 groups updated.*\)\nweb is stuck \(LWS-E074\): .*\nuse `lws -n .* explain web`"
    with pytest.raises(StuckError, match=stuck):
        await follower(space, STUCK).follow(60)
    late = r"not complete after 1 s \(web: 0/2 groups updated.*\)\nweb is stuck \(LWS-E074\): "
    with pytest.raises(TimedOutError, match=late):
        await follower(space).follow(1)
    assert (await follower(space).current_progress()).startswith("web: 0/2 groups updated")
    assert (await follower(space).document())["complete"] is False


async def test_rollout_status_names_the_cause_once(space: LiveScenario, capsys: pytest.CaptureFixture[str]) -> None:
    session, notes = session_of(space), list[str]()
    await space.bring_up(lws(replicas=1, size=1))
    await space.replace_worker_template(pod_template(priorityClassName="urgent"))
    causes = CauseMonitor(session, "web", notes.append, first=0.2)
    async with timeouts.within(30), following(*follower(space).informers, causes) as objects:
        await objects.wait_for(lambda: notes or None, every=0.1)
    assert notes == [
        f"web is stuck (LWS-E026): {MISSING_CLASS}",
        "next: create PriorityClass urgent, or correct priorityClassName in the template of web",
    ]
    with pytest.raises(StuckError, match=f"\\(LWS-E026\\): ({MISSING_CLASS}|see above)"):
        await follower(space, STUCK).follow(60)
    assert "0/1 group updated" in capsys.readouterr().err


async def test_restart_keeps_the_budget_of_unavailable_groups(space: LiveScenario) -> None:
    session = session_of(space)
    before = (await space.bring_up(lws(replicas=3, size=2))).uids("web")

    def at_most_one_is_away(state: State) -> None:
        away = [index for index in range(3) if not _is_up(state, index)]
        assert len(away) <= 1, f"groups {away} are away"

    space.always(at_most_one_is_away)
    assert await Restart(session, RestartRequest("web", (0, 2))).run(60) == "web groups 0,2 restarted"
    state = await space.until(lambda state: assert_pods(state, "web", replicas=3, size=2))
    after = state.uids("web")
    assert {pod for pod in after if after[pod] == before[pod]} == {"web-1", "web-1-1"}
    with raises_one(CommandError, "no groups were restarted, because web has no pod for group 7; web has 3 groups"):
        await Restart(session, RestartRequest("web", (7,))).run(60)


def _is_up(state: State, index: int) -> bool:
    pods = state.group("web", index)
    leader = pods.get(f"web-{index}")
    return leader is not None and meta.is_condition_true(leader, "Ready") and not meta.is_deleting(leader)


@pytest.mark.parametrize("policy", ["None", "RecreateGroupOnPodRestart", "RecreateGroupAfterStart"])
async def test_dry_run_of_a_restart_predicts_recreated_ranks(space: LiveScenario, policy: str) -> None:
    before = (await space.bring_up(lws(replicas=1, size=3, template={"restartPolicy": policy}))).uids("web")
    restart = Restart(session_of(space), RestartRequest("web", (0,), 1))
    promised = f"with the restart policy {policy}, all ranks of the group are recreated" in await restart.preview()
    await restart.run(60)
    after = (await space.until(lambda state: assert_pods(state, "web", replicas=1, size=3))).uids("web")
    recreated = {pod for pod in after if after[pod] != before[pod]}
    assert recreated == (set(before) if promised else {"web-0-1"})


async def test_restart_of_all_groups_keeps_the_image(space: LiveScenario) -> None:
    session = session_of(space)
    before = (await space.bring_up(lws(replicas=2, size=1))).uids("web")
    assert await restart_all(session, "web") == "web is restarting; use `lws rollout status web` to follow it"
    async with timeouts.within(60):
        assert "rollout complete" in await follower(space).follow(60)
    state = await space.settled()
    assert not set(state.uids("web").values()) & set(before.values())
    assert {image_of(state, pod) for pod in state.of("web")} == {"app:1"}


def documents(*objects: JSONObject) -> list[Document]:
    return [Document("test.yaml", 1, obj) for obj in objects]


async def test_forecast_of_a_manifest_comes_true(space: LiveScenario) -> None:
    session = session_of(space)
    old = lws(replicas=3, size=2)
    await apply(space, old)
    await space.settled()
    tried = await applier.dry_run(session, documents(old), force=False)
    assert list(diff.differences(tried)) == []
    new = lws(replicas=3, size=2, image="app:2")

    (one,) = await applier.dry_run(session, documents(new), force=False)
    assert one.before is not None
    before = await rollouttargets.read_view(session, one.before)
    found = plan.forecast_change(one.document, before, one.after)

    assert [wave.groups for wave in found.forecast.waves] == [(2,), (1,), (0,)]
    assert [change.path for change in found.changes] == [
        "spec.leaderWorkerTemplate.workerTemplate.spec.containers[main].image"
    ]
    assert found.samples == 3
    assert {line[0] + line[1:].strip() for line in diff.differences([one]) if "image: app" in line} == {
        "-image: app:1",
        "+image: app:2",
    }
    assert revision_of(space.state.statefulsets["web"]) == revision_of(space.state.pods["web-0"])

    least = [3]

    def count(state: State) -> None:
        least[0] = min(least[0], sum(_is_up(state, index) for index in range(3)))

    space.always(count)
    await apply(space, new)
    assert "complete" in await follower(space).follow(120)
    assert least[0] >= 2 == found.forecast.min_available


async def test_rejected_manifest_is_named(space: LiveScenario) -> None:
    with pytest.raises(CommandError, match=r"test.yaml:1: leaderworkerset/web: .*spec.replicas"):
        await applier.dry_run(session_of(space), documents(lws(replicas=-1)), force=False)


async def test_disaggregated_set_is_followed_but_not_steered(space: LiveScenario) -> None:
    session = session_of(space)
    obj = disaggregatedset_object([role("prefill", 1), role("decode", 1)]) | {"metadata": {"name": "split"}}
    await apply(space, obj)
    set_follower = SetFollower(session, space.key("split"), 600.0)
    assert await set_follower.follow(60) == "split: rollout complete, 2 groups ready"
    with pytest.raises(UsageError, match=r"`lws get split -o view` to show its rollout"):
        await set_follower.document()
    with pytest.raises(
        CommandError, match=r"split is a DisaggregatedSet .* specify one of its LeaderWorkerSets \(split-0-.*decode"
    ):
        await undo(session, "split")
    part = next(name for name in space.state.leaderworkersets if name.endswith("decode"))
    with pytest.raises(CommandError, match=f"^{part} belongs to DisaggregatedSet split"):
        await pause(session, part)
    assert len(await rollouttargets.read_history(session, part)) == 1
