"""Tests the permissions of the installed roles, and their limits."""

from typing import Any

from kuberuntime.objects.resources import ROLE_BINDINGS, ROLES
from kuberuntime.policyrules import policy_rules
from leaderworkerset.core.admission import podpolicy
from leaderworkerset.install import rbac
from leaderworkerset.kinds.managedkinds import MANAGED

READING = {"get", "list", "watch"}
ALL = rbac.roles("lws-system", MANAGED.permissions)
CLUSTER_RULES = [rule for kind, obj in ALL if kind.kind == "ClusterRole" for rule in obj["rules"]]
RULES = [rule for kind, obj in ALL if kind.kind in {"Role", "ClusterRole"} for rule in obj["rules"]]


def verbs(rules: list[dict[str, Any]], target: str) -> set[str]:
    return {verb for rule in rules if target in rule.get("resources", []) for verb in rule["verbs"]}


def test_roles_reach_only_the_webhook_secret() -> None:
    """Permissions are minimal, namespaced, and by name. A role cannot restrict creations by name."""
    assert verbs(CLUSTER_RULES, "secrets") == set()
    rules = [rule for rule in RULES if "secrets" in rule.get("resources", [])]
    unnamed = [rule for rule in rules if rule.get("resourceNames") != ["lws-webhook-server-cert"]]
    assert [rule["verbs"] for rule in unnamed] == [["create"]]


def test_roles_only_read_nodes() -> None:
    """Upstream has permissions to update and patch these objects, but never uses them."""
    assert verbs(RULES, "nodes") <= READING


def test_roles_create_leaderworkersets_for_their_owners_only() -> None:
    """The owners' controllers write status and restart counts, and delete sets when their time to live expires.

    Rules R-ARC-6, R-DS-106, N-KEY-3, N-RB-17, N-RBAC-2.
    """
    own = [rule for kind in MANAGED.kinds[:2] for spec in kind.controllers for rule in spec.permissions]
    assert verbs(policy_rules(own), "leaderworkersets") <= READING | {"delete", "patch"}
    assert verbs(RULES, "leaderworkersets") == (READING - {"get"}) | {"create", "delete", "patch"}
    assert verbs(RULES, "leaderworkersets/status") == {"update"}


def test_roles_write_only_own_webhook_configurations() -> None:
    for plural in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        (rule,) = [rule for rule in RULES if plural in rule.get("resources", [])]
        assert len(rule["resourceNames"]) == 1


def test_roles_have_no_wildcards() -> None:
    assert all("*" not in str(rule) for rule in RULES)


def test_namespaced_roles_stay_in_their_namespace() -> None:
    assert all(obj["metadata"]["namespace"] == "lws-system" for kind, obj in ALL if kind in {ROLES, ROLE_BINDINGS})
    assert verbs(CLUSTER_RULES, "leases") == set()


def test_every_role_except_the_metrics_reader_is_bound() -> None:
    """The manager serves metrics but does not read them, so the role is for the scraper."""
    roles = [(kind.kind, obj["metadata"]["name"]) for kind, obj in ALL if "roleRef" not in obj]
    bound = [(obj["roleRef"]["kind"], obj["roleRef"]["name"]) for _, obj in ALL if "roleRef" in obj]
    assert [one for one in roles if one not in bound] == [("ClusterRole", "lws-metrics-reader")]
    assert len(roles) == len(bound) + 1
    subject = {"kind": "ServiceAccount", "name": "lws-controller-manager", "namespace": "lws-system"}
    assert all(obj["subjects"] == [subject] for _, obj in ALL if "roleRef" in obj)


def test_roles_change_only_the_election_lease() -> None:
    """A role cannot restrict creations by name. All other verbs are restricted to the lease."""
    named = {
        verb: rule.get("resourceNames")
        for rule in RULES
        if "leases" in rule.get("resources", [])
        for verb in rule["verbs"]
    }
    assert named == {"create": None, "get": ["b8b2488c.x-k8s.io"], "update": ["b8b2488c.x-k8s.io"]}


EVERYTHING = READING | {"create", "delete", "patch", "update"}
SETS = ("leaderworkersets", "disaggregatedsets", "disaggregatedsetrolescalers")
GROUPS = {"leaderworkersets": "leaderworkerset.x-k8s.io"}
STATUS = {"get", "patch", "update"}
KEPT = ("statefulsets", "deployments", "controllerrevisions")
UPSTREAM: dict[tuple[str, str], set[str]] = {
    ("", "nodes"): READING | {"patch", "update"},
    ("", "pods"): EVERYTHING,
    ("", "services"): EVERYTHING,
    ("", "pods/finalizers"): {"update"},
    ("", "secrets"): READING | {"update"},
    ("", "events"): READING | {"create", "patch", "update"},
    ("events.k8s.io", "events"): READING | {"create", "patch", "update"},
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): READING | {"update"},
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): READING | {"update"},
    ("", "pods/status"): STATUS,
    **{("apps", name): EVERYTHING for name in KEPT},
    **{("apps", f"{name}/finalizers"): {"update"} for name in KEPT},
    **{("apps", f"{name}/status"): STATUS for name in KEPT},
    **{(GROUPS.get(name, "disaggregatedset.x-k8s.io"), name): EVERYTHING for name in SETS},
    **{(GROUPS.get(name, "disaggregatedset.x-k8s.io"), f"{name}/status"): STATUS for name in SETS},
    ("leaderworkerset.x-k8s.io", "leaderworkersets/finalizers"): {"update"},
    ("disaggregatedset.x-k8s.io", "disaggregatedsets/finalizers"): {"update"},
    ("authentication.k8s.io", "tokenreviews"): {"create"},
    ("authorization.k8s.io", "subjectaccessreviews"): {"create"},
    ("", "configmaps"): EVERYTHING,
    ("coordination.k8s.io", "leases"): EVERYTHING,
}

BEYOND_UPSTREAM = {
    ("", "namespaces", "get"),
    ("", "secrets", "create"),
    *(("admissionregistration.k8s.io", kind.plural, verb) for kind in podpolicy.KINDS for verb in ("delete", "get")),
}
"""The manager checks whether a namespace that contains evidence is being deleted (docs/adr/0017-newest.md).

The manager creates the secret of its certificate if somebody deleted it (docs/adr/0005-installation.md). It removes its own
policy of pods if its configuration does not allow one (docs/adr/0050-pod-policies.md).
"""


def test_roles_permit_no_more_than_the_go_manager() -> None:
    """The names are equal, and the permissions are a subset of the upstream permissions (R-OP-33, N-RBAC-1)."""
    names = {(kind.kind, obj["metadata"]["name"]) for kind, obj in ALL}
    assert {name for kind, name in names if kind == "ClusterRole"} == {
        "lws-manager-role",
        "lws-proxy-role",
        "lws-metrics-reader",
    }
    assert ("Role", "lws-leader-election-role") in names
    granted = {
        (rule["apiGroups"][0], name, verb)
        for rule in RULES
        for name in rule.get("resources", [])
        for verb in rule["verbs"]
    }
    allowed = {(group, name, verb) for (group, name), verbs_there in UPSTREAM.items() for verb in verbs_there}
    assert granted
    assert granted - allowed == BEYOND_UPSTREAM
    assert [rule for rule in RULES if "nonResourceURLs" in rule] == [
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    ]
