"""Tests the files of the shipped chart without Helm. tests/kubernetes/programs tests the rendered chart."""

import json
import re
from functools import cache

import msgspec
from deploy.packages import chartvalues
from testkit.repository import ROOT

from kuberuntime.objects import duration, meta
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.manager.config.configuration import GangSchedulingManagement, GroupRestarts
from leaderworkerset.manager.config.configurationrules import GANG_PROVIDERS

CHART = ROOT / "deploy/helm/lws"


@cache
def files() -> dict[str, str]:
    """Return the chart files. `test_generate.py` checks that they are up to date."""
    return {str(path.relative_to(CHART)): path.read_text() for path in CHART.rglob("*") if path.is_file()}


def test_alert_texts_keep_prometheus_templates() -> None:
    """Helm would replace the templates with empty strings. Namespace and Service come from the release."""
    text = files()["templates/prometheusrule-controller-manager.yaml"]
    assert '{{ "{{ $labels.webhook }}" }}' in text
    assert not re.search(r"(?<!\")\{\{ \$labels", text)


def test_rendered_files_have_no_placeholder() -> None:
    """Rendering must fail if a token remains (R-OP-47, R-OP-82)."""
    assert {name for name, text in files().items() if re.search(r"__[A-Z]+__", text)} == set()


def test_every_value_is_used_and_has_schema_and_default() -> None:
    """Only values for compatibility with other charts have no effect (R-OP-53)."""
    schema = json.loads(files()["values.schema.json"])
    templates = "".join(text for name, text in files().items() if name.startswith("templates/"))
    for one in chartvalues.values():
        node = schema
        for level in one.name.split("."):
            node = node["properties"][level]
        assert node["description"] == one.about
        parent = ".".join(one.name.split(".")[:2])
        is_accepted_only = one.name in {"enableDisaggregatedSet", "service.port"}
        assert is_accepted_only or f".Values.{parent}" in templates, one.name


UPSTREAM = {
    *("nameOverride", "fullnameOverride", "replicaCount", "imagePullSecrets", "podAnnotations", "podSecurityContext"),
    *("image.manager.repository", "image.manager.tag", "image.manager.pullPolicy", "securityContext", "service.type"),
    *("service.port", "resources", "priorityClassName", "nodeSelector", "tolerations", "affinity"),
    *("enableCertManager", "enablePrometheus", "enableDisaggregatedSet", "gangSchedulingManagement"),
}


def test_every_value_of_the_go_chart_is_accepted() -> None:
    """Names and defaults are equal, except for image and replicas (R-OP-52)."""
    defaults = {one.name: one.default for one in chartvalues.values()}
    assert defaults.keys() >= UPSTREAM
    assert (defaults["service.type"], defaults["service.port"]) == ("ClusterIP", 9443)
    assert [defaults[name] for name in sorted(UPSTREAM) if name.startswith("enable")] == [False, False, False]
    empty = ("nameOverride", "imagePullSecrets", "podAnnotations", "priorityClassName", "tolerations", "affinity")
    assert not any(defaults[name] for name in empty)


def test_well_known_names_do_not_depend_on_the_release() -> None:
    """Names that other components look up are fixed (R-OP-52)."""
    found = {
        re.search(r"^  name: (\S+)$", text, re.MULTILINE)[1]  # type: ignore[index] # every object has a name
        for name, text in files().items()
        if name.startswith("templates/") and "\n  name: lws-" in text
    }
    assert found == {
        "lws-webhook-service",
        "lws-webhook-server-cert",
        "lws-mutating-webhook-configuration",
        "lws-validating-webhook-configuration",
        "lws-selfsigned-issuer",
        "lws-serving-cert",
        "lws-metrics-cert",
    }


def test_unknown_values_are_rejected() -> None:
    """The chart schema rejects unknown values (R-OP-53)."""
    schema = json.loads(files()["values.schema.json"])
    assert schema["additionalProperties"] is False
    assert schema["properties"]["service"]["properties"]["port"]["enum"] == [9443]


def test_unknown_gang_scheduler_is_rejected() -> None:
    """With an unknown scheduler, the manager would exit at each start (R-OP-53)."""
    section = json.loads(files()["values.schema.json"])["properties"]["gangSchedulingManagement"]
    assert section["additionalProperties"] is False
    assert section["properties"].keys() == {
        field.encode_name for field in msgspec.structs.fields(GangSchedulingManagement)
    }
    assert section["properties"]["schedulerProvider"]["enum"] == list(GANG_PROVIDERS)


def test_longest_service_names_are_valid() -> None:
    """All names have at most 63 characters with any release name (R-OP-52)."""
    texts = [text for name, text in files().items() if name.startswith("templates/service-")]
    tails = [
        tail
        for text in texts
        for tail in re.findall(r'^  name: {{ include "lws.fullname" . }}(\S+)$', text, re.MULTILINE)
    ]
    fullname = files()["templates/_helpers.tpl"].partition('define "lws.chart"')[0]
    lengths = {int(length) for length in re.findall(r"trunc (\d+)", fullname)}
    assert max(map(len, tails)) + max(lengths) <= 63
    assert len(re.findall("trunc", fullname)) == 3


def test_configuration_section_has_every_field_in_its_schema() -> None:
    """New fields of the configuration file immediately become chart values. Unknown fields are rejected."""
    section = json.loads(files()["values.schema.json"])["properties"]["groupRestarts"]
    assert section["additionalProperties"] is False
    assert section["properties"].keys() == {field.encode_name for field in msgspec.structs.fields(GroupRestarts)}
    pattern = section["properties"]["firstDelay"]["pattern"]
    for text in ("10s", "1h30m", "0", "1.5s"):
        assert re.search(pattern, text)
        duration.parse(text)
    for text in ("10", "", "ten", "-1s"):
        assert not re.search(pattern, text)


def test_template_blocks_are_closed() -> None:
    for name, text in files().items():
        if name.endswith((".yaml", ".tpl")):
            opened = len(re.findall(r"{{-? (?:if|with|range|define) ", text))
            assert len(re.findall(r"{{-? end ", text)) == opened, name


def test_upgrade_that_would_delete_a_definition_is_rejected() -> None:
    """Helm installs the CRDs but never deletes them (R-OP-54)."""
    names = {meta.name(one) for one in MANAGED.definitions()}
    assert {name for name in files() if name.startswith("crds/")} == {
        f"crds/{name.split('.')[0]}.yaml" for name in names
    }
    (refused,) = re.findall(r"range \$name := list (.*) }}", files()["templates/verify.yaml"])
    assert set(re.findall(r'"(.*?)"', refused)) == names
