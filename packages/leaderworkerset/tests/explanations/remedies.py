"""Broken templates by the code of their cause: `tests/integration/lws/test_remedies.py` corrects each, and counts the untested causes."""

from typing import Any, Final


def asks(**requests: str) -> dict[str, Any]:
    """Return the fields of a container that requests these amounts."""
    amounts = {name.replace("__", "/").replace("_", "."): amount for name, amount in requests.items()}
    return {"container": {"resources": {"requests": amounts, "limits": amounts}}}


ELSEWHERE: Final = [{"labelSelector": {"matchLabels": {"app": "nobody"}}, "topologyKey": "zone"}]

TEMPLATES: Final[dict[str, dict[str, Any]]] = {
    "LWS-E012": {"container": {"ports": [{"containerPort": 99999}]}},
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
}
"""By code, the fields of a pod template that cause it; the remedy is a template without them."""

ON_KUBERNETES: Final = frozenset({"LWS-E027"})
"""The causes that only a real API server has."""

TRIED: Final = frozenset({*TEMPLATES, "LWS-E020", "LWS-E039", "LWS-E041", "LWS-E043"})

MOST_UNTRIED: Final = 33
"""The number of causes with a remedy that a test could apply, and none does; it may only fall."""
