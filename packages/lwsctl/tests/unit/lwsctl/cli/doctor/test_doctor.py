"""Tests that each detected fault has a unique code, and that a healthy cluster and machine have no fault."""

import re
from collections import Counter
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.webhooks.configurations import MUTATING_NAME, VALIDATING_NAME
from localkube.cluster import GpuReport
from lwsctl.cli.doctor import findings, installationchecks, machine
from lwsctl.cli.doctor.checkinputs import observe_machine
from lwsctl.cli.doctor.findings import CheckResult, Level, UnreadableObject
from lwsctl.cli.doctor.installationchecks import Access, CertificateExpiry, ClusterState
from lwsctl.cli.doctor.machine import Machine

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WANTED = MANAGED.definitions()
FIRST = meta.name(WANTED[0])


def established(obj: JSONObject) -> JSONObject:
    return obj | {"status": {"conditions": [{"type": "Established", "status": "True"}]}}


def lease(holder: str, seconds: float) -> JSONObject:
    renewed = (NOW - timedelta(seconds=seconds)).isoformat()
    return {"spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}}


def deployment(ready: int, replicas: int = 2) -> JSONObject:
    return {"spec": {"replicas": replicas}, "status": {"readyReplicas": ready}}


def configuration(bundle: str = "Q0E=") -> JSONObject:
    return {"webhooks": [{"name": "m.kb.io", "clientConfig": {"caBundle": bundle}}]}


HEALTHY = ClusterState(
    version="v1.36.1",
    is_embedded=False,
    namespace="lws-system",
    lws="lws",
    definitions={meta.name(one): established(one) for one in WANTED},
    own_definitions=WANTED,
    configurations={MUTATING_NAME: configuration(), VALIDATING_NAME: configuration()},
    probe=None,
    certificates=[CertificateExpiry("the webhook certificate", NOW + timedelta(days=300))],
    accesses=[Access("get", "pods", is_allowed=True)],
    deployment=deployment(2),
    managers=[],
    lease=lease("manager-1", 3),
    gates={"StatefulSetStartOrdinal": True},
    pods=[],
    pod_groups=[],
    provider="",
    served={"volcano": False, "kueue": False},
    queues=[],
    other_namespaces=[],
)


def without_field(definition: JSONObject) -> JSONObject:
    """Return the CRD of an older version, without one spec field."""
    older = deepcopy(definition)
    properties = older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    properties.pop(min(properties))
    return established(older)


def changed(**fields: Any) -> ClusterState:
    return replace(HEALTHY, **fields)


def native(**fields: Any) -> ClusterState:
    return changed(**{"provider": "native", "served": {"native": True}} | fields)


def definitions(found: Any) -> ClusterState:
    return changed(definitions={**HEALTHY.definitions, FIRST: found})


def configurations(found: Any) -> ClusterState:
    return changed(configurations={**HEALTHY.configurations, MUTATING_NAME: found})


def x509(words: str) -> str:
    return f'failed calling webhook "m.kb.io": failed to call webhook: {words}'


UNREAD = UnreadableObject("forbidden")
TAKEN = {"type": "NamesAccepted", "status": "False", "message": '"lws" is already in use'}
REFUSED = WANTED[0] | {"status": {"conditions": [TAKEN]}}
WAITS = {"name": "manager", "state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}}
UNPULLED = [{"metadata": {"name": "lws-1"}, "status": {"phase": "Pending", "containerStatuses": [WAITS]}}]
DROPPED = {"metadata": {"annotations": {labels.GANG_SCHEDULER: "native", labels.GANG_GROUP: "web-0-e1"}}, "spec": {}}


def of_cluster(facts: ClusterState) -> list[CheckResult]:
    return [*installationchecks.findings(facts, NOW)]


def test_healthy_cluster_has_nothing_to_fix() -> None:
    found = of_cluster(HEALTHY)
    assert {one.level for one in found} == {Level.OK}
    assert not any(one.fix for one in found)
    assert {one.level for one in of_cluster(changed(is_embedded=True, deployment=None, lease=None))} == {Level.OK}


@pytest.mark.parametrize(
    ("facts", "code", "level", "words"),
    [
        (changed(version="v1.26.3"), "LWS-D101", Level.ERROR, "does not support spec.ordinals of StatefulSets"),
        (changed(version="v1.38.0"), "LWS-D102", Level.NOTE, "Tested versions are 1.34 to 1.37"),
        (definitions(None), "LWS-D202", Level.ERROR, "is missing"),
        (definitions(UNREAD), "LWS-D201", Level.UNKNOWN, "forbidden"),
        (definitions(WANTED[0]), "LWS-D203", Level.ERROR, "not established"),
        (definitions(REFUSED), "LWS-D203", Level.ERROR, 'not established: "lws" is already in use'),
        (definitions(without_field(WANTED[0])), "LWS-D204", Level.WARNING, "it does not have the field"),
        (configurations(None), "LWS-D302", Level.ERROR, "neither validated nor mutated"),
        (configurations(UNREAD), "LWS-D301", Level.UNKNOWN, "forbidden"),
        (configurations(configuration("")), "LWS-D303", Level.ERROR, "no caBundle"),
        (changed(probe=x509("x509: certificate has expired")), "LWS-D305", Level.ERROR, "expired"),
        (changed(probe=x509("x509: certificate signed by unknown authority")), "LWS-D305", Level.ERROR, "x509"),
        (changed(probe="forbidden: user"), "LWS-D306", Level.UNKNOWN, "rejected"),
        (changed(certificates=UNREAD), "LWS-D401", Level.UNKNOWN, "forbidden"),
        (changed(certificates=[CertificateExpiry("it", NOW)]), "LWS-D402", Level.ERROR, "expired"),
        (
            changed(certificates=[CertificateExpiry("it", NOW + timedelta(days=3))]),
            "LWS-D403",
            Level.WARNING,
            "expires soon",
        ),
        (changed(deployment=UNREAD), "LWS-D501", Level.UNKNOWN, "forbidden"),
        (changed(deployment=None), "LWS-D502", Level.WARNING, "missing"),
        (changed(deployment=deployment(0)), "LWS-D503", Level.ERROR, "0 of 2 pods"),
        (changed(deployment=deployment(1)), "LWS-D504", Level.WARNING, "1 of 2 pods"),
        (
            changed(deployment=deployment(0, 0)),
            "LWS-D503",
            Level.ERROR,
            "0 of 0 pods ready, because it is scaled to 0",
        ),
        (
            changed(deployment=deployment(0), managers=UNPULLED),
            "LWS-D503",
            Level.ERROR,
            "ready; lws-1: manager: no such",
        ),
        (changed(lease=UNREAD), "LWS-D511", Level.UNKNOWN, "forbidden"),
        (changed(lease=None), "LWS-D512", Level.WARNING, "missing"),
        (changed(lease=lease("", 0)), "LWS-D513", Level.ERROR, "no holder"),
        (changed(lease=lease("manager-1", 90)), "LWS-D514", Level.ERROR, "of manager-1 has not been renewed for 90s"),
        (changed(accesses=UNREAD), "LWS-D601", Level.UNKNOWN, "forbidden"),
        (
            changed(accesses=[Access("get", "pods", is_allowed=False)]),
            "LWS-D602",
            Level.WARNING,
            "not permitted to get pods",
        ),
        (changed(gates={"StatefulSetStartOrdinal": False}), "LWS-D701", Level.ERROR, "is disabled"),
        (native(gates={"GenericWorkload": False}), "LWS-D701", Level.ERROR, "GenericWorkload is disabled"),
        (
            changed(pods=[DROPPED]),
            "LWS-D702",
            Level.ERROR,
            "kube-apiserver removed the reference to PodGroup web-0-e1 from a pod",
        ),
        (native(served={"native": False}), "LWS-D802", Level.ERROR, "does not serve"),
        (changed(provider=UNREAD), "LWS-D801", Level.UNKNOWN, "forbidden"),
        (changed(provider="volcano"), "LWS-D802", Level.ERROR, "does not serve"),
        (changed(served={"volcano": True}), "LWS-D804", Level.NOTE, "volcano is available"),
        (changed(other_namespaces=["go"]), "LWS-D516", Level.ERROR, "managers are also installed in go"),
        (changed(queues=["web"]), "LWS-D901", Level.WARNING, "Kueue is not installed"),
        (changed(queues=["web"], served={"kueue": True}), "LWS-D902", Level.ERROR, "LocalQueue"),
    ],
)
def test_cluster_problem_has_a_finding(facts: ClusterState, code: str, level: Level, words: str) -> None:
    (one,) = [found for found in of_cluster(facts) if found.code == code and found.level == level]
    assert words in one.text
    assert one.fix or level == Level.NOTE


def test_each_feature_that_an_old_cluster_lacks_is_a_warning() -> None:
    warnings = [one for one in of_cluster(changed(version="v1.33.1")) if one.code == "LWS-D103"]
    assert {(one.level, one.fix) for one in warnings} == {(Level.WARNING, "upgrade the cluster to 1.34 or newer")}
    assert warnings[0].text.startswith("Kubernetes v1.33.1 does not support streaming lists: ")
    assert len(warnings) == 2


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("x509: certificate signed by unknown authority", "does not match the CA"),
        ("x509: certificate has expired or is not yet valid", "expired"),
        ("no endpoints available for service", "has no ready manager"),
        ("connection refused", "port is closed"),
        ("context deadline exceeded", "does not respond in time"),
        ("whatever else", "logs"),
    ],
)
def test_failing_webhook_has_a_fix(words: str, hint: str) -> None:
    (one,) = [found for found in of_cluster(changed(probe=x509(words))) if found.code == "LWS-D305"]
    assert hint in one.fix


