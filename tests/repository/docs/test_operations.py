"""Tests that the pages for administrators contain the numbers in the code and in recorded runs."""

import json
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, Final

import pytest
from bench import capacity
from deploy.packages import catalog
from deploy.packages.alerts import ALERTS
from deploy.packages.bundle import FORMER, PACKAGES
from tests import builders
from tests.repository.docs.test_statements import ROOT, rows, text_of

import leaderworkerset
from kuberuntime.cache import reflector
from kuberuntime.client import client, http
from kuberuntime.objects import meta
from kuberuntime.objects.duration import Duration
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONFIG_MAPS, DEPLOYMENTS, LEASES, NETWORK_POLICIES, SERVICES
from kuberuntime.serving.leaderelection import JITTER
from leaderworkerset.api import labels
from leaderworkerset.api.metadata import CONFIGURATION, LEASE
from leaderworkerset.core.leaderworkerset import services
from leaderworkerset.install import objects, workload
from leaderworkerset.install.installsettings import InstallSettings
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.manager.config import configuration, configurationrules
from leaderworkerset.operator import openshift
from leaderworkerset.rendezvous.__main__ import find_failure
from leaderworkerset.webhooks.configurations import SECRET_NAME
from localkube.kubelet.sandbox import ipam
from lwsctl.cli.rollouts import nodewrites

PORTS: Final = "docs/how-to/ports.md"
SIZES: Final = "docs/how-to/sizing.md"
TIMES: Final = SIZES
BACKUP: Final = "docs/how-to/backup.md"
UPGRADE: Final = "docs/how-to/upgrade-with-olm.md"
INSTALLED: Final = [(resource, obj) for resource, obj in objects.build_all(MANAGED, InstallSettings())]


def installed(*resources: object) -> Iterator[JSONObject]:
    return (obj for resource, obj in INSTALLED if resource in resources)


def test_manager_ports_equal_those_of_its_pods() -> None:
    table = rows(PORTS, "## Ports")
    to_manager = {port for _, to, port, *_ in table if to == "manager pods"}
    ports = {workload.WEBHOOK_PORT, workload.METRICS_PORT, workload.PROBE_PORT}
    assert to_manager == {f"TCP {port}" for port in ports}
    (deployment,) = installed(DEPLOYMENTS)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    served = {port["containerPort"] for port in container["ports"]}
    assert served | {container["readinessProbe"]["httpGet"]["port"]} == ports
    assert configuration.Configuration().webhook.port == workload.WEBHOOK_PORT


def test_services_and_policy_of_the_page_are_installed() -> None:
    page = text_of(PORTS)
    for service in installed(SERVICES):
        (port,) = service["spec"]["ports"]
        assert re.search(rf"`{meta.name(service)}`[^.]*port {port['port']}\b", page.replace("\n", " "))
    (policy,) = installed(NETWORK_POLICIES)
    allowed = [port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]]
    assert sorted(allowed) == [workload.METRICS_PORT, workload.WEBHOOK_PORT]
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    assert labels.NAME in page


def test_operator_port_equals_that_of_its_pod() -> None:
    (port,) = [port for _, to, port, *_ in rows(PORTS, "## Ports") if to == "operator pods"]
    text = (ROOT / "deploy/operator/13_deployment_openshift-lws-operator.yaml").read_text()
    assert set(re.findall(r"(?:containerPort|port): (\d+)", text)) == {port.removeprefix("TCP ")}


def seconds(cell: str) -> float:
    return float(cell.removesuffix(" s"))


def test_lease_times_equal_those_of_the_programs() -> None:
    table = {name: tuple(map(seconds, cells)) for name, *cells in rows(TIMES, "### Lease times")}
    election = configuration.LeaderElection()
    single = {"status": {"controlPlaneTopology": openshift.SINGLE_REPLICA}}
    assert table == {
        "manager": (election.lease_duration, election.renew_deadline, election.retry_period),
        "operator": openshift.election_times({}),
        "operator on OpenShift": openshift.election_times({"status": {"controlPlaneTopology": "HighlyAvailable"}}),
        "operator on OpenShift, one control plane node": openshift.election_times(single),
    }


