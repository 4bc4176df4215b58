"""Generates `docs/reference/conformance.md` from the table of differences.

Run it with `python -m tests.conformance.document`.
"""

from testkit.repository import ROOT
from tests.conformance.refused import TABLE

PAGE = ROOT / "docs/reference/conformance.md"

HEAD = """# Conformance

This page explains how the embedded cluster is compared with Kubernetes. Tests send the same requests to it and to Kubernetes 1.36, and compare
the responses.

| part | compared with | how |
|---|---|---|
| API server | kube-apiserver | sends the same requests to both, which are written by hand or generated; compares status codes, reasons, messages, causes, whole objects with their `managedFields`, generations, and the order of watch events |
| StatefulSet controller, garbage collector, taint-based evictions | kube-controller-manager | runs the same scenarios on both; compares all objects in a stable state, and the order of pods if it is defined |
| both, with `kubectl` | the same kubectl on a control plane with kwok | runs get, apply, diff, patch, scale, label, annotate, replace, describe, delete, wait, rollout, explain, api-resources, auth, create and cordon on both; runs logs, attach, exec and port-forward only on the embedded cluster |

```bash
pytest packages/localkube/tests/conformance tests/kubernetes/kubectl    # LWS_CONTROLPLANE_ASSETS=FOLDER uses built binaries
```

The comparison ignores UIDs, times, ages, continue tokens, generated suffixes and the order of causes. Values of resourceVersion are compared by their
order.

## Differences

Each row corresponds to a pattern in `packages/localkube/tests/conformance/refused.py` or `refusedwords.py`. The tests fail on any other difference.

| embedded cluster | reason |
|---|---|
"""

TAIL = """
## Limits

| limit | embedded cluster | kube-apiserver |
|---|---|---|
| nesting depth of JSON and YAML | 100, so that recursion is safe; the largest CRDs in use have about 60 | 10,000 |
| a field set in `managedFields` | 95 levels; deeper fields are owned as a whole, so that clients can send the object | none |
| `pattern` in a CRD | RE2 syntax without Unicode scripts (`\\p{Greek}`), at most 5,000 instructions; matched in linear time | RE2 |
| time to match one value with a `pattern` | about one second; otherwise the value is rejected as too long | none |

## kubectl

| request | response |
|---|---|
| `kubectl port-forward` | served over WebSockets, which kubectl uses since 1.31; for a Service, kubectl uses its `targetPort` unless it is headless, as on any cluster |
| `kubectl attach` | complete lines of new output; without standard input, because containers have none |
| `kubectl debug` | 501, with the name of the unserved subresource |
| `kubectl create` of a kind that is not supported in protobuf (Deployment, Job, Role …) | 415 or 404 |
| `kubectl top` | shows the measured resource usage of pods and nodes |
| `kubectl explain` | LeaderWorkerSets and custom resources with the descriptions in their CRDs; built-in kinds with one line per type, and fields without descriptions |
"""


def build() -> str:
    """Return the content of the page."""
    rows = [f"| {one.what} | {one.why} |" for one in TABLE]
    return HEAD + "\n".join(rows) + "\n" + TAIL


if __name__ == "__main__":
    PAGE.write_text(build())