def test_existing_schedulers_and_queues_are_reported() -> None:
    codes = {one.code for one in of_cluster(changed(provider="volcano", served={"volcano": True, "kueue": True}))}
    assert {"LWS-D803", "LWS-D903"} <= codes


def test_newer_definition_is_named_by_its_fields() -> None:
    assert installationchecks.crd_difference(established(WANTED[0]), established(WANTED[0])) is None
    older = without_field(WANTED[0])
    assert "which this version of lws does not support" in str(
        installationchecks.crd_difference(established(WANTED[0]), older)
    )
    unserved = deepcopy(WANTED[0])
    unserved["spec"]["versions"][0]["served"] = False
    assert installationchecks.crd_difference(unserved, WANTED[0]) == "it does not serve v1"


GOOD = Machine(
    system="Linux",
    python=(3, 12, 1),
    has_localkube=True,
    namespaces=None,
    hard_files=20000,
    directory="/home/me/.local/state/lws",
    directory_error=None,
    free_bytes=2**40,
    port_error=None,
)


@pytest.mark.parametrize(
    ("change", "code", "level"),
    [
        ({"python": (3, 10, 0)}, "LWS-D001", Level.ERROR),
        ({"has_localkube": False}, "LWS-D002", Level.NOTE),
        ({"namespaces": "Operation not permitted"}, "LWS-D003", Level.WARNING),
        ({"namespaces": "not Linux", "system": "Darwin"}, "LWS-D003", Level.NOTE),
        ({"hard_files": 256}, "LWS-D004", Level.WARNING),
        ({"directory_error": "read-only"}, "LWS-D005", Level.ERROR),
        ({"directory": "/" + "x" * 80}, "LWS-D007", Level.WARNING),
        ({"free_bytes": 2**20}, "LWS-D008", Level.WARNING),
        ({"port_error": "denied"}, "LWS-D006", Level.ERROR),
        ({"gpus": GpuReport(problem="the NVIDIA driver does not respond")}, "LWS-D009", Level.NOTE),
        ({"gpus": GpuReport(driver="570.1")}, "LWS-D009", Level.NOTE),
        ({"gpus": GpuReport(count=1, failing=("GPU 0: GPU is lost",))}, "LWS-D014", Level.WARNING),
        ({"gpus": GpuReport(count=1, busy=("GPU-a has 1 of 80 GiB free",))}, "LWS-D015", Level.WARNING),
        ({"gpus": GpuReport(count=2, apart=("GPU-a and GPU-b",))}, "LWS-D016", Level.NOTE),
    ],
)
def test_machine_problem_has_a_finding(change: dict[str, Any], code: str, level: Level) -> None:
    (one,) = [found for found in machine.findings(replace(GOOD, **change)) if found.level != Level.OK]
    assert (one.code, one.level) == (code, level)


