"""Tests a manager that is inactive because it is scaled to 0, or because its webhook has no server."""

import re
from datetime import timedelta

import pytest
from msgspec.structs import replace
from testkit.repository import ROOT
from tests.explanations.builders import ago, event, lws, observed
from tests.explanations.scenarios import SCENARIOS

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CORE_EVENTS, DEPLOYMENTS, LEASES
from leaderworkerset.webhooks.configurations import SERVICE_NAME
from lwsctl.diagnosis.catalogue import CATALOGUE
from lwsctl.diagnosis.diagnose import diagnose
from lwsctl.diagnosis.observed import Observed
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.health import Verdict
from lwsctl.views.selection import Selection

PAGE = ROOT / "docs" / "how-to" / "when-the-manager-is-away.md"
UNREACHED = (
    "create Pod web-0 in StatefulSet web failed error: Internal error occurred: failed calling webhook "
    '"mpod.kb.io": failed to call webhook: Post "https://{service}.lws-system.svc:443/mutate--v1-pod?timeout=10s": '
    'no endpoints available for service "{service}"'
)


def deployment(replicas: int, ready: int = 0) -> JSONObject:
    return {
        "metadata": {"name": "lws-controller-manager", "namespace": "lws-system"},
        "spec": {"replicas": replicas},
        "status": {"readyReplicas": ready},
    }


def refused(service: str, *deployments: JSONObject) -> Diagnosis:
    events = [event("StatefulSet", "web", "FailedCreate", UNREACHED.format(service=service))]
    situation = observed(objects={CORE_EVENTS: events, DEPLOYMENTS: deployments, LEASES: []})
    return diagnose(situation, Selection("web"))


def test_pods_without_webhook_blame_a_manager_scaled_to_0() -> None:
    told = refused(SERVICE_NAME, deployment(0))
    assert (told.code, told.verdict) == ("LWS-E003", Verdict.STUCK)
    assert "because Deployment lws-system/lws-controller-manager is scaled to 0" in told.sentence
    assert told.steps[0] == "kubectl -n lws-system scale deployment lws-controller-manager --replicas=2"


@pytest.mark.parametrize(("ready", "code"), [(0, "LWS-E003"), (2, "LWS-E008")])
def test_pods_without_webhook_blame_a_manager_without_ready_pods(ready: int, code: str) -> None:
    """If the manager runs, its webhook cannot be reached."""
    told = refused(SERVICE_NAME, deployment(2, ready=ready))
    assert (told.code, told.steps[0]) == (code, "lws doctor")


def test_webhook_of_a_different_product_is_not_the_managers() -> None:
    """Kueue's pod webhook has the same name."""
    told = refused("kueue-webhook-service", deployment(0))
    assert told.code == "LWS-E008"
    assert told.steps[0].startswith(
        "start the server of webhook mpod.kb.io; if it was removed permanently, uninstall the component completely"
    )


SCALED = {"manager": "kubectl", "operation": "Update", "subresource": "scale"}


def scaled(entry: JSONObject, *, created: float = 600, **objects: list[JSONObject]) -> Observed:
    metadata = {"generation": 2, "creationTimestamp": ago(created), "managedFields": [entry]}
    of = lws(2, 1, status={"observedGeneration": 1}, metadata=metadata)
    kinds = {
        CORE_EVENTS: [],
        DEPLOYMENTS: objects.get("deployments", [deployment(2, 2)]),
        LEASES: objects.get("leases", [{}]),
    }
    return observed(objects=kinds, of=of)


@pytest.mark.parametrize("entry", [SCALED, SCALED | {"time": ago(3)}], ids=["undated", "dated"])
def test_scale_of_a_moment_ago_is_not_stuck(entry: JSONObject) -> None:
    """kube-apiserver does not record the time of changes through the `scale` subresource."""
    lease = {"spec": {"holderIdentity": "a", "renewTime": ago(1), "leaseDurationSeconds": 15}}
    assert diagnose(scaled(entry, leases=[lease]), Selection("web")).verdict is not Verdict.STUCK


def test_undated_scale_without_any_manager_is_stuck() -> None:
    told = diagnose(scaled(SCALED, deployments=[], leases=[]), Selection("web"))
    assert (told.code, told.verdict) == ("LWS-E005", Verdict.STUCK)
    assert "the time of the last scaling is unknown" in told.sentence


def test_dated_scale_is_stuck_after_the_silence() -> None:
    situation = scaled(SCALED | {"time": ago(3)}, leases=[{"spec": {"holderIdentity": "a", "renewTime": ago(-60)}}])
    told = diagnose(replace(situation, now=situation.now + timedelta(seconds=30)), Selection("web"))
    assert (told.code, told.verdict) == ("LWS-E005", Verdict.STUCK)


def forbidden() -> list[tuple[str, str]]:
    """Return the first and the last words in each row of the page's table of actions to avoid."""
    rows = re.findall(
        r"^\| (\w+) [^|]*?(\w+) \| ", PAGE.read_text().partition("| do not |")[2].partition("\n\n")[0], re.MULTILINE
    )
    return [(first, last.removesuffix("s")) for first, last in rows]


ALSO = {"delete": "delete|remove|uninstall", "set": "set|change|patch"}
"""The synonyms of the verb in a row."""


def test_no_step_suggests_what_a_page_forbids() -> None:
    steps = [step for situation in SCENARIOS.values() for step in diagnose(situation, Selection("web")).steps]
    steps += [step for own in (0, 2) for step in refused(SERVICE_NAME, deployment(own), deployment(own)).steps]
    texts = [*steps, *(cause.remedy for cause in CATALOGUE)]
    assert forbidden() == [("delete", "configuration"), ("set", "Ignore")]
    for verb, noun in forbidden():
        pattern = re.compile(rf"\b(?:{ALSO[verb]})\b[^.;]*\b{noun}", re.IGNORECASE)
        assert [text for text in texts if pattern.search(text)] == [], (verb, noun)
