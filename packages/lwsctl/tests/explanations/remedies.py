"""Lists remedies that tests apply: broken templates by cause, and the `@remedy(CODE)` marks of tests."""

import re
from typing import Any, Final

from testkit.repository import ROOT


def asks(**requests: str) -> dict[str, Any]:
    """Return container fields that request these amounts."""
    amounts = {name.replace("__", "/").replace("_", "."): amount for name, amount in requests.items()}
    return {"container": {"resources": {"requests": amounts, "limits": amounts}}}


ELSEWHERE: Final = [{"labelSelector": {"matchLabels": {"app": "nobody"}}, "topologyKey": "zone"}]


HTTP: Final = {"httpGet": {"port": 8000}}
PROBE: Final = {**HTTP, "periodSeconds": 1}
"""A probe of a port without a listener."""

CLAIMS: Final = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]}
"""Device claims whose template does not exist on Kubernetes. The embedded cluster does not serve their kind."""
MOUNTED: Final = {"name": "data", "mountPath": "/data"}

TEMPLATES: Final[dict[str, dict[str, Any]]] = {
    "LWS-E012": {"container": {"ports": [{"containerPort": 99999}]}},
    "LWS-E025": {"serviceAccountName": "nobody"},
    "LWS-E026": {"priorityClassName": "urgent"},
    "LWS-E027": {"runtimeClassName": "no-such-runtime"},
    "LWS-E031": {"schedulingGates": [{"name": "tests.example.com/held"}]},
    "LWS-E033": {"schedulerName": "volcanoo"},
    "LWS-E035": asks(nvidia_com__gpu="8"),
    "LWS-E036": asks(cpu="40"),
    "LWS-E037": asks(memory="300Gi"),
    "LWS-E040": {"nodeSelector": {"gpu": "b300"}},
    "LWS-E042": {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ELSEWHERE}}},
    "LWS-E046": {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "models"}}]},
    "LWS-E047": {
        "nodeSelector": {"kubernetes.io/hostname": "node-61"},
        "container": {"ports": [{"containerPort": 8080, "hostPort": 38081}]},
    },
    "LWS-E048": asks(**{"ephemeral-storage": "900Ti"}),
    "LWS-E057": {"container": {"command": None}},
    "LWS-E062": {"container": {"image": "app:1:2"}},
    "LWS-E065": {"container": {"image": "mapped:1", "command": None}},
    "LWS-E067": CLAIMS,
    "LWS-E068": {"initContainers": [{"name": "first", "image": "app:1", "command": ["false"]}]},
    "LWS-E070": {"container": {"resources": {"limits": {"memory": "8Mi"}}}},
    "LWS-E071": {"container": {"command": ["false"]}},
    "LWS-E072": {"container": {"livenessProbe": PROBE | {"failureThreshold": 1}}},
    "LWS-E073": {"container": {"readinessProbe": PROBE}},
    "LWS-E075": {"container": {"command": ["true"]}},
    "LWS-E105": CLAIMS,
    "LWS-E112": {"container": {"securityContext": {"runAsNonRoot": True, "runAsUser": 0}}},
    "LWS-E114": {
        "volumes": [{"name": "data", "emptyDir": {}}],
        "container": {"volumeMounts": [MOUNTED | {"subPathExpr": "$(NOBODY)/models"}]},
    },
    "LWS-E115": {"container": {"lifecycle": {"postStart": HTTP}}},
    "LWS-E117": {"container": {"readinessProbe": {"httpGet": {"port": "serving"}}}},
}
"""The pod template fields that cause each code. The remedy is a template without them."""

ON_KUBERNETES: Final = frozenset({"LWS-E025", "LWS-E027", "LWS-E105"})
"""The causes that occur only with a real API server."""

OF_KUBELETS: Final = frozenset(
    f"LWS-E{number}"
    for number in ("057", "062", "065", "067", "068", "070", "071", "072", "073", "075", "112", "114", "115", "117")
)
"""The causes that a kubelet detects. The test control plane only simulates nodes."""

FOLDERS: Final = ("packages/lwsctl/tests/integration/lwsctl", "tests/kubernetes/shipped")

TRIED: Final = frozenset(
    {
        *TEMPLATES,
        *(
            code
            for folder in FOLDERS
            for file in (ROOT / folder).glob("test_*.py")
            for code in re.findall(r'^@remedy\("(LWS-E\d{3})"\)$', file.read_text(), re.MULTILINE)
        ),
    }
)
"""The causes with a test that applies their remedy."""
