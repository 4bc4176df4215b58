"""How lists and objects of built-in kinds merge: list map keys, patch keys and atomic types, as in core v1.

Other lists are atomic, other objects granular (R-API-8 lists the keys of pods).
"""

LIST_KEYS: dict[str, tuple[str, ...]] = {
    "ObjectMeta.ownerReferences": ("uid",),
    "PodSpec.volumes": ("name",),
    "PodSpec.initContainers": ("name",),
    "PodSpec.containers": ("name",),
    "PodSpec.ephemeralContainers": ("name",),
    "PodSpec.imagePullSecrets": ("name",),
    "PodSpec.hostAliases": ("ip",),
    "PodSpec.topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "PodSpec.schedulingGates": ("name",),
    "PodSpec.resourceClaims": ("name",),
    "Container.ports": ("containerPort", "protocol"),
    "Container.env": ("name",),
    "Container.volumeMounts": ("mountPath",),
    "Container.volumeDevices": ("devicePath",),
    "EphemeralContainer.ports": ("containerPort", "protocol"),
    "EphemeralContainer.env": ("name",),
    "EphemeralContainer.volumeMounts": ("mountPath",),
    "EphemeralContainer.volumeDevices": ("devicePath",),
    "ResourceRequirements.claims": ("name",),
    "PodStatus.conditions": ("type",),
    "PodStatus.podIPs": ("ip",),
    "PodStatus.resourceClaimStatuses": ("name",),
    "ContainerStatus.volumeMounts": ("mountPath",),
    "ContainerStatus.allocatedResourcesStatus": ("name",),
    "ResourceStatus.resources": ("resourceID",),
    "DeploymentStatus.conditions": ("type",),
    "HorizontalPodAutoscalerStatus.conditions": ("type",),
    "ReplicaSetStatus.conditions": ("type",),
    "StatefulSetStatus.conditions": ("type",),
    "ServiceSpec.ports": ("port", "protocol"),
    "ServiceStatus.conditions": ("type",),
    "ServiceAccount.secrets": ("name",),
    "NodeStatus.conditions": ("type",),
    "NodeStatus.addresses": ("type",),
    "NamespaceStatus.conditions": ("type",),
    "PersistentVolumeClaimStatus.conditions": ("type",),
    "CustomResourceDefinitionStatus.conditions": ("type",),
    "MutatingWebhookConfiguration.webhooks": ("name",),
    "ValidatingWebhookConfiguration.webhooks": ("name",),
    "MutatingWebhook.matchConditions": ("name",),
    "ValidatingWebhook.matchConditions": ("name",),
}
"""Lists whose items are identified by keys; the first key is the key of the strategic merge patch."""

LIST_SETS = {"ObjectMeta.finalizers", "NodeSpec.podCIDRs"}
"""Lists of scalars that are sets; the strategic merge patch merges them."""

PATCH_ONLY_KEYS = {"PodStatus.hostIPs": "ip"}
"""Lists that are atomic for field ownership, and merged by the strategic merge patch."""

WITHOUT_PATCH_KEY = {"PodStatus.resourceClaimStatuses", "ResourceRequirements.claims", "ResourceStatus.resources"}
"""Lists with keys that the strategic merge patch replaces as a whole."""

ATOMIC_TYPES = {
    "ConfigMapKeySelector", "CrossVersionObjectReferenceV1", "FileKeySelector", "LabelSelector", "LocalObjectReference", "NodeSelector",
    "NodeSelectorTerm", "ObjectFieldSelector", "ObjectReference", "OwnerReference", "ResourceFieldSelector",
    "SecretKeySelector", "TopologySelectorTerm", "TypedLocalObjectReference",
}  # fmt: skip
"""Objects that are owned and replaced as a whole."""

ATOMIC_FIELDS = {"PodSpec.nodeSelector", "ServiceSpec.selector"}
"""Free maps that are owned and replaced as a whole."""
