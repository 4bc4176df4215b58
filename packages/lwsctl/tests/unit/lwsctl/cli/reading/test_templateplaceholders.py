"""Tests that unrendered templates are rejected with the line of the first action, except templates for containers."""

import pytest

from lwsctl.cli.reading import manifests

HEAD = "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata:\n  name: web\n"
REMEDY = "an unrendered template; render it first, for example with `helm template CHART | lws apply -f -`"


@pytest.mark.parametrize(
    ("text", "line", "action"),
    [
        (f"{HEAD}spec:\n  replicas: {{{{ .Values.replicas }}}}\n", 6, "{{ .Values.replicas }}"),
        (f'{HEAD}spec:\n  image: "{{{{ .Values.image }}}}"\n', 6, "{{ .Values.image }}"),
        (f"{HEAD}spec:\n  args: [a, 'x-{{{{- .Release.Name -}}}}']\n", 6, "{{- .Release.Name -}}"),
        ("{{- if .Values.on }}\n" + HEAD + "{{- end }}\n", 1, "{{- if .Values.on }}"),
        (
            f'{HEAD}  labels:\n    {{{{- include "a.labels" . | nindent 4 }}}}\n',
            6,
            '{{- include "a.labels" . | nindent 4 }}',
        ),
        (HEAD.replace("web", "{{ name }}"), 4, "{{ name }}"),
    ],
)
def test_unrendered_template_is_rejected_with_its_line(text: str, line: int, action: str) -> None:
    with pytest.raises(manifests.ManifestError) as caught:
        manifests.parse(text, "chart.yaml")
    assert str(caught.value) == f"chart.yaml:{line}: {action}: {REMEDY}"


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}spec:\n  args: ['--chat-template={{{{ messages[0].content }}}}']\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: chart}\ndata: {a: '{{ .Values.image }}'}\n",
    ],
)
def test_template_for_a_program_is_accepted(text: str) -> None:
    assert len(manifests.parse(text, "web.yaml")) == 1


def test_other_yaml_error_after_a_template_keeps_its_reason() -> None:
    with pytest.raises(manifests.ManifestError, match=r"^web\.yaml:8: invalid YAML"):
        manifests.parse(f"{HEAD}spec:\n  chat: '{{{{ messages }}}}'\n  x: [\n", "web.yaml")
