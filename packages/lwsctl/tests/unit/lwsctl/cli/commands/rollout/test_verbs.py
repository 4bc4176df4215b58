"""Tests the arguments of `lws rollout`: targets, output and errors."""

import pytest
from click.testing import CliRunner
from testkit.virtualtime import VirtualClock
from tests import builders

from leaderworkerset.core.leaderworkerset.previousrevisions import RevisionEntry
from lwsctl.cli import app, targets
from lwsctl.cli.commands.rollout import rollouthistory
from lwsctl.cli.commands.rollout.rolloutstatus import Deadline
from lwsctl.cli.commandtable import COMMANDS
from lwsctl.cli.errors import UsageError
from lwsctl.cli.rollouts.grouprestart import RestartRequest
from lwsctl.cli.views import diffs


def entry(number: int, *, groups: tuple[int, ...] = (), cause: str = "", current: bool = False) -> RevisionEntry:
    return RevisionEntry(
        number=number,
        key=f"key{number}",
        created="2026-03-01T11:00:00Z",
        cause=cause,
        groups=groups,
        is_current=current,
        revision={},
    )


def test_history_is_a_table() -> None:
    found = [entry(2, cause="new weights"), entry(3, groups=(0, 1, 2, 5), current=True)]
    assert rollouthistory.table(found, builders.NOW) == [
        "REVISION   KEY    AGE   GROUPS   CHANGE-CAUSE",
        "2          key2   60m   -        new weights",
        "3 *        key3   60m   0-2,5    -",
        "* marks the revision of new groups",
    ]
    assert rollouthistory.table([], builders.NOW) == ["REVISION   KEY   AGE   GROUPS   CHANGE-CAUSE"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("web",), RestartRequest("web")),
        (("web/3", "web/1", "web/3"), RestartRequest("web", (1, 3))),
        (("web/1/2",), RestartRequest("web", (1,), 2)),
    ],
)
def test_restart_request_is_parsed(words: tuple[str, ...], expected: RestartRequest) -> None:
    assert RestartRequest.parse(words) == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("web/1", "api/1"), "all groups must belong to the same LeaderWorkerSet"),
        (("web", "web/1"), "specify one LeaderWorkerSet, some of its groups, or one rank"),
        (("web/1/2", "web/1/3"), "specify one LeaderWorkerSet, some of its groups, or one rank"),
    ],
)
def test_conflicting_restart_requests_are_rejected(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        RestartRequest.parse(words)


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (RestartRequest("web", (1,)), "group 1"),
        (RestartRequest("web", (1, 2)), "groups 1-2"),
        (RestartRequest("web", (1,), 2), "rank 1/2"),
    ],
)
def test_restart_request_is_printed(wanted: RestartRequest, text: str) -> None:
    assert str(wanted) == text


def test_group_is_rejected_as_the_subject_of_a_rollout() -> None:
    with pytest.raises(UsageError, match=r"lws rollout does not support groups; specify web"):
        targets.set_name("web/1", "rollout")
    assert targets.set_name("lws/web", "rollout") == "web"


def test_deadline_is_extended_by_progress() -> None:
    clock = VirtualClock()
    clock_now = [0.0]
    clock.monotonic = lambda: clock_now[0]  # type: ignore[method-assign]  # the clock of this test
    deadline = Deadline(10, clock)
    assert not deadline.has_expired(1)
    clock_now[0] = 9
    assert not deadline.has_expired(2)
    clock_now[0] = 18
    assert not deadline.has_expired(2)
    clock_now[0] = 19
    assert deadline.has_expired(2)


@pytest.mark.parametrize("verb", [one.name for one in COMMANDS["rollout"].verbs])
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    result = CliRunner().invoke(app.lws, ["rollout", verb, "--help"])
    assert result.exit_code == 0
    assert f"  lws rollout {verb} web\n" in result.output


def test_unknown_verb_gets_similar_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["rollout", "histroy"]) == 2
    assert "history" in capsys.readouterr().err


def test_diff_ignores_server_fields_and_key_order() -> None:
    live = {"metadata": {"name": "web", "uid": "1", "resourceVersion": "3"}, "spec": {"a": 1, "b": 2}, "status": {}}
    applied = {"metadata": {"resourceVersion": "4", "name": "web"}, "spec": {"b": 3, "a": 1}}
    names = ("live", "applied")
    assert diffs.unified_diff(diffs.comparable(live), diffs.comparable(applied), names)[-2:] == ["-  b: 2", "+  b: 3"]
    assert diffs.unified_diff(diffs.comparable(live), diffs.comparable(live), names) == []
    assert diffs.unified_diff(diffs.comparable(None), {"a": 1}, names)[2:] == ["@@ -0,0 +1 @@", "+a: 1"]
