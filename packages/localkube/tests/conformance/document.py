"""Generates `docs/reference/conformance.md` from the table of differences.

Run it with `python -m tests.conformance.document`.
"""

from testkit.repository import ROOT
from tests.conformance.refused import TABLE

PAGE = ROOT / "docs/reference/conformance.md"

HEAD = """# Conformance

This page explains how the embedded cluster is compared with Kubernetes. Tests send the same requests to the embedded cluster and to Kubernetes 1.36, and compare the responses.

| part | compared with | method |
|---|---|---|
| the API server | kube-apiserver | The tests send the same requests, which are handwritten or generated, to both servers. They compare status codes, reasons, messages, causes, whole objects with their `managedFields`, generations, and the order of watch events. |
| the StatefulSet controller, the garbage collector and taint-based evictions | kube-controller-manager | The tests run the same scenarios on both clusters. They compare all objects in a stable state, and, if it is defined, the order of pods. |
| the output of `kubectl` | a control plane with kwok | The tests run get, apply, diff, patch, scale, label, annotate, replace, describe, delete, wait, rollout, explain, api-resources, auth, create and cordon on both clusters. They run logs, attach, exec and port-forward only on the embedded cluster. |

```bash
pytest packages/localkube/tests/conformance tests/kubernetes/kubectl    # LWS_CONTROLPLANE_ASSETS=FOLDER uses built binaries
```

The comparison ignores UIDs, times, ages, continue tokens, generated suffixes and the order of causes. For resourceVersions, it considers only their order.

## Differences

Each row corresponds to a pattern in `packages/localkube/tests/conformance/refused.py` or `refusedwords.py`. The tests fail if they find any other difference.

| behavior of the embedded cluster | reason |
|---|---|
"""

TAIL = """
## Limits

| limit | embedded cluster | kube-apiserver |
|---|---|---|
| nesting depth of JSON and YAML | 100 levels, so that recursion is safe. The largest CRDs in use have about 60 levels. | 10,000 levels |
| depth of a field set in `managedFields` | 95 levels. Fields below this depth are owned as a whole, so that clients can send the object in a request. | no limit |
| syntax of a `pattern` in a CRD | RE2 syntax without Unicode scripts (`\\p{Greek}`), and at most 5,000 instructions. The time to match a value is linear in the length of the value. | RE2 syntax |
| time to match one value against a `pattern` | About one second. If a match would take longer, the value is rejected with an error that the value is too long. | no limit |

## kubectl

| command | behavior |
|---|---|
| `kubectl port-forward` | The embedded cluster supports WebSockets, which kubectl has used since version 1.31. For a Service that is not headless, kubectl uses the `targetPort`, as on any cluster. |
| `kubectl attach` | The command prints new output line by line. Standard input is not supported. |
| `kubectl debug` | The API server returns status 501. The message contains the name of the unsupported subresource. |
| `kubectl create` of unsupported kinds, such as Job or Role | The API server returns status 404 if the kind is not served, or 415 if the kind is not supported in protobuf. |
| `kubectl top` | The command prints the measured resource usage of pods and nodes. |
| `kubectl explain` | For LeaderWorkerSets and custom resources, the command prints the descriptions in their CRDs. For built-in kinds, the command prints a one-line description of each type, and the names of its fields. |
"""


def build() -> str:
    """Return the content of the page."""
    rows = [f"| {one.what} | {one.why} |" for one in TABLE]
    return HEAD + "\n".join(rows) + "\n" + TAIL


if __name__ == "__main__":
    PAGE.write_text(build())