def test_observation_of_this_machine_is_complete() -> None:
    found = observe_machine()
    assert found.has_localkube
    assert found.hard_files > 0
    assert {one.level for one in machine.findings(GOOD)} == {Level.OK}


def test_report_is_numbered_and_starts_with_the_worst() -> None:
    found = [
        CheckResult("LWS-D1", Level.OK, "server", "fine"),
        CheckResult("LWS-D2", Level.ERROR, "webhooks", "broken", "mend it"),
    ]
    assert findings.report_lines(found) == [
        "  1  ERROR    webhooks  broken  [LWS-D2]",
        "                        fix: mend it",
        "  2  OK       server    fine  [LWS-D1]",
        "",
        "2 findings: 1 error, 1 ok",
    ]
    assert not findings.is_healthy(found)
    document = findings.document(found)
    assert (document["kind"], document["healthy"]) == ("DoctorReport", False)
    assert [(one["number"], one["code"]) for one in document["findings"]] == [(1, "LWS-D2"), (2, "LWS-D1")]


FAULTS = (definitions(WANTED[0]), definitions(REFUSED), changed(deployment=deployment(0)), changed(lease=lease("", 0)))


@pytest.mark.parametrize("facts", FAULTS)
def test_fixes_need_no_program_except_lws(facts: ClusterState) -> None:
    assert not [one.fix for one in of_cluster(facts) if "kubectl" in one.fix]


def test_each_code_belongs_to_one_module() -> None:
    """The code of a finding is stable, so two modules must not use the same code."""
    modules = sorted(Path(installationchecks.__file__).parent.glob("*.py"))
    codes = [code for module in modules for code in set(re.findall(r"LWS-D\d{3}", module.read_text(encoding="utf-8")))]
    assert [code for code, count in Counter(codes).items() if count > 1] == []
