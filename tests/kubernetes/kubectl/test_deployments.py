"""Tests Deployments with kubectl: rollouts, history, undo, pause, scaling, and access to one of the pods."""

import json

import pytest
from tests.kubernetes.kubectl.conftest import Place
from tests.kubernetes.kubectl.objects import pod

from kuberuntime.objects.meta import JSONObject

READY = "{.status.readyReplicas}"
LIMIT = "--timeout=60s"


def web(**spec: object) -> JSONObject:
    """Return a Deployment with two replicas."""
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": pod()["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template, **spec},
    }


def roll_out(place: Place, version: str) -> None:
    """Change the pod template, and wait until the rollout completes."""
    place.run("set", "env", "deployment/web", f"VERSION={version}")
    place.run("annotate", "--overwrite", "deployment/web", f"kubernetes.io/change-cause=version {version}")
    assert "successfully rolled out" in place.run("rollout", "status", "deployment/web", LIMIT)


def version_of(place: Place) -> str:
    env = json.loads(place.run("get", "deployment", "web", "-o", "json"))["spec"]["template"]["spec"]["containers"][0]
    return str({one["name"]: one.get("value") for one in env.get("env") or ()}.get("VERSION"))


def test_rollout_is_followed_and_undone(place: Place) -> None:
    place.apply(web())
    assert "successfully rolled out" in place.run("rollout", "status", "deployment/web", LIMIT)
    roll_out(place, "2")
    history = place.run("rollout", "history", "deployment/web")
    assert [line.split(maxsplit=1) for line in history.splitlines()[2:4]] == [["1", "<none>"], ["2", "version 2"]]
    assert "VERSION:\t2" in place.run("rollout", "history", "deployment/web", "--revision=2")
    assert "rolled back" in place.run("rollout", "undo", "deployment/web")
    place.run("rollout", "status", "deployment/web", LIMIT)
    assert version_of(place) == "None"
    place.run("rollout", "undo", "deployment/web", "--to-revision=2")
    place.run("rollout", "status", "deployment/web", LIMIT)
    assert version_of(place) == "2"


def test_paused_rollout_waits_and_a_restart_replaces_all_pods(place: Place) -> None:
    place.apply(web())
    place.run("rollout", "status", "deployment/web", LIMIT)
    before = set(place.run("get", "pods", "-o", "name").split())
    place.run("rollout", "pause", "deployment/web")
    place.run("set", "env", "deployment/web", "VERSION=2")
    place.run("scale", "deployment/web", "--replicas=3")
    place.run("wait", "deployment/web", "--for=jsonpath={.status.readyReplicas}=3", LIMIT)
    assert before < set(place.run("get", "pods", "-o", "name").split())
    place.run("rollout", "resume", "deployment/web")
    place.run("rollout", "status", "deployment/web", LIMIT)
    place.run("rollout", "restart", "deployment/web")
    place.run("rollout", "status", "deployment/web", LIMIT)
    assert len(place.run("get", "replicasets", "-l", "app=web", "-o", "name").split()) == 3


def test_tables_and_descriptions_show_the_state(place: Place) -> None:
    place.apply(web())
    place.run("wait", "deployment/web", "--for=condition=Available", LIMIT)
    place.run("rollout", "status", "deployment/web", LIMIT)
    assert place.run("get", "deploy", "--no-headers").split()[:4] == ["web", "2/2", "2", "2"]
    assert place.run("get", "rs", "--no-headers").split()[1:4] == ["2", "2", "2"]
    told = place.shows("Scaled up replica set web-", "describe", "deployment", "web")
    assert "2 desired | 2 updated | 2 total | 2 available | 0 unavailable" in told
    assert "NewReplicaSetAvailable" in told
    place.run("delete", "deployment", "web", "--cascade=foreground")
    assert "No resources found" in place.run("get", "deployments,replicasets,pods", "-l", "app=web")


def test_logs_and_exec_select_a_pod_of_the_deployment(place: Place) -> None:
    if place.name != "embedded":
        pytest.skip("kwok runs no processes")
    place.apply(web(replicas=1))
    place.run("rollout", "status", "deployment/web", LIMIT)
    assert place.run("exec", "deployment/web", "--", "echo", "here").strip() == "here"
    assert place.shows("world", "logs", "deployment/web").split() == ["hello", "world"]


def test_deployment_and_budget_are_created_without_a_manifest(place: Place) -> None:
    made = ("create", "deployment", "idle", "--image=app:1", "--replicas=2", "--port=8080", "--", "sleep", "1000")
    assert "created" in place.run(*made)
    assert "successfully rolled out" in place.run("rollout", "status", "deployment/idle", LIMIT)
    container = json.loads(place.run("get", "deployment", "idle", "-o", "json"))["spec"]["template"]["spec"][
        "containers"
    ]
    assert [(one["name"], one["command"], one["ports"][0]["containerPort"]) for one in container] == [
        ("app", ["sleep", "1000"], 8080)
    ]
    assert "created" in place.run("create", "poddisruptionbudget", "idle", "--selector=app=idle", "--min-available=50%")
    assert place.run("get", "pdb", "idle", "-o", "jsonpath={.spec.minAvailable}") == "50%"
    assert "created" in place.run("create", "deployment", "none", "--image=app:1", "--replicas=0")
    assert place.run("get", "deployment", "none", "-o", "jsonpath={.spec.replicas}") == "0"
