"""Defines containers and volumes that a kubelet cannot create, and images that it cannot pull."""

import json
from collections.abc import Mapping
from typing import Final

from tests.node import registry
from tests.node.objects import container, pod
from tests.node.situations.situation import Situation, codes, main

from kuberuntime.objects.meta import JSONObject

SETTINGS: Final[JSONObject] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings"},
    "data": {"a": "b"},
}


PRIVATE: Final = f"{registry.ADDRESS}/private/model:1"
WRONG_LOGIN: Final[JSONObject] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "login"},
    "type": "kubernetes.io/dockerconfigjson",
    "stringData": {".dockerconfigjson": json.dumps({"auths": {registry.ADDRESS: {"username": "a", "password": "b"}}})},
}


def mounting(volume: JSONObject, **mount: object) -> JSONObject:
    """Return a pod template with a volume."""
    mounted = [{"name": "kept", "mountPath": "/kept", **mount}]
    return pod(container(volumeMounts=mounted), volumes=[{"name": "kept", **volume}])


REFUSED: Final[Mapping[str, Situation]] = {
    "run-as-non-root": Situation(
        main(securityContext={"runAsNonRoot": True}), codes(112), ("runAsNonRoot", "runAsUser"), never=("namespace ex",)
    ),
    "seccomp-profile": Situation(
        main(securityContext={"seccompProfile": {"type": "Localhost", "localhostProfile": "absent.json"}}),
        codes(112),
        ("absent.json",),
        never=("correct command",),
    ),
    "no-config-map": Situation(
        main(envFrom=[{"configMapRef": {"name": "absent"}}]), codes(66), ("configmap", "absent")
    ),
    "no-secret": Situation(main(envFrom=[{"secretRef": {"name": "absent"}}]), codes(66), ("secret", "absent")),
    "no-key": Situation(
        main(env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "absent"}}}]),
        codes(66),
        ("settings", "absent"),
        objects=(SETTINGS,),
    ),
    "no-config-map-volume": Situation(mounting({"configMap": {"name": "absent"}}), codes(64), ("absent",)),
    "no-secret-volume": Situation(mounting({"secret": {"secretName": "absent"}}), codes(64), ("absent",)),
    "sub-path": Situation(
        mounting({"configMap": {"name": "settings"}}, subPath="a/b"), codes(114), ("kept",), objects=(SETTINGS,)
    ),
    "no-directory": Situation(
        mounting({"hostPath": {"path": "/no/such/models", "type": "Directory"}}), codes(64), ("/no/such/models",)
    ),
    "no-claim": Situation(mounting({"persistentVolumeClaim": {"claimName": "absent"}}), codes(46), ("absent",)),
    "unbound-claim": Situation(
        mounting({"persistentVolumeClaim": {"claimName": "unbound"}}),
        codes(44),
        ("unbound",),
        frozenset({"progressing", "stuck"}),
        objects=(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "unbound"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            },
        ),
        gives_up=False,
    ),
    "image-never-pulled": Situation(
        main(image="localhost/absent:1", imagePullPolicy="Never"), codes(63), ("localhost/absent:1",)
    ),
    "image-of-no-registry": Situation(
        main(image="localhost:1/absent:1", imagePullPolicy="Always"), codes(59), ("localhost:1",)
    ),
    "image-of-unknown-host": Situation(
        main(image="registry.invalid/absent:1", imagePullPolicy="Always"), codes(59), ("registry.invalid",)
    ),
    "image-absent": Situation(
        main(image=f"{registry.ADDRESS}/absent:1", imagePullPolicy="Always"), codes(60), (f"{registry.ADDRESS}/absent",)
    ),
    "image-denied": Situation(main(image=PRIVATE, imagePullPolicy="Always"), codes(61), (PRIVATE,)),
    "no-pull-secret": Situation(
        pod(container(image=PRIVATE), imagePullSecrets=[{"name": "absent"}]), codes(61), ("imagePullSecret absent",)
    ),
    "wrong-pull-secret": Situation(
        pod(container(image=PRIVATE), imagePullSecrets=[{"name": "login"}]),
        codes(61),
        (PRIVATE,),
        objects=(WRONG_LOGIN,),
        never=("does not exist",),
    ),
    "image-name": Situation(main(image="Upper/CASE:1"), codes(62), ("Upper/CASE:1",)),
    "runtime-handler": Situation(
        pod(container(), runtimeClassName="situation-no-handler"),
        codes(113),
        ("absent",),
        objects=(
            {
                "apiVersion": "node.k8s.io/v1",
                "kind": "RuntimeClass",
                "metadata": {"name": "situation-no-handler"},
                "handler": "absent",
            },
        ),
    ),
    "runtime-class": Situation(pod(container(), runtimeClassName="absent"), codes(27), ("absent",)),
}