def example_times() -> tuple[float, ...]:
    """Return the duration, the deadline and the period of the lease in the example."""
    found = re.findall(r"^  (?:leaseDuration|renewDeadline|retryPeriod): (\d+)s$", text_of(TIMES), re.MULTILINE)
    return tuple(map(float, found))


def test_longest_failover_follows_from_the_times() -> None:
    page, election = text_of(TIMES), configuration.LeaderElection()
    lease, _, retry = example_times()
    assert f"{election.lease_duration + JITTER * election.retry_period:g} s with the defaults" in page
    assert f"{lease + JITTER * retry:g} s with the file above" in page
    assert f"{configurationrules.JITTER:g} times `retryPeriod`" in page
    flags = [float(number) for number in re.findall(r"--leader-elect-[a-z-]+=(\d+)s", page)]
    assert tuple(flags) == example_times()


def test_lease_times_of_the_example_are_accepted() -> None:
    lease, renew, retry = map(Duration, example_times())
    election = configuration.LeaderElection(lease_duration=lease, renew_deadline=renew, retry_period=retry)
    assert configurationrules._election_errors(election) == []
    shorter = configuration.LeaderElection(lease_duration=renew, renew_deadline=renew, retry_period=retry)
    assert configurationrules._election_errors(shorter) != []


def test_other_times_equal_those_of_the_client() -> None:
    table = {what: time for what, time, _ in rows(TIMES, "### Other timeouts")}
    assert table == {
        "response of a webhook": "10 s",  # the Kubernetes default, which is checked below
        "connection attempt of the manager": f"{http.CONNECT_SECONDS:g} s",
        "request of the manager": f"{http.REQUEST_SECONDS:g} s",
        "duration of a watch": f"{reflector.TIMEOUT} s",
        "watch without changes or bookmarks": f"{reflector.SILENCE:g} s",
        "wait of `lws drain` and `lws move` until the manager reports the groups to move": f"{nodewrites.PATIENCE:g} s",
        "maximum delay that a server can request with status 429": (
            f"{client.LONGEST_WAIT:g} s, up to {client.RETRIES} times"
        ),
    }
    assert f"after {reflector.SILENCE:g} s without data" in " ".join(text_of(TIMES).split())
    hooks = [hook for _, obj in INSTALLED for hook in obj.get("webhooks", ())]
    assert hooks
    assert all("timeoutSeconds" not in hook for hook in hooks)


def test_leader_alert_has_the_time_of_the_page() -> None:
    (alert,) = [alert for alert in ALERTS if alert.name == "LWSWithoutLeader"]
    assert alert.minutes == 5
    assert "fire after five minutes" in text_of(TIMES)


def test_group_services_leave_the_ip_family_to_the_cluster() -> None:
    service = services.build_shared(builders.leaderworkerset_object())
    assert not {"ipFamilies", "ipFamilyPolicy"} & service["spec"].keys()
    for service in installed(SERVICES):
        assert not {"ipFamilies", "ipFamilyPolicy"} & service["spec"].keys()


def test_embedded_cluster_has_only_ipv4_addresses() -> None:
    assert ipam.POD_NETWORK.version == 4
    assert ("the embedded cluster (`lws run`, `lws up`)", "IPv4 only") in map(
        tuple, rows(PORTS, "## IPv6 and dual stack")
    )


def test_rendezvous_reaches_a_rank_that_listens_on_ipv6() -> None:
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with closing(listener):
        assert find_failure("::1", listener.getsockname()[1], 5.0) is None


