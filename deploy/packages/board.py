"""Builds a Grafana dashboard of the manager metrics as JSON: groups, reconciliations, admission and process.

The data source is a variable of the dashboard. Every panel selects the manager's own metrics, as the alerts do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from deploy.packages.alerts import JOB

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.metadata import LEASE

TITLE: Final = "LeaderWorkerSet"
IDENTITY: Final = "leaderworkerset"
SCHEMA: Final = 39
"""The version of the dashboard format, which Grafana 10.4 and later read, and upgrade if required."""

COLUMNS: Final = 24
HEIGHT: Final = 8
OF_SETS: Final = f'{JOB},namespace=~"$namespace",leaderworkerset=~"$leaderworkerset"'
SOURCE: Final = {"type": "prometheus", "uid": "${source}"}


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a panel, and the name of its series."""

    expression: str
    legend: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel. `unit` is the name of its unit in Grafana."""

    title: str
    queries: tuple[Query, ...]
    unit: str = "short"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of panels below a title."""

    title: str
    panels: tuple[Panel, ...]


def _rate(metric: str, by: str) -> str:
    return f"sum by ({by}) (rate({metric}{{{JOB}}}[5m]))"


def _quantile(metric: str, by: str) -> str:
    return f"histogram_quantile(0.99, sum by (le, {by}) (rate({metric}_bucket{{{JOB}}}[5m])))"


SET: Final = "{{namespace}}/{{leaderworkerset}}"
ROWS: Final = (
    Row(
        "Groups",
        (
            Panel(
                "Groups that are not ready",
                (
                    Query(
                        f'sum by (namespace, leaderworkerset) (lws_groups{{{OF_SETS},state="desired"}})'
                        f' - sum by (namespace, leaderworkerset) (lws_groups{{{OF_SETS},state="ready"}})',
                        SET,
                    ),
                ),
            ),
            Panel(
                "Groups",
                (Query(f"sum by (state) (lws_groups{{{OF_SETS}}})", "{{state}}"),),
            ),
            Panel("Rollouts", (Query(f"lws_rollout_progress{{{OF_SETS}}}", SET),), "percentunit"),
            Panel(
                "Recreated groups in 15 minutes",
                (Query(f"sum by (cause) (increase(lws_group_recreations_total{{{JOB}}}[15m]))", "{{cause}}"),),
            ),
            Panel(
                "Failed groups",
                (Query(f"sum by (state) (lws_groups_failing{{{OF_SETS}}})", "{{state}}"),),
            ),
            Panel(
                "Groups moved from nodes in 15 minutes",
                (Query(f"sum(increase(lws_group_moves_total{{{JOB}}}[15m]))", "moved"),),
            ),
            Panel("Groups waiting to be moved", (Query(f"lws_groups_to_move{{{OF_SETS}}}", SET),)),
            Panel(
                "Maximum consecutive recreations of a group",
                (Query(f"lws_group_recreations_in_a_row{{{OF_SETS}}}", SET),),
            ),
            Panel(
                "Time until ready",
                (
                    Query(
                        f"histogram_quantile(0.99, sum by (le) (rate(lws_time_to_ready_seconds_bucket{{{JOB}}}[1h])))",
                        "99 %",
                    ),
                ),
                "s",
            ),
            Panel("LeaderWorkerSets", (Query(f"sum by (condition) (lws_leaderworkersets{{{JOB}}})", "{{condition}}"),)),
        ),
    ),
    Row(
        "Reconciliation",
        (
            Panel(
                "Reconciliations per second",
                (Query(_rate("controller_runtime_reconcile_total", "controller"), "{{controller}}"),),
            ),
            Panel(
                "Failed reconciliations per second",
                (Query(_rate("controller_runtime_reconcile_errors_total", "controller"), "{{controller}}"),),
            ),
            Panel("Queued keys", (Query(f"sum by (name) (workqueue_depth{{{JOB}}})", "{{name}}"),)),
            Panel(
                "Queue time, 99th percentile",
                (Query(_quantile("workqueue_queue_duration_seconds", "name"), "{{name}}"),),
                "s",
            ),
            Panel(
                "Reconciliation time, 99th percentile",
                (Query(_quantile("controller_runtime_reconcile_time_seconds", "controller"), "{{controller}}"),),
                "s",
            ),
            Panel(
                "Requests to the API server",
                (Query(_rate("lws_api_requests_total", "verb, resource"), "{{verb}} {{resource}}"),),
                "reqps",
            ),
            Panel(
                "Invalid objects in 15 minutes",
                (Query(f"sum by (resource) (increase(lws_ignored_objects_total{{{JOB}}}[15m]))", "{{resource}}"),),
            ),
        ),
    ),
    Row(
        "Admission",
        (
            Panel(
                "Admission requests a second",
                (Query(_rate("controller_runtime_webhook_requests_total", "webhook, code"), "{{webhook}} {{code}}"),),
                "reqps",
            ),
            Panel(
                "Admission time, 99th percentile",
                (Query(_quantile("controller_runtime_webhook_latency_seconds", "webhook"), "{{webhook}}"),),
                "s",
            ),
            Panel(
                "Time until certificates expire",
                (Query(f"min by (server) (lws_certificate_expiry_timestamp_seconds{{{JOB}}}) - time()", "{{server}}"),),
                "s",
            ),
        ),
    ),
    Row(
        "Processes",
        (
            Panel(
                "Running replicas and leader",
                (
                    Query(f"sum(up{{{JOB}}})", "answer"),
                    Query(f'sum(leader_election_master_status{{{JOB},name="{LEASE}"}})', "lead"),
                ),
            ),
            Panel(
                "Memory",
                (Query(f"process_resident_memory_bytes{{{JOB}}}", "{{pod}}"),),
                "bytes",
            ),
            Panel(
                "Processors",
                (Query(f"rate(process_cpu_seconds_total{{{JOB}}}[5m])", "{{pod}}"),),
            ),
            Panel(
                "Delay by the client-side rate limit, 99th percentile",
                (
                    Query(
                        "histogram_quantile(0.99, sum by (le)"
                        f" (rate(rest_client_rate_limiter_duration_seconds_bucket{{{JOB}}}[5m])))",
                        "99 %",
                    ),
                ),
                "s",
            ),
            Panel("API server responses", (Query(_rate("rest_client_requests_total", "code"), "{{code}}"),), "reqps"),
            Panel(
                "Failed certificate reads",
                (Query(f"sum(increase(certwatcher_read_certificate_errors_total{{{JOB}}}[15m]))", "failed"),),
            ),
        ),
    ),
)


