"""Tests that each metric in a dashboard query exists, and that the panels do not overlap."""

import itertools
import json
import re

from deploy.packages import board
from testkit.repository import ROOT
from tests.repository.deploy.test_alerts import DOCUMENTED, METRIC, OF_PROMETHEUS, shown

from leaderworkerset.manager.metricsserver import NAME as CERTIFICATE_ENDS

BOARD = board.build()
SUFFIXES = re.compile(r"_bucket$")


def test_metrics_of_the_board_exist_or_are_documented() -> None:
    known = set(re.findall(r"^# TYPE (\S+) ", shown(), re.MULTILINE)) | set(re.findall(r"`([a-z_]+)`", DOCUMENTED))
    for expression in board.expressions():
        names = {SUFFIXES.sub("", name) for name in METRIC.findall(expression)} - OF_PROMETHEUS
        assert names or "up{" in expression
        assert names <= known, expression


def test_board_selects_metrics_of_the_manager() -> None:
    for expression in board.expressions():
        assert expression.count('job="lws-controller-manager-metrics-service"') == len(METRIC.findall(expression))
        assert [expression.count(pair) for pair in "({["] == [expression.count(pair) for pair in ")}]"], expression


def test_histograms_are_queried_by_their_buckets() -> None:
    histograms = set(re.findall(r"^# TYPE (\S+) histogram", shown(), re.MULTILINE))
    named = {name for one in board.expressions() for name in METRIC.findall(one)}
    assert not named & histograms
    assert {SUFFIXES.sub("", name) for name in named if name.endswith("_bucket")} <= histograms


def test_legends_name_remaining_labels() -> None:
    """A label that an aggregation drops would be empty in the legend."""
    for query in (query for row in board.ROWS for panel in row.panels for query in panel.queries):
        wanted = set(re.findall(r"{{(\w+)}}", query.legend))
        kept = [set(re.findall(r"\w+", one)) for one in re.findall(r"by \(([^)]*)\)", query.expression)]
        assert all(wanted <= labels for labels in kept), query


def test_panels_do_not_overlap() -> None:
    places = [one["gridPos"] for one in BOARD["panels"]]
    cells = [
        set(itertools.product(range(one["x"], one["x"] + one["w"]), range(one["y"], one["y"] + one["h"])))
        for one in places
    ]
    assert len(set.union(*cells)) == sum(map(len, cells))
    assert max(x for one in cells for x, _ in one) < board.COLUMNS
    assert len({one["id"] for one in BOARD["panels"]}) == len(places)


def test_variables_are_used_and_declared() -> None:
    text = json.dumps(BOARD["panels"])
    declared = {one["name"] for one in BOARD["templating"]["list"]}
    assert declared == set(re.findall(r"\$\{?(\w+)", text))


def test_board_shows_the_expiry_of_certificates() -> None:
    assert any(CERTIFICATE_ENDS in one for one in board.expressions())


def test_board_shows_every_own_metric() -> None:
    """The reference lists all metrics of a manager, as `tests/kubernetes/manager/test_metrics.py` checks."""
    own = set(re.findall(r"^\| `(lws_\w+)` \|", DOCUMENTED, re.MULTILINE)) - {"lws_build_info"}
    queried = {SUFFIXES.sub("", name) for one in board.expressions() for name in METRIC.findall(one)}
    assert len(own) > 8
    assert own - queried == set(), "give it a panel in install/board.py"


def test_file_equals_the_board() -> None:
    """The published Grafana dashboard is generated (R-OP-76)."""
    assert json.loads((ROOT / "deploy/monitoring/grafana.json").read_text()) == BOARD