MEASURED: Final[Mapping[str, tuple[str, int | None]]] = {
    "500 groups of 2 pods in one LeaderWorkerSet are created and become ready": ("groups: created", None),
    "500 groups of 2 pods are idle for 30 s": ("groups: at rest", None),
    "a rollout updates 500 groups of 2 pods, 25 % at a time": ("groups: rolled, 25 %", None),
    "one worker is deleted in each of 100 groups (of 500)": ("groups: a worker deleted in a fifth", None),
    "200 LeaderWorkerSets of 5 pods are created and become ready": ("many: all ready", 200),
    "2,000 LeaderWorkerSets of 5 pods are created and become ready": ("many: all ready", 2000),
}
"""The measurement for each row on the page, and the number of LeaderWorkerSets in it."""


def raw_lines(heading: str) -> list[dict[str, Any]]:
    """Return the lines of the first recorded run that the page names after a heading."""
    name = re.findall(r"benchmarks/([\w.-]+\.jsonl)\)", text_of(SIZES).split(f"\n{heading}\n")[1])[0]
    lines = (ROOT / "docs/reference/benchmarks" / name).read_text().splitlines()
    return [line for line in map(json.loads, lines) if line.get("server") in {"ours", "policy"}]


def raw(measurement: str, sets: int | None) -> dict[str, Any]:
    lines = [line for line in raw_lines("## Sizing") if line["measurement"] == measurement]
    (line,) = [line for line in lines if line.get("sets") == sets]
    return line


def test_sizes_equal_the_recorded_measurements() -> None:
    table = {load: cells for load, *cells in rows(SIZES, "## Sizing")}
    assert table.keys() == MEASURED.keys()
    for load, which in MEASURED.items():
        line = raw(*which)
        shown = [
            f"{line['pods']:,}",
            f"{line['mebibytes']:.0f}",
            f"{line['cpu_seconds']:.1f}",
            f"{line['writes']:,}",
        ]
        assert table[load] == shown, load


def test_sizing_rules_follow_from_measurements_and_defaults() -> None:
    page = " ".join(text_of(SIZES).split())
    many = raw("many: all ready", 2000)
    per_set = f"{many['kibibytes_per_set']:.0f} KiB for each further LeaderWorkerSet of 5 pods"
    assert f"{raw('many: all ready', 200)['mebibytes']:.0f} MiB for 1,000 pods, and {per_set}" in page
    requests, limits = (workload.DEFAULT_RESOURCES[name] for name in ("requests", "limits"))
    assert (
        f"requests {requests['cpu']} CPU and {requests['memory']} of memory, and its memory limit is {limits['memory']}"
        in page
    )
    connection = configuration.Configuration().client_connection
    assert f"{connection.qps:g} per second, in bursts of {connection.burst}" in page
    assert "cpu" not in limits


LARGER: Final = "### More LeaderWorkerSets"
PROJECTED: Final = 2000
COSTS: Final[Mapping[str, tuple[str, str, int]]] = {
    "manager, memory (MiB)": (" created", "mebibytes", 0),
    "manager, CPU (s)": (" created", "cpu_seconds", 1),
    "manager, writes": (" created", "writes", 0),
    "manager, watch events": (" created", "events", 0),
    "kube-apiserver, memory (MiB)": (" created", "kube-apiserver_mebibytes", 0),
    "kube-apiserver, CPU (s)": (" created", "kube-apiserver_cpu_seconds", 0),
    "etcd, memory (MiB)": (" created", "etcd_mebibytes", 0),
    "etcd, CPU (s)": (" created", "etcd_cpu_seconds", 0),
    "restarted manager, memory (MiB)": (", manager restarted", "mebibytes", 0),
    "restarted manager, CPU (s)": (", manager restarted", "cpu_seconds", 1),
}
"""The phase, the number and its digits for each row on the page."""


def costs(phase: str, name: str) -> dict[int, float]:
    """Return a cost by the number of LeaderWorkerSets."""
    lines = (line for line in raw_lines(LARGER) if line["measurement"].endswith(f"sets{phase}"))
    return {line["sets"]: line[name] for line in lines}


