"""Tests that the dashboard on a cluster only reads objects, and that its manifests match the command."""

import yaml
from deploy.packages import dashboarddeployment
from deploy.packages.dashboarddeployment import ARGUMENTS, COMMAND, NAME, PORT, SELECTOR
from testkit.repository import ROOT

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import metadata
from lwsctl.cli.commands import dashboard

DEPLOY = ROOT / "deploy"
OBJECTS: dict[str, JSONObject] = {
    obj["kind"]: obj for _, obj in dashboarddeployment.build_dashboard("lws-system", "image:1")
}


def test_dashboard_account_reads_no_secrets() -> None:
    rules = OBJECTS["ClusterRole"]["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} <= {"get", "list", "watch"}
    read = {resource for rule in rules for resource in rule["resources"]}
    assert {"leaderworkersets", "pods", "pods/log", "nodes"} <= read
    assert not read & {"secrets", "pods/exec", "pods/portforward", "serviceaccounts/token", "*"}
    assert [one["name"] for one in OBJECTS["ClusterRoleBinding"]["subjects"]] == [NAME]


def test_dashboard_arguments_are_accepted_by_the_program() -> None:
    assert COMMAND[-2:] == ("lwsctl.cli", "dashboard")
    given = dashboard.command.make_context("dashboard", list(ARGUMENTS)).params
    assert (given["listen"], given["port"], given["everywhere"], given["allows_actions"]) == (
        "0.0.0.0",
        PORT,
        True,
        True,
    )


def test_dashboard_pods_are_restricted_and_separate() -> None:
    pod = meta.spec(meta.spec(OBJECTS["Deployment"])["template"])
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert not metadata.SELECTOR.items() <= SELECTOR.items()
    for kind in ("Service", "NetworkPolicy"):
        spec = meta.spec(OBJECTS[kind])
        assert (spec.get("selector") or spec["podSelector"]["matchLabels"]) == SELECTOR
    assert meta.spec(OBJECTS["NetworkPolicy"])["ingress"] == []


def test_dashboard_is_an_option_of_kustomize_and_the_chart() -> None:
    component = DEPLOY / "kustomize/components/dashboard"
    assert list(yaml.safe_load_all((component / "objects.yaml").read_text()))[-1]["metadata"]["name"] == NAME
    assert yaml.safe_load((component / "kustomization.yaml").read_text())["kind"] == "Component"
    values = yaml.safe_load((DEPLOY / "helm/lws/values.yaml").read_text())
    assert values["dashboard"]["enable"] is False
    templates = list((DEPLOY / "helm/lws/templates").glob("*-dashboard*.yaml"))
    assert len(templates) == len(OBJECTS)
    assert all(path.read_text().startswith("{{- if .Values.dashboard.enable }}\n") for path in templates)
