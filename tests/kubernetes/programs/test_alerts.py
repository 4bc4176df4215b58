"""Tests with promtool that each alert fires only in its own case, and after its delay."""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from deploy.packages import alerts, board, operatordeployment
from deploy.packages.alerts import ALERTS, OPERATOR_ALERTS, Alert
from tests.kubernetes.programs import build

from leaderworkerset.api.metadata import LEASE, METRICS_SERVICE
from leaderworkerset.install import objects

PROMTOOL = build.PROMTOOL.find()
LENGTH: Final = 150
"""The length of each series, in minutes."""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(PROMTOOL is None, reason=build.PROMTOOL.missing)]

UP: Final = "up"
LEADS: Final = f'leader_election_master_status,name="{LEASE}"'
ADMITTED: Final = 'controller_runtime_webhook_requests_total,webhook="/mutate--v1-pod",code="200"'
BROKEN: Final = 'controller_runtime_webhook_requests_total,webhook="/mutate--v1-pod",code="500"'
RECONCILED: Final = 'controller_runtime_reconcile_total,controller="pod",result="success"'
FAILED: Final = 'controller_runtime_reconcile_errors_total,controller="pod"'
UNREADABLE: Final = "certwatcher_read_certificate_errors_total"
ENDS: Final = 'lws_certificate_expiry_timestamp_seconds,server="webhooks"'
RECREATED: Final = 'lws_group_recreations_total,cause="pod-deleted"'
DESIRED: Final = 'lws_groups,namespace="serving",leaderworkerset="web",state="desired"'
GIVEN_UP: Final = 'lws_groups_failing,namespace="serving",leaderworkerset="web",state="exhausted"'
TO_MOVE: Final = 'lws_groups_to_move,namespace="serving",leaderworkerset="web"'
READY: Final = 'lws_groups,namespace="serving",leaderworkerset="web",state="ready"'

DAY: Final = 86_400
HEALTHY: Final[dict[str, str]] = {
    UP: "1",
    LEADS: "1",
    ADMITTED: "0+60",
    BROKEN: "0",
    RECONCILED: "0+60",
    FAILED: "0",
    UNREADABLE: "0",
    ENDS: str(30 * DAY),
    RECREATED: "0",
    DESIRED: "3",
    READY: "3",
    GIVEN_UP: "0",
    TO_MOVE: "0",
}
"""Metrics of a functioning manager, with labels, their first value, and their increase per minute."""

INSTANCE: Final = {"instance": "10.0.0.1:8443"}
TARGET: Final = INSTANCE | {"job": METRICS_SERVICE, "pod": "lws-controller-manager-0", "container": "manager"}
"""Labels that Prometheus adds to each series of a monitor's target, in addition to the namespace."""

PLACE: Final = {"namespace": "lws-system"}
OF_SET: Final = {"namespace": "serving", "leaderworkerset": "web"}
CASES: Final[Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]]] = {
    "LWSManagerDown": ({UP: "0"}, {}),
    "LWSWithoutLeader": (HEALTHY | {LEADS: "0"}, {}),
    "LWSWebhookErrors": (HEALTHY | {BROKEN: "0+6"}, {"webhook": "/mutate--v1-pod"}),
    "LWSReconcileErrors": (HEALTHY | {FAILED: "0+30"}, {"controller": "pod"}),
    "LWSCertificateUnusable": (HEALTHY | {UNREADABLE: "0+12"}, TARGET | PLACE),
    "LWSCertificateExpiring": (HEALTHY | {ENDS: str(6 * DAY)}, {"server": "webhooks"}),
    "LWSGroupRestartStorm": (HEALTHY | {RECREATED: "0+1"}, {}),
    "LWSGroupsGivenUp": (
        HEALTHY | {GIVEN_UP: "1"},
        OF_SET,
    ),
    "LWSGroupsNotReady": (HEALTHY | {READY: "2"}, OF_SET),
    "LWSGroupMoveStalled": (HEALTHY | {TO_MOVE: "2"}, OF_SET),
}
"""The series for which each alert fires, and the series labels that the alert uses."""

NEARLY: Final[Mapping[str, str]] = HEALTHY | {
    BROKEN: "0+3",
    FAILED: "0+10",
    ENDS: str(8 * DAY),
    RECREATED: "0+0.5",
    TO_MOVE: f"{LENGTH}-1",
}
"""Values below each threshold: 3 of 63 requests, 10 of 60 reconciliations, 8 days, and 7.5 groups in 15 minutes."""

