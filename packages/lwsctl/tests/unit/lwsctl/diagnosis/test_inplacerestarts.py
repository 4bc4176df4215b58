"""Tests how views show restarts in place: the pod, the count, the unready time, and recreations."""

import pytest
from tests.explanations.builders import NOW, ago, container, ended, lws, observed, placed, ready, recreated

from kuberuntime.objects import terminations
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from lwsctl.cli.views import description, output
from lwsctl.cli.views.description import Described
from lwsctl.diagnosis.diagnose import diagnose
from lwsctl.model.failedcontainers import failed_containers
from lwsctl.views import outcome
from lwsctl.views.selection import Selection

BY_THE_POD = ended(137, 12, "RestartingAllContainers", "all containers of the pod restart")
WHY = "main: exit code 137, RestartingAllContainers: all containers of the pod restart"


def noted(note: str, rank: int = 1, *, is_ready: bool = False) -> JSONObject:
    """Return a pod with this note whose container was restarted together with all other containers."""
    metadata = {"annotations": {labels.RESTARTED_IN_PLACE: note}}
    status = {"containerStatuses": [container(restarts=2, last=BY_THE_POD, running={"startedAt": ago(11)})]}
    return placed(0, rank, ready=is_ready, metadata=metadata, status=status)


def test_unready_pod_is_listed_before_the_most_restarted_one() -> None:
    found = observed([noted("5", 0, is_ready=True), noted(f"2={ago(12)}")], of=lws(1, 2))
    text = "pod web-0-1 restarted all its containers in place 2 times, not ready for 12s (and 1 more pod)"
    assert output.notes(found.view, NOW) == [f"group 0: {text}"]
    over = observed([noted("5", 0, is_ready=True), noted("2", is_ready=True)], of=lws(1, 2))
    assert output.notes(over.view, NOW) == []
    told = "\n".join(description.lines(Described(selection=Selection("web", 0), view=over.view), NOW))
    assert "pod web-0 restarted all its containers in place 5 times (and 1 more pod)" in told


def test_container_stopped_with_its_pod_has_not_failed() -> None:
    pod = noted(f"2={ago(12)}")
    assert list(terminations.of_pod(pod, NOW)) == []
    assert list(outcome.failed_ends(pod)) == []
    assert failed_containers(observed([ready(0, 0), pod], of=lws(1, 2)).view) == []
    alone = placed(status={"containerStatuses": [container(restarts=2, last=ended(1), running={"startedAt": ago(11)})]})
    assert [one.end["exitCode"] for one in terminations.of_pod(alone, NOW)] == [1]


@pytest.mark.parametrize("failure", [WHY, "main: exit code 1, Error"])
def test_recreated_group_gets_advice_to_tolerate_restarts(failure: str) -> None:
    found = diagnose(recreated([placed()], failure=failure), Selection("web"))
    is_for_it = failure == WHY
    assert (found.code == "LWS-E098") is is_for_it
    if is_for_it:
        assert "pod web-0-1 restarted all its containers in place, so group 0 is recreated" in found.sentence
        assert labels.IN_PLACE_RESTARTS in found.steps[0]


def test_group_that_is_ready_again_has_no_cause() -> None:
    of = lws(1, 1, status={"readyReplicas": 1})
    assert diagnose(recreated([ready(0, 0)], failure=WHY, of=of), Selection("web")).code != "LWS-E098"
