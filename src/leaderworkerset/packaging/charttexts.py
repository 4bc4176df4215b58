"""The texts of the chart that are not objects of an installation: named templates, notes, test, README."""

from collections.abc import Iterable
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.packaging import chartvalues

LONGEST_NAME: Final = 63 - len("-controller-manager-metrics-service")
"""The characters of what names begin with: a longer one would make the name of a Service invalid."""

_HELPERS: Final = """\
{{- define "lws.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc __LENGTH__ | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc __LENGTH__ | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc __LENGTH__ | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "lws.chart" -}}
{{- printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "lws.image" -}}
{{- with .Values.image.manager -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}
{{- end -}}
"""

HELPERS: Final = _HELPERS.replace("__LENGTH__", str(LONGEST_NAME))

_REFUSALS: Final = """\
{{- /* Helm deletes what a release had as a template and has no more: a definition, with every object of its kind. */}}
{{- if .Release.IsUpgrade }}
{{- range $name := list __DEFINITIONS__ }}
{{- $notes := dig "metadata" "annotations" dict (lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $name) }}
{{- if and (hasKey $notes "meta.helm.sh/release-name") (ne (get $notes "helm.sh/resource-policy") "keep") }}
{{- fail (printf "customresourcedefinition/%s belongs to a release, whose upgrade would delete it with all its objects: first run `kubectl annotate crd %s helm.sh/resource-policy=keep`" $name $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- if regexMatch "(^|/)lws/lws$" .Values.image.manager.repository }}
{{- fail (printf "image.manager.repository: Invalid value: %q: the Go project's manager cannot serve this chart; set the repository that you pushed the image of deploy/Containerfile to, and its tag" .Values.image.manager.repository) }}
{{- end }}
"""

NOTES: Final = """\
The manager of LeaderWorkerSets is installed in namespace {{ .Release.Namespace }}.

Wait until it answers:

  kubectl rollout status deployment/{{ include "lws.fullname" . }}-controller-manager -n {{ .Release.Namespace }}
  helm test {{ .Release.Name }} -n {{ .Release.Namespace }}

Helm installs definitions (crds/) once and never updates them. Before an upgrade of the chart:

  kubectl apply --server-side --force-conflicts -f crds/

`helm uninstall` leaves the definitions, and with them every LeaderWorkerSet.
{{- with .Values.image.manager }}
{{- if hasPrefix "localhost/" .repository }}

WARNING: no cluster can pull {{ include "lws.image" $ }}, unless every node has it: set image.manager.repository.
{{- end }}
{{- if and (not .digest) (regexMatch "^(main|v[0-9].*)$" (toString .tag)) }}

WARNING: image.manager.tag {{ .tag }} has the form of the Go project's tags: is it kept from a release of its chart?
{{- end }}
{{- end }}
"""

TEST: Final = """\
apiVersion: v1
kind: Pod
metadata:
  name: {{ include "lws.fullname" . }}-test-webhook
  namespace: {{ .Release.Namespace | quote }}
  annotations:
    helm.sh/hook: test
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
{{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
{{- end }}
  containers:
  - name: webhook
    image: {{ include "lws.image" . }}
    command: [/opt/lws/bin/python, -IBc]
    args:
    - "import socket; socket.create_connection(('lws-webhook-service.{{ .Release.Namespace }}.svc', 443), 30).close()"
    securityContext:
      {{- toYaml .Values.securityContext | nindent 6 }}
"""

HEAD: Final = """\
# lws

The manager of LeaderWorkerSets, as a chart. Every template is generated from the objects that `lws install` applies.

```text
helm install lws deploy/helm/lws --namespace lws-system --create-namespace
```

One release per cluster: the webhooks' service, secret and configurations have fixed names.

| value | default | what it does |
|---|---|---|
"""


def refusals(definitions: Iterable[JSONObject]) -> str:
    """Return the template that renders nothing, or ends with what would be lost."""
    return _REFUSALS.replace("__DEFINITIONS__", " ".join(f'"{meta.name(one)}"' for one in definitions))


def readme() -> str:
    """Return the README with the table of all values."""
    rows = [f"| `{one.name}` | `{_short(one.default)}` | {one.about} |" for one in chartvalues.values()]
    return HEAD + "\n".join(rows) + "\n"


def _short(default: object) -> str:
    text = repr(default).replace("'", "")
    return text if len(text) < 60 else "see values.yaml"