IN_TIME: Final = 20
"""The longest range of a rate in minutes, plus one sample."""


def stored(exported: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of a stored Prometheus series. The labels of the target depend on the monitor."""
    (endpoint,) = objects.service_monitor("lws-system", verified=True)["spec"]["endpoints"]
    of_target = TARGET | PLACE
    if endpoint.get("honorLabels"):
        return of_target | dict(exported)
    return {f"exported_{name}" if name in of_target else name: text for name, text in exported.items()} | of_target


def series(found: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the series in promtool format."""
    listed = []
    for name, course in found.items():
        metric, _, labels = name.partition(",")
        pairs = ",".join(f'{key}="{text}"' for key, text in stored(dict(re.findall(r'(\w+)="(.*?)"', labels))).items())
        step = course if re.search("[+-]", course) else f"{course}+0"
        listed.append({"series": f"{metric}{{{pairs}}}", "values": f"{step}x{LENGTH}"})
    return listed


def expected(alert: Alert, labels: Mapping[str, str]) -> dict[str, Any]:
    """Return the alert as it is sent, with the labels in its message."""
    text = re.sub(r"{{ \$labels\.(\w+) }}", lambda found: labels[found[1]], alert.summary)
    annotations = {"summary": text, "runbook": f"{alerts.RUNBOOKS}#{alert.name.lower()}"}
    return {"exp_labels": {"severity": alert.severity, **labels}, "exp_annotations": annotations}


def case(
    found: Mapping[str, str], firing: str = "", labels: Mapping[str, str] | None = None, known: Sequence[Alert] = ALERTS
) -> dict[str, Any]:
    """Return a test in which the alert fires after its delay, and no other alert fires before."""
    checks = []
    for alert in known:
        is_firing = alert.name == firing
        late = alert.minutes + IN_TIME
        answers = [expected(alert, labels or {})] if is_firing else []
        checks.append({"eval_time": f"{late}m", "alertname": alert.name, "exp_alerts": answers})
        if alert.minutes:
            checks.append({"eval_time": f"{alert.minutes - 1}m", "alertname": alert.name, "exp_alerts": []})
    return {"interval": "1m", "name": firing or "silent", "input_series": series(found), "alert_rule_test": checks}


def evaluate(directory: Path, *cases: dict[str, Any], known: Sequence[Alert] = ALERTS) -> str:
    """Evaluate the rules for these cases with promtool. Return its output if a case differs."""
    (directory / "rules.yaml").write_text(yaml.safe_dump(alerts.groups("lws", known)))
    document = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": list(cases)}
    file = directory / "test.yaml"
    file.write_text(yaml.safe_dump(document))
    words = [str(PROMTOOL), "test", "rules", str(file)]
    result = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    return "" if result.returncode == 0 else result.stdout + result.stderr


def test_every_alert_has_a_case() -> None:
    assert list(CASES) == [alert.name for alert in ALERTS]


@pytest.mark.parametrize("name", CASES)
def test_alert_fires_alone_and_in_time(tmp_path: Path, name: str) -> None:
    """The alert has a severity, a message and a runbook (R-OP-76)."""
    found, labels = CASES[name]
    assert evaluate(tmp_path, case(found, name, labels)) == ""


@pytest.mark.parametrize("found", [HEALTHY, NEARLY], ids=["healthy", "below every bound"])
def test_healthy_case_fires_no_alert(tmp_path: Path, found: Mapping[str, str]) -> None:
    assert evaluate(tmp_path, case(found)) == ""


NEXT: Final = {"instance": "10.0.0.2:8443", "pod": "lws-controller-manager-1"}
"""The series labels of the next leader."""

ENDS_AT, STARTS_AT = 12, 14
"""The minutes of the last scrape of the first leader, and of the first scrape of the next leader."""

PER_SET: Final = ("LWSGroupsGivenUp", "LWSGroupsNotReady", "LWSGroupMoveStalled")
"""The alerts for metrics that only the leader exposes."""


def failed_over(found: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the series for a change of the leader after this time.

    In between, the series of LeaderWorkerSets are absent.
    """
    listed = []
    for line in series(found):
        if OF_SET["leaderworkerset"] not in line["series"]:
            listed.append(line)
            continue
        value = line["values"].partition("+")[0]
        after = line["series"]
        for name, text in NEXT.items():
            after = after.replace(f'{name}="{TARGET[name]}"', f'{name}="{text}"')
        assert after != line["series"]
        listed.append(line | {"values": f"{value}x{ENDS_AT} stale"})
        listed.append({"series": after, "values": f"_x{STARTS_AT} {value}x{LENGTH}"})
    return listed


@pytest.mark.parametrize("name", PER_SET)
def test_failover_does_not_restart_the_alert_time(tmp_path: Path, name: str) -> None:
    """The alert fires once, as early as without a failover, and is not resolved in the meantime."""
    (alert,) = [alert for alert in ALERTS if alert.name == name]
    found, labels = CASES[name]
    early = max(alert.minutes, ENDS_AT) + 7  # the minutes of `changes`, and the evaluation interval
    times = [early, *range(STARTS_AT + alert.minutes, STARTS_AT + alert.minutes + 5)]
    if not alert.minutes:
        times += range(1, early)
    checks = [
        {"eval_time": f"{minute}m", "alertname": name, "exp_alerts": [expected(alert, labels)]} for minute in times
    ]
    one = {"interval": "1m", "name": name, "input_series": failed_over(found), "alert_rule_test": checks}
    assert evaluate(tmp_path, one) == ""


def test_alerts_of_sets_have_no_labels_of_a_replica() -> None:
    for alert in ALERTS:
        if "leaderworkerset }}" in alert.summary:
            assert alert.name in PER_SET
            assert "by (namespace, leaderworkerset)" in alert.expression


OPERATED: Final[dict[str, str]] = {UP: "1", FAILED: "0"}


@pytest.mark.parametrize(
    ("name", "found"), [("LWSOperatorDown", {UP: "0"}), ("LWSOperatorErrors", {FAILED: "0+1"}), ("", {})]
)
def test_operator_alerts_fire_alone_and_in_time(tmp_path: Path, name: str, found: dict[str, str]) -> None:
    """Alerts of the operator follow the same rules (R-OP-76)."""
    written = json.dumps(case(OPERATED | found, name, known=OPERATOR_ALERTS))
    of_operator = json.loads(written.replace(METRICS_SERVICE, operatordeployment.METRICS_SERVICE))
    assert evaluate(tmp_path, of_operator, known=OPERATOR_ALERTS) == ""


BUCKETS: Final = {
    "workqueue_queue_duration_seconds_bucket": "name",
    "controller_runtime_reconcile_time_seconds_bucket": "controller",
    "controller_runtime_webhook_latency_seconds_bucket": "webhook",
    "lws_time_to_ready_seconds_bucket": "quantile",
    "rest_client_rate_limiter_duration_seconds_bucket": "quantile",
}
SHOWN: Final = HEALTHY | {
    **{f'{metric},{label}="x",le="{bound}"': "0+60" for metric, label in BUCKETS.items() for bound in ("1", "+Inf")},
    'lws_rollout_progress,namespace="serving",leaderworkerset="web"': "1",
    'lws_group_recreations_in_a_row,namespace="serving",leaderworkerset="web"': "1",
    'lws_ignored_objects_total,resource="pods"': "0",
    "lws_group_moves_total": "0",
    "process_resident_memory_bytes": "1",
    "process_cpu_seconds_total": "0+1",
    'lws_leaderworkersets,condition="Available"': "1",
    'workqueue_depth,name="pod"': "0",
    'lws_api_requests_total,verb="get",resource="pods"': "0+60",
    'rest_client_requests_total,code="200"': "0+60",
}
"""The series of each panel."""


def test_every_panel_of_the_board_shows_stored_metrics(tmp_path: Path) -> None:
    """The panels of a LeaderWorkerSet are included, although its namespace differs from the manager namespace."""
    chosen = [one.replace("$namespace", "serving").replace("$leaderworkerset", "web") for one in board.expressions()]
    samples = [{"labels": "{}", "value": 1}]
    checks = [{"expr": f"count({one}) > bool 0", "eval_time": "2h", "exp_samples": samples} for one in chosen]
    shown = {"interval": "1m", "name": "board", "input_series": series(SHOWN), "promql_expr_test": checks}
    assert evaluate(tmp_path, shown) == ""


def test_wrong_case_is_detected(tmp_path: Path) -> None:
    """An incorrect case must fail the check."""
    assert "LWSWithoutLeader" in evaluate(tmp_path, case(HEALTHY, "LWSWithoutLeader", {}))


def test_rule_file_passes_promtool(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump(alerts.prometheus_rule("lws-system")["spec"]))
    subprocess.run([str(PROMTOOL), "check", "rules", "--lint-fatal", str(path)], check=True, timeout=60)