def build() -> JSONObject:
    """Build the dashboard."""
    return {
        "uid": IDENTITY,
        "title": TITLE,
        "tags": ["kubernetes", "leaderworkerset"],
        "schemaVersion": SCHEMA,
        "editable": True,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "1m",
        "templating": {"list": [_source(), _variable("namespace"), _variable("leaderworkerset")]},
        "panels": _placed(ROWS),
    }


def expressions() -> list[str]:
    """Return every expression that the dashboard queries."""
    return [query.expression for row in ROWS for panel in row.panels for query in panel.queries]


def _source() -> JSONObject:
    return {"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _variable(label: str) -> JSONObject:
    return {
        "name": label,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": f"label_values(lws_groups{{{JOB}}}, {label})", "refId": label},
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "refresh": 2,
    }


def _placed(rows: Sequence[Row]) -> list[JSONObject]:
    """Place rows below each other, with up to three panels per row."""
    panels: list[JSONObject] = []
    top = 0
    for row in rows:
        panels.append(
            _at(0, top, COLUMNS, 1) | {"type": "row", "title": row.title, "id": len(panels) + 1, "panels": []}
        )
        top += 1
        for index, panel in enumerate(row.panels):
            place = _at(index % 3 * HEIGHT, top + index // 3 * HEIGHT, HEIGHT, HEIGHT)
            panels.append(place | _panel(panel) | {"id": len(panels) + 1})
        top += -(-len(row.panels) // 3) * HEIGHT
    return panels


def _at(left: int, top: int, width: int, height: int) -> JSONObject:
    return {"gridPos": {"x": left, "y": top, "w": width, "h": height}}


def _panel(panel: Panel) -> JSONObject:
    targets = [
        {"refId": chr(ord("A") + index), "datasource": SOURCE, "expr": query.expression, "legendFormat": query.legend}
        for index, query in enumerate(panel.queries)
    ]
    return {
        "type": "timeseries",
        "title": panel.title,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": targets,
    }
