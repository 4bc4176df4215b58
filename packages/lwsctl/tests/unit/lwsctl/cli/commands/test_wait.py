"""Tests the conditions that `lws wait` supports, and its messages about missing conditions."""

from typing import Any

import pytest
from testkit.fakes import ScriptedTransport, failure, respond
from testkit.virtualtime import run

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Response
from leaderworkerset.api import labels
from leaderworkerset.api.conditions import CONDITIONS, WAIT_WORDS, ConditionOutcome
from lwsctl.cli.commands import wait
from lwsctl.cli.errors import UsageError
from lwsctl.model.groups import Group, Rank
from lwsctl.model.leaderworkerset import View
from lwsctl.views.unmetconditions import Check


def view(ready: int = 0, *ranks: Rank, conditions: tuple[dict[str, Any], ...] = (), **metadata: Any) -> View:
    return View(
        name="web",
        namespace="default",
        ready=ready,
        desired=1,
        up_to_date=1,
        created="",
        groups=(Group(index=0, ranks=ranks),),
        object={
            "metadata": {"generation": 2, **metadata},
            "status": {"observedGeneration": 2, "conditions": list(conditions)},
        },
    )


def check(condition: str) -> Check:
    return wait.condition_check(wait.WaitRequest(condition=condition, timeout=1, ready_for=10))


LATE = Rank(group=0, index=0, pod="web-0", state="Pending")
READY = Rank(group=0, index=0, pod="web-0", state="Running", is_ready=True)
BEHIND = "the status of web is outdated: according to its pods, 1 group is ready"
SELECTED = '{.status.conditions[?(@.type=="Available")].status}'
AVAILABLE = {"type": "Available", "status": "True", "observedGeneration": 2}


@pytest.mark.parametrize(
    ("condition", "given", "missing"),
    [
        ("ready", None, "it no longer exists"),
        ("ready", view(1, conditions=(AVAILABLE,)), None),
        ("ready", view(0, LATE), "0 of 1 group ready; web-0 is Pending"),
        ("ready", view(0, READY), f"1 of 1 group ready; {BEHIND}"),
        ("replicas=0", view(0), None),
        ("replicas=2", view(1), "1 group ready, not 2"),
        ("replicas=2", None, "it no longer exists"),
        ("delete", None, None),
        ("delete", view(0), "it still exists"),
        ("condition=Available", view(1, conditions=(AVAILABLE,)), None),
        (
            "condition=Available",
            view(1, conditions=(AVAILABLE | {"observedGeneration": 1},)),
            "condition Available is True of a previous spec",
        ),
        ("condition=Progressing", view(0), "condition Progressing does not exist"),
        ("condition=Progressing=False", view(0), None),
        ("condition=available=true", view(1, conditions=(AVAILABLE,)), None),
        ("condition=Available", None, "it no longer exists"),
        ("failed", view(0, conditions=(AVAILABLE | {"type": "Failed"},)), None),
        ("degraded", view(0, LATE), "condition Degraded does not exist; web-0 is Pending"),
        ("complete", view(0), check("done")(view(0))),
        ("replicas=1", view(0, READY), f"0 groups ready, not 1; {BEHIND}"),
        ("jsonpath={.metadata.generation}=2", view(), None),
        ("jsonpath=.metadata.generation='2'", view(), None),
        ("jsonpath=metadata.generation=3", view(0, LATE), ".metadata.generation is 2, not 3; web-0 is Pending"),
        ("jsonpath={.metadata.generation}", view(), None),
        ("jsonpath={.metadata.none}", view(), ".metadata.none does not exist"),
        ("jsonpath={.metadata[0]}", view(), '.metadata[0]: [0]: {"generation":2} is not a list'),
        (f"jsonpath={SELECTED}=True", view(1, conditions=(AVAILABLE,)), None),
        (f"jsonpath={SELECTED}", view(1), f"{SELECTED[1:-1]} does not exist"),
        (f"jsonpath={SELECTED[1:-1]}", view(1, conditions=(AVAILABLE,)), None),
        ("jsonpath={.metadata.generation}=2", None, "it no longer exists"),
    ],
)
def test_condition_reports_what_is_missing(condition: str, given: View | None, missing: str | None) -> None:
    assert check(condition)(given) == missing


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda condition: condition.type)
def test_condition_words_wait_for_their_condition(condition: ConditionOutcome) -> None:
    """If the LeaderWorkerSet has the condition, `lws wait` does not wait for other spellings."""
    annotations = {labels.RUN_TO_COMPLETION: "true"}
    shown = view(1, conditions=(AVAILABLE | {"type": condition.type},), annotations=annotations)
    reached = {word for word in WAIT_WORDS if check(word)(shown) is None}
    assert reached == {*condition.wait_words}


@pytest.mark.parametrize(
    "words",
    ["readiness", "replicas=two", "condition=", "ready=1", "jsonpath=", "jsonpath={.a[x]}"],
)
def test_unknown_words_are_rejected(words: str) -> None:
    with pytest.raises(UsageError, match="--for="):
        check(words)


def failed(**status: Any) -> Rank:
    pod = {
        "metadata": {"name": "web-0", "namespace": "default"},
        "spec": {"containers": [{"name": "main"}]},
        "status": {"containerStatuses": [{"name": "main", **status}]},
    }
    return Rank(group=0, index=0, pod="web-0", state="Error", object=pod)


ENDED = {"terminated": {"exitCode": 3, "reason": "Error"}}


def quoted(given: View, *script: Response) -> tuple[str, list[dict[str, str]]]:
    transport = ScriptedTransport(*script)
    text = run(wait.error_quotation(Client(transport), given))
    return text, [dict(request.query) for request in transport.requests]


def test_last_lines_of_a_failed_rank_are_masked() -> None:
    text, asked = quoted(view(0, failed(state=ENDED)), respond(200, b"token=a1b2c3d4\n\nboom\n"))
    assert text == "\nthe last lines of web-0, container main:\n  token=[masked]\n  boom"
    assert asked == [{"container": "main", "tailLines": "200"}]


def test_last_lines_are_those_of_the_previous_run() -> None:
    again = failed(state={"running": {}}, lastState=ENDED, restartCount=1)
    _, asked = quoted(view(0, again), respond(200, b"boom\n"))
    assert asked == [{"container": "main", "previous": "true", "tailLines": "200"}]


def test_run_stopped_with_its_node_has_not_failed() -> None:
    again = failed(state={"running": {}}, lastState=ENDED, restartCount=0)
    assert quoted(view(0, again)) == ("", [])


def test_last_lines_are_not_read_without_a_failure() -> None:
    told = failed(state={"terminated": {"exitCode": 3, "message": "boom"}})
    assert quoted(view(0, told)) == ("", [])
    assert quoted(view(0, failed(state={"running": {}}))) == ("", [])


def test_unreadable_log_is_omitted() -> None:
    text, _ = quoted(view(0, failed(state=ENDED)), failure(400, "BadRequest", "no log"))
    assert text == ""