def test_projected_costs_follow_from_measurements() -> None:
    table = {cost: cells for cost, *cells in rows(SIZES, LARGER)}
    expected = {}
    for cost, (phase, name, digits) in COSTS.items():
        points = costs(phase, name)
        value, error = capacity.project(points, PROJECTED)
        measured = [f"{point:,.{digits}f}" for point in points.values()]
        expected[cost] = [*measured, f"{capacity.deviation_of_largest(points):+.0%}", f"{value:,.0f} ± {error:,.0f}"]
    assert table == expected


def test_watch_events_of_the_largest_measurement_are_stated() -> None:
    page = " ".join(text_of(SIZES).split())
    largest = max(raw_lines(LARGER), key=lambda line: (line["sets"], "events" in line))
    seconds = largest["cpu_seconds"] / largest["events"]
    assert f"{largest['sets']} LeaderWorkerSets, {largest['pods']:,} pods and {largest['nodes']} nodes" in page
    assert f"{largest['events'] / largest['pods']:.1f} watch events per pod" in page
    assert f"{1000 * seconds:.1f} ms of CPU time per event" in page
    assert f"about {round(1 / seconds, -2):,.0f} events per second" in page


def test_memory_limit_covers_the_projection() -> None:
    """64,000 pods use less than half of the limit."""
    value, error = capacity.project(costs(" created", "mebibytes"), PROJECTED)
    assert workload.DEFAULT_RESOURCES["limits"]["memory"] == "2Gi"
    assert value + error < 1024


def test_backup_page_names_all_kinds() -> None:
    table = {what for what, _ in rows(BACKUP, "# Backup and restore")}
    kinds = {resource.kind for resource in MANAGED.custom_resources}
    (row,) = [what for what in table if "DisaggregatedSet," in what]
    assert set(row.split(", ")) == kinds
    (configuration_map,) = installed(CONFIG_MAPS)
    assert meta.name(configuration_map) == CONFIGURATION
    assert {f"the ConfigMap `{CONFIGURATION}`", f"Secret `{SECRET_NAME}`", f"{LEASES.kind} `{LEASE}`"} <= table
    assert labels.GROUP_RESTART_COUNTS in text_of(BACKUP)


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_backup_of_objects_keeps_user_content() -> None:
    own = {"controller": True, "kind": "DisaggregatedSet", "name": "split", "uid": "u"}
    mine: JSONObject = {
        "metadata": {
            "name": "web",
            "namespace": "default",
            "annotations": {labels.GROUP_RESTART_COUNTS: "{}", "team": "a"},
            "uid": "u1",
            "resourceVersion": "5",
            "managedFields": [],
        },
        "spec": {"replicas": 2},
        "status": {"replicas": 2},
    }
    owned: JSONObject = {"metadata": {"name": "split-a", "ownerReferences": [own]}, "spec": {}}
    (program,) = re.findall(r"jq '(.*?)'", text_of(BACKUP), re.DOTALL)
    sent = json.dumps({"kind": "List", "items": [mine, owned]})
    printed = subprocess.run(["jq", program], input=sent, capture_output=True, text=True, check=True, timeout=30).stdout
    metadata = {"name": "web", "namespace": "default", "annotations": {"team": "a"}}
    assert json.loads(printed)["items"] == [{"metadata": metadata, "spec": {"replicas": 2}}]


def test_upgrade_page_has_the_edges_of_the_catalog() -> None:
    head, *_ = [line for line in text_of(UPGRADE).splitlines() if line.startswith("| | package")]
    names = re.findall(r"`([\w-]+)`", head)
    table = {what: cells for what, *cells in rows(UPGRADE, "## Which versions are upgraded")}
    assert names == [package.name for package in PACKAGES]
    for index, package in enumerate(PACKAGES):
        edge = catalog.edges(package, leaderworkerset.__version__)
        assert table["channel"][index] == f"`{package.channels[0]}`"
        assert table["skips"][index] == f"`{edge['skips'][0]}`" == f"`{package.version_name(FORMER)}`"
        assert table["skip range"][index] == f"`{edge['skipRange']}`"
