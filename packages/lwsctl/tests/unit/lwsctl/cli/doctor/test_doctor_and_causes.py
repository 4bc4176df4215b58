"""Tests that `lws doctor` and `lws explain` come to the same conclusion about an installation."""

from copy import deepcopy

import pytest
from tests.explanations.builders import ago, event, lws, observed
from tests.unit.lwsctl.cli.doctor.test_doctor import WANTED, changed, established
from tests.unit.lwsctl.diagnosis.test_managers import deployment

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CORE_EVENTS, CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, LEASES
from lwsctl.cli.doctor import installationchecks
from lwsctl.cli.doctor.findings import CheckResult
from lwsctl.diagnosis.causes import unreconciled
from lwsctl.diagnosis.diagnose import diagnose
from lwsctl.diagnosis.observed import Observed
from lwsctl.views.selection import Selection


def checked(situation: Observed, code: str, **facts: object) -> list[CheckResult]:
    results = installationchecks.findings(changed(**facts), situation.now)
    return [result for result in results if result.code.startswith(code) and result.fix]


@pytest.mark.parametrize(
    ("holder", "seconds", "is_led"),
    [("a", 3, True), ("a", 16, True), ("a", 29, True), ("a", 31, False), ("a", 90, False), ("", 3, False)],
)
def test_both_report_the_same_lease_without_a_leader(holder: str, seconds: float, is_led: bool) -> None:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": ago(seconds)}
    lease = {"metadata": {"name": "lease", "namespace": "lws-system"}, "spec": spec}
    of = lws(metadata={"generation": 2, "creationTimestamp": ago(600)})
    situation = observed(objects={CORE_EVENTS: [], DEPLOYMENTS: [deployment(2, 2)], LEASES: [lease]}, of=of)
    explanation = diagnose(situation, Selection("web"))
    results = checked(situation, "LWS-D51", lease=lease)
    assert (explanation.code == "LWS-E004", bool(results)) == (not is_led, not is_led)
    assert is_led or results[0].text == f"{explanation.evidence[-1]}, so LeaderWorkerSets are not reconciled"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("x509: certificate signed by unknown authority", "LWS-E007"),
        ("remote error: tls: bad certificate", "LWS-E007"),
        ("no endpoints available for service", "LWS-E008"),
        ("context deadline exceeded", "LWS-E008"),
    ],
)
def test_both_classify_the_error_of_a_webhook(error: str, code: str) -> None:
    message = f'Internal error occurred: failed calling webhook "m.kb.io": failed to call webhook: {error}'
    situation = observed(objects={CORE_EVENTS: [event("StatefulSet", "web", "FailedCreate", message)]})
    (result,) = checked(situation, "LWS-D305", probe=message)
    assert diagnose(situation, Selection("web")).code == code
    assert (result.fix == installationchecks.UNTRUSTED) is (code == "LWS-E007")


def test_both_name_the_same_field_of_an_older_definition() -> None:
    name = "leaderworkersets.leaderworkerset.x-k8s.io"
    (current,) = [definition for definition in WANTED if meta.name(definition) == name]
    older = deepcopy(current)
    for version in older["spec"]["versions"]:
        del version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["rolloutStrategy"]
    situation = observed(objects={CUSTOM_RESOURCE_DEFINITIONS: [older]})
    (result,) = checked(
        situation, "LWS-D204", definitions={meta.name(one): established(one) for one in [*WANTED, older]}
    )
    finding = unreconciled.find_outdated_crd.find(situation)
    assert finding is not None
    assert finding.evidence == (f"CustomResourceDefinition {name} has no spec.rolloutStrategy",)
    assert result.text == f"{name} does not match this version of lws: it does not have the field spec.rolloutStrategy"


def test_both_scale_up_a_manager_with_the_same_command() -> None:
    stored: JSONObject = deployment(0)
    of = lws(metadata={"generation": 2, "creationTimestamp": ago(600)})
    situation = observed(objects={CORE_EVENTS: [], DEPLOYMENTS: [stored], LEASES: []}, of=of)
    (result,) = checked(situation, "LWS-D503", deployment=stored)
    assert result.fix in diagnose(situation, Selection("web")).steps
