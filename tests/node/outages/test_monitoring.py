"""Tests that Prometheus scrapes the managers, and that three runbook alerts fire and are resolved."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from testkit.repository import ROOT
from tests.node import images, prerequisites, product
from tests.node.objects import WAIT, container, leaderworkerset, pod
from tests.node.place import Place
from tests.node.product import NAMESPACE

from leaderworkerset.api.metadata import METRICS_SERVICE

pytestmark = pytest.mark.long

SOON: Final = "3s"
"""The delay of each alert in this test, instead of minutes. promtool tests the original delays."""

API: Final = "http://127.0.0.1:9090/api/v1"
EVERY: Final = "1s"
TARGETS: Final = "targets.json"


def rules() -> dict[str, Any]:
    """Return the shipped alerts with delays of seconds."""
    found = yaml.safe_load((ROOT / "deploy" / "monitoring" / "prometheusrule.yaml").read_text())["spec"]
    for group in found["groups"]:
        for rule in group["rules"]:
            rule["for"] = SOON
    return {"groups": found["groups"]}


def settings(directory: Path) -> dict[str, Any]:
    """Return the Prometheus settings. The Debian package cannot discover pods, so a file contains the targets."""
    scraping = {
        "job_name": METRICS_SERVICE,
        "scheme": "https",
        "honor_labels": True,
        "authorization": {"credentials_file": str(directory / "token")},
        "tls_config": {"insecure_skip_verify": True},
        "file_sd_configs": [{"files": [str(directory / TARGETS)]}],
    }
    every = {"scrape_interval": EVERY, "scrape_timeout": EVERY, "evaluation_interval": EVERY}
    return {"global": every, "rule_files": [str(directory / "rules.yaml")], "scrape_configs": [scraping]}


def write_targets(place: Place, directory: Path) -> None:
    """Write the ready managers to a file, with the labels of a ServiceMonitor."""
    selected = (f"--namespace={NAMESPACE}", f"--selector=kubernetes.io/service-name={METRICS_SERVICE}")
    slices = json.loads(place.cluster.kubectl("get", "endpointslices", *selected, "--output=json"))["items"]
    targets = [
        {
            "targets": [f"{endpoint['addresses'][0]}:{port['port']}"],
            "labels": {"namespace": NAMESPACE, "pod": endpoint["targetRef"]["name"]},
        }
        for item in slices
        for port in item["ports"]
        for endpoint in item["endpoints"]
        if endpoint["conditions"]["ready"]  # a terminated manager remains in the list for some seconds
    ]
    (directory / TARGETS).write_text(json.dumps(targets))


@contextmanager
def reader(place: Place, file: Path) -> Iterator[None]:
    """Write a token of an account that may read the metrics."""
    place.kubectl("create", "serviceaccount", "prometheus")
    binding = f"prometheus-{place.name}"
    account = f"--serviceaccount={place.name}:prometheus"
    place.cluster.kubectl("create", "clusterrolebinding", binding, "--clusterrole=lws-metrics-reader", account)
    file.write_text(place.kubectl("create", "token", "prometheus", "--duration=1h").strip())
    try:
        yield
    finally:
        place.cluster.kubectl("delete", "clusterrolebinding", binding)


@pytest.fixture
def monitored(place: Place, tmp_path: Path) -> Iterator[Place]:
    """Run Prometheus on the first node until the test finishes."""
    program = prerequisites.unpacked("prometheus", images.cache()) / "usr" / "bin" / "prometheus"
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules()))
    (tmp_path / "prometheus.yaml").write_text(yaml.safe_dump(settings(tmp_path)))
    write_targets(place, tmp_path)
    machine = place.cluster.machines[0]
    with reader(place, tmp_path / "token"):
        options = [f"--config.file={tmp_path}/prometheus.yaml", f"--storage.tsdb.path={tmp_path}/data"]
        machine.start("prometheus", [str(program), *options, "--web.listen-address=127.0.0.1:9090"])
        try:
            place.until(lambda: answer(place, "targets"), "Prometheus")
            yield place
        except AssertionError as error:
            raise AssertionError(f"{error}\n{machine.log('prometheus')}") from error
        finally:
            machine.kill("prometheus")


def answer(place: Place, path: str) -> dict[str, Any]:
    """Return the data in a Prometheus response, or an empty result if Prometheus does not respond yet."""
    words = [*place.cluster.inside, "curl", "--silent", f"{API}/{path}"]
    text = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    return json.loads(text)["data"] if text else {}


def firing(place: Place) -> set[tuple[str, str]]:
    """Return the firing alerts with their LeaderWorkerSets."""
    return {
        (alert["labels"]["alertname"], alert["labels"].get("leaderworkerset", ""))
        for alert in answer(place, "alerts").get("alerts", [])
        if alert["state"] == "firing" and alert["labels"].get("namespace", place.name) == place.name
    }


def test_prometheus_fires_and_resolves_three_alerts(monitored: Place, tmp_path: Path) -> None:
    place = monitored

    def is_up() -> bool:
        write_targets(place, tmp_path)
        targets = answer(place, "targets")["activeTargets"]
        return [target["health"] for target in targets] == ["up", "up"]

    def fires(alert: str, name: str = "") -> None:
        place.until(lambda: (alert, name) in firing(place), f"{alert} fires: {answer(place, 'alerts')}")

    def is_resolved(alert: str, name: str = "") -> None:
        place.until(lambda: (alert, name) not in firing(place), f"{alert} is resolved: {answer(place, 'alerts')}")

    place.until(is_up, "both managers are scraped")
    probe = {"exec": {"command": ["test", "-e", "/tmp/up"]}, "periodSeconds": 1}
    place.apply(leaderworkerset("behind", pod(container(WAIT, readinessProbe=probe)), size=1))
    fires("LWSGroupsNotReady", "behind")
    place.exec("behind-0", "touch", "/tmp/up")
    is_resolved("LWSGroupsNotReady", "behind")

    crashing = leaderworkerset("spent", pod(container("exit 3")), size=1)
    crashing["spec"]["leaderWorkerTemplate"]["maxGroupRestarts"] = 0
    place.apply(crashing)
    fires("LWSGroupsGivenUp", "spent")
    crashing["spec"]["leaderWorkerTemplate"]["workerTemplate"] = pod()
    place.apply(crashing)
    is_resolved("LWSGroupsGivenUp", "spent")

    with product.no_managers(place.cluster):
        fires("LWSManagerDown")
    write_targets(place, tmp_path)
    is_resolved("LWSManagerDown")
    is_resolved("LWSWithoutLeader")
