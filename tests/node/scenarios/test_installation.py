"""Tests the permissions, the metrics and the reports of the installed product."""

import json
from pathlib import Path

from testkit.repository import ROOT
from tests.node.cluster import NodeCluster
from tests.node.objects import leaderworkerset, pod
from tests.node.place import Place
from tests.node.product import NAMESPACE

MANAGERS = ("--namespace", NAMESPACE, "--selector=control-plane=controller-manager")


def manager_pods(nodes: NodeCluster) -> list[dict[str, object]]:
    """Return the manager pods."""
    found: list[dict[str, object]] = json.loads(nodes.kubectl("get", "pods", *MANAGERS, "--output=json"))["items"]
    return found


def test_namespace_enforces_restricted_pods(nodes: NodeCluster) -> None:
    label = "jsonpath={.metadata.labels.pod-security\\.kubernetes\\.io/enforce}"
    assert nodes.kubectl("get", "namespace", NAMESPACE, f"--output={label}") == "restricted"


def test_managers_run_without_privileges_on_their_node(nodes: NodeCluster) -> None:
    name = str(manager_pods(nodes)[0]["metadata"]["name"])  # type: ignore[index]
    status = nodes.kubectl("exec", f"--namespace={NAMESPACE}", name, "--", "cat", "/proc/1/status", "/proc/1/mounts")
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["Uid"].split() == ["65532"] * 4
    assert fields["NoNewPrivs"] == "1"
    assert {int(fields[name], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapInh")} == {0}
    root = next(line.split() for line in status.splitlines() if line.split()[1:2] == ["/"])
    assert root[3].split(",")[0] == "ro"


def test_managers_run_on_both_nodes(nodes: NodeCluster) -> None:
    assert {pod["spec"]["nodeName"] for pod in manager_pods(nodes)} == {"node1", "node2"}  # type: ignore[index]


def test_doctor_finds_no_problem(place: Place) -> None:
    place.lws("doctor", "--no-machine")


def test_network_policies_are_accepted(place: Place) -> None:
    """The API server accepts the network policies of the manager and on the page.

    The node network does not enforce policies.
    """
    found = place.cluster.kubectl("get", "networkpolicies", f"--namespace={NAMESPACE}", "--output=name").split()
    assert found == ["networkpolicy.networking.k8s.io/lws-controller-manager"]
    page = (ROOT / "docs" / "how-to" / "ports.md").read_text()
    (policy,) = (block for block in page.split("```yaml\n")[1:] if "kind: NetworkPolicy" in block)
    place.kubectl("apply", "--filename=-", text=policy.partition("```")[0])
    assert place.kubectl("get", "networkpolicies", "--output=name") == "networkpolicy.networking.k8s.io/groups\n"


def test_metrics_require_a_token(place: Place) -> None:
    place.kubectl("create", "serviceaccount", "reader")
    account = f"--serviceaccount={place.name}:reader"
    binding = f"reader-{place.name}"
    place.cluster.kubectl("create", "clusterrolebinding", binding, "--clusterrole=lws-metrics-reader", account)
    try:
        token = place.kubectl("create", "token", "reader").strip()
        address = json.loads(place.cluster.kubectl("get", "endpointslices", "--namespace", NAMESPACE, "--output=json"))
        target = next(
            f"{endpoint['addresses'][0]}:{port['port']}"
            for one in address["items"]
            for port in one["ports"]
            for endpoint in one["endpoints"]
            if port["port"] == 8443
        )
        place.until(lambda: "controller_runtime_reconcile_total" in scrape(place, target, token), "metrics")
        assert scrape(place, target, "") == "401"
    finally:
        place.cluster.kubectl("delete", "clusterrolebinding", binding)


def scrape(place: Place, target: str, token: str) -> str:
    """Return the metrics of a manager, or the status code if the manager rejects the request."""
    words = ["curl", "--silent", "--insecure", "--write-out", "", f"https://{target}/metrics"]
    given = (
        ["--header", f"Authorization: Bearer {token}"]
        if token
        else ["--output", "/dev/null", "--write-out", "%{http_code}"]
    )
    with place.running([*words, *given]) as process:
        return process.communicate()[0]


def test_must_gather_contains_a_set_and_the_manager(place: Place, tmp_path: Path) -> None:
    place.ready(leaderworkerset("gathered", pod()), 2)
    target = tmp_path / "gathered"
    place.lws("must-gather", "--dest-dir", str(target))
    texts = [path.read_text(errors="replace") for path in target.rglob("*") if path.is_file()]
    for wanted in ("name: gathered", "lws-controller-manager"):
        assert any(wanted in text for text in texts), wanted


def test_dashboard_exports_a_set(place: Place) -> None:
    place.ready(leaderworkerset("shown", pod(), replicas=2), 4)
    assert "2 of 2 groups ready" in place.lws("dashboard", "--export", "shown")


def test_commands_read_a_real_cluster(place: Place) -> None:
    place.ready(leaderworkerset("seen", pod()), 2)
    assert "seen-0-1" in place.lws("get", "seen", "-o", "wide")
    assert "group 0" in place.lws("tree", "seen")
    assert "1 desired, 1 ready" in place.lws("describe", "seen")
    assert "Scheduled" in place.lws("events", "seen")
    assert "node2" in place.lws("nodes")
