"""Builds a PrometheusRule with alerts on the manager metrics, each with its runbook (`docs/how-to/alerts.md`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.metadata import LEASE, METRICS_SERVICE, build
from leaderworkerset.install.installsettings import PROMETHEUS_RULES

NAME: Final = "lws-controller-manager"
RUNBOOKS: Final = "docs/how-to/alerts.md"
JOB: Final = f'job="{METRICS_SERVICE}"'
"""The label that a ServiceMonitor adds to the metrics of the Service."""

EXPIRING_DAYS: Final = 7
"""The remaining validity that indicates failed renewals. Certificates are renewed months before they expire."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert, with its expression, its minimum duration, its severity and its meaning."""

    name: str
    expression: str
    minutes: int
    severity: str
    summary: str


FAILOVER: Final = "5m"
"""The time for which the last value of a leader is valid: a lease, the start of caches, and some scrapes."""

STATE_DESIRED: Final = 'state="desired"'
STATE_READY: Final = 'state="ready"'
STATE_EXHAUSTED: Final = 'state="exhausted"'


def of_set(metric: str, *labels: str) -> str:
    """Return the metric by LeaderWorkerSet, for any leading replica, even if there is no leader.

    The labels `pod` and `instance` change with the leader, and between two leaders the metric is absent. Either of
    these would restart the time of an alert.
    """
    series = f"{metric}{{{','.join((JOB, *labels))}}}"
    return f"max by (namespace, leaderworkerset) (last_over_time({series}[{FAILOVER}]))"


ALERTS: Final = (
    Alert(
        "LWSManagerDown",
        f"absent(up{{{JOB}}} == 1)",
        5,
        "critical",
        "No manager responds, so pods of groups cannot be created and groups are not repaired.",
    ),
    Alert(
        "LWSWithoutLeader",
        f'max(leader_election_master_status{{{JOB},name="{LEASE}"}}) < 1',
        5,
        "critical",
        "No manager is the leader, so objects are not reconciled.",
    ),
    Alert(
        "LWSWebhookErrors",
        f'sum by (webhook) (rate(controller_runtime_webhook_requests_total{{{JOB},code=~"5.."}}[5m]))'
        f" / sum by (webhook) (rate(controller_runtime_webhook_requests_total{{{JOB}}}[5m])) > 0.05",
        10,
        "critical",
        "More than 5 % of the requests to webhook {{ $labels.webhook }} fail.",
    ),
    Alert(
        "LWSReconcileErrors",
        f"sum by (controller) (rate(controller_runtime_reconcile_errors_total{{{JOB}}}[10m]))"
        f" / sum by (controller) (rate(controller_runtime_reconcile_total{{{JOB}}}[10m])) > 0.2",
        15,
        "warning",
        "More than 20 % of the reconciliations of controller {{ $labels.controller }} fail.",
    ),
    Alert(
        "LWSCertificateUnusable",
        f"increase(certwatcher_read_certificate_errors_total{{{JOB}}}[10m]) > 0",
        10,
        "warning",
        "A mounted certificate is invalid, so the previous certificate is served until it expires.",
    ),
    Alert(
        "LWSCertificateExpiring",
        f"min by (server) (lws_certificate_expiry_timestamp_seconds{{{JOB}}}) - time() < {EXPIRING_DAYS} * 86400",
        60,
        "warning",
        "The certificate of {{ $labels.server }} expires within a week. After that, pods of groups are rejected.",
    ),
    Alert(
        "LWSGroupRestartStorm",
        f"sum(increase(lws_group_recreations_total{{{JOB}}}[15m])) > 10",
        5,
        "warning",
        "More than 10 groups were recreated in the last 15 minutes.",
    ),
    Alert(
        "LWSGroupsGivenUp",
        f"{of_set('lws_groups_failing', STATE_EXHAUSTED)} > 0",
        0,
        "warning",
        "Groups of {{ $labels.namespace }}/{{ $labels.leaderworkerset }} exhausted their restart budget.",
    ),
    Alert(
        "LWSGroupsNotReady",
        f"{of_set('lws_groups', STATE_DESIRED)} > {of_set('lws_groups', STATE_READY)}",
        30,
        "warning",
        "Groups of {{ $labels.namespace }}/{{ $labels.leaderworkerset }} have not been ready for 30 minutes.",
    ),
    Alert(
        "LWSGroupMoveStalled",
        f"{of_set('lws_groups_to_move')} > 0 and changes({of_set('lws_groups_to_move')}[5m:1m]) == 0",
        30,
        "warning",
        (
            "Groups of {{ $labels.namespace }}/{{ $labels.leaderworkerset }} must be moved from their nodes, but none "
            "was moved for 30 minutes."
        ),
    ),
)

OPERATOR_JOB: Final = 'job="openshift-lws-operator-metrics"'
OPERATOR_ALERTS: Final = (
    Alert(
        "LWSOperatorDown",
        f"absent(up{{{OPERATOR_JOB}}} == 1)",
        15,
        "warning",
        "No operator responds, so the manager is not reconciled.",
    ),
    Alert(
        "LWSOperatorErrors",
        f"sum(rate(controller_runtime_reconcile_errors_total{{{OPERATOR_JOB}}}[15m])) > 0",
        30,
        "warning",
        "The operator has failed to reconcile the manager for 30 minutes.",
    ),
)
"""The alerts in packages that install the operator."""


def prometheus_rule(namespace: str, runbooks: str = "") -> JSONObject:
    """Build the rule with all alerts. `runbooks` is the URL of their published page."""
    return build(PROMETHEUS_RULES, NAME, namespace, spec=groups("lws", ALERTS, runbooks))


def groups(name: str, alerts: Sequence[Alert], runbooks: str = "") -> JSONObject:
    """Return the spec of a rule that contains one group of alerts."""
    return {"groups": [{"name": name, "rules": [_rule(alert, runbooks) for alert in alerts]}]}


def _rule(alert: Alert, runbooks: str) -> JSONObject:
    """Return the rule of an alert. `runbook` is its section in the repository, and `runbook_url` is always a URL."""
    anchor = f"#{alert.name.lower()}"
    return {
        "alert": alert.name,
        "expr": alert.expression,
        "for": f"{alert.minutes}m",
        "labels": {"severity": alert.severity},
        "annotations": {"summary": alert.summary, "runbook": RUNBOOKS + anchor}
        | ({"runbook_url": runbooks + anchor} if runbooks else {}),
    }
