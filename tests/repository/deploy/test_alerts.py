"""Tests that the metrics of the alerts exist, and each alert has a runbook."""

import re
from pathlib import Path

import pytest
from deploy.packages import alerts, operatordeployment
from deploy.packages.alerts import ALERTS, OPERATOR_ALERTS, Alert
from testkit.repository import ROOT

from kuberuntime.serving.metrics import Metrics
from leaderworkerset.api.metadata import METRICS_SERVICE
from leaderworkerset.kinds.managedkinds import MANAGED

DOCUMENTED = (ROOT / "docs/reference/manager.md").read_text()
OF_PROMETHEUS = {"up"}
METRIC = re.compile(r"([a-z][a-z_]*)\{")
ALL = (*ALERTS, *OPERATOR_ALERTS)
each = pytest.mark.parametrize("alert", ALL, ids=lambda alert: alert.name)


def shown() -> str:
    """Return the metrics of an idle manager."""
    metrics = Metrics()
    MANAGED.instruments(metrics)
    return metrics.render().decode()


@each
def test_metrics_of_an_alert_exist_or_are_documented(alert: Alert) -> None:
    """Metrics of a controller's caches appear only after the caches are filled. The reference lists them."""
    names = set(METRIC.findall(alert.expression)) - OF_PROMETHEUS
    known = set(re.findall(r"^# TYPE (\S+) ", shown(), re.MULTILINE)) | set(re.findall(r"`([a-z_]+)`", DOCUMENTED))
    assert names or "up{" in alert.expression
    assert names <= known


@each
def test_alert_has_a_runbook(alert: Alert) -> None:
    """Each alert links to its runbook (R-OP-76)."""
    rules = alerts.groups("lws", ALL)["groups"][0]["rules"]
    (annotations,) = [one["annotations"] for one in rules if one["alert"] == alert.name]
    file, _, anchor = annotations["runbook"].partition("#")
    assert "runbook_url" not in annotations
    headings = re.findall(r"^## (.+)$", (ROOT / file).read_text(), re.MULTILINE)
    assert anchor in {heading.lower() for heading in headings}


RULES = sorted({*(ROOT / "deploy").rglob("*prometheusrule*.yaml")})


@pytest.mark.parametrize("path", RULES, ids=lambda path: str(path.relative_to(ROOT / "deploy")))
def test_runbook_url_is_a_url_or_absent(path: Path) -> None:
    """In the chart, the user sets the URL, and the schema accepts only URLs."""
    lines = [
        line.partition("runbook_url:")[2].strip() for line in path.read_text().splitlines() if "runbook_url:" in line
    ]
    assert all(line.strip("'\"").startswith(("https://", "{{ .Values.prometheus.runbooks }}#")) for line in lines)


def test_published_rules_name_the_published_page() -> None:
    rules = alerts.groups("lws", ALL, "https://example.com/alerts.html")["groups"][0]["rules"]
    urls = [rule["annotations"]["runbook_url"] for rule in rules]
    assert urls == [f"https://example.com/alerts.html#{alert.name.lower()}" for alert in ALL]


@each
def test_alert_selects_metrics_of_this_product(alert: Alert) -> None:
    """Many operators in a cluster have controller-runtime metrics with the same names."""
    service = METRICS_SERVICE if alert in ALERTS else operatordeployment.METRICS_SERVICE
    assert alert.expression.count(f'job="{service}"') == len(METRIC.findall(alert.expression))


def test_every_runbook_belongs_to_an_alert() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / alerts.RUNBOOKS).read_text(), re.MULTILINE)
    assert headings == [alert.name for alert in ALL]


def test_prometheus_rule_is_complete() -> None:
    """The rule contains each alert with a severity (R-OP-76)."""
    rule = alerts.prometheus_rule("lws-system")
    (group,) = rule["spec"]["groups"]
    assert [one["alert"] for one in group["rules"]] == [alert.name for alert in ALERTS]
    assert {one["labels"]["severity"] for one in group["rules"]} == {"critical", "warning"}
